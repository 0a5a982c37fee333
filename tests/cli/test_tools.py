#!/usr/bin/env python3
"""`pith run --tools`: calls are made in the model's own form, taken out of the reply, and their arguments are valid by the tool's schema;
what --schema, --grammar and --tools cannot take is refused in one sentence.
    tests/cli/test_tools.py PITH_PROGRAM [WORD ...]       runs the cases whose name has one of the WORDs
Cases with a real model are skipped where $PITH_TEST_MODELS lacks qwen-0.5b-q4_k_m.gguf. Ends with "N passed, N failed, N skipped"."""
import json
import os
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tiny_gguf
from case_runner import MODELS, ROOT, Skip, expect, run_cases

TINY = os.path.join(ROOT, "tests/data/arch/qwen2-q8_0.gguf")
WINE = os.environ.get("PITH_CLI_WRAPPER", "").split()
FOLDER = tempfile.mkdtemp()
TEMPLATE = ("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}{% if tools %}call with <tool_call>{\"name\": ..., \"arguments\": ...}"
            "</tool_call>{% for t in tools %}{{ t | tojson }}{% endfor %}{% endif %}")


def function(name, **parameters):
    return {"type": "function", "function": {"name": name, "description": name.replace("_", " "), **({"parameters": parameters} if parameters else {})}}


SET = function("set_light", type="object", properties={"room": {"enum": ["hall", "attic"]}, "level": {"type": "integer", "minimum": 0, "maximum": 100}},
               required=["room", "level"], additionalProperties=False)
NOW = function("now")


def file(name, content):
    path = os.path.join(FOLDER, name)
    with open(path, "w", encoding="utf-8") as out:
        out.write(content if isinstance(content, str) else json.dumps(content))
    return path


def pith(*arguments, code=0, timeout=300):
    result = subprocess.run([*WINE, PROGRAM, *map(str, arguments)], capture_output=True, timeout=timeout, check=False, stdin=subprocess.DEVNULL)
    message = result.stderr.decode("utf-8", "replace")
    expect(result.returncode == code, "exit code", result.returncode, "expected", code, message, result.stdout)
    return result.stdout.decode() if code == 0 else message


def array_of_strings(texts):
    return struct.pack("<IQ", 8, len(texts)) + b"".join(tiny_gguf.string(text) for text in texts)


def tiny(marks_are_tokens):
    """The tiny model with a template that speaks of calls; its marks are tokens (a control token and a word) or text."""
    path = os.path.join(FOLDER, f"tiny-{marks_are_tokens}.gguf")
    if os.path.exists(path):
        return path
    tiny_gguf.with_template(TINY, path, TEMPLATE)
    if marks_are_tokens:
        gguf = tiny_gguf.Gguf(path)
        keys = dict(gguf.keys)
        raw, at, pieces = keys["tokenizer.ggml.tokens"][1], 12, []
        for _ in range(struct.unpack_from("<Q", raw, 4)[0]):
            size, = struct.unpack_from("<Q", raw, at)
            pieces.append(raw[at + 8:at + 8 + size].decode())
            at += 8 + size
        pieces[258], pieces[259] = "<tool_call>", "</tool_call>"
        types = bytearray(keys["tokenizer.ggml.token_type"][1])
        struct.pack_into("<ii", types, 12 + 4 * 258, 3, 4)
        keys["tokenizer.ggml.tokens"] = (tiny_gguf.ARRAY, array_of_strings(pieces))
        keys["tokenizer.ggml.token_type"] = (tiny_gguf.ARRAY, bytes(types))
        del keys["tokenizer.ggml.unknown_token_id"], keys["tokenizer.ggml.padding_token_id"]
        tiny_gguf.write(path, keys, gguf.tensors)
    return path


def ask(model, tools, *options, n=400, prompt="go"):
    return json.loads(pith("run", "-m", model, "--tools", file("tools.json", tools), "--json", "--no-record", "--cache", "off", "-n", n, *options, prompt))


def check_light(arguments):
    expect(set(arguments) == {"room", "level"} and arguments["room"] in ("hall", "attic") and isinstance(arguments["level"], int)
           and 0 <= arguments["level"] <= 100, "arguments that the schema does not allow", arguments)


def check_call(call):
    expect(call["type"] == "function", call)
    arguments = json.loads(call["function"]["arguments"])
    if call["function"]["name"] == "set_light":
        check_light(arguments)
    else:
        expect(call["function"]["name"] == "now" and arguments == {}, "a call of no tool", call)


def case_required_calls_are_made_and_parsed():
    for marks in (False, True):
        for seed in range(6):
            reply = ask(tiny(marks), [SET, NOW], "--tool-choice", "required", "--temp", 1, "--seed", seed)
            whole = reply["stop_reason"] == "end"
            expect(reply["text"] == "" or not whole, "text beside required calls", reply["text"])
            expect(reply["tool_calls"] or not whole, "no call in a reply that ended", reply)
            for call in reply["tool_calls"]:
                check_call(call)
            expect((258 in reply["ids"]) == marks, "the mark is not the token", reply["ids"])


def case_several_calls_where_they_are_asked_for():
    reply = ask(tiny(True), [NOW], "--tool-choice", "required", "--parallel-tools", "--logit-bias", "198+50", "--logit-bias", "257-20", n=150)
    expect(len(reply["tool_calls"]) > 1, reply)
    reply = ask(tiny(True), [NOW], "--tool-choice", "required", n=150)
    expect(len(reply["tool_calls"]) == 1 and reply["stop_reason"] == "end", reply)


def case_one_tool_by_name():
    for seed in range(3):
        reply = ask(tiny(True), [SET, NOW], "--tool-choice", "now", "--temp", 1, "--seed", seed)
        expect(reply["tool_calls"] or reply["stop_reason"] != "end", reply)
        expect(all(call["function"]["name"] == "now" for call in reply["tool_calls"]), reply)


def case_none_calls_nothing():
    reply = ask(tiny(True), [SET], "--tool-choice", "none", "--temp", 1, "--logit-bias", "258+50", n=40)
    expect(reply["tool_calls"] == [] and 258 not in reply["ids"], reply)


def case_auto_lets_text_be_text_and_calls_be_calls():
    reply = ask(tiny(True), [SET], "--temp", 1, n=40)
    expect(reply["tool_calls"] == [] or reply["stop_reason"] == "end", reply)
    reply = ask(tiny(True), [SET], "--temp", 1, "--logit-bias", "258+100")
    expect(reply["ids"][0] == 258, "the biased mark does not come first", reply["ids"][:5])
    for call in reply["tool_calls"]:
        check_call(call)


def case_calls_follow_the_text_line_by_line():
    out = pith("run", "-m", tiny(True), "--tools", file("tools.json", [NOW]), "--tool-choice", "now", "--no-record", "--cache", "off", "-n", 200, "go")
    expect(json.loads(out) == {"name": "now", "arguments": "{}"}, out)


def case_a_list_in_an_object_is_taken():
    ask(tiny(True), {"tools": [NOW], "model": "x"}, "--tool-choice", "now", n=40)


def case_misuse_is_told():
    model, tools = tiny(True), file("tools.json", [SET])
    run = ["run", "-m", model, "--no-record"]
    for options, code, words in (
            (["--tool-choice", "auto"], 2, ["--tool-choice needs --tools"]),
            (["--parallel-tools"], 2, ["--parallel-tools needs --tools"]),
            (["--tools", tools, "--regex", "a"], 2, ["--tools", "grammar"]),
            (["--tools", tools, "--raw"], 2, ["--tools", "--raw"]),
            (["--tools", tools, "--tool-choice", "set"], 1, ["no tool is called set"]),
            (["--tools", file("a.json", "[{")], 1, ["a.json", "line 1"]),
            (["--tools", file("b.json", "3")], 1, ["b.json"]),
            (["--tools", file("b.json", "{}")], 1, ["no list of tools"]),
            (["--tools", file("b2.json", [])], 1, ["1 to 4096"]),
            (["--tools", file("d.json", [NOW, SET, NOW])], 1, ["tools[2]", "now", "tools[0]"]),
            (["--tools", file("c.json", [function("f", type="object", properties={"a": {"tipe": "string"}})])], 1, ["tool f", "#/properties/a"]),
            (["--tools", os.path.join(FOLDER, "nowhere.json")], 1, ["nowhere.json"])):
        message = pith(*run, *options, "go", code=code)
        expect(message.startswith("pith: ") or "\npith: " in message, message)
        for word in words:
            expect(word in message, options, message)
    plain = tiny_gguf.with_template(TINY, os.path.join(FOLDER, "plain.gguf"), "{% for m in messages %}{{ m.content }}{% endfor %}")
    expect("how tools are called" in pith("run", "-m", plain, "--tools", tools, "go", code=1), "a template without calls")
    expect("template" in pith("run", "-m", TINY, "--tools", tools, "go", code=1), "a model without template")


def case_bad_grammars_and_schemas_are_one_sentence():
    run = ["run", "-m", TINY, "--raw", "--no-record", "-n", 4]
    wide = {"type": "object", "properties": {f"k{i}": {"type": "string", "pattern": f"(a|b){{1,200}}{i}(c|d)*", "maxLength": 300} for i in range(300)}}
    for option, content, words in (
            ("--grammar", 'root ::= a\na ::= b "x"\nb ::= a', ["left recursive"]),
            ("--grammar", 'root ::= "x" nothing', ["nothing"]),
            ("--grammar", 'root ::= "x" root', ["root"]),
            ("--grammar", 'root ::= "x"{5,2}', ["line 1"]),
            ("--schema", {"type": "integer", "minimum": 5, "maximum": 4}, ["JSON schema, #"]),
            ("--schema", {"type": "object", "properties": {"a": False}, "required": ["a"]}, ["JSON schema, #"]),
            ("--schema", {"properties": {"a": {"contains": {"type": "string"}}}}, ["#/properties/a"]),
            ("--schema", {"$ref": "#"}, ["JSON schema, #"]),
            ("--schema", wide, ["JSON schema, #/properties/"])):
        message = pith(*run, option, file("bad", content), "go", code=1)
        lines = [line for line in message.splitlines() if line.startswith("pith: ")]
        expect(len(lines) == 1 and len(lines[0]) < 260, message)
        for word in words:
            expect(word in lines[0], option, str(content)[:200], lines[0])


def case_a_schema_of_100_kb_is_held():
    schema = {"type": "object", "properties": {f"key number {i}": {"enum": [f"value {k} of {i}" for k in range(5)]} for i in range(900)}, "required": ["key number 0"]}
    size = len(json.dumps(schema))
    expect(size > 100000, size)
    reply = json.loads(pith("run", "-m", TINY, "--raw", "--no-record", "--json", "-n", 60, "--temp", 1, "--schema", file("large.json", schema), "go"))
    expect(reply["text"].startswith("{") and '"key number 0":' in reply["text"], reply["text"])


# ---- a real model ----

CITY = function("get_weather", type="object", properties={"city": {"type": "string", "maxLength": 40}, "unit": {"enum": ["celsius", "fahrenheit"]},
                                                         "days": {"type": "integer", "minimum": 1, "maximum": 7}}, required=["city", "unit", "days"])
MAIL = function("send_mail", type="object", properties={"to": {"type": "string", "format": "email"}, "subject": {"type": "string", "maxLength": 60}},
                required=["to", "subject"], additionalProperties=False)


def qwen():
    path = os.path.join(MODELS, "qwen-0.5b-q4_k_m.gguf")
    if not MODELS or not os.path.exists(path):
        raise Skip("qwen-0.5b-q4_k_m.gguf is not in $PITH_TEST_MODELS")
    return path


def case_a_conversation_is_shortened_beside_tools_of_any_text():
    tool = function("now")
    tool["function"]["description"] = "the time,\0 now"
    answer = ask(tiny(True), [tool], "--overflow", "summarise", "-c", 512, n=16, prompt="herons are patient. " * 60)
    expect(answer["timings"]["summary_n"] > 0, answer)


def case_qwen_calls_tools_with_valid_arguments():
    n_calls = 0
    for prompt, name in (("What is the weather in Paris in celsius for the next 3 days?", "get_weather"),
                         ("Send a mail to ada@example.org with the subject 'lunch'.", "send_mail"),
                         ("How warm will it be in Tokyo tomorrow, in fahrenheit?", "get_weather")):
        for options in ([], ["--tool-choice", "required"], ["--tool-choice", name]):
            reply = ask(qwen(), [CITY, MAIL], *options, n=200, prompt=prompt)
            expect(reply["stop_reason"] == "end", prompt, reply["text"], reply["stop_reason"])
            expect(len(reply["tool_calls"]) == 1 or not options, prompt, options, reply["text"])
            for call in reply["tool_calls"]:
                n_calls += 1
                arguments = json.loads(call["function"]["arguments"])
                expect("<tool_call>" not in reply["text"], reply["text"])
                if options[1:] == [name]:
                    expect(call["function"]["name"] == name, call)
                if call["function"]["name"] == "get_weather":
                    expect(len(arguments["city"]) <= 40 and arguments["unit"] in ("celsius", "fahrenheit") and 1 <= arguments["days"] <= 7, arguments)
                else:
                    expect("@" in arguments["to"] and len(arguments["subject"]) <= 60, arguments)
    print(f"    {n_calls} calls in 9 replies")
    expect(n_calls >= 6, "few calls", n_calls)


def case_qwen_answers_in_text_where_no_tool_is_needed():
    reply = ask(qwen(), [CITY], "--tool-choice", "none", n=40, prompt="What is 2 + 2?")
    expect(reply["tool_calls"] == [] and "<tool_call>" not in reply["text"], reply["text"])


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    PROGRAM = sys.argv[1]
    sys.exit(run_cases(globals(), sys.argv[2:]))
