#!/usr/bin/env python3
"""The protocols of `pith serve` beside OpenAI's chat: embeddings, ranking, Ollama's and Anthropic's API, responses, adapters, fairness.
    tests/cli/test_protocols.py PITH_PROGRAM [WORD ...]       runs the cases whose name has one of the WORDs
Ends with "N passed, N failed, N skipped"."""
import base64
import contextlib
import json
import math
import os
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_serve
from case_runner import MODELS, Skip, default_model, expect, run_cases
from test_serve import CHAT, PLAIN, chat, plain, serving, tiny_model

EMBED, RANK = "/v1/embeddings", "/v1/rerank"


def refused(server, path, body, param, code=None, status=400):
    """The field is named, in the shape of OpenAI's API."""
    error = server.post(path, body, status)["error"]
    expect(error["param"] == param and (code is None or error["code"] == code), path, body, error)
    return error


# ---- Vectors --------------------------------------------------------------------------------------------------------------------------

def vector_of(server, text):
    return server.post(EMBED, {"input": text})["data"][0]["embedding"]


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


def case_a_vector_is_what_embed_makes_of_the_text():
    texts = ["hello", "another text"]
    run = subprocess.run([PROGRAM, "embed", "-m", tiny_model(), "--json", *texts], capture_output=True, timeout=300, check=True)
    own = json.loads(run.stdout)["embeddings"]
    with serving() as server:
        answer = server.post(EMBED, {"input": texts, "model": "tiny", "user": "me"})
        expect(answer["object"] == "list" and answer["model"] == "tiny" and [d["index"] for d in answer["data"]] == [0, 1], answer)
        for made, wanted in zip(answer["data"], own):
            expect(max(abs(x - y) for x, y in zip(made["embedding"], wanted)) < 1e-6 and len(made["embedding"]) == len(wanted))
            expect(abs(dot(made["embedding"], made["embedding"]) - 1) < 1e-5, "its length is not 1")
        ids = [server.post("/tokenize", {"content": text, "add_special": True})["tokens"] for text in texts]
        expect(answer["usage"] == {"prompt_tokens": sum(map(len, ids)), "total_tokens": sum(map(len, ids))}, answer["usage"], ids)
        expect(server.post(EMBED, {"input": ids})["data"] == answer["data"], "ids give other vectors than their text")
        expect(server.post(EMBED, {"input": ids[0]})["data"] == answer["data"][:1])
        packed = server.post(EMBED, {"input": texts, "encoding_format": "base64"})["data"]
        for made, plain_one in zip(packed, answer["data"]):
            data = base64.b64decode(made["embedding"], validate=True)
            expect(len(data) == 4 * len(own[0]))
            values = struct.unpack(f"<{len(own[0])}f", data)
            expect(max(abs(x - y) for x, y in zip(values, plain_one["embedding"])) < 1e-7)
        expect(server.post(EMBED, {"input": "hello", "dimensions": len(own[0])})["data"] == answer["data"][:1])


def case_a_wrong_input_of_vectors_is_named():
    with serving("--ctx", 256) as server:
        for body, param in (({}, "input"), ({"input": []}, "input"), ({"input": [1, "a"]}, "input"), ({"input": {"a": 1}}, "input"), ({"input": [99999]}, "input"),
                            ({"input": "a", "dimensions": 3}, "dimensions"), ({"input": "a", "encoding_format": "hex"}, "encoding_format"),
                            ({"input": "a", "more": 1}, "more"), ({"input": "a" * 300}, "input"), ({"input": [[]]}, "input"), ({"input": [""]}, "input")):
            refused(server, EMBED, body, param)
        server.post(EMBED, {"input": "a"}, 200)
        server.post(EMBED, {"input": "a", "model": "nobody"}, 404)


def case_documents_are_ranked_by_likeness():
    with serving() as server:
        documents = ["the cat", "hello world", {"text": "a dog"}, "hello worlds"]
        answer = server.post(RANK, {"query": "hello world", "documents": documents, "return_documents": True})
        results = answer["results"]
        expect(answer["method"] == "embedding_similarity" and sorted(r["index"] for r in results) == [0, 1, 2, 3], answer)
        expect(results[0]["index"] == 1 and abs(results[0]["relevance_score"] - 1) < 1e-5 and results[0]["document"] == {"text": "hello world"}, results)
        scores = [r["relevance_score"] for r in results]
        expect(scores == sorted(scores, reverse=True), scores)
        query = vector_of(server, "hello world")
        for r in results:
            text = documents[r["index"]] if r["index"] != 2 else "a dog"
            expect(abs(dot(query, vector_of(server, text)) - r["relevance_score"]) < 1e-5, r)
        expect(len(server.post(RANK, {"query": "x", "documents": ["a", "b"], "top_n": 1})["results"]) == 1)
        for body, param in (({"documents": ["a"]}, "query"), ({"query": "a"}, "documents"), ({"query": "a", "documents": []}, "documents"),
                            ({"query": "a", "documents": [1]}, "documents[0]"), ({"query": "a", "documents": ["b"], "top_n": 0}, "top_n"),
                            ({"query": "a", "documents": ["b"], "rank_fields": ["x"]}, "rank_fields"), ({"query": "a", "documents": [""]}, "documents")):
            refused(server, RANK, body, param)


def case_vectors_and_replies_are_made_at_once():
    with serving("--exact", "--parallel", 2) as server:
        alone, vector = server.post(CHAT, chat("hello"))["choices"], vector_of(server, "words " * 50)
        seen = []
        work = [threading.Thread(target=lambda: seen.append(server.post(CHAT, chat("hello"))["choices"] == alone)) for _ in range(6)]
        work += [threading.Thread(target=lambda: seen.append(vector_of(server, "words " * 50) == vector)) for _ in range(6)]
        for thread in work:
            thread.start()
        for thread in work:
            thread.join()
        expect(seen == [True] * 12, seen)


def case_a_client_that_leaves_ends_its_vectors():
    with serving("--ctx", 32768) as server:
        server.post(EMBED, {"input": "warm"})
        client = test_serve.send_raw(server, test_serve.request(EMBED, {"input": ["word " * 6000] * 40}))
        time.sleep(0.3)
        client.close()
        start = time.monotonic()
        server.post(EMBED, {"input": "next"})
        expect(time.monotonic() - start < 3, "the next one waited", time.monotonic() - start, "s")
        expect(server.metric("replies_cancelled_total") == 1)


def case_vectors_need_room_below_the_ceiling():
    with serving("--ctx", 512, "--parallel", 1) as server:
        server.post(CHAT, chat("x"))
        need = server.metric("model_bytes")
        server.post(EMBED, {"input": "x"})
        expect(server.metric("model_bytes") > need)
    with serving("--ctx", 512, "--parallel", 1, "--memory", int(need * 1.01)) as server:
        server.post(CHAT, chat("x"))
        status, _, text = server.ask("POST", EMBED, {"input": "x"})
        expect(status == 503 and b"ceiling" in text, status, text)
        server.post(CHAT, chat("x"))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    PROGRAM = test_serve.PROGRAM = os.path.abspath(sys.argv[1])
    if not test_serve.has_server():
        print("0 passed, 0 failed, 1 skipped: this build has no server")
        sys.exit(0)
    with tempfile.TemporaryDirectory() as FOLDER:
        test_serve.FOLDER = FOLDER
        sys.exit(run_cases(globals(), sys.argv[2:]))
