#!/usr/bin/env python3
"""The history of `pith serve` and the way its page is handed out, over HTTP: trees of messages, search, export and import, limits, a
server that is killed, a disk that is full, files that are not ours.
    tests/cli/test_history.py PITH_PROGRAM [WORD ...]       runs the cases whose name has one of the WORDs
Ends with "N passed, N failed, N skipped"."""
import contextlib
import gzip
import http.client
import json
import os
import random
import resource
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_serve
from case_runner import Skip, expect, run_cases

LIST = "/pith/conversations"


def file_name(name):
    return os.path.join(FOLDER, name, "conversations.db")


def serving(*arguments, name="shared", **more):
    return test_serve.serving("--history", file_name(name), *arguments, **more)


def put(server, path, body, status=200):
    got, _, text = server.ask("PUT", path, body)
    expect(got == status, path, body, "answered", got, "expected", status, text)
    return json.loads(text)


def delete(server, path, status=200):
    got, _, text = server.ask("DELETE", path)
    expect(got == status, path, "answered", got, "expected", status, text)


def get(server, path, status=200):
    return json.loads(server.get(path, status))


def say(server, conversation, id, text, parent=None, role="user", status=200, **more):
    return put(server, f"{LIST}/{conversation}/messages/{id}", dict({"role": role, "text": text, "parent": parent}, **more), status)


def search(server, query):
    return [(hit["conversation"], hit["message"]) for hit in server.post("/pith/search", {"query": query})["hits"]]


def case_tree():
    """Messages form a tree: branches in the order they came, a leaf, settings that come back as they were."""
    with serving(name="tree") as server:
        expect(get(server, LIST) == {"conversations": [], "more": 0}, get(server, LIST))
        put(server, f"{LIST}/a", {"title": "First", "settings": {"system": "be kind", "deep": [1, {"x": None}]}})
        say(server, "a", "m1", "What is a tree?")
        say(server, "a", "m2", "A plant.", "m1", "assistant", more={"timings": {"ttft_ms": 1.5}})
        say(server, "a", "m3", "A graph without cycles.", "m1", "assistant")
        say(server, "a", "r2", "What is a bush?")
        say(server, "a", "m2", "A tall plant.", "m1", "assistant", more={"timings": {"ttft_ms": 2}})
        whole = get(server, f"{LIST}/a")
        expect([m["id"] for m in whole["messages"]] == ["m1", "m2", "m3", "r2"], whole)
        expect([m["parent"] for m in whole["messages"]] == [None, "m1", "m1", None], whole)
        expect(whole["messages"][1]["text"] == "A tall plant." and whole["messages"][1]["more"] == {"timings": {"ttft_ms": 2}}, whole)
        expect(whole["leaf"] == "m2" and whole["settings"] == {"system": "be kind", "deep": [1, {"x": None}]}, whole)
        put(server, f"{LIST}/a", {"leaf": "m3"})
        whole = get(server, f"{LIST}/a")
        expect(whole["leaf"] == "m3" and whole["title"] == "First" and whole["settings"]["system"] == "be kind", whole)
        expect(get(server, LIST)["conversations"][0]["n"] == 4, get(server, LIST))
        for wrong in ({"parent": "r2"}, {"role": "user"}):
            body = dict({"role": "assistant", "text": "x", "parent": "m1"}, **wrong)
            expect("never change" in put(server, f"{LIST}/a/messages/m2", body, 400)["error"]["message"], wrong)
        expect("not there" in say(server, "a", "m9", "x", "nobody", status=400)["error"]["message"])
        expect("not there" in say(server, "a", "m9", "x", "m9", status=400)["error"]["message"], "its own parent")
        say(server, "none", "m1", "x", status=404)
        delete(server, f"{LIST}/a")
        delete(server, f"{LIST}/a", 404)
        get(server, f"{LIST}/a", 404)


def case_order():
    """What was changed last comes first; a title or a leaf alone moves nothing."""
    with serving(name="order") as server:
        for id, changed in (("a", 100), ("b", 300), ("c", 200)):
            server.post("/pith/import", export_of({"id": id, "title": id, "changed": changed, "created": 50, "messages": [message("m", id)]}))
        expect([c["id"] for c in get(server, LIST)["conversations"]] == ["b", "c", "a"], get(server, LIST))
        put(server, f"{LIST}/a", {"title": "other"})
        expect([c["id"] for c in get(server, LIST)["conversations"]] == ["b", "c", "a"], get(server, LIST))
        say(server, "a", "m2", "more", "m")
        expect([c["id"] for c in get(server, LIST)["conversations"]] == ["a", "b", "c"], get(server, LIST))


def case_fields():
    """Ids, fields and sizes are checked by name; nothing is taken that is not kept."""
    with serving(name="fields") as server:
        put(server, f"{LIST}/a", {})
        for bad in ("a/b", "..", "%2e%2e%2fx", "a" * 65, "a b", "é", "a/messages/", "a/messages/b/c", "a/messages/b%2fc"):
            got, _, text = server.ask("PUT", f"{LIST}/{bad}".replace(" ", "%20").replace("é", "%C3%A9"), {})
            expect(got == 404 and b"an id is" in text, bad, got, text)
        for body, param in (({"name": "x"}, "name"), ({"title": 1}, "title"), ({"title": "x" * 401}, "title"), ({"leaf": "a b"}, "leaf"),
                            ({"settings": []}, "settings"), ({"settings": {"x": "y" * 300000}}, "settings")):
            expect(put(server, f"{LIST}/a", body, 400)["error"]["param"] == param, body)
        for body, param in (({"role": "user"}, "text"), ({"text": "x"}, "role"), ({"role": "root", "text": "x"}, "role"),
                            ({"role": "user", "text": "x" * (1 << 20) + "y"}, "text"), ({"role": "user", "text": "x", "more": "y"}, "more"),
                            ({"role": "user", "text": "x", "path": "/etc/passwd"}, "path"), ({"role": "user", "text": "x", "created": -1}, "created")):
            expect(put(server, f"{LIST}/a/messages/m", body, 400)["error"]["param"] == param, str(body)[:200])
        expect(server.ask("PUT", f"{LIST}/a", b"\xff{}")[0] == 400 and server.ask("PUT", f"{LIST}/a", "[]")[0] == 400)
        expect(server.ask("PUT", f"{LIST}/a/messages/m", '{"role":"user","text":"a\\u0000b"}')[0] == 400, "a text with NUL")
        expect(get(server, f"{LIST}/a")["messages"] == [], "a refused message was kept")
        expect(server.ask("POST", LIST, {})[0] == 405, "POST to the list")
        get(server, f"{LIST}/a/messages/m", 404)


def case_limits():
    """A conversation holds 12 MiB and no more; the refusal names both numbers and keeps what is there."""
    with serving(name="limits") as server:
        put(server, f"{LIST}/a", {})
        text = "x" * (1 << 20)
        for i in range(11):
            say(server, "a", f"m{i}", text, f"m{i - 1}" if i else None)
        answer = say(server, "a", "m11", text, "m10", status=400)
        expect("12.0 MiB" in answer["error"]["message"] and "12 are kept" in answer["error"]["message"], answer)
        expect(len(get(server, f"{LIST}/a")["messages"]) == 11)
        say(server, "a", "m10", "short", "m9")
        say(server, "a", "m11", text, "m10")


def case_search():
    """Words are found inside of others, in any case, in Chinese from one character on; operators are plain text."""
    with serving(name="search") as server:
        put(server, f"{LIST}/a", {"title": "Annual LEAVE"})
        put(server, f"{LIST}/b", {"title": "年假"})
        say(server, "a", "m1", "How do I apply for annual leave? 100% \"quoted\" a_b")
        say(server, "a", "m2", "You fill in form number seven.", "m1", "assistant")
        say(server, "b", "m1", "年假怎么申请？")
        for query, hits in (("annual leave", {("a", None), ("a", "m1")}), ("pply", {("a", "m1")}), ("FORM seven", {("a", "m2")}),
                            ("年假", {("b", None), ("b", "m1")}), ("申", {("b", "m1")}), ("怎么申请", {("b", "m1")}), ("form leave", set()),
                            ("100%", {("a", "m1")}), ("a_b", {("a", "m1")}), ("axb", set()), ('"quoted"', {("a", "m1")}), ("%", {("a", "m1")}),
                            ("leave OR form", set()), ("text:form", set()), ("NEAR(form seven)", set()), ("", set()), ("   ", set()),
                            ("form* seven", set()), ("'; DROP TABLE messages; --", set()), ('""', set())):
            expect(set(search(server, query)) == hits, query, search(server, query), "expected", hits)
        say(server, "a", "m2", "It is form eight.", "m1", "assistant")
        expect(search(server, "seven") == [] and search(server, "eight") == [("a", "m2")], "after a change")
        delete(server, f"{LIST}/a")
        expect(search(server, "eight") == [] and search(server, "leave") == [], "after removal")
        expect(server.ask("POST", "/pith/search", {"query": "x" * 1025})[0] == 400)


def case_no_index():
    """A file that another build wrote without keeping the index is searched right again."""
    with serving(name="no-index") as server:
        put(server, f"{LIST}/a", {})
        say(server, "a", "m1", "the elephant")
    with sqlite3.connect(file_name("no-index")) as db:
        for name in ("insert", "delete", "update"):
            db.execute(f"DROP TRIGGER IF EXISTS found_{name}")
        db.execute("INSERT INTO messages(conversation, id, parent, role, text, more, created) VALUES(1, 'm2', 'm1', 'user', 'the giraffe', '{}', 1)")
        db.execute("DELETE FROM messages WHERE id = 'm1'")
    db.close()
    with serving(name="no-index") as server:
        expect(search(server, "giraffe") == [("a", "m2")] and search(server, "elephant") == [], search(server, "giraffe"))


def message(id, text, parent=None, role="user"):
    return {"id": id, "parent": parent, "role": role, "text": text, "more": {}, "created": 7}


def export_of(*conversations):
    return {"format": "pith-conversations", "version": 1, "conversations": list(conversations)}


def case_export_import():
    """An export is an import; what is there already is left as it is; a bad one changes nothing."""
    with serving(name="export") as server:
        put(server, f"{LIST}/a", {"title": "A 世界", "settings": {"s": "\u2028"}})
        say(server, "a", "m1", "one\n```c\nint x;\n```")
        say(server, "a", "m2", "two", "m1", "assistant", more={"model": "x"})
        put(server, f"{LIST}/b", {"title": "B"})
        got, headers, text = server.ask("GET", "/pith/export")
        whole = json.loads(text)
        expect(got == 200 and "attachment" in headers["Content-Disposition"], headers)
    with serving(name="import") as server:
        expect(server.post("/pith/import", whole) == {"conversations": 2, "added": 2})
        expect(get(server, "/pith/export") == whole, get(server, "/pith/export"), whole)
        expect(server.post("/pith/import", whole)["added"] == 0, "a second time")
        expect(get(server, "/pith/export") == whole, "a second import changed something")
        say(server, "a", "m3", "three", "m2")
        expect(server.post("/pith/import", whole)["added"] == 0 and len(get(server, f"{LIST}/a")["messages"]) == 3)
        before = get(server, "/pith/export")
        for bad, param in ((export_of({"id": "c", "messages": [message("m", "x"), message("n", "y", "z")]}), None),
                           (export_of({"id": "c", "messages": [message("m", "x")]}, {"id": "d/e", "messages": []}), "conversations[1].id"),
                           (export_of({"id": "c", "messages": [dict(message("m", "x"), path="y")]}), "conversations[0].messages[0].path"),
                           (export_of({"id": "a", "messages": [message("m1", "x", "m2")]}), None),
                           ({"format": "other", "version": 1, "conversations": []}, "format"), (dict(whole, version=2), "version"),
                           (export_of(7), "conversations[0]"), ({"format": "pith-conversations", "version": 1}, "conversations")):
            answer = server.post("/pith/import", bad, 400)
            expect(answer["error"]["param"] == param, answer, param)
        expect(get(server, "/pith/export") == before, "a refused import changed something")


def case_removed_text():
    """What is removed is gone from the files, not only from the lists."""
    secret = "xylophone-" + "".join(random.choices("abcdefghij", k=20))
    with serving(name="removed") as server:
        put(server, f"{LIST}/a", {"title": "t"})
        say(server, "a", "m1", secret + " " + "y" * 5000)
        delete(server, f"{LIST}/a")
        for name in os.listdir(os.path.join(FOLDER, "removed")):
            with open(os.path.join(FOLDER, "removed", name), "rb") as file:
                expect(secret[:30].encode() not in file.read(), "still in", name)


def case_private():
    """Folder and files are for the user alone."""
    with serving(name="private") as server:
        put(server, f"{LIST}/a", {})
        folder = os.path.dirname(file_name("private"))
        expect(stat.S_IMODE(os.stat(folder).st_mode) == 0o700, oct(os.stat(folder).st_mode))
        for name in os.listdir(folder):
            mode = stat.S_IMODE(os.stat(os.path.join(folder, name)).st_mode)
            expect(mode == 0o600, name, oct(mode))


def case_default_place():
    """Without the option conversations lie in the home folder; with `off` nowhere, which is said."""
    home = os.path.join(FOLDER, "home")
    os.makedirs(home, exist_ok=True)
    with test_serve.serving(env={"PITH_HOME": home}) as server:
        put(server, f"{LIST}/a", {})
        expect(os.path.exists(os.path.join(home, "history/conversations.db")), os.listdir(home))
    with test_serve.serving("--history", "off", env={"PITH_HOME": home}) as server:
        for method, path in (("GET", LIST), ("GET", f"{LIST}/a"), ("GET", "/pith/export"), ("DELETE", f"{LIST}/a")):
            got, _, text = server.ask(method, path)
            expect(got == 501 and b"--history off" in text, method, path, got, text)
        status = get(server, "/pith/status")
        expect(status["history"]["kept"] is False and "--history off" in status["history"]["note"], status)
        server.post("/v1/completions", {"prompt": "Once", "max_tokens": 2})


def case_gate():
    """The gatekeeper stands before the history too: keys, other origins, other hosts."""
    with serving("--key-file", key_file(), name="gate") as server:
        expect(server.ask("GET", LIST)[0] == 401 and server.ask("GET", "/pith/export")[0] == 401)
        expect(server.ask("PUT", f"{LIST}/a", {})[0] == 401 and server.ask("GET", "/pith/status")[0] == 401)
        expect(server.ask("GET", LIST, headers={"Authorization": "Bearer secret-key"})[0] == 200)
        expect(server.ask("GET", "/")[0] in (200, 404), "the page itself needs no key")
    with serving(name="gate") as server:
        for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Host": "evil.example"}):
            for method, path in (("GET", LIST), ("GET", "/"), ("DELETE", f"{LIST}/a"), ("GET", "/pith/export")):
                got, answer, _ = server.ask(method, path, headers=headers)
                expect(got == 403 and not answer.get("Access-Control-Allow-Origin"), headers, method, path, got)


def key_file():
    path = os.path.join(FOLDER, "key")
    with open(path, "w", encoding="utf-8") as file:
        file.write("secret-key\n")
    return path


def case_killed():
    """kill -9 while two clients write: whatever was answered with 200 is there, the file is whole, at most the unanswered are lost."""
    rng, path = random.Random(11), file_name("killed")
    for round_number in range(int(os.environ.get("PITH_TEST_KILLS", "8"))):
        kept = {}
        server = test_serve.Server("-m", test_serve.tiny_model(), "--history", path)
        timer = threading.Timer(rng.uniform(0.05, 0.6), server.process.send_signal, [signal.SIGKILL])

        def write(name):
            parent, n = None, 0
            try:
                put(server, f"{LIST}/{name}", {})
                kept[name] = []
                while True:
                    text = f"message {n} of {name} " + "z" * (n % 7 * 700)
                    say(server, name, f"m{n}", text, parent)
                    kept[name].append(text)
                    parent, n = f"m{n}", n + 1
            except (OSError, http.client.HTTPException):
                pass  # it was killed

        threads = [threading.Thread(target=write, args=(f"k{round_number}-{i}",)) for i in range(2)]
        timer.start()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        server.process.wait(60)
        server.reader.join(10)
        server.process.stderr.close()
        with serving(name="killed") as server:
            for name, texts in kept.items():
                there = [m["text"] for m in get(server, f"{LIST}/{name}")["messages"]]
                expect(there[:len(texts)] == texts and len(there) <= len(texts) + 1, name, len(there), "of", len(texts))
    db = sqlite3.connect(path)
    expect(db.execute("PRAGMA integrity_check").fetchone() == ("ok",))
    db.execute("INSERT INTO found(found) VALUES('integrity-check')")
    db.close()


def case_full_disk():
    """No room: one sentence, nothing half written, chats go on; with room again it is kept again."""
    folder = os.path.join(FOLDER, "small-disk")
    os.makedirs(folder, exist_ok=True)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], capture_output=True, check=False).returncode != 0:
        raise Skip("no small disk can be mounted here")
    try:
        with test_serve.serving("--history", os.path.join(folder, "c.db")) as server:
            put(server, f"{LIST}/a", {})
            say(server, "a", "m0", "first")
            fill = os.path.join(folder, "fill")
            handle = os.open(fill, os.O_WRONLY | os.O_CREAT)
            with contextlib.suppress(OSError):
                while True:
                    os.write(handle, b"x" * 4096)
            os.close(handle)
            answer = say(server, "a", "m1", "y" * 200000, "m0", status=503)
            expect("no room" in answer["error"]["message"] and "Chats go on" in answer["error"]["message"], answer)
            server.post("/v1/completions", {"prompt": "Once", "max_tokens": 2})
            expect([m["id"] for m in get(server, f"{LIST}/a")["messages"]] == ["m0"], "what was there is still read")
            os.remove(fill)
            say(server, "a", "m1", "kept again", "m0")
    finally:
        subprocess.run(["umount", folder], check=False)


def case_write_fails():
    """Writes that the system refuses (a limit on file sizes): one sentence, chats go on, what is there stays whole."""
    limit = 300000
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, old[1]))
    try:
        server = test_serve.Server("-m", test_serve.tiny_model(), "--history", file_name("refused"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
    put(server, f"{LIST}/a", {})
    say(server, "a", "m0", "first")
    answer = say(server, "a", "m1", "y" * 600000, "m0", status=503)
    expect("the history file" in answer["error"]["message"], answer)
    server.post("/v1/completions", {"prompt": "Once", "max_tokens": 2})
    expect([m["id"] for m in get(server, f"{LIST}/a")["messages"]] == ["m0"])
    server.stop()


def case_unwritable():
    """A place that cannot be had is told at the start and to who asks; the server serves."""
    for path, word in (("/proc/none/c.db", "no such file"), ("/dev/null", "no file"), (FOLDER, "directory")):
        with test_serve.serving("--history", path) as server:
            answer = get(server, LIST, 503)["error"]
            expect(word in answer["message"] and answer["code"] == "history_unavailable", path, answer)
            expect(word in server.log and "pith: history" in server.log, server.log)
            expect(get(server, "/pith/status")["history"]["note"] == answer["message"])
            server.post("/v1/completions", {"prompt": "Once", "max_tokens": 2})


def case_foreign_file():
    """A file that is no history, or a damaged one, is refused and not touched; moved away, a new one is made without a new start."""
    path = file_name("foreign")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    contents = {"text": b"dear diary\n" * 500, "other": None}
    db = sqlite3.connect(path + ".other")
    db.execute("CREATE TABLE cookies(x)")
    db.commit()
    db.close()
    with open(path + ".other", "rb") as file:
        contents["other"] = file.read()
    for name, data in contents.items():
        with open(path, "wb") as file:
            file.write(data)
        with serving(name="foreign") as server:
            answer = get(server, LIST, 503)["error"]["message"]
            expect("damaged" in answer or "another program" in answer, name, answer)
            with open(path, "rb") as file:
                expect(file.read() == data, name, "was changed")
            os.rename(path, path + ".away")
            put(server, f"{LIST}/a", {})
            expect(os.path.exists(path), "no new file")
        for ending in ("", "-wal", "-shm"):
            if os.path.exists(path + ending):
                os.remove(path + ending)


def case_damaged_while_it_is_open():
    """A file that is damaged under the server is told at each request, and costs no open file."""
    path = file_name("broken")
    with serving(name="broken") as server:
        put(server, f"{LIST}/a", {})
        for i in range(60):
            say(server, "a", f"m{i}", f"{i} " + "x" * 9000)
    size = os.path.getsize(path)
    with open(path, "r+b") as file:  # what is read first, and the schema, stay whole
        file.seek(size // 3 // 4096 * 4096)
        file.write(b"\xff" * (size // 3 // 4096 * 4096))
    with serving(name="broken") as server:
        n_open = lambda: len(os.listdir(f"/proc/{server.process.pid}/fd"))
        answers = {get(server, f"{LIST}/a", 503)["error"]["message"] for _ in range(3)}
        expect(len(answers) == 1 and "damaged" in answers.copy().pop(), answers)
        before = n_open()
        for _ in range(40):
            get(server, f"{LIST}/a", 503)
            server.ask("POST", "/pith/search", {"query": "xy"})
        expect(n_open() <= before + 2, "open files", before, n_open())
        server.post("/v1/completions", {"prompt": "Once", "max_tokens": 2})


def case_exports_that_nobody_reads():
    """Answers that wait for clients which never read have a limit together; they are let go with their clients."""
    with serving(name="unread") as server:
        put(server, f"{LIST}/a", {})
        for i in range(11):
            say(server, "a", f"m{i}", "x" * (1 << 20))
        before = server.metric("resident_bytes")
        clients = [test_serve.send_raw(server, b"GET /pith/export HTTP/1.1\r\nHost: localhost\r\n\r\n") for _ in range(25)]
        firsts = [client.recv(12) for client in clients]
        expect(firsts.count(b"HTTP/1.1 200") >= 20 and firsts.count(b"HTTP/1.1 503") >= 1, firsts)
        expect(server.metric("resident_bytes") - before < 900 << 20, before, server.metric("resident_bytes"))
        for client in clients:
            client.close()
        end = time.monotonic() + 20
        while server.ask("GET", "/pith/export")[0] != 200:
            expect(time.monotonic() < end, "nothing was let go")
            time.sleep(0.1)


def case_held_by_another_program():
    """A file that another program holds makes history wait, and nobody else."""
    path = file_name("held")
    with serving(name="held") as server:
        put(server, f"{LIST}/a", {})
        while server.ask("GET", "/health")[0] != 200:
            time.sleep(0.01)
        server.post("/v1/completions", {"prompt": "Once", "max_tokens": 2})
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("BEGIN IMMEDIATE")
        answers = []
        writers = [threading.Thread(target=lambda i=i: answers.append(say(server, "a", f"m{i}", "x", status=503))) for i in range(3)]
        for writer in writers:
            writer.start()
        start = time.monotonic()
        for _ in range(3):
            server.post("/v1/completions", {"prompt": "Once", "max_tokens": 2})
            server.get("/v1/models")
        spent = time.monotonic() - start
        for writer in writers:
            writer.join(60)
        db.execute("ROLLBACK")
        db.close()
        expect(spent < 1.5, "chats and lists waited for the history", spent)
        expect(len(answers) == 3 and all("another program" in a["error"]["message"] for a in answers), answers)
        say(server, "a", "m9", "kept again")


def case_replaced_file():
    """A file that was taken away under the server is not written to any more: a new one is made."""
    with serving(name="replaced") as server:
        put(server, f"{LIST}/a", {})
        for name in os.listdir(os.path.dirname(file_name("replaced"))):
            os.remove(os.path.join(os.path.dirname(file_name("replaced")), name))
        put(server, f"{LIST}/b", {})
        expect([c["id"] for c in get(server, LIST)["conversations"]] == ["b"])
    with serving(name="replaced") as server:
        expect([c["id"] for c in get(server, LIST)["conversations"]] == ["b"], "it was written to a file without a name")


def case_two_servers():
    """Two servers with one file: both write, nothing is lost."""
    with serving(name="two") as first, serving(name="two") as second:
        put(first, f"{LIST}/a", {})

        def write(server, name):
            for i in range(20):
                say(server, "a", f"{name}{i}", "x")

        threads = [threading.Thread(target=write, args=pair) for pair in ((first, "f"), (second, "s"))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        expect(len(get(first, f"{LIST}/a")["messages"]) == 40, len(get(first, f"{LIST}/a")["messages"]))


def case_page():
    """/ gives the page, plain or as gzip, with a policy that names no other host; or says in a sentence why there is none."""
    with serving(name="page") as server:
        got, headers, text = server.ask("GET", "/")
        built = get(server, "/pith/status")["page"]
        if not built["built"]:
            expect(got == 404 and built["note"] in text.decode() and "without its page" in text.decode(), got, text)
            raise Skip(f"the build has no page: {built['note']}")
        policy = headers["Content-Security-Policy"]
        expect(got == 200 and headers["Content-Type"] == "text/html; charset=utf-8" and text.startswith(b"<!doctype html>"), got)
        for word in ("default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "require-trusted-types-for 'script'"):
            expect(word in policy, word, policy)
        expect("unsafe" not in policy and "http" not in policy and "*" not in policy, policy)
        expect(len(text) <= 400 * 1024, len(text))
        for coding, packed in (("gzip", True), ("br, gzip;q=0.5", True), ("gzip;q=0", False), ("br", False), ("xgzip", False), ("GZIP", False)):
            got, headers, body = server.ask("GET", "/", headers={"Accept-Encoding": coding})
            expect((headers.get("Content-Encoding") == "gzip") == packed, coding, headers)
            expect((gzip.decompress(body) if packed else body) == text, coding, "is not the page")
        for path in ("/%00", "/%00x", "/pith/status%00", "/pith/conversations%00/a", "//", "/.", "/index.html"):
            expect(server.ask("GET", path)[0] == 404, path, server.ask("GET", path))
        got, headers, body = server.ask("HEAD", "/")
        expect(got == 200 and body == b"" and int(headers["Content-Length"]) == len(text), headers)


if __name__ == "__main__":
    test_serve.program_of(__doc__)
    with tempfile.TemporaryDirectory() as FOLDER:
        test_serve.FOLDER = FOLDER
        with serving(name="asked") as asked:
            if "without SQLite" in (get(asked, "/pith/status")["history"]["note"] or ""):
                print("0 passed, 0 failed, 1 skipped: this build keeps no history")
                sys.exit(0)
        sys.exit(run_cases(globals(), sys.argv[2:]))
