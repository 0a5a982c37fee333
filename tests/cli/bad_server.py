"""An HTTP server that misbehaves on purpose, for test_pull.py. Every connection has a thread; what is served at a path is a Served whose
fields say how: dropped after so many bytes, without ranges, with wrong lengths, another version after so many requests. Requests and the
bytes of bodies are counted. kill() cuts all connections and the port, start() opens the same port again."""
import socket
import threading
import time


class Served:
    """What lies at a path. A callable in `answer` gets the request and gives raw bytes to send, for what no field can say."""

    def __init__(self, data=b"", **fields):
        self.data = data
        self.status = 200
        self.etag = '"first"'
        self.type = "application/octet-stream"
        self.ranges = True
        self.headers = []        # further lines
        self.drop_after = None   # bytes of a body before the connection is cut
        self.drops = 10 ** 9     # how often
        self.keep_whole = 600    # bodies up to this many bytes are not cut: the first look
        self.length_error = 0    # added to Content-Length
        self.missing = 0         # bytes at the end of the file that never come
        self.pause = 0.0         # seconds before each 64 KB
        self.refuse = []         # statuses for the next requests, e.g. [429, 503]
        self.retry_after = None
        self.location = None     # a redirect
        self.next_version = None  # (requests, Served): what lies there after so many requests
        self.answer = None
        self.__dict__.update(fields)


class Request:
    def __init__(self, method, path, headers):
        self.method, self.path, self.headers = method, path, headers


class BadServer:
    def __init__(self, paths=None):
        self.paths = dict(paths or {})
        self.requests = []
        self.sent = 0
        self.lock = threading.Lock()
        self.connections = set()
        self.port = 0
        self.tls = None  # an ssl.SSLContext
        self.start()

    # ---- life ---------------------------------------------------------------------------------------------------

    def start(self):
        self.listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        for _ in range(200):  # the old one may take a moment to go
            try:
                self.listener.bind(("127.0.0.1", self.port))
                break
            except OSError:
                time.sleep(0.01)
        self.listener.listen(64)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, args=(self.listener,), daemon=True).start()

    def kill(self):
        try:
            self.listener.shutdown(socket.SHUT_RDWR)  # wakes accept()
        except OSError:
            pass
        self.listener.close()
        with self.lock:
            for connection in self.connections:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
            self.connections.clear()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def url(self, path, host="127.0.0.1"):
        return f"http{'s' if self.tls else ''}://{host}:{self.port}{path}"

    def seen(self, path):
        return [r for r in self.requests if r.path.split("?")[0] == path]

    # ---- connections --------------------------------------------------------------------------------------------

    def accept(self, listener):
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with self.lock:
                self.connections.add(connection)
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        plain = connection
        try:
            if self.tls:
                connection = self.tls.wrap_socket(connection, server_side=True)
            buffered = b""
            while True:
                while b"\r\n\r\n" not in buffered:
                    got = connection.recv(65536)
                    if not got:
                        return
                    buffered += got
                head, buffered = buffered.split(b"\r\n\r\n", 1)
                if not self.answer(connection, self.read_request(head.decode("latin-1"))):
                    return
        except OSError:
            pass
        finally:
            with self.lock:
                self.connections.discard(plain)
            try:
                connection.close()
            except OSError:
                pass

    def read_request(self, head):
        lines = head.split("\r\n")
        method, path = lines[0].split(" ")[:2]
        headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        request = Request(method, path, headers)
        with self.lock:
            self.requests.append(request)
        return request

    # ---- answers ------------------------------------------------------------------------------------------------

    def answer(self, connection, request):
        """Whether the connection goes on."""
        path = request.path.split("?")[0]
        if "://" in path:  # as a proxy is asked
            path = "/" + path.split("://", 1)[1].split("/", 1)[1]
        with self.lock:
            served = self.paths.get(path) or self.paths.get("*")
            if served and served.next_version:
                left, other = served.next_version
                served.next_version = (left - 1, other)
                if left <= 0:
                    self.paths[path] = served = other
            refused = served.refuse.pop(0) if served and served.refuse else 0
        if served is None:
            return self.send_text(connection, 404, b"not here")
        if served.answer:
            raw = served.answer(request)
            connection.sendall(raw)
            return False
        if refused:
            more = [f"Retry-After: {served.retry_after}"] if served.retry_after is not None else []
            return self.send_text(connection, refused, b"not now", more)
        if served.location:
            return self.send_text(connection, 302, b"", [f"Location: {served.location}", *served.headers])
        if served.status != 200:
            return self.send_text(connection, served.status, served.data or b"no", served.headers)
        return self.send_file(connection, request, served)

    def send_text(self, connection, status, body, more=()):
        head = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", *more]
        connection.sendall(("\r\n".join(head) + "\r\n\r\n").encode() + body)
        return True

    def send_file(self, connection, request, served):
        first, last, status = 0, len(served.data) - 1, 200
        wanted = request.headers.get("range", "")
        condition = request.headers.get("if-range")
        if served.ranges and wanted.startswith("bytes=") and (condition is None or condition == served.etag):
            low, _, high = wanted[6:].partition("-")
            first, last, status = int(low), min(int(high) if high else last, last), 206
            if first > last:
                return self.send_text(connection, 416, b"")
        body = served.data[first:last + 1]
        head = [f"HTTP/1.1 {status} X", f"Content-Type: {served.type}", *served.headers]
        if served.length_error is not None:
            head.append(f"Content-Length: {len(body) + served.length_error}")
        if served.etag:
            head.append(f"ETag: {served.etag}")
        if status == 206:
            head.append(f"Content-Range: bytes {first}-{last}/{len(served.data)}")
        cut = len(body)
        if served.missing and last == len(served.data) - 1:
            cut = max(0, len(body) - served.missing)
        if served.drop_after is not None and served.drops > 0 and len(body) > max(served.drop_after, served.keep_whole):
            served.drops -= 1
            cut = min(cut, served.drop_after)
        connection.sendall(("\r\n".join(head) + "\r\n\r\n").encode())
        for at in range(0, cut, 65536):
            piece = body[at:min(at + 65536, cut)]
            if served.pause:
                time.sleep(served.pause)
            connection.sendall(piece)
            with self.lock:
                self.sent += len(piece)
        return cut == len(body) and not served.length_error and served.length_error is not None
