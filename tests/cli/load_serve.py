#!/usr/bin/env python3
"""Many clients at once against `pith serve`: errors, tokens a second over all, time to first token, memory of the server. Prints one JSON object.
    tests/cli/load_serve.py PITH_PROGRAM MODEL [--clients 8] [--seconds 30] [--tokens 64] [--parallel 8] [-- OPTION OF SERVE ...]"""
import argparse
import http.client
import json
import os
import re
import subprocess
import sys
import threading
import time


def percentile(values, share):
    values = sorted(values)
    return round(values[min(len(values) - 1, int(share * len(values)))], 1) if values else None


def metric(port, name):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/metrics")
    return float(re.search(rf"^pith_{name} (\S+)$", connection.getresponse().read().decode(), re.M).group(1))


def client(number, options, port, end, out):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    turn = 0
    while time.monotonic() < end:
        turn += 1
        body = {"messages": [{"role": "user", "content": f"Client {number}, question {turn}: tell a story about a river."}], "temperature": 0.8, "stream": True,
                "max_tokens": options.tokens, "stream_options": {"include_usage": True}}
        start = time.monotonic()
        try:
            connection.request("POST", "/v1/chat/completions", json.dumps(body))
            answer = connection.getresponse()
            first, usage = None, None
            for line in answer:
                if line.startswith(b"data: {"):
                    event = json.loads(line[6:])
                    first = first or time.monotonic()
                    usage = event.get("usage") or usage
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
    server = subprocess.Popen([o.program, "serve", "-m", o.model, "--port", "0", "--cache", "off", "--parallel", str(o.parallel), *rest], stderr=subprocess.PIPE, text=True)
    port = int(re.search(r":(\d+)$", server.stderr.readline().strip()).group(1))
    threading.Thread(target=lambda: [None for _ in server.stderr], daemon=True).start()
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", "/health")
        if connection.getresponse().status == 200:
            break
        time.sleep(0.1)
    memory = [metric(port, "resident_bytes")]
    start, out = time.monotonic(), []
    threads = [threading.Thread(target=client, args=(i, o, port, start + o.seconds, out)) for i in range(o.clients)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        time.sleep(1)
        memory.append(metric(port, "resident_bytes"))
    took = time.monotonic() - start
    server.terminate()
    server.wait(60)
    good = [t for t in out if t[2]]
    times = [t[0] for t in good]
    print(json.dumps({"clients": o.clients, "seconds": round(took, 1), "requests": len(out), "errors": len(out) - len(good),
                      "tokens_per_second": round(sum(t[1] for t in good) / took, 1), "ttft_ms_p50": percentile(times, 0.5), "ttft_ms_p95": percentile(times, 0.95),
                      "ttft_ms_max": percentile(times, 1), "resident_mb_start": round(memory[0] / 1e6, 1), "resident_mb_end": round(memory[-1] / 1e6, 1),
                      "resident_mb_max": round(max(memory) / 1e6, 1), "exit": server.returncode, "cores": os.cpu_count()}))


if __name__ == "__main__":
    main()
