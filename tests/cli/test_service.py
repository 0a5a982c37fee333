#!/usr/bin/env python3
"""What a server needs to run as a service: options from files, variables and flags, --print-config, the word to the service manager, unit files,
man pages and completions made at build time.
    tests/cli/test_service.py PITH_PROGRAM BUILD_FOLDER [WORD ...]       runs the cases whose name has one of the WORDs
Ends with "N passed, N failed, N skipped"."""
import glob
import json
import os
import plistlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_serve as serve
from case_runner import ROOT, Skip, expect, run_cases
from test_serve import PLAIN, long_reply, request, send_raw, tiny_model

WRAPPER = os.environ.get("PITH_CLI_WRAPPER", "").split()


def run(*words, env=None, code=0):
    merged = {k: v for k, v in os.environ.items() if not k.startswith("PITH_SERVE_") and k != "PITH_API_KEY"}
    result = subprocess.run([serve.PROGRAM, *map(str, words)], capture_output=True, timeout=60, check=False, env=dict(merged, PITH_HOME=serve.FOLDER, **(env or {})))
    expect(result.returncode == code, words, env, "ended with", result.returncode, result.stderr)
    return result


def config_file(text):
    path = os.path.join(serve.FOLDER, "serve.json")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text if isinstance(text, str) else json.dumps(text, indent=1))
    return path


def effective(*words, env=None):
    return json.loads(run("serve", "--print-config", *words, env=env).stdout)


# ---- Options --------------------------------------------------------------------------------------------------------------------------

def case_flags_go_before_variables_before_the_file_before_defaults():
    path = config_file({"port": 1, "queue": 1, "parallel": 1, "cors": ["https://a.example", "https://b.example"], "exact": True, "memory": "2G", "model": "tiny"})
    shown = effective("--config", path, "--port", 3, env={"PITH_SERVE_PORT": "2", "PITH_SERVE_QUEUE": "2", "PITH_SERVE_CORS": "https://c.example,https://d.example"})
    config, source = shown["config"], shown["from"]
    expect(config["port"] == 3 and source["port"] == "--port", shown)
    expect(config["queue"] == 2 and source["queue"] == "PITH_SERVE_QUEUE", shown)
    expect(config["parallel"] == 1 and source["parallel"] == f"{path}:4", shown)
    expect(config["cors"] == ["https://c.example", "https://d.example"], "a stronger list replaces a weaker one", shown)
    expect(config["exact"] is True and config["memory"] == 2 << 30 and config["model"] == ["tiny"], shown)
    expect(config["host"] == "127.0.0.1" and source["host"] == "default", shown)
    shown = effective(env={"PITH_SERVE_CONFIG": path, "PITH_SERVE_EXACT": "false"})
    expect(shown["config"]["port"] == 1 and shown["config"]["exact"] is False, shown)


def case_what_is_printed_is_a_file_for_config():
    for words in ((), ("--port", 5, "--cors", "https://a.example", "--load", "mmap", "--exact", "--memory", "1G", "--upstream", "http://h/v1", "--upstream-model", "m")):
        shown = effective(*words)
        again = effective("--config", config_file(shown["config"]))
        expect(again["config"] == shown["config"], shown["config"], again["config"])
        expect(sorted(again["from"]) == sorted(shown["from"]))


def case_every_option_is_a_key_and_a_variable():
    line = next(json.loads(text) for text in run("help", "--json").stdout.decode().splitlines() if '"name":"serve"' in text)
    names = [o["name"] for o in line["options"] if o["name"] not in ("config", "print-config")]
    expect(sorted(effective()["from"]) == sorted(names), names)
    for option in line["options"]:
        if option["name"] in ("config", "print-config"):
            continue
        value = {"flag": True, "number": 1, "choice": option["value"].split("|")[0], "size": "1G", "list": ["https://x"], "text": "x"}[option["kind"]]
        path = config_file({option["name"]: value})
        text = subprocess.run([serve.PROGRAM, "serve", "--print-config", "--config", path], capture_output=True, timeout=60, check=False).stderr
        expect(b"there is no option" not in text and b"must be" not in text, option, text)


def case_what_is_wrong_is_named_with_its_place():
    for text, told in (('{\n "port": 1,\n "prot": 2\n}', ("line 3", "prot")), ('{"port": "8080"}', ("line 1", "port", "number")), ('{"port": 70000}', ("line 1", "65535")),
                       ('{\n\n"load": "fast"}', ("line 3", "auto|pack|mmap")), ('{"exact": 1}', ("true or false",)), ('{"cors": [1]}', ("list of texts",)),
                       ('{"port": 1,\n}', ("line 2",)), ("[]", ("JSON object",)), ("", ("line 1",)), ('{"port": 1, "port": 2}', ("port",)),
                       ('{"config": "x"}', ("config",)), ('{"print-config": true}', ("print-config",)), ('{"memory": 1.5}', ("memory",)), ('{"port": 1.5}', ("port",)),
                       ('{"port": null}', ("port",)), ('{"a": {"port": 1}}', ("\"a\"",)), ('{"cors": "x:\\"port\\": 1",\n"prt": 1}', ("line 2", "prt"))):
        message = run("serve", "--print-config", "--config", config_file(text), code=2).stderr.decode()
        expect(all(word in message for word in told), text, message)
    for env, told in (({"PITH_SERVE_PROT": "1"}, "PITH_SERVE_PROT"), ({"PITH_SERVE_PORT": "x"}, "PITH_SERVE_PORT"), ({"PITH_SERVE_EXACT": "maybe"}, "PITH_SERVE_EXACT")):
        expect(told in run("serve", "--print-config", env=env, code=2).stderr.decode(), env)
    expect("none.json" in run("serve", "--config", "none.json", code=1).stderr.decode())


def case_a_file_of_any_editor_is_read():
    shown = effective("--config", config_file('\ufeff{\r\n\t"port": 7,\r\n\t"cors": ["https://a.example"]\r\n}\r\n'))
    expect(shown["config"]["port"] == 7 and shown["from"]["cors"].endswith(":3"), shown)


def case_keys_are_not_shown():
    secret = "correct-horse-battery-staple"
    shown = run("serve", "--print-config", "--upstream", "http://h/v1", "--upstream-model", "m", "--upstream-key-env", "MY_KEY", "--route", "local-first",
                env={"MY_KEY": secret, "PITH_API_KEY": secret + "2"}).stdout.decode()
    expect(secret not in shown and json.loads(shown)["secrets"] == {"key": "set in PITH_API_KEY", "upstream key": "set in MY_KEY"}, shown)


def case_a_file_starts_a_server():
    path = config_file({"model": tiny_model(), "parallel": 2, "log-level": "debug"})
    server = serve.Server("--config", path)
    try:
        expect(server.post(PLAIN, serve.plain("text-of-a-user-zzz"))["choices"] and server.post(serve.CHAT, serve.chat("text-of-a-user-zzz"))["choices"])
        server.post(serve.CHAT, serve.chat("text-of-a-user-zzz", nonsense=1), 400)
    finally:
        server.stop()
    expect("text-of-a-user" not in server.log and "POST /v1/completions 200" in server.log, server.log)


# ---- As a service ---------------------------------------------------------------------------------------------------------------------

def case_the_service_manager_is_told():
    for name in (os.path.join(serve.FOLDER, "notify"), "\0pith-test-%d" % os.getpid()):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(name)
            manager.settimeout(30)
            server = serve.Server("-m", tiny_model(), env={"NOTIFY_SOCKET": name.replace("\0", "@")})
            expect(manager.recv(1000).startswith(b"READY=1\n"))
            server.stop()
            expect(manager.recv(1000).startswith(b"STOPPING=1\n"))
    for name in ("relative", "/nowhere/at/all", "@", "/" + "x" * 300):
        serve.Server("-m", tiny_model(), env={"NOTIFY_SOCKET": name}).stop()


def case_signals_stop_it_also_while_it_loads_and_waits():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        with serve.serving("--stop-timeout", 1, "--parallel", 1) as server:
            client, waiting = (send_raw(server, request(PLAIN, long_reply(stream=i == 0))) for i in range(2))
            server.wait_for("replies_queued", lambda n: n == 1)
            start = time.monotonic()
            server.stop(number)
            expect(time.monotonic() - start < 20)
            client.close()
            waiting.close()
    for pause in (0, 0.01, 0.05):
        server = serve.Server("-m", tiny_model())
        time.sleep(pause)
        server.stop()
    process = subprocess.Popen(["nohup", serve.PROGRAM, "serve", "-m", tiny_model(), "--port", "0"], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    while b"listening" not in process.stderr.readline():
        pass
    process.send_signal(signal.SIGHUP)
    time.sleep(0.3)
    expect(process.poll() is None, "nohup does not hold")
    process.terminate()
    process.wait(60)
    process.stderr.close()


def installed():
    """The installed tree's root."""
    if not os.path.exists(os.path.join(BUILD, "manual/man/pith.1")):
        raise Skip("pages are not built here")
    prefix = os.path.join(serve.FOLDER, "installed")
    if not os.path.exists(prefix):
        done = subprocess.run(["cmake", "--install", BUILD, "--prefix", prefix], capture_output=True, text=True, check=False)
        if "Cannot find" in done.stderr or "cannot find" in done.stderr:
            raise Skip("not everything is built here")
        expect(done.returncode == 0, done.stderr)
    return prefix


def case_unit_files_are_right():
    prefix = installed()
    found = glob.glob(prefix + "/lib/systemd/*/pith.service")
    if not sys.platform.startswith("linux"):
        raise Skip("no systemd here")
    expect(len(found) == 2, found)
    for path in found:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        expect(f"\nExecStart={prefix}/bin/pith serve\n" in text and "@" not in text.replace("@system-service", "").replace("@privileged", ""), path, text)
        if shutil.which("systemd-analyze"):
            which = ["--user"] if "/user/" in path else []
            env = dict(os.environ, XDG_RUNTIME_DIR=serve.FOLDER, HOME=serve.FOLDER)
            done = subprocess.run(["systemd-analyze", *which, "--man=no", "verify", path], capture_output=True, text=True, check=False, env=env)
            ours = [line for line in done.stderr.splitlines() if "pith" in line]
            expect(not ours, ours)
    with open(os.path.join(ROOT, "packaging/org.pith.serve.plist.in"), "rb") as file:
        plist = plistlib.load(file)
    expect(plist["ProgramArguments"][1:] == ["serve"] and plist["RunAtLoad"] is True, plist)


def case_man_pages_have_no_faults():
    prefix = installed()
    pages = sorted(glob.glob(prefix + "/share/man/man1/*.1"))
    commands = [json.loads(line)["name"] for line in run("help", "--json").stdout.decode().splitlines()[1:]]
    expect([os.path.basename(p) for p in pages] == sorted([f"pith-{c}.1" for c in commands] + ["pith.1"]), pages)
    for page in pages:
        command = os.path.basename(page)[5:-2]
        if shutil.which("mandoc"):
            done = subprocess.run(["mandoc", "-T", "lint", "-W", "error", page], capture_output=True, text=True, check=False)
            expect(done.returncode == 0, page, done.stdout)
        if shutil.which("groff"):
            done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-P-cbou", page], capture_output=True, text=True, check=False, env=dict(os.environ, LC_ALL="C.UTF-8"))
            expect(done.returncode == 0 and not done.stderr, page, done.stderr)
            if command in commands:  # every option of --help is there, in its words
                text = " ".join(done.stdout.replace("\u2010", "-").replace("\u2212", "-").split())
                for option in run(command, "--help").stdout.decode().split("\n\n")[2].splitlines()[:-1]:
                    if option.strip().startswith("-"):  # else the words of a long name's line
                        name = next(w for w in option.split() if w.startswith("--"))
                        expect(name in text, page, name)
    if not shutil.which("groff") and not shutil.which("mandoc"):
        raise Skip("neither groff nor mandoc is installed")


def complete(prefix, line, cwd=None):
    """What bash offers at the end of a line."""
    script = r'''
source "$1"
COMP_LINE=$2 COMP_POINT=${#2}
words=${2//=/ = }
COMP_WORDS=($words)
[ "${2: -1}" = " " ] && COMP_WORDS+=("")
[ "${2: -1}" = "=" ] && :
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_pith
printf '%s\n' "${COMPREPLY[@]}"
'''
    env = dict(os.environ, PATH=os.path.dirname(serve.PROGRAM) + os.pathsep + os.environ["PATH"], PITH_HOME=serve.FOLDER)
    done = subprocess.run(["bash", "--norc", "-c", script, "bash", prefix + "/share/bash-completion/completions/pith", line], capture_output=True, text=True, check=False,
                          env=env, cwd=cwd or serve.FOLDER)
    expect(not done.stderr, line, done.stderr)
    return [word for word in done.stdout.splitlines() if word]


def case_bash_completes():
    prefix = installed()
    if not shutil.which("bash"):
        raise Skip("bash is not installed")
    tiny_model()
    commands = [json.loads(line)["name"] for line in run("help", "--json").stdout.decode().splitlines()[1:]]
    expect(set(commands) < set(complete(prefix, "pith ")), complete(prefix, "pith "))
    expect(complete(prefix, "pith se") == ["serve"] and complete(prefix, "pith help ser") == ["serve"])
    expect(complete(prefix, "pith serve --upstream-k") == ["--upstream-key-env"], complete(prefix, "pith serve --upstream-k"))
    expect(complete(prefix, "pith serve --route ") == ["local-only", "local-first", "rules"])
    expect(complete(prefix, "pith serve --route l") == complete(prefix, "pith serve --route=l") == ["local-only", "local-first"])
    expect(complete(prefix, "pith run --load=") == ["auto", "pack", "mmap"], complete(prefix, "pith run --load="))
    expect(complete(prefix, "pith serve --port ") == [] and complete(prefix, "pith run --route") == [])
    expect(complete(prefix, "pith run -m tin") == ["tiny"], complete(prefix, "pith run -m tin"))
    os.makedirs(os.path.join(serve.FOLDER, "some folder"), exist_ok=True)
    config_file({})
    expect(complete(prefix, "pith serve --config ser") == ["serve.json"] and complete(prefix, "pith run --cache some") == ["some folder"])
    for command in commands:
        offered = complete(prefix, f"pith {command} --")
        shown = [w for w in run(command, "--help").stdout.decode().split() if w.startswith("--")]
        expect("--help" in offered and all(w in shown or w == "--help" for w in offered), command, offered)


def case_other_shells_take_the_files():
    prefix = installed()
    tried = 0
    for shell, path, words in (("zsh", "/share/zsh/site-functions/_pith", ["-n"]), ("fish", "/share/fish/vendor_completions.d/pith.fish", ["--no-execute"])):
        expect(os.path.getsize(prefix + path) > 5000, path)
        if not shutil.which(shell):
            continue
        done = subprocess.run([shell, *words, prefix + path], capture_output=True, text=True, check=False)
        expect(done.returncode == 0 and not done.stderr, shell, done.stderr)
        tried += 1
    if not tried:
        raise Skip("neither zsh nor fish is installed")


if __name__ == "__main__":
    serve.program_of(__doc__, 2)
    BUILD = os.path.abspath(sys.argv[2])
    if WRAPPER:
        print("0 passed, 0 failed, 1 skipped: services run without a wrapper")
        sys.exit(0)
    with tempfile.TemporaryDirectory() as serve.FOLDER:
        sys.exit(run_cases(globals(), sys.argv[3:]))
