#!/usr/bin/env python3
"""Many clients at once against `pith serve`, or against llama-server: errors, tokens a second over all, time to first token, memory of the
server. Prints one JSON object.
    tests/cli/load_serve.py PITH_PROGRAM|LLAMA_SERVER MODEL [--clients 8] [--seconds 30] [--tokens 64] [--parallel 8] [-- OPTION OF THE SERVER ...]
resident_growth: memory of the last quarter of the time over that of the second one, medians; a leak makes it more than 1."""
import argparse
import http.client
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import threading
import time


def percentile(values, share):
    values = sorted(values)
    return round(values[min(len(values) - 1, int(share * len(values)))], 1) if values else None


def resident(pid):
    """Bytes of memory that the process has."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return int(re.search(r"^VmRSS:\s+(\d+) kB", file.read(), re.M).group(1)) * 1024


def started(o, more):
    """The server process and its port."""
    if os.path.basename(o.program) != "llama-server":
        server = subprocess.Popen([o.program, "serve", "-m", o.model, "--port", "0", "--cache", "off", "--parallel", str(o.parallel), *more], stderr=subprocess.PIPE, text=True)
        port = int(re.search(r":(\d+)$", server.stderr.readline().strip()).group(1))
        threading.Thread(target=lambda: [None for _ in server.stderr], daemon=True).start()
        return server, port
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return subprocess.Popen([o.program, "-m", o.model, "--port", str(port), "-np", str(o.parallel), *more], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL), port


def is_ready(port):
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except OSError:
        return False


def send(connection, body):
    """The answer's head. A server may close a connection between two requests: then there is another one, as clients do it."""
    try:
        connection.request("POST", "/v1/chat/completions", body)
        return connection.getresponse()
    except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
        connection.close()
    connection.request("POST", "/v1/chat/completions", body)
    return connection.getresponse()


def client(number, options, port, end, out):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    turn = 0
    while time.monotonic() < end:
        turn += 1
        body = {"messages": [{"role": "user", "content": f"Client {number}, question {turn}: tell a story about a river."}], "temperature": 0.8, "stream": True,
                "max_tokens": options.tokens, "stream_options": {"include_usage": True}}
        start = time.monotonic()
        try:
            answer = send(connection, json.dumps(body))
            first, usage = None, None
            for line in answer:
                if line.startswith(b"data: {"):
                    first = first or time.monotonic()
                    if b'"completion_tokens"' in line:  # other events are not parsed: that would take the server's processor time
                        usage = json.loads(line[6:])["usage"]
            out.append(((first - start) * 1000, usage["completion_tokens"], answer.status == 200))
        except (OSError, ValueError, TypeError, http.client.HTTPException) as error:
            out.append((0, 0, False))
            print(f"client {number}: {type(error).__name__}: {error}", file=sys.stderr)
            connection.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("model")
    for name, value in (("clients", 8), ("seconds", 30), ("tokens", 64), ("parallel", 8)):
        parser.add_argument("--" + name, type=int, default=value)
    words = sys.argv[1:] + ["--"]
    o = parser.parse_args(words[:words.index("--")])
    rest = words[words.index("--") + 1:-1]
    server, port = started(o, rest)
    while not is_ready(port):
        time.sleep(0.1)
    memory = [resident(server.pid)]
    start, out = time.monotonic(), []
    threads = [threading.Thread(target=client, args=(i, o, port, start + o.seconds, out)) for i in range(o.clients)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        time.sleep(1)
        memory.append(resident(server.pid))
    took = time.monotonic() - start
    server.terminate()
    server.wait(60)
    good = [t for t in out if t[2]]
    times = [t[0] for t in good]
    quarter = len(memory) // 4
    growth = statistics.median(memory[3 * quarter:]) / statistics.median(memory[quarter:2 * quarter] or memory)
    print(json.dumps({"clients": o.clients, "seconds": round(took, 1), "requests": len(out), "errors": len(out) - len(good),
                      "tokens_per_second": round(sum(t[1] for t in good) / took, 1), "ttft_ms_p50": percentile(times, 0.5), "ttft_ms_p95": percentile(times, 0.95),
                      "ttft_ms_max": percentile(times, 1), "resident_mb_start": round(memory[0] / 1e6, 1), "resident_mb_end": round(memory[-1] / 1e6, 1),
                      "resident_mb_max": round(max(memory) / 1e6, 1), "resident_growth": round(growth, 3), "exit": server.returncode, "cores": os.cpu_count()}))


if __name__ == "__main__":
    main()
