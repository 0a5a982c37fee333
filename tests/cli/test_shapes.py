#!/usr/bin/env python3
"""Requests to `pith serve` as real clients shape them: each field is heeded or refused by its path, on every protocol.
    tests/cli/test_shapes.py PITH_PROGRAM [WORD ...]       runs the cases whose name has one of the WORDs
Ends with "N passed, N failed, N skipped"."""
import json
import os
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_serve
import tiny_gguf
from case_runner import default_model, expect, run_cases
from test_protocols import events
from test_serve import CHAT, PLAIN, chat, plain, serving, tiny_model

MESSAGES, RESPONSES, TALK, GENERATE, COUNT = "/v1/messages", "/v1/responses", "/api/chat", "/api/generate", "/v1/messages/count_tokens"
WEATHER = {"name": "get_weather", "description": "Weather of a city", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}
THINKS = "{% for m in messages %}{{ m.content }}{% endfor %}{% if enable_thinking %}+{{ reasoning_effort }}{% endif %}{{ verbosity }}"
PLAINEST = "{% for m in messages %}{{ m.content }}{% endfor %}"


def model_with(name, template):
    """The tiny model with another template; None: with none."""
    path = os.path.join(FOLDER, name + ".gguf")
    if not os.path.exists(path):
        gguf = tiny_gguf.Gguf(tiny_model())
        keys = dict(gguf.keys)
        del keys["tokenizer.chat_template"]
        if template:
            keys["tokenizer.chat_template"] = (tiny_gguf.STRING, tiny_gguf.string(template))
        tiny_gguf.write(path, keys, gguf.tensors)
    return path


def claude(text, **more):
    return dict({"model": "tiny", "max_tokens": 8, "messages": [{"role": "user", "content": text}]}, **more)


def ask(words, **more):
    return dict({"input": words, "max_output_tokens": 8, "store": False}, **more)


def talk(text, options=(), **more):
    return dict({"model": "tiny", "messages": [{"role": "user", "content": text}], "stream": False, "options": dict({"num_predict": 8}, **dict(options))}, **more)


def generate(text, **more):
    return dict({"model": "tiny", "prompt": text, "stream": False, "options": {"num_predict": 8}}, **more)


def named(server, path, body, field, *words):
    """It is refused, and the field is named: as param, or where the API has none in the sentence."""
    error = server.post(path, body, 400)["error"]
    where = error if isinstance(error, str) else error.get("param", error["message"])
    expect(where and field in where, path, body, error)
    expect(all(word in str(error) for word in words), words, error)


def case_a_share_of_0_takes_the_likeliest():
    """0 is no absent field: what it would turn off draws from all."""
    with serving("--exact") as server:
        hot = {"temperature": 2, "seed": 1, "max_tokens": 30, "ignore_eos": True}
        best = server.post(PLAIN, plain("abc", **dict(hot, temperature=0)))["choices"][0]["text"]
        drawn = server.post(PLAIN, plain("abc", **hot))["choices"][0]["text"]
        expect(server.post(PLAIN, plain("abc", **dict(hot, top_p=0)))["choices"][0]["text"] == best != drawn, best, drawn)
        best = server.post(MESSAGES, claude("x", temperature=0))["content"]
        expect(server.post(MESSAGES, claude("x", temperature=2, top_p=0, seed=1))["content"] == best, best)
        answer = server.post(RESPONSES, ask("x", temperature=2, top_p=0, seed=1))
        expect(answer["output"][0]["content"][0]["text"] == best[0]["text"] and answer["top_p"] == 0, best, answer)
        best = server.post(TALK, talk("x", {"temperature": 0, "top_p": 1, "repeat_penalty": 1}))["message"]
        made = server.post(TALK, talk("x", {"temperature": 3, "seed": 1, "top_k": 0, "repeat_penalty": 1, "top_p": 0}))["message"]
        expect(made == best, made, best)
        off = talk("x", {"temperature": 3, "seed": 1, "top_k": 0, "top_p": 1, "repeat_penalty": 1, "num_predict": 40})
        narrow = dict(off, options=dict(off["options"], typical_p=0))
        expect(server.post(TALK, off)["message"] != server.post(TALK, narrow)["message"], "typical_p 0 is off")


def case_tools_that_a_template_does_not_read_are_refused():
    function = {"type": "function", "function": WEATHER}
    with serving(model=model_with("plainest", PLAINEST)) as server:
        claude_tool = {"name": "f", "input_schema": WEATHER["parameters"]}
        for path, body in ((CHAT, chat("x", tools=[function])), (RESPONSES, ask("x", tools=[dict(WEATHER, type="function")])),
                           (MESSAGES, claude("x", model="plainest", tools=[claude_tool])), (COUNT, {"model": "plainest", "messages": claude("x")["messages"], "tools": [claude_tool]}),
                           (TALK, talk("x", model="plainest", tools=[function]))):
            named(server, path, body, "tools")
        server.post(CHAT, chat("x", tools=[function], tool_choice="none"))
    with serving() as server:
        server.post(CHAT, chat("x", tools=[function]))  # its template reads them


def case_thinking_is_told_to_a_template_that_reads_it():
    with serving(model=model_with("thinks", THINKS)) as server:
        count = lambda **more: server.post(CHAT, chat("x", max_tokens=1, **more))["usage"]["prompt_tokens"]
        plain_n = count()
        expect(count(reasoning_effort="low") == plain_n + len("+low") and count(reasoning_effort="none") == plain_n and count(verbosity="high") == plain_n + len("high"))
        made = server.post(MESSAGES, claude("x", model="thinks", thinking={"type": "enabled", "budget_tokens": 8}, output_config={"effort": "low"}))["usage"]
        expect(made["input_tokens"] + made["cache_read_input_tokens"] == plain_n + len("+low"), made)
        named(server, MESSAGES, claude("x", model="thinks", thinking={"type": "enabled", "budget_tokens": 7}), "thinking.budget_tokens")
        server.post(TALK, talk("x", model="thinks", think="high"))
        server.post(RESPONSES, ask("x", reasoning={"effort": "high"}))
        named(server, CHAT, chat("x", reasoning_effort="much"), "reasoning_effort")
        named(server, RESPONSES, ask("x", reasoning={"effort": "much"}), "reasoning.effort")
    with serving() as server:  # its template has no such thing
        for path, body, field in ((CHAT, chat("x", reasoning_effort="low"), "reasoning_effort"), (RESPONSES, ask("x", reasoning={"effort": "low"}), "reasoning.effort"),
                                  (MESSAGES, claude("x", thinking={"type": "enabled", "budget_tokens": 1024}), "thinking"), (TALK, talk("x", think=True), "think"),
                                  (MESSAGES, claude("x", output_config={"effort": "low"}), "output_config.effort"), (GENERATE, generate("x", think="low"), "think")):
            named(server, path, body, field)
        server.post(TALK, talk("x", think=False))
        server.post(MESSAGES, claude("x", thinking={"type": "disabled"}))


def case_system_needs_a_template():
    with serving(model=model_with("bare", None)) as server:
        server.post(GENERATE, generate("x", model="bare"))
        named(server, GENERATE, generate("x", model="bare", system="be short"), "system")
        named(server, GENERATE, generate("x", model="bare", think=True), "think")
        named(server, GENERATE, generate("x", model="bare", raw=True, think=True), "think")
        named(server, GENERATE, generate("x", model="bare", raw=True, system="be short"), "system")
        server.post(GENERATE, generate("x", model="bare", raw=True, think=False))


def case_what_is_of_no_use_is_refused():
    with serving("--ctx", 512) as server:
        user, told = {"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}
        for more, field in (({"refusal": 7}, "refusal"), ({"audio": True}, "audio"), ({"annotations": [1]}, "annotations"), ({"function_call": {"name": "f"}}, "function_call"),
                            ({"refusal": "no"}, "refusal")):
            named(server, CHAT, {"messages": [user, dict(told, **more), user]}, "messages[1]." + field)
        server.post(CHAT, {"messages": [user, dict(told, refusal=None, audio=None, annotations=[], function_call=None), user], "max_tokens": 1})
        for path, body, field in (
                (CHAT, chat("x", user=5), "user"), (CHAT, chat("x", metadata="x"), "metadata"), ("/v1/embeddings", {"input": "a", "user": 5}, "user"),
                (CHAT, chat("x", chat_template_kwargs={"messages": []}), "chat_template_kwargs.messages"), (CHAT, chat("x", chat_template_kwargs={"tools": []}), "chat_template_kwargs.tools"),
                (CHAT, chat("x", chat_template_kwargs={"add_generation_prompt": False}), "chat_template_kwargs.add_generation_prompt"),
                (CHAT, chat("x", logit_bias={"999999": 1}), "logit_bias"), (TALK, talk("x", format={"type": "nothing"}), "format"), (TALK, talk("x", keep_alive="0x10s"), "keep_alive"),
                (TALK, talk("x", keep_alive="1e3s"), "keep_alive"), (CHAT, chat("x", seed=9223372036854775808.0), "seed")):
            named(server, path, body, field)
        server.post(CHAT, chat("x", chat_template_kwargs={"more": 1}))


def case_the_context_that_is_asked_for_holds():
    with serving("--ctx", 512) as server:
        named(server, TALK, talk("x", {"num_ctx": 1000}), "num_ctx", "512", "1000")
        named(server, TALK, talk("x", {"num_ctx": 1}), "num_ctx", "1")
        answer = server.post(TALK, talk("x", {"num_ctx": 40, "num_predict": -1, "temperature": 0}))
        expect(answer["prompt_eval_count"] + answer["eval_count"] <= 40 and answer["done_reason"] in ("length", "stop"), answer)
        named(server, "/api/embed", {"model": "tiny", "input": "a", "options": {"num_ctx": 1000}}, "num_ctx", "512", "1000")
        whole = server.post("/api/embed", {"model": "tiny", "input": "a" * 50, "options": {"num_ctx": 512}})["prompt_eval_count"]
        expect(server.post("/api/embed", {"model": "tiny", "input": "a" * 50, "options": {"num_ctx": 10}})["prompt_eval_count"] == 10 < whole, whole)


def case_what_clients_send_without_a_wish_is_taken():
    with serving() as server:
        server.post(CHAT, chat("x", frobnicate=None))
        server.stream(CHAT, chat("x", stream_options={"include_obfuscation": False}))
        named(server, CHAT, chat("x", stream=True, stream_options={"include_obfuscation": True}), "stream_options.include_obfuscation")
        server.post(CHAT, chat("x", frobnicate=1), 400)
        server.post(MESSAGES, claude("x", thinking={"type": "adaptive", "display": "summarized"}, container=None))
        for level in ("low", "medium", "high"):
            server.post(RESPONSES, ask("x", text={"verbosity": level}))
        server.post(RESPONSES, ask("x", client_metadata={"a": "b"}))
        named(server, RESPONSES, ask("x", client_metadata="b"), "client_metadata")
        error = server.post(CHAT, b'{"a": "\\u0000"}', 400)["error"]
        expect("NUL" not in error["message"] and "u0000" in error["message"], error)


def case_tools_that_are_no_functions_are_left_out_and_told():
    """Coding agents offer them with their functions, always. Nothing may hang on them: alone, or asked for by name, they are refused."""
    function, search, patch = dict(WEATHER, type="function"), {"type": "web_search", "external_web_access": False}, {"type": "custom", "name": "patch", "format": {"type": "text"}}
    with serving() as server:
        alone, beside = (server.post(RESPONSES, ask("x", tools=tools, temperature=0)) for tools in ([function], [search, function, patch]))
        expect(beside["tools"] == alone["tools"] == [function] and beside["tools_left_out"] == ["web_search", "custom"] and "tools_left_out" not in alone, beside, alone)
        expect(beside["usage"]["input_tokens"] == alone["usage"]["input_tokens"], beside, alone)
        ended = events(server, RESPONSES, ask("x", tools=[function, search]))[-1]["response"]
        expect(ended["tools_left_out"] == ["web_search"] and ended["tools"] == [function], ended)
        for tools in ([search], [patch, search]):
            named(server, RESPONSES, ask("x", tools=tools), "tools[0].type", tools[0]["type"])
        named(server, RESPONSES, ask("x", tools=[function, search], tool_choice={"type": "web_search"}), "tool_choice.type")
        named(server, RESPONSES, ask("x", tools=[function, {"type": "functoin", "name": "f"}]), "tools[1].type", "functoin")
        named(server, RESPONSES, ask("x", tools=[function, {"name": "f"}]), "tools[1].type")
        named(server, RESPONSES, ask("x", tools=[7]), "tools[0]")


def case_a_stream_begins_while_its_prompt_is_read():
    """Clients give up where no head comes, or nothing for minutes: the head comes at the first step, then something for each further one."""
    with serving("--ctx", 1024, "--step", 64, model=default_model()) as server:
        for path, body in ((CHAT, chat("a cat sat " * 120, stream=True)), (PLAIN, plain("a cow sat " * 120, stream=True)), (RESPONSES, ask("a dog sat " * 120, stream=True)),
                           (MESSAGES, claude("a pig sat " * 120, model=None, stream=True)), (TALK, talk("a rat sat " * 120, stream=True))):
            body["model"] = os.path.basename(default_model())[:-len(".gguf")]
            connection = server.connect()
            begun = time.monotonic()
            connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            head, text = time.monotonic() - begun, answer.read()
            whole = time.monotonic() - begun
            expect(answer.status == 200, path, answer.status, text)
            connection.close()
            if path == TALK:  # its form has no comments; the model is loaded by now
                expect(head < 0.9 * whole, head, whole)
            else:
                first = text.index(b"content_block_start") if path == MESSAGES else text.index(b"data: ")
                expect(text.count(b"event: ping" if path == MESSAGES else b": reading the prompt", 0, first) >= 3, path, text)


def case_a_stream_is_not_silent_while_a_call_is_written():
    """A call is told when it is whole: clients would give up on a long one."""
    form = PLAINEST + "{% if tools %}<tool_call>{\"name\": ..., \"arguments\": ...}</tool_call>{% endif %}"
    long = {"type": "object", "properties": {"text": {"type": "string", "minLength": 150, "maxLength": 160}}, "required": ["text"], "additionalProperties": False}
    tool = {"type": "function", "function": {"name": "write", "parameters": long}}
    with serving("--ctx", 1024, model=model_with("calling", form)) as server:
        for path, body in ((CHAT, chat("x", max_tokens=800, tools=[tool], tool_choice="required", parallel_tool_calls=False)),
                           (RESPONSES, ask("x", max_output_tokens=800, tools=[dict(tool["function"], type="function")], tool_choice="required", parallel_tool_calls=False)),
                           (MESSAGES, claude("x", max_tokens=800, tools=[{"name": "write", "input_schema": long}], tool_choice={"type": "any", "disable_parallel_tool_use": True}))):
            status, _, text = server.ask("POST", path, dict(body, model="calling", stream=True))
            expect(status == 200 and text.count(b": writing what is not told yet\n\n") >= 4 and b"write" in text, path, status, text)


def case_system_messages_may_stand_among_the_others():
    """Agents send reminders so. The template gets them where they stand."""
    rule = {"role": "system", "content": [{"type": "text", "text": "be short", "cache_control": {"type": "ephemeral"}}]}
    with serving(model=model_with("plainest", PLAINEST)) as server:
        count = lambda messages: server.post(COUNT, {"model": "plainest", "messages": messages})["input_tokens"]
        user, told = {"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}
        expect(count([user, rule]) == count([user, dict(rule, content="be short")]) == count([user]) + len("be short"))
        expect(count([user, told, rule]) == count([user, told, user]) + len("be short") - 1)
        server.post(MESSAGES, claude("x", model="plainest", messages=[user, rule]))
        for block, where in (({"type": "tool_result", "tool_use_id": "a", "content": "b"}, "type"), ({"type": "tool_use", "id": "a", "name": "f", "input": {}}, "type"),
                             ({"type": "thinking", "thinking": "t", "signature": ""}, "type")):
            named(server, MESSAGES, claude("x", model="plainest", messages=[user, {"role": "system", "content": [block]}]), "messages[1].content[0]." + where)
        named(server, MESSAGES, claude("x", model="plainest", messages=[{"role": "tool", "content": "x"}]), "messages[0].role", "system")


def case_edits_of_the_context_that_take_nothing_out_are_taken():
    keep_all = {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}
    tool = {"name": "f", "input_schema": WEATHER["parameters"]}
    with serving() as server:
        count = {"model": "tiny", "messages": claude("x")["messages"]}
        for more in (keep_all, {}, {"edits": []}, {"edits": None}):
            server.post(MESSAGES, claude("x", context_management=more))
            server.post(COUNT, dict(count, context_management=more))
        for edit, where in (({"type": "clear_tool_uses_20250919"}, "type"), ({"type": "compact_20260112"}, "type"), ({}, "type"),
                            ({"type": "clear_thinking_20251015"}, "keep"), ({"type": "clear_thinking_20251015", "keep": {"type": "thinking_turns", "value": 1}}, "keep"),
                            (dict(keep_all["edits"][0], more=1), "more")):
            named(server, MESSAGES, claude("x", context_management={"edits": [edit]}), "context_management.edits[0]." + where)
            named(server, COUNT, dict(count, context_management={"edits": [edit]}), "context_management.edits[0]." + where)
        server.post(MESSAGES, claude("x", tools=[dict(tool, eager_input_streaming=True, defer_loading=False)]))
        named(server, MESSAGES, claude("x", tools=[dict(tool, defer_loading=True)]), "tools[0].defer_loading")


if __name__ == "__main__":
    PROGRAM = test_serve.program_of(__doc__)
    with tempfile.TemporaryDirectory() as FOLDER:
        test_serve.FOLDER = FOLDER
        sys.exit(run_cases(globals(), sys.argv[2:]))
