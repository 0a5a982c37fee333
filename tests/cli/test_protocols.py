#!/usr/bin/env python3
"""The protocols of `pith serve` beside OpenAI's chat: embeddings, ranking, Ollama's and Anthropic's API, responses, adapters, fairness.
    tests/cli/test_protocols.py PITH_PROGRAM [WORD ...]       runs the cases whose name has one of the WORDs
Ends with "N passed, N failed, N skipped"."""
import base64
import copy
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_serve
from case_runner import MODELS, ROOT, Skip, default_model, expect, run_cases
from test_serve import CHAT, PLAIN, chat, plain, serving, tiny_model

EMBED, RANK = "/v1/embeddings", "/v1/rerank"


def refused(server, path, body, param, code=None, status=400):
    """The field is named, in the shape of OpenAI's API."""
    error = server.post(path, body, status)["error"]
    expect(error["param"] == param and (code is None or error["code"] == code), path, body, error)
    return error


def case_the_page_names_every_route():
    with open(os.path.join(ROOT, "apps/server/route.c"), encoding="utf-8") as file:
        routes = re.findall(r'\{"(GET|POST|PUT|DELETE)", "([^"]+)"', file.read())
    with open(os.path.join(ROOT, "docs/server.md"), encoding="utf-8") as file:
        page = file.read()
    expect(len(routes) > 20)
    for method, path in routes:
        words = path.replace("*", "NAME")
        expect(f"`{words}`" in page or f"`{method} {words}`" in page, path, "is not in docs/server.md")


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
                            ({"query": "a", "documents": ["b"], "rank_fields": ["x"]}, "rank_fields"), ({"query": "a", "documents": [""]}, "documents[0]"),
                            ({"query": "a", "documents": ["b", "c", ""]}, "documents[2]"), ({"query": "", "documents": ["b"]}, "query")):
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
        server.wait_for("replies_running", lambda n: n == 1)
        client.close()
        server.post(EMBED, {"input": "next"})
        expect(server.metric("replies_cancelled_total") == 1 and server.metric("prompt_tokens_total") < 100, "its vectors were made")


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


# ---- Ollama ---------------------------------------------------------------------------------------------------------------------------

GENERATE, TALK = "/api/generate", "/api/chat"
TOOL_MODEL = "qwen-0.5b-q4_k_m.gguf"  # its template has a form of calls


def lines(server, path, body):
    """The objects of a stream of lines."""
    status, headers, text = server.ask("POST", path, body)
    expect(status == 200 and headers["Content-Type"] == "application/x-ndjson", status, text)
    return [json.loads(line) for line in text.decode().splitlines()]


def talk(text, **more):
    return dict({"model": "tiny", "messages": [{"role": "user", "content": text}], "options": {"temperature": 0, "num_predict": 24}}, **more)


def generate(text, **more):
    return dict({"model": "tiny", "prompt": text, "options": {"temperature": 0, "num_predict": 24}}, **more)


TIMES = ("created_at", "total_duration", "load_duration", "prompt_eval_duration", "eval_duration")


def fold_lines(parts):
    """The whole answer that a stream's lines make."""
    whole = copy.deepcopy({k: v for k, v in parts[-1].items() if k not in TIMES})
    expect(parts[-1]["done"] and not any(p["done"] for p in parts[:-1]), "done comes once, at the end", parts)
    for part in parts:
        for source, target in ((part, whole), (part.get("message", {}), whole.get("message", {}))):
            for key in ("response", "thinking", "content"):
                if key in source and part is not parts[-1]:
                    target[key] = target.get(key, "") + source[key]
            if "tool_calls" in source:
                target["tool_calls"] = target.get("tool_calls", []) + source["tool_calls"]
            if "logprobs" in source:
                target["logprobs"] = target.get("logprobs", []) + source["logprobs"]
    return whole


def ollama_whole(answer):
    return {k: v for k, v in answer.items() if k not in TIMES}


def case_lines_fold_to_the_whole_answer():
    with serving("--exact") as server:
        server.post(TALK, talk("fold me", stream=False))
        for path, body in ((TALK, talk("fold me")), (TALK, talk("fold me", format="json")), (TALK, talk("fold me", logprobs=True, top_logprobs=2)),
                           (GENERATE, generate("fold me")), (GENERATE, generate("fold me", system="be short")), (GENERATE, generate("abc", raw=True)),
                           (GENERATE, generate("fold me", options={"seed": 5, "temperature": 1.5, "num_predict": 20, "stop": ["e"]}))):
            whole = ollama_whole(server.post(path, dict(body, stream=False)))
            expect(fold_lines(lines(server, path, body)) == whole, body, whole)
            expect(whole["done"] and whole["done_reason"] in ("stop", "length") and whole["prompt_eval_count"] > 0 and whole["model"] == "tiny", whole)
        value = server.post(TALK, talk("x", stream=False, options={"num_predict": 200}, format={"type": "object", "properties": {"n": {"type": "integer", "maximum": 9, "minimum": 0}},
                                                                                             "required": ["n"], "additionalProperties": False}))
        expect(list(json.loads(value["message"]["content"])) == ["n"], value)
        # the chat's prompt is that of OpenAI's route
        other = server.post(CHAT, chat("fold me", repeat_penalty=1, top_k=0))
        mine = server.post(TALK, talk("fold me", stream=False, options={"temperature": 0, "num_predict": 24, "repeat_penalty": 1}))
        expect(mine["message"]["content"] == other["choices"][0]["message"]["content"], mine, other)


def case_ollama_s_fields_are_heeded_or_named():
    with serving("--ctx", 512) as server:
        for path, body, word in (
                (TALK, {"messages": []}, "model"), (TALK, talk("x", more=1), "more"), (TALK, talk("x", options={"frobnicate": 1}), "options.frobnicate"),
                (TALK, talk("x", options={"num_gpu": 1}), "options.num_gpu"), (TALK, talk("x", options={"num_ctx": 100000}), "512"),
                (TALK, talk("x", options={"temperature": "hot"}), "options.temperature"), (TALK, talk("x", options=[]), "options"),
                (TALK, talk("x", format="xml"), "format"), (TALK, talk("x", think="deeply"), "think"), (TALK, talk("x", keep_alive="soon"), "keep_alive"),
                (TALK, talk("x", messages=[{"role": "user", "content": "x", "images": ["aGk="]}]), "messages[0].images"),
                (TALK, talk("x", messages=[{"role": "boss", "content": "x"}]), "messages[0].role"), (TALK, talk("x", messages=[{"role": "user"}]), "messages[0].content"),
                (TALK, talk("x", tools=[{"type": "web"}]), "tools[0].type"), (GENERATE, generate("x", suffix="y"), "suffix"),
                (GENERATE, generate("x", template="y"), "template"), (GENERATE, generate("x", images=["a"]), "images"), (GENERATE, generate("x", context=[1]), "context"),
                (GENERATE, generate("x", raw=True, system="y"), "system"), ("/api/show", {}, "model"), ("/api/show", {"model": "tiny", "x": 1}, "x"),
                ("/api/embed", {"model": "tiny"}, "input"), ("/api/embed", {"model": "tiny", "input": "a", "options": {"seed": 1}}, "options.seed"),
                ("/api/embed", {"model": "tiny", "input": "a" * 600, "truncate": False}, "512"), ("/api/embed", {"model": "tiny", "input": "a", "dimensions": 3}, "dimensions")):
            error = server.post(path, body, 400)["error"]
            expect(isinstance(error, str) and word in error, path, body, error)
        expect("nobody" in server.post(TALK, talk("x", model="nobody"), 404)["error"])
        expect("model" in server.post("/api/show", {"model": "nobody"}, 404)["error"])
        expect(isinstance(json.loads(server.get("/api/nothing", 404))["error"], str))
        for keep in (10, "1h30m", "300ms", -1, "-1m", "0.5h"):
            server.post(TALK, talk("x", stream=False, keep_alive=keep))
        server.post(GENERATE, generate("x", suffix="", template="", system="", context=[], images=[], stream=False))
        server.post(TALK, talk("x", model="tiny:latest", stream=False))


def case_ollama_lists_shows_and_embeds():
    with serving() as server:
        server.post(TALK, talk("x", stream=False))
        tags = json.loads(server.get("/api/tags"))["models"]
        expect([t["name"] for t in tags] == ["tiny"] and tags[0]["size"] == os.path.getsize(tiny_model()) and tags[0]["details"]["family"] == "llama", tags)
        shown = server.post("/api/show", {"model": "tiny"})
        expect("completion" in shown["capabilities"] and shown["template"] == test_serve.TEMPLATE and shown["model_info"]["general.architecture"] == "llama", shown)
        expect(shown["model_info"]["llama.context_length"] == test_serve.CONTEXT and shown["model_info"]["tokenizer.ggml.tokens"] is None, shown["model_info"])
        expect(os.path.dirname(tiny_model()) not in json.dumps([tags, shown]), "a path is told")
        running = json.loads(server.get("/api/ps"))["models"]
        expect([r["name"] for r in running] == ["tiny"] and running[0]["size"] > 0 and running[0]["details"]["format"] == "gguf", running)
        expect(re.match(r"\d+\.\d+\.\d+", json.loads(server.get("/api/version"))["version"]))
        own = server.post(EMBED, {"input": ["a b", "c"]})
        made = server.post("/api/embed", {"model": "tiny", "input": ["a b", "c"]})
        expect(made["embeddings"] == [d["embedding"] for d in own["data"]] and made["prompt_eval_count"] == own["usage"]["prompt_tokens"], made)
        expect(server.post("/api/embeddings", {"model": "tiny", "prompt": "c"})["embedding"] == made["embeddings"][1])


def case_keep_alive_loads_and_takes_out():
    tiny_model()
    server = test_serve.Server("--ctx", 512, "--parallel", 1)
    try:
        answer = server.post(TALK, {"model": "tiny", "messages": []})
        expect(answer["done_reason"] == "load" and answer["message"]["content"] == "", answer)
        expect(server.metric("models_loaded") == 1)
        expect(server.post(GENERATE, {"model": "tiny"})["done_reason"] == "load")
        expect(server.post(GENERATE, {"model": "tiny", "keep_alive": 0})["done_reason"] == "unload")
        server.wait_for("models_loaded", lambda n: n == 0, 5)
        server.post(TALK, talk("x", stream=False, keep_alive="1s"))
        expect(server.metric("models_loaded") == 1)
        server.wait_for("models_loaded", lambda n: n == 0, 10)
        server.post("/api/embed", {"model": "tiny", "input": "x", "keep_alive": "1s"})
        server.wait_for("models_loaded", lambda n: n == 0, 10)
        loads = server.metric("model_loads_total")
        for path in (GENERATE, TALK):
            expect(server.post(path, {"model": "tiny", "keep_alive": 0})["done_reason"] == "unload")
        expect(server.metric("model_loads_total") == loads, "a model was loaded to take it out")
        server.post(TALK, talk("x", stream=False, keep_alive="1s"))
        server.post(TALK, talk("x", stream=False))  # what another said holds no longer
        time.sleep(2.5)
        expect(server.metric("models_loaded") == 1)
    finally:
        server.stop()


# ---- Anthropic ------------------------------------------------------------------------------------------------------------------------

MESSAGES, COUNT = "/v1/messages", "/v1/messages/count_tokens"


def claude(text, **more):
    return dict({"model": "tiny", "messages": [{"role": "user", "content": text}], "temperature": 0, "max_tokens": 24}, **more)


def events(server, path, body):
    """(name, data) of a stream whose events have names; each data has its name as type."""
    status, headers, text = server.ask("POST", path, dict(body, stream=True))
    expect(status == 200 and headers["Content-Type"] == "text/event-stream", status, text)
    out = []
    for block in text.decode().split("\n\n")[:-1]:
        if block.startswith(":"):  # a comment: the prompt is being read
            continue
        name, data = block.split("\n")
        data = json.loads(data[6:])
        expect(name == "event: " + data["type"], block)
        out.append(data)
    return out


def fold_claude(stream):
    """The message that the events make, as the clients of the API do it."""
    message = None
    for event in stream:
        kind = event["type"]
        if kind == "message_start":
            message = event["message"]
        elif kind == "content_block_start":
            expect(event["index"] == len(message["content"]), event)
            message["content"].append(dict(event["content_block"]))
            text = ""
        elif kind == "content_block_delta":
            block, delta = message["content"][event["index"]], event["delta"]
            for key in ("text", "thinking"):
                if key in delta:
                    block[key] += delta[key]
            text += delta.get("partial_json", "")
        elif kind == "content_block_stop":
            if message["content"][event["index"]]["type"] == "tool_use":
                message["content"][event["index"]]["input"] = json.loads(text)
        elif kind == "message_delta":
            message.update(event["delta"])
            message["usage"].update(event["usage"])
    expect(stream[-1]["type"] == "message_stop", stream[-1])
    return message


def without_ids(value, *more):
    """Ids differ from answer to answer."""
    if isinstance(value, dict):
        return {k: without_ids(v, *more) for k, v in value.items() if k not in ("id", "call_id", "created_at", "timings", *more)}
    return [without_ids(v, *more) for v in value] if isinstance(value, list) else value


def case_events_fold_to_the_whole_message():
    with serving("--exact", "--step", 64) as server:
        schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 0, "maximum": 9}}, "required": ["n"], "additionalProperties": False}
        for more in ({}, {"system": "be short"}, {"system": [{"type": "text", "text": "be"}, {"type": "text", "text": "short"}]}, {"stop_sequences": ["e", "a"]}, {"seed": 3, "temperature": 1},
                     {"output_config": {"format": {"type": "json_schema", "schema": schema}}, "max_tokens": 100}, {"max_tokens": 3}):
            whole = server.post(MESSAGES, claude("fold me " * 60, **more))
            stream = events(server, MESSAGES, claude("fold me " * 60, **more))
            folded = fold_claude(stream)
            expect(without_ids(folded, "usage") == without_ids(whole, "usage"), more, folded, whole)
            expect(folded["usage"]["output_tokens"] == whole["usage"]["output_tokens"], folded, whole)
            used, other = folded["usage"], whole["usage"]
            expect(used["input_tokens"] + used["cache_read_input_tokens"] == other["input_tokens"] + other["cache_read_input_tokens"], used, other)
            expect(whole["stop_reason"] in ("end_turn", "max_tokens", "stop_sequence") and whole["role"] == "assistant" and whole["type"] == "message", whole)
        expect(any(e["type"] == "ping" for e in events(server, MESSAGES, claude("other words " * 200))), "no ping while the prompt is read")
        cut = server.post(MESSAGES, claude("abc", max_tokens=200))["content"][0]["text"]
        stop = cut[len(cut) // 2]
        stopped = server.post(MESSAGES, claude("abc", max_tokens=200, stop_sequences=["\u4e2d\u4e2d", stop]))
        expect(stopped["stop_reason"] == "stop_sequence" and stopped["stop_sequence"] == stop, stopped)


def case_of_stop_sequences_that_one_is_named_which_ended_first():
    with serving(model=default_model()) as server:
        ask = claude("Name the capital of France.", model="smollm2-135m-q4_1", max_tokens=40)
        text = server.post(MESSAGES, ask)["content"][0]["text"]
        word = next(w for w in re.findall(r"[A-Za-z]{5,}", text) if text.find(w[1:3]) == text.find(w) + 1)  # a token, or a few
        stopped = server.post(MESSAGES, dict(ask, stop_sequences=[word, word[1:3]]))
        expect(stopped["stop_sequence"] == word[1:3] and stopped["content"][0]["text"] == text[:text.find(word) + 1], word, text, stopped)


def case_counted_tokens_are_those_of_the_message():
    with serving() as server:
        for more in ({}, {"system": "be short"}, {"tools": [{"name": "f", "description": "d", "input_schema": {"type": "object"}}]}):
            body = claude("count me", **more)
            used = server.post(MESSAGES, body)["usage"]
            counted = server.post(COUNT, {k: v for k, v in body.items() if k not in ("temperature", "max_tokens")})
            expect(counted == {"input_tokens": used["input_tokens"] + used["cache_read_input_tokens"]}, counted, used)


def case_blocks_become_what_the_template_reads():
    with serving() as server:
        long = [{"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}]},
                {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": ""}, {"type": "text", "text": "b"}]}, {"role": "user", "content": "c"}]
        same = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}], "max_tokens": 1}
        n = server.post(CHAT, same)["usage"]["prompt_tokens"]
        expect(server.post(COUNT, {"model": "tiny", "messages": long}) == {"input_tokens": n}, n)


def case_anthropic_s_fields_are_heeded_or_named():
    with serving() as server:
        user = {"role": "user", "content": "x"}
        for body, word in (
                (claude("x", frobnicate=1), "frobnicate"), ({k: v for k, v in claude("x").items() if k != "max_tokens"}, "max_tokens"), (claude("x", max_tokens=0), "max_tokens"),
                (claude("x", messages=[]), "messages"), (claude("x", messages=[dict(user, role="tool")]), "messages[0].role"), (claude("x", messages=[dict(user, x=1)]), "messages[0].x"),
                (claude("x", messages=[user, {"role": "assistant", "content": "go on"}]), "messages"), (claude("x", messages=[{"role": "user", "content": []}]), "messages"),
                (claude([{"type": "image", "source": {}}]), "messages[0].content[0].type"), (claude([{"type": "tool_use", "id": "a", "name": "b", "input": {}}]), "messages[0].content[0].type"),
                (claude([{"type": "tool_result", "content": "x"}]), "messages[0].content[0].tool_use_id"), (claude("x", system=3), "system"),
                (claude("x", tools=[{"type": "web_search_20250305", "name": "w"}]), "tools[0].type"), (claude("x", tools=[{"name": "w"}]), "tools[0].input_schema"),
                (claude("x", tool_choice={"type": "any"}), "tool_choice.type"), (claude("x", thinking={"type": "often"}), "thinking.type"), (claude("x", temperature=3), "temperature"),
                (claude("x", stop_sequences=[""]), "stop_sequences"), (claude("x", mcp_servers=[]), "mcp_servers"), (claude("x", output_config={"effort": "low"}), "output_config.effort"),
                (claude("x", thinking={"type": "enabled", "budget_tokens": 9}), "thinking")):
            answer = server.post(MESSAGES, body, 400)
            expect(answer["type"] == "error" and answer["error"]["type"] == "invalid_request_error" and word in answer["error"]["message"], body, answer)
        expect(server.post(MESSAGES, claude("x", model="nobody"), 404)["error"]["type"] == "not_found_error")
        server.post(MESSAGES, claude("x", metadata={"user_id": "a"}, thinking={"type": "adaptive", "display": "summarized"}, output_config={"effort": "high"}, service_tier="auto"))
    with serving(env={"PITH_API_KEY": "correct-horse"}) as server:
        expect(server.post(MESSAGES, claude("x"), 401)["error"]["type"] == "authentication_error")
        server.post(MESSAGES, claude("x"), headers={"x-api-key": "correct-horse", "anthropic-version": "2023-06-01"})


# ---- Responses ------------------------------------------------------------------------------------------------------------------------

RESPONSES = "/v1/responses"


def ask(question, /, **more):
    return dict({"input": question, "temperature": 0, "max_output_tokens": 24}, **more)


def fold_responses(stream):
    """The items that the deltas make; that the other events agree is checked on the way."""
    items, texts = [], {}
    for number, event in enumerate(stream):
        expect(event["sequence_number"] == number, event)
        kind, at = event["type"], event.get("output_index")
        if kind == "response.output_item.added":
            expect(at == len(items), event)
            items.append(event["item"])
            texts[at] = ""
        elif kind.endswith(".delta"):
            expect(event["item_id"] == items[at]["id"], event, items[at])
            texts[at] += event["delta"]
        elif kind in ("response.output_text.done", "response.reasoning_text.done"):
            expect(event["text"] == texts[at], event, texts)
        elif kind == "response.function_call_arguments.done":
            expect(event["arguments"] == texts[at], event, texts)
        elif kind == "response.output_item.done":
            expect(event["item"]["id"] == items[at]["id"] and event["item"]["status"] == "completed", event)
            items[at] = event["item"]
    last = stream[-1]["response"]
    expect(stream[0]["type"] == "response.created" and last["output"] == items, items, last)
    return last


def case_events_fold_to_the_whole_response():
    with serving("--exact") as server:
        schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 0, "maximum": 9}}, "required": ["n"], "additionalProperties": False}
        for more in ({}, {"instructions": "be short"}, {"seed": 3, "temperature": 1, "top_p": 0.9}, {"text": {"format": {"type": "json_object"}}, "max_output_tokens": 60},
                     {"text": {"format": {"type": "json_schema", "name": "n", "schema": schema}}, "max_output_tokens": 100}, {"max_output_tokens": 3},
                     {"include": ["message.output_text.logprobs"], "top_logprobs": 2}):
            whole = server.post(RESPONSES, ask("fold me", **more))
            folded = fold_responses(events(server, RESPONSES, ask("fold me", **more)))
            expect(without_ids(folded, "usage") == without_ids(whole, "usage"), more, folded, whole)
            expect(whole["status"] == ("incomplete" if whole["incomplete_details"] else "completed") and whole["store"] is False, whole)
            expect(whole["usage"]["output_tokens"] == folded["usage"]["output_tokens"], whole, folded)
        other = server.post(CHAT, chat("fold me"))["choices"][0]["message"]["content"]
        expect(server.post(RESPONSES, ask("fold me"))["output"][0]["content"][0]["text"] == other, "it is not the chat's answer")


def case_items_become_what_the_template_reads():
    with serving() as server:
        output = server.post(RESPONSES, ask("a"))["output"]
        items = [{"role": "user", "content": [{"type": "input_text", "text": "a"}]}, *output, {"type": "message", "role": "user", "content": "c"}]
        text = output[0]["content"][0]["text"]
        same = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": text}, {"role": "user", "content": "c"}], "max_tokens": 1}
        expect(server.post(RESPONSES, ask(items))["usage"]["input_tokens"] == server.post(CHAT, same)["usage"]["prompt_tokens"])


def case_fields_of_responses_are_heeded_or_named():
    with serving() as server:
        for body, param in (
                ({}, "input"), (ask([]), "input"), (ask("x", frobnicate=1), "frobnicate"), (ask("x", previous_response_id="resp_1"), "previous_response_id"), (ask("x", store=True), "store"),
                (ask("x", background=True), "background"), (ask("x", truncation="auto"), "truncation"), (ask("x", tools=[{"type": "web_search"}]), "tools[0].type"),
                (ask("x", tool_choice="required"), "tool_choice"), (ask("x", text={"format": {"type": "xml"}}), "text.format.type"), (ask("x", text={"verbosity": "loud"}), "text.verbosity"),
                (ask("x", include=["file_search_call.results"]), "include"), (ask("x", top_logprobs=2), "top_logprobs"), (ask("x", max_output_tokens=0), "max_output_tokens"),
                (ask([{"type": "item_reference", "id": "x"}]), "input[0].type"), (ask([{"role": "boss", "content": "x"}]), "input[0].role"),
                (ask([{"role": "user", "content": [{"type": "input_image"}]}]), "input[0].content[0].type"), (ask([{"type": "function_call", "name": "f"}]), "input[0].call_id"),
                (ask("x", stream_options={"include_usage": True}), "stream_options.include_usage")):
            refused(server, RESPONSES, body, param)
        server.post(RESPONSES, ask("x", store=False, user="me", reasoning={"effort": "none"}, text={"verbosity": "low"}, truncation="disabled", metadata={}, frobnicate=None))


# ---- Tools, thoughts and schemas on every route ---------------------------------------------------------------------------------------

WEATHER = {"name": "get_weather", "description": "Weather of a city", "parameters": {
    "type": "object", "properties": {"city": {"type": "string", "maxLength": 20}}, "required": ["city"], "additionalProperties": False}}
QUESTION = "What is the weather in Paris?"


def case_every_route_calls_tools():
    model = os.path.join(MODELS, TOOL_MODEL) if MODELS else ""
    if not os.path.exists(model):
        raise Skip(f"{TOOL_MODEL} is not in $PITH_TEST_MODELS")
    name = TOOL_MODEL[:-5]
    with serving("--exact", "--ctx", 1024, model=model) as server:
        chat_tools = [{"type": "function", "function": WEATHER}]
        wanted = server.post(CHAT, chat(QUESTION, max_tokens=200, tools=chat_tools, tool_choice="required", parallel_tool_calls=False))["choices"][0]["message"]["tool_calls"][0]["function"]
        arguments = json.loads(wanted["arguments"])
        # Anthropic
        tools = [{"name": WEATHER["name"], "description": WEATHER["description"], "input_schema": WEATHER["parameters"]}]
        body = claude(QUESTION, model=name, max_tokens=200, tools=tools, tool_choice={"type": "any", "disable_parallel_tool_use": True})
        whole = server.post(MESSAGES, body)
        expect(whole["stop_reason"] == "tool_use" and without_ids(whole["content"]) == [{"type": "tool_use", "name": "get_weather", "input": arguments}], whole)
        expect(without_ids(fold_claude(events(server, MESSAGES, body)), "usage") == without_ids(whole, "usage"))
        back = body["messages"] + [{"role": "assistant", "content": whole["content"]}, {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": whole["content"][0]["id"], "content": [{"type": "text", "text": "17 degrees, rain"}]}]}]
        answer = server.post(MESSAGES, dict(body, messages=back, tool_choice={"type": "none"}))
        expect(answer["content"] and answer["content"][0]["type"] == "text" and answer["stop_reason"] != "tool_use", answer)
        # Responses
        tools = [dict(WEATHER, type="function", strict=True)]
        body = ask(QUESTION, max_output_tokens=200, tools=tools, tool_choice={"type": "function", "name": "get_weather"}, parallel_tool_calls=False)
        whole = server.post(RESPONSES, body)
        call = whole["output"][0]
        expect(len(whole["output"]) == 1 and call["type"] == "function_call" and call["name"] == "get_weather" and json.loads(call["arguments"]) == arguments, whole)
        expect(without_ids(fold_responses(events(server, RESPONSES, body)), "usage", "item_id") == without_ids(whole, "usage"))
        items = [{"role": "user", "content": QUESTION}, *whole["output"], {"type": "function_call_output", "call_id": call["call_id"], "output": "17 degrees, rain"}]
        answer = server.post(RESPONSES, dict(body, input=items, tool_choice="none"))
        expect(answer["output"][0]["type"] == "message" and answer["output"][0]["content"][0]["text"], answer)
        # Ollama
        body = talk(QUESTION, model=name, tools=chat_tools, tool_choice="required", options={"temperature": 0, "num_predict": 20, "repeat_penalty": 1})
        whole = ollama_whole(server.post(TALK, dict(body, stream=False)))
        expect(fold_lines(lines(server, TALK, body)) == whole, whole)
        calls = whole["message"].get("tool_calls")
        expect(calls and calls[0]["function"]["name"] == "get_weather" and calls[0]["function"]["arguments"] == arguments, whole)
        back = body["messages"] + [whole["message"], {"role": "tool", "tool_name": "get_weather", "content": "17 degrees, rain"}]
        answer = server.post(TALK, dict(body, messages=back, stream=False, tools=[], tool_choice="none"))
        expect(answer["message"]["content"], answer)


def case_tools_and_a_schema_go_together():
    model = os.path.join(MODELS, TOOL_MODEL) if MODELS else ""
    if not os.path.exists(model):
        raise Skip(f"{TOOL_MODEL} is not in $PITH_TEST_MODELS")
    schema = {"type": "object", "properties": {"answer": {"type": "string", "maxLength": 30}}, "required": ["answer"], "additionalProperties": False}
    shape = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}
    with serving("--exact", "--ctx", 1024, model=model) as server:
        tools = [{"type": "function", "function": WEATHER}]
        mark = server.post("/tokenize", {"content": "<tool_call>", "parse_special": True})["tokens"]
        for bias, key in ((0, "content"), (100, "tool_calls")):  # the model is small: it is pushed to call
            for seed in range(2):
                choice = server.post(CHAT, chat(QUESTION, max_tokens=300, tools=tools, response_format=shape, temperature=1, seed=seed, parallel_tool_calls=False,
                                                logit_bias={str(mark[0]): bias}))["choices"][0]
                message = choice["message"]
                if key == "content":
                    expect(choice["finish_reason"] == "stop" and list(json.loads(message["content"])) == ["answer"] and "tool_calls" not in message, choice)
                else:
                    expect(message["content"] is None and list(json.loads(message["tool_calls"][0]["function"]["arguments"])) == ["city"], choice)
        bad = server.post(CHAT, chat("x", tools=tools, response_format={"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "nothing"}}}), 400)
        expect(bad["error"]["param"] == "response_format", bad)
    with serving() as server:  # its template has no form of calls
        error = server.post(CHAT, chat("x", tools=[{"type": "function", "function": WEATHER}], response_format=shape), 400)["error"]
        expect(error["param"] == "tool_choice", error)


# ---- Adapters -------------------------------------------------------------------------------------------------------------------------

LORAS = os.path.join(ROOT, "tests/data/adapter")


def lora_text(server, **more):
    answer = server.post(PLAIN, plain([i * 37 % 250 for i in range(20)], max_tokens=40, **more))
    return answer["choices"][0]["text"]


def case_adapters_are_named_loaded_and_unloaded():
    model, file = os.path.join(LORAS, "llama.gguf"), lambda name: os.path.join(LORAS, name + ".gguf")
    arguments = lambda *specs: [part for spec in specs for part in ("--lora", spec)]

    def alone(*specs):
        with serving("--exact", *arguments(*specs), model=model) as server:
            return lora_text(server)
    without, with_a, with_b, with_both = alone(), alone(file("lora-a")), alone(file("lora-b") + ":2"), alone(file("lora-a"), file("lora-b") + ":2")
    expect(len({without, with_a, with_b, with_both}) == 4, "the adapters change nothing")
    with serving("--exact", "--lora-folder", LORAS, *arguments(file("lora-a")), model=model) as server:
        listed = {a["id"]: a for a in json.loads(server.get("/v1/adapters"))["data"]}
        expect(listed["lora-a"]["loaded"] and listed["lora-a"]["scale"] == 1 and not listed["lora-b"]["loaded"], listed)
        asks = {with_a: {}, without: {"lora": []}, with_b: {"lora": [{"id": "lora-b", "scale": 2}]}, with_both: {"lora": [{"id": "lora-a"}, {"id": "lora-b", "scale": 2}]}}
        for _ in range(2):
            for wanted, more in asks.items():
                got = lora_text(server, **more)
                expect(got == wanted, more, got, wanted)
        results = []
        threads = [threading.Thread(target=lambda w=wanted, m=more: results.append(lora_text(server, **m) == w)) for wanted, more in list(asks.items()) * 4]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        expect(results == [True] * 16, results)
        for name in ("lora-a", "lora-b"):
            data = {a["id"]: a["loaded"] for a in server.post("/v1/adapters/unload", {"id": name})["data"]}
            expect(data[name] is False, data)
        expect(lora_text(server) == without and server.post("/v1/adapters/unload", {"id": "lora-a"}, 404)["error"]["param"] == "id")
        data = {a["id"]: a for a in server.post("/v1/adapters/load", {"id": "lora-a"})["data"]}
        expect(data["lora-a"]["loaded"] and data["lora-a"]["rank"] > 0 and lora_text(server) == with_a, data)
        for body, param in (({"lora": [{"id": "nobody"}]}, "lora"), ({"lora": [{"id": "../adapter/lora-a"}]}, "lora"), ({"lora": [{"id": file("lora-a")}]}, "lora")):
            refused(server, PLAIN, plain("x", **body), param, status=404)
        for body, param in (({"lora": [{"scale": 1}]}, "lora[0].id"), ({"lora": [{"id": "lora-a", "x": 1}]}, "lora[0].x"), ({"lora": {}}, "lora"),
                            ({"lora": [{"id": "lora-a"}] * 33}, "lora"), ({"lora": [{"id": "llama"}]}, "lora")):
            refused(server, PLAIN, plain("x", **body), param)
        refused(server, "/v1/adapters/load", {"id": "a", "path": "/etc/passwd"}, "path")
    run = subprocess.run([PROGRAM, "serve", "-m", tiny_model(), "--port", "0", "--lora", file("lora-a")], capture_output=True, timeout=60, check=False)
    expect(run.returncode == 1 and b"for another one" in run.stderr, run.stderr)


# ---- Whose turn it is -----------------------------------------------------------------------------------------------------------------

def case_clients_take_turns():
    with serving("--parallel", 1, "--queue", 100, "--ctx", test_serve.CONTEXT) as server:
        order, threads = [], []

        def work(user):
            server.post(PLAIN, plain("x", user=user, max_tokens=500))
            order.append(user)
        running = test_serve.send_raw(server, test_serve.request(PLAIN, plain("abc", max_tokens=30000, stream=True)))
        server.wait_for("replies_running", lambda n: n == 1)
        for i, user in enumerate(["many"] * 12 + ["few"] * 2 + ["one"]):
            threads.append(threading.Thread(target=work, args=(user,)))
            threads[-1].start()
            server.wait_for("replies_queued", lambda n, i=i: n == i + 1)
        running.close()
        for thread in threads:
            thread.join()
        expect(set(order[:3]) == {"many", "few", "one"} and set(order[3:5]) == {"many", "few"} and order[5:] == ["many"] * 10, order)


def case_a_deadline_ends_a_reply_and_a_wait():
    with serving("--parallel", 1, "--ctx", test_serve.CONTEXT) as server:
        start = time.monotonic()
        answer = server.post(PLAIN, plain("abc", max_tokens=30000, deadline_ms=300))
        expect(time.monotonic() - start < 5 and answer["choices"][0]["finish_reason"] == "length" and answer["timings"]["stop"] == "deadline", answer)
        running = test_serve.send_raw(server, test_serve.request(PLAIN, plain("abc", max_tokens=30000, stream=True)))
        server.wait_for("replies_running", lambda n: n == 1)
        for path, body in ((PLAIN, plain("x", deadline_ms=200)), (MESSAGES, claude("x", deadline_ms=200)), (RESPONSES, ask("x", deadline_ms=200)), (TALK, talk("x", deadline_ms=200))):
            start = time.monotonic()
            status, headers, text = server.ask("POST", path, body)
            expect(status == 503 and b"deadline" in text and headers["Retry-After"] and time.monotonic() - start < 3, path, status, text)
        running.close()
        refused(server, PLAIN, plain("x", deadline_ms=0), "deadline_ms")


if __name__ == "__main__":
    PROGRAM = test_serve.program_of(__doc__)
    with tempfile.TemporaryDirectory() as FOLDER:
        test_serve.FOLDER = FOLDER
        sys.exit(run_cases(globals(), sys.argv[2:]))
