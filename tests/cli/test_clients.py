#!/usr/bin/env python3
"""The official packages of the APIs against a real `pith serve`, unchanged: openai, anthropic and ollama for Python, openai for node.
    tests/cli/test_clients.py PITH_PROGRAM [WORD ...]       runs the cases whose name has one of the WORDs
They lie in $PITH_CLIENTS, where `script/bootstrap clients` puts them, or among python's own. A package that is absent, node among them,
skips its cases with a sentence. Ends with "N of N conform"."""
import importlib
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_serve
from case_runner import MODELS, ROOT, Skip, default_model, expect, run_cases
from test_serve import serving

CLIENTS = os.environ.get("PITH_CLIENTS") or os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "pith", "clients")
sys.path.insert(0, os.path.join(CLIENTS, "python"))
KEY = "correct-horse-battery"
TOOL_MODEL = "qwen-0.5b-q4_k_m.gguf"
ASK = "Say hello."
SCHEMA = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 20}}, "required": ["city"], "additionalProperties": False}


def package(name):
    try:
        return importlib.import_module(name)
    except ImportError as reason:
        raise Skip(f"the package {name} is not installed: script/bootstrap clients brings it") from reason


def tool_model():
    path = os.path.join(MODELS, TOOL_MODEL) if MODELS else ""
    if not os.path.exists(path):
        raise Skip(f"{TOOL_MODEL} is not in $PITH_TEST_MODELS")
    return path


def started(model):
    return serving("--exact", "--ctx", 2048, model=model, env={"PITH_API_KEY": KEY})


def raises(kind, call, *words):
    try:
        call()
    except kind as error:
        expect(all(word in str(error) for word in words), words, error)
        return error
    raise AssertionError(f"{kind.__name__} was not raised")


# ---- openai (Python) ------------------------------------------------------------------------------------------------------------------

def openai_client(server):
    return package("openai").OpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key=KEY, max_retries=0)


def chat_options(**more):
    return dict({"messages": [{"role": "user", "content": ASK}], "temperature": 0, "max_tokens": 20}, **more)


def case_openai_chat_and_stream():
    package("openai")
    with started(default_model()) as server:
        client = openai_client(server)
        name = client.models.list().data[0].id
        expect(client.models.retrieve(name).id == name)
        whole = client.chat.completions.create(model=name, **chat_options(logprobs=True, top_logprobs=2))
        expect(whole.choices[0].message.content and whole.usage.completion_tokens > 0 and len(whole.choices[0].logprobs.content[0].top_logprobs) == 2, whole)
        plainly = "".join(c.choices[0].delta.content or "" for c in client.chat.completions.create(model=name, **chat_options(stream=True)))
        expect(plainly == whole.choices[0].message.content, plainly, whole)
        text, usage, finish = "", None, None
        for chunk in client.chat.completions.create(model=name, **chat_options(stream=True, stream_options={"include_usage": True})):
            for choice in chunk.choices:
                text += choice.delta.content or ""
                finish = choice.finish_reason or finish
            usage = chunk.usage or usage
        expect(text == whole.choices[0].message.content and finish == whole.choices[0].finish_reason and usage.total_tokens == whole.usage.total_tokens, text, whole)
        plain = client.completions.create(model=name, prompt="Once upon a time", max_tokens=5, temperature=0)
        pieces = "".join(c.choices[0].text for c in client.completions.create(model=name, prompt="Once upon a time", max_tokens=5, temperature=0, stream=True))
        expect(plain.choices[0].text == pieces, plain, pieces)


def case_openai_schema():
    package("openai")
    with started(default_model()) as server:
        client = openai_client(server)
        shape = {"type": "json_schema", "json_schema": {"name": "place", "strict": True, "schema": SCHEMA}}
        whole = client.chat.completions.create(model=client.models.list().data[0].id, **chat_options(response_format=shape, max_tokens=100))
        expect(list(json.loads(whole.choices[0].message.content)) == ["city"], whole)


def case_openai_tools():
    package("openai")
    with started(tool_model()) as server:
        client = openai_client(server)
        name = client.models.list().data[0].id
        tools = [{"type": "function", "function": {"name": "get_weather", "description": "Weather of a city", "strict": True, "parameters": SCHEMA}}]
        messages = [{"role": "user", "content": "What is the weather in Paris?"}]
        options = {"model": name, "messages": messages, "tools": tools, "tool_choice": "required", "parallel_tool_calls": False, "temperature": 0, "max_tokens": 100}
        message = client.chat.completions.create(**options).choices[0].message
        call = message.tool_calls[0]
        expect(call.function.name == "get_weather" and list(json.loads(call.function.arguments)) == ["city"], message)
        with client.chat.completions.stream(**options) as stream:
            final = stream.get_final_completion().choices[0].message
        expect(final.tool_calls[0].function.arguments == call.function.arguments, final)
        messages += [message.model_dump(exclude_none=True), {"role": "tool", "tool_call_id": call.id, "content": "17 degrees, rain"}]
        answer = client.chat.completions.create(model=name, messages=messages, tools=tools, tool_choice="none", temperature=0, max_tokens=40)
        expect(answer.choices[0].message.content, answer)


def case_openai_responses():
    package("openai")
    with started(tool_model()) as server:
        client = openai_client(server)
        name = client.models.list().data[0].id
        options = {"model": name, "input": ASK, "temperature": 0, "max_output_tokens": 20, "store": False}
        whole = client.responses.create(instructions="Be short.", **options)
        expect(whole.output_text and whole.usage.output_tokens > 0, whole)
        with client.responses.stream(instructions="Be short.", **options) as stream:
            text = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
            final = stream.get_final_response()
        expect(text == whole.output_text == final.output_text, text, whole)
        shape = {"format": {"type": "json_schema", "name": "place", "schema": SCHEMA, "strict": True}}
        made = client.responses.create(**dict(options, text=shape, max_output_tokens=100))
        expect(list(json.loads(made.output_text)) == ["city"], made)
        tools = [{"type": "function", "name": "get_weather", "description": "Weather of a city", "parameters": SCHEMA, "strict": True}]
        items = [{"role": "user", "content": "What is the weather in Paris?"}]
        more = {"model": name, "tools": tools, "temperature": 0, "max_output_tokens": 100, "store": False, "parallel_tool_calls": False}
        called = client.responses.create(input=items, tool_choice="required", **more)
        call = called.output[0]
        expect(call.type == "function_call" and list(json.loads(call.arguments)) == ["city"], called)
        items += [call.model_dump(exclude_none=True), {"type": "function_call_output", "call_id": call.call_id, "output": "17 degrees, rain"}]
        expect(client.responses.create(input=items, tool_choice="none", **more).output_text)


def case_openai_embeddings():
    package("openai")
    with started(default_model()) as server:
        client = openai_client(server)
        name = client.models.list().data[0].id
        made = client.embeddings.create(model=name, input=["a cat", "a dog"])  # asks for base64
        plain = client.embeddings.create(model=name, input=["a cat", "a dog"], encoding_format="float")
        for one, two in zip(made.data, plain.data):
            expect(abs(math.fsum(x * x for x in one.embedding) - 1) < 1e-4 and max(abs(x - y) for x, y in zip(one.embedding, two.embedding)) < 1e-6)


def case_openai_errors():
    openai = package("openai")
    with started(default_model()) as server:
        client = openai_client(server)
        name = client.models.list().data[0].id
        make = lambda **more: client.chat.completions.create(**dict(chat_options(model=name), **more))
        expect(raises(openai.NotFoundError, lambda: make(model="none")).code == "model_not_found")
        expect(raises(openai.BadRequestError, lambda: make(temperature=9)).param == "temperature")
        expect(raises(openai.BadRequestError, lambda: make(extra_body={"frobnicate": 1})).param == "frobnicate")
        expect(raises(openai.BadRequestError, lambda: client.responses.create(model=name, input="x", previous_response_id="a")).param == "previous_response_id")
        expect(raises(openai.BadRequestError, lambda: client.embeddings.create(model=name, input="x", dimensions=3)).param == "dimensions")
        stranger = openai.OpenAI(base_url=str(client.base_url), api_key="wrong", max_retries=0)
        raises(openai.AuthenticationError, stranger.models.list)


# ---- anthropic ------------------------------------------------------------------------------------------------------------------------

def claude_client(server, key=KEY):
    return package("anthropic").Anthropic(base_url=f"http://127.0.0.1:{server.port}", api_key=key, max_retries=0)


def claude_options(server, **more):
    name = json.loads(server.ask("GET", "/v1/models", headers={"x-api-key": KEY})[2])["data"][0]["id"]
    return dict({"model": name, "messages": [{"role": "user", "content": ASK}], "max_tokens": 20, "temperature": 0}, **more)


def temperature_of(options):
    return options.pop("temperature")


def case_anthropic_messages_and_stream():
    package("anthropic")
    with started(default_model()) as server:
        client, options = claude_client(server), claude_options(server, system="Be short.")
        extra = {"temperature": temperature_of(options)}  # newer packages have no such parameter
        whole = client.messages.create(extra_body=extra, **options)
        expect(whole.content[0].type == "text" and whole.content[0].text and whole.usage.output_tokens > 0, whole)
        with client.messages.stream(extra_body=extra, **options) as stream:
            text = "".join(stream.text_stream)
            final = stream.get_final_message()
        expect(text == whole.content[0].text == final.content[0].text and final.stop_reason == whole.stop_reason, text, whole)
        counted = client.messages.count_tokens(model=options["model"], messages=options["messages"], system="Be short.").input_tokens
        expect(counted == whole.usage.input_tokens + (whole.usage.cache_read_input_tokens or 0), counted, whole.usage)


def case_anthropic_tools():
    package("anthropic")
    with started(tool_model()) as server:
        client = claude_client(server)
        tools = [{"name": "get_weather", "description": "Weather of a city", "input_schema": SCHEMA}]
        messages = [{"role": "user", "content": "What is the weather in Paris?"}]
        options = claude_options(server, messages=messages, tools=tools, max_tokens=100, tool_choice={"type": "any", "disable_parallel_tool_use": True})
        extra = {"temperature": temperature_of(options)}
        whole = client.messages.create(extra_body=extra, **options)
        call = whole.content[0]
        expect(whole.stop_reason == "tool_use" and call.type == "tool_use" and list(call.input) == ["city"], whole)
        with client.messages.stream(extra_body=extra, **options) as stream:
            final = stream.get_final_message()
        expect(final.content[0].input == call.input, final)
        back = messages + [{"role": "assistant", "content": [call.model_dump(exclude_none=True)]},
                           {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "17 degrees, rain"}]}]
        answer = client.messages.create(**dict(options, messages=back, tool_choice={"type": "none"}), extra_body=extra)
        expect(answer.content[0].text, answer)


def case_anthropic_errors():
    anthropic = package("anthropic")
    with started(default_model()) as server:
        client, options = claude_client(server), claude_options(server)
        temperature_of(options)
        raises(anthropic.NotFoundError, lambda: client.messages.create(**dict(options, model="none")), "none")
        raises(anthropic.BadRequestError, lambda: client.messages.create(extra_body={"frobnicate": 1}, **options), "frobnicate")
        raises(anthropic.BadRequestError, lambda: client.messages.create(**dict(options, max_tokens=0)), "max_tokens")
        raises(anthropic.AuthenticationError, lambda: claude_client(server, "wrong").messages.create(**options))


# ---- ollama ---------------------------------------------------------------------------------------------------------------------------

def ollama_client(server):
    return package("ollama").Client(host=f"http://127.0.0.1:{server.port}", headers={"Authorization": f"Bearer {KEY}"})


def case_ollama_chat_generate_and_streams():
    package("ollama")
    with started(default_model()) as server:
        client = ollama_client(server)
        name = client.list().models[0].model
        options = {"temperature": 0, "num_predict": 20}
        messages = [{"role": "user", "content": ASK}]
        whole = client.chat(model=name, messages=messages, options=options)
        expect(whole.message.content and whole.done and whole.eval_count > 0 and whole.total_duration > 0, whole)
        text = "".join(part.message.content or "" for part in client.chat(model=name, messages=messages, options=options, stream=True))
        expect(text == whole.message.content, text, whole)
        whole = client.generate(model=name, prompt=ASK, options=options)
        text = "".join(part.response for part in client.generate(model=name, prompt=ASK, options=options, stream=True))
        expect(text == whole.response and text, text, whole)
        made = client.chat(model=name, messages=messages, options=dict(options, num_predict=100), format=SCHEMA)
        expect(list(json.loads(made.message.content)) == ["city"], made)
        vectors = client.embed(model=name, input=["a cat", "a dog"]).embeddings
        expect(len(vectors) == 2 and abs(math.fsum(x * x for x in vectors[0]) - 1) < 1e-4)
        expect(list(client.embeddings(model=name, prompt="a dog").embedding) == list(vectors[1]))
        expect(client.show(name).details.format == "gguf" and client.ps().models[0].model == name)


def case_ollama_tools():
    package("ollama")
    with started(tool_model()) as server:
        client = ollama_client(server)
        name = client.list().models[0].model

        def get_weather(city: str) -> str:
            """Weather of a city

            Args:
              city: its name
            """
            return city
        messages = [{"role": "user", "content": "Hello."}]
        whole = client.chat(model=name, messages=messages, tools=[get_weather], options={"temperature": 0, "num_predict": 30})
        text, calls = "", []
        for part in client.chat(model=name, messages=messages, tools=[get_weather], options={"temperature": 0, "num_predict": 30}, stream=True):
            text += part.message.content or ""
            calls += part.message.tool_calls or []
        expect(text == (whole.message.content or "") and len(calls) == len(whole.message.tool_calls or []), text, whole)
        back = messages + [{"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "get_weather", "arguments": {"city": "Paris"}}}]},
                           {"role": "tool", "tool_name": "get_weather", "content": "17 degrees, rain"}]
        expect(client.chat(model=name, messages=back, options={"temperature": 0, "num_predict": 30}).message.content)


def case_ollama_errors():
    ollama = package("ollama")
    with started(default_model()) as server:
        client = ollama_client(server)
        name = client.list().models[0].model
        messages = [{"role": "user", "content": ASK}]
        expect(raises(ollama.ResponseError, lambda: client.chat(model="none", messages=messages), "none").status_code == 404)
        raises(ollama.ResponseError, lambda: client.chat(model=name, messages=messages, options={"num_gpu": 1}), "options.num_gpu")
        raises(ollama.ResponseError, lambda: list(client.generate(model=name, prompt="x", suffix="y", stream=True)), "suffix")
        raises(ollama.ResponseError, lambda: client.embed(model=name, input="x" * 100000, truncate=False), "context")


# ---- openai (node) --------------------------------------------------------------------------------------------------------------------

def node_modules():
    if not shutil.which("node"):
        raise Skip("node is not installed")
    folder = os.path.join(CLIENTS, "node_modules")
    if not os.path.isdir(os.path.join(folder, "openai")):
        raise Skip(f"the node package openai is not in {folder}: script/bootstrap clients brings it")
    return folder


def case_openai_for_node():
    folder = node_modules()
    with started(tool_model()) as server:
        script = os.path.join(ROOT, "tests/cli/openai_client.cjs")
        run = subprocess.run(["node", script, os.path.join(folder, "openai"), f"http://127.0.0.1:{server.port}/v1", KEY], capture_output=True, timeout=300, check=False)
        expect(run.returncode == 0 and run.stdout.decode().split() == ["chat", "stream", "schema", "tools", "responses", "embeddings", "errors"], run.stdout, run.stderr)


if __name__ == "__main__":
    PROGRAM = test_serve.program_of(__doc__)
    with tempfile.TemporaryDirectory() as FOLDER:
        test_serve.FOLDER = FOLDER
        sys.exit(run_cases(globals(), sys.argv[2:], "conform"))
