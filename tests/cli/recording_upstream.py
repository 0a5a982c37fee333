"""An upstream for test_route.py: OpenAI's API as far as a router needs it. Every request is recorded whole; `mode` says how the next ones are
answered, well or badly. GET /v1/models is the router's look whether it is there and is counted apart."""
import gzip
import json
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

WORDS = ["The", " bigger", " engine", " answers", "."]


def whole(model, **more):
    return dict({"id": "up-1", "object": "chat.completion", "created": 1, "model": model, "usage": {"total_tokens": 7}, "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "".join(WORDS)}, "finish_reason": "stop"}]}, **more)


def events(model):
    """The bytes of a stream, with spacing that a router which parses and writes anew would not keep."""
    parts = [b': a comment\n\n']
    for word in WORDS:
        parts.append(b"data:  " + json.dumps({"id": "up-1", "object": "chat.completion.chunk", "model": model, "choices": [
            {"index": 0, "delta": {"content": word}, "finish_reason": None}]}, indent=None, separators=(", ", " : ")).encode() + b"\n\n")
    return parts + [b"data: [DONE]\n\n"]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        with self.server.lock:
            self.server.looks += 1
        self.send_text(200, json.dumps({"object": "list", "data": []}))

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with self.server.lock:
            self.server.bodies.append(body)
            self.server.heads.append((self.path, dict(self.headers)))
        mode = self.server.mode
        if callable(mode):
            mode(self, body)
        else:
            getattr(self, "answer_" + mode)(json.loads(body))

    def send_text(self, status, text, kind="application/json", **headers):
        data = text if isinstance(text, bytes) else text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def begin_stream(self, kind="text/event-stream; charset=utf-8"):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def chunk(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def cut(self, hard=True):
        if hard:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.connection.close()
        self.close_connection = True

    # ---- well -----------------------------------------------------------------------------------------------------

    def answer_well(self, body):
        if not body.get("stream"):
            return self.send_text(200, json.dumps(whole(body["model"]), indent=1))
        self.begin_stream()
        for part in events(body["model"]):
            self.chunk(part)
        self.chunk(b"")

    # ---- badly ----------------------------------------------------------------------------------------------------

    def answer_hangs(self, _):
        self.server.released.wait(60)
        self.cut()

    def answer_html(self, _):
        self.send_text(200, "<html><body>Welcome</body></html>", "text/html")

    def answer_html_503(self, _):
        self.send_text(503, "<html><body>Bad gateway</body></html>", "text/html")

    def answer_no_json(self, body):
        if body.get("stream"):
            self.begin_stream()
            self.chunk(b"<html>not an event</html>")
            return self.chunk(b"")
        return self.send_text(200, '{"choices": [')

    def answer_no_choices(self, _):
        self.send_text(200, '{"detail": "hello"}', "text/event-stream" if _.get("stream") else "application/json")

    def answer_too_long(self, body):  # says more bytes than it sends
        data = json.dumps(whole("m")).encode() if not body.get("stream") else events("m")[1]
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream" if body.get("stream") else "application/json")
        self.send_header("Content-Length", str(len(data) + 100))
        self.end_headers()
        self.wfile.write(data)
        self.cut(hard=False)

    def answer_too_short(self, body):  # says fewer
        data = json.dumps(whole("m")).encode() if not body.get("stream") else b"".join(events("m"))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream" if body.get("stream") else "application/json")
        self.send_header("Content-Length", str(len(data) // 2))
        self.end_headers()
        self.wfile.write(data)
        self.cut(hard=False)

    def answer_drops(self, _):
        self.begin_stream("text/event-stream" if _.get("stream") else "application/json")
        self.chunk((events("m")[1] if _.get("stream") else b'{"choices": ')[:30])
        time.sleep(0.1)  # a reset may overtake what was sent
        self.cut()

    def answer_ends_early(self, body):
        self.begin_stream("text/event-stream" if body.get("stream") else "application/json")
        self.chunk(events("m")[1] if body.get("stream") else b'{"choices": [')
        self.chunk(b"")

    def answer_redirects(self, _):
        self.send_response(307)
        self.send_header("Location", f"http://127.0.0.1:{self.server.server_port}/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def answer_wrong_kind(self, body):
        if body.get("stream"):
            return self.send_text(200, json.dumps(whole("m")))
        return self.send_text(200, b"".join(events("m")), "text/event-stream")

    def answer_large(self, body):
        self.begin_stream("text/event-stream" if body.get("stream") else "application/json")
        try:
            for _ in range(40):
                self.chunk(b" " * (1 << 20))
            self.chunk(b"")
        except OSError:
            self.cut()

    def answer_done_and_hangs(self, body):  # the stream is over, the connection is not
        self.begin_stream()
        for part in events(body["model"]):
            self.chunk(part)
        self.server.released.wait(60)
        self.cut()

    def answer_goes_on(self, body):  # after its end
        self.begin_stream()
        for part in events(body["model"]):
            self.chunk(part)
        time.sleep(0.05)
        self.chunk(b"data: {\"more\": 1}\n\n")
        self.chunk(b"")

    def answer_many_values(self, _):
        self.send_text(200, b'{"choices":[' + b"0," * (5 << 20) + b"0]}")

    def answer_compressed(self, body):
        data = gzip.compress(json.dumps(whole("m")).encode())
        self.send_text(200, data, "text/event-stream" if body.get("stream") else "application/json", Content_Encoding="gzip")

    def answer_endless_head(self, _):
        self.wfile.write(b"HTTP/1.1 200 OK\r\n")
        try:
            for i in range(100000):
                self.wfile.write(b"X-Line-%d: %s\r\n" % (i, b"y" * 1000))
        except OSError:
            self.close_connection = True

    def answer_early_hints(self, body):
        self.wfile.write(b"HTTP/1.1 103 Early Hints\r\nContent-Type: text/html\r\n\r\n" * 3)
        self.answer_well(body)

    def answer_slowly(self, _):
        """Events for as long as somebody listens; `ended` is set when nobody does."""
        self.begin_stream()
        try:
            for _ in range(3000):
                self.chunk(events("m")[1])
                time.sleep(0.01)
        except OSError:
            self.server.ended.set()
        self.cut()


class Upstream(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, port=0):
        super().__init__(("127.0.0.1", port), Handler)
        self.lock = threading.Lock()
        self.bodies, self.heads, self.looks, self.mode = [], [], 0, "well"
        self.released, self.ended = threading.Event(), threading.Event()
        self.url = f"http://127.0.0.1:{self.server_port}/v1"
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def handle_error(self, *_):
        pass

    def take(self):
        """The bodies that came since the last call."""
        with self.lock:
            bodies, self.bodies, self.heads = self.bodies, [], []
        return bodies

    def close(self):
        self.released.set()
        self.shutdown()
        self.server_close()
