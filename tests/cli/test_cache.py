#!/usr/bin/env python3
"""Prompts that are kept on disk, as a user sees them: another start reads on, gives the same ids, and whatever happens to the folder or to
the process costs time alone. Answers are compared with --cache off in the exact contract.
    tests/cli/test_cache.py PITH_PROGRAM [WORD ...]     runs the cases whose name has one of the WORDs
PITH_TEST_KILLS=50 kills that many writers (default 6); with $PITH_TEST_MODELS the default model, else a tiny one.
Ends with "N passed, N failed, N skipped"."""
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from case_runner import DEFAULT, ROOT, Skip, default_model, expect, given_program, run_cases

TINY = os.path.join(ROOT, "tests/data/arch/llama-q4_k.gguf")
GEMMA = os.path.join(ROOT, "tests/data/arch/gemma3.gguf")
WINE = os.environ.get("PITH_CLI_WRAPPER", "").split()
WORDS = "the system keeps rules about answers style length tone sources units dates names numbers tables code quotes lists".split()


def temporary():
    return tempfile.TemporaryDirectory(prefix="pith-cache-")


def text_of(seed, n_words):
    return " ".join(random.Random(seed).choice(WORDS) for _ in range(n_words))


def command(folder, prompt, model=TINY, more=()):
    return [*WINE, PROGRAM, "run", "-m", model, "--raw", "--exact", "--temp", "0", "-n", "8", "--ignore-end", "--json", "--threads", "1", "--no-record",
            "--cache", folder, *more, prompt]


def run(folder, prompt, model=TINY, more=(), **kwargs):
    process = subprocess.run(command(folder, prompt, model, more), capture_output=True, timeout=300, check=False, **kwargs)
    expect(process.returncode == 0, process.returncode, process.stderr.decode("utf-8", "replace"))
    answer = json.loads(process.stdout)
    answer["stderr"] = process.stderr.decode("utf-8", "replace")
    return answer


def pith(*arguments):
    return subprocess.run([*WINE, PROGRAM, *arguments], capture_output=True, timeout=300, check=False)


def entries(folder):
    process = pith("cache", "list", "--cache", folder, "--json")
    expect(process.returncode == 0, process.stderr)
    return json.loads(process.stdout)["entries"]


def same_as_without(answer, prompt, model=TINY, more=()):
    plain = run("off", prompt, model, more)
    expect(plain["cache"] == "none" and plain["ids"] == answer["ids"], plain["ids"], answer["ids"], answer["cache"])


# ---- what it is for -----------------------------------------------------------------------------------------------------------------

def case_another_start_reads_on():
    for model in (TINY, GEMMA):
        with temporary() as folder:
            system = text_of(1, 40)
            first = run(folder, system + " first question", model)
            expect(first["cache"] == "none" and first["timings"]["cache_n"] == 0 and first["cache_miss"].startswith("no prompt"), first)
            again = run(folder, system + " first question", model)
            other = run(folder, system + " another", model)
            n = first["timings"]["prompt_n"]
            expect(again["cache"] == "disk" and again["timings"]["cache_n"] == n - 1 and again["cache_miss"] == "", again)
            expect(again["ids"] == first["ids"], "ids differ")
            expect(other["cache"] == "disk" and other["timings"]["cache_n"] >= n - 20, other["timings"])
            same_as_without(other, system + " another", model)
            expect(first["notes"] == ["nothing came from disk: " + first["cache_miss"]] and not other["notes"], first["notes"])


def case_every_storage_and_contract():
    for more in (["--kv", "f32"], ["--kv", "f16"], ["--kv", "int8"], ["--load", "mmap"], ["--precision", "full"]):
        with temporary() as folder:
            prompt = text_of(2, 40)
            run(folder, prompt, more=more)
            answer = run(folder, prompt + " more", more=more)
            expect(answer["cache"] == "disk", more, answer["cache_miss"])
            same_as_without(answer, prompt + " more", more=more)


def case_fast_answers_are_the_same_too():
    """Which rows are fast does not depend on the disk."""
    with temporary() as folder:
        prompt = text_of(3, 40)
        fast = [c for c in command(folder, prompt) if c != "--exact"]
        first = json.loads(subprocess.run(fast, capture_output=True, check=True).stdout)
        again = json.loads(subprocess.run(fast, capture_output=True, check=True).stdout)
        expect(again["cache"] == "disk" and again["ids"] == first["ids"], again["cache_miss"])


def case_other_settings_miss():
    with temporary() as folder:
        prompt = text_of(4, 40)
        run(folder, prompt)
        for more in (["--kv", "f32"], ["--precision", "full"]):
            answer = run(folder, prompt, more=more)
            expect(answer["cache"] == "none" and "other settings" in answer["cache_miss"], answer["cache_miss"])


def case_chats_read_on():
    with temporary() as folder:
        talk = [*WINE, PROGRAM, "chat", "-m", default_model(), "--exact", "--temp", "0", "-n", "4", "--json", "--no-record", "--cache", folder, "-s", text_of(5, 150)]
        answers = [json.loads(subprocess.run(talk, input=b"Hello\n", capture_output=True, check=True).stdout) for _ in range(2)]
        expect(answers[0]["cache"] == "none" and answers[1]["cache"] == "disk", answers)
        expect(answers[0]["ids"] == answers[1]["ids"], "ids differ")


def case_statistics_say_where_from():
    with temporary() as folder:
        prompt = text_of(6, 40)
        first, again = (run(folder, prompt, more=["--stats"])["stderr"] for _ in range(2))
        expect("nothing came from disk: no prompt is stored" in first, first)
        expect("(from disk)" in again and "nothing came" not in again, again)


# ---- the folder ---------------------------------------------------------------------------------------------------------------------

def case_list_and_clear():
    with temporary() as folder:
        for seed in range(3):
            run(folder, text_of(seed, 40))
        listed = entries(folder)
        expect(len(listed) == 3 and all(e["bytes"] > 0 and e["n"] > e["first"] and e["settings"] == "f16, exact" for e in listed), listed)
        expect(listed[0]["used"] >= time.time() - 600, listed[0])
        text = pith("cache", "list", "--cache", folder)
        expect(text.returncode == 0 and b"in    3 parts" in text.stdout and text.stderr == b"", text.stdout, text.stderr)
        removed = pith("cache", "clear", "--cache", folder, "--json")
        expect(removed.returncode == 0 and json.loads(removed.stdout)["removed"] == 3, removed.stdout)
        expect(entries(folder) == [] and not [n for n in os.listdir(folder) if n.startswith("e")], os.listdir(folder))
        expect(run(folder, text_of(0, 40))["cache"] == "none", "cleared, and found")


def case_no_folder_has_no_prompts():
    with temporary() as folder:
        path = os.path.join(folder, "none")
        expect(entries(path) == [] and not os.path.exists(path), "made by list")
        expect(pith("cache", "clear", "--cache", path).returncode == 0 and not os.path.exists(path), "made by clear")
        expect(entries(folder) == [] and os.listdir(folder) == [], "made in a folder of something else")
        run("off", text_of(0, 40))
        expect(not os.path.exists("off"), "a folder named off")


def case_usage():
    for words in ([], ["frob"], ["list", "clear"], ["list", "--cache", "off"], ["--what"]):
        process = pith("cache", *words)
        expect(process.returncode == 2 and process.stdout == b"" and process.stderr.startswith(b"pith: "), words, process.stderr)


def case_the_default_folder_is_in_the_home():
    with temporary() as home:
        env = dict(os.environ, PITH_HOME=home)
        words = [c for c in command("", text_of(7, 40)) if c not in ("--cache", "")]
        subprocess.run(words, env=env, capture_output=True, check=True)
        expect(os.path.exists(os.path.join(home, "prefix", "pith-prompts.db")), os.listdir(home))
        doctor = subprocess.run([*WINE, PROGRAM, "doctor"], env=env, capture_output=True, check=True).stdout
        expect(os.path.join(home, "prefix").encode() in doctor, doctor)


def case_the_folder_is_the_users_alone():
    if os.name == "nt" or WINE:
        raise Skip("permissions of POSIX systems")
    with temporary() as folder:
        path = os.path.join(folder, "a", "b")
        run(path, text_of(8, 40))
        expect(os.stat(path).st_mode & 0o777 == 0o700, oct(os.stat(path).st_mode))


def case_bad_folders_are_a_note():
    prompt = text_of(9, 40)
    with temporary() as folder:
        file = os.path.join(folder, "file")
        with open(file, "w", encoding="utf-8") as out:
            out.write("x")
        for path in (file, os.path.join(file, "below")):
            answer = run(path, prompt)
            expect(any("not kept" in note for note in answer["notes"]) and "not kept" in answer["stderr"], answer["notes"], answer["stderr"])
            same_as_without(answer, prompt)


def as_nobody(folder):
    """Arguments of subprocess that leave the caller's rights behind; Skip where that cannot be had."""
    if not hasattr(os, "geteuid") or WINE:
        raise Skip("permissions of POSIX systems")
    who = {"user": 65534, "group": 65534} if os.geteuid() == 0 else {}
    probe = subprocess.run(["test", "-r", TINY, "-a", "-x", PROGRAM, "-a", "-x", folder], check=False, **who)
    if probe.returncode != 0:
        raise Skip("another user cannot read the program and the model")
    return who


def case_a_read_only_folder_is_read():
    prompt = text_of(10, 40)
    with temporary() as folder:
        os.chmod(folder, 0o755)
        path = os.path.join(folder, "with?strange#name%")
        run(path, prompt)
        for name in os.listdir(path):
            os.chmod(os.path.join(path, name), 0o444)
        os.chmod(path, 0o555)
        answer = run(path, prompt, **as_nobody(folder))
        expect(answer["cache"] == "disk" and any("only be read" in note for note in answer["notes"]), answer["cache_miss"], answer["notes"])
        same_as_without(answer, prompt)
        other = run(path, text_of(11, 40), **as_nobody(folder))
        expect(other["cache"] == "none", other["cache"])
        os.chmod(path, 0o755)
        expect(len(entries(path)) == 1, "written all the same")


def case_a_folder_that_may_not_be_read_is_a_note():
    prompt = text_of(12, 40)
    with temporary() as folder:
        os.chmod(folder, 0o755)
        path = os.path.join(folder, "closed")
        run(path, prompt)
        os.chmod(path, 0o000)
        answer = run(path, prompt, **as_nobody(folder))
        os.chmod(path, 0o755)
        expect(answer["cache"] == "none" and any("not kept" in note for note in answer["notes"]), answer["notes"])


def case_a_full_disk_is_a_note():
    """Files may not grow beyond a limit: the index cannot be made, or a part not written."""
    if WINE or os.name == "nt":
        raise Skip("limits of POSIX systems")
    import resource
    prompt = text_of(13, 40)
    for limit in (0, 4096, 30000, 60000):
        with temporary() as folder:
            answer = run(folder, prompt, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
            same_as_without(answer, prompt)
            expect(not [n for n in os.listdir(folder) if n.endswith(".part")], os.listdir(folder))
            expect(run(folder, prompt)["cache"] in ("none", "disk"), "no")
            expect(run(folder, prompt)["cache"] == "disk", "the folder is of no use afterwards")


def case_damage_is_found():
    prompt = text_of(14, 40)
    with temporary() as folder:
        run(folder, prompt)
        name = os.path.join(folder, [n for n in os.listdir(folder) if n.endswith(".kv1")][0])
        with open(name, "r+b") as file:
            file.seek(-100, os.SEEK_END)
            byte = file.read(1)
            file.seek(-100, os.SEEK_END)
            file.write(bytes([byte[0] ^ 1]))
        answer = run(folder, prompt)
        expect(answer["cache"] == "none" and "damaged" in answer["cache_miss"], answer["cache_miss"])
        same_as_without(answer, prompt)
        expect(run(folder, prompt)["cache"] == "disk", "not stored again")


def case_a_model_changed_in_place_is_another():
    with temporary() as folder:
        model, prompt = os.path.join(folder, "model.gguf"), text_of(16, 60)
        shutil.copyfile(TINY, model)
        run(folder, prompt, model)
        expect(run(folder, prompt, model)["cache"] == "disk", "nothing was stored")
        with open(model, "r+b") as file: # bytes that no sample looks at
            file.seek(os.path.getsize(model) * 5 // 9)
            block = file.read(64)
            file.seek(-64, os.SEEK_CUR)
            file.write(bytes(byte ^ 1 for byte in block))
        os.utime(model, ns=(0, os.stat(model).st_mtime_ns + 1000000000))
        answer = run(folder, prompt, model)
        expect(answer["cache"] != "disk", "KV of another model was taken")
        same_as_without(answer, prompt, model)


def case_a_folder_of_garbage():
    prompt = text_of(15, 40)
    for seed in range(6):
        with temporary() as folder:
            run(folder, prompt)
            rng = random.Random(seed)
            for name in os.listdir(folder):
                path = os.path.join(folder, name)
                with open(path, "rb") as file:
                    data = bytearray(file.read())
                for _ in range(1 + seed * 5):
                    data[rng.randrange(len(data))] = rng.randrange(256)
                with open(path, "wb") as file:
                    file.write(data[:rng.randrange(len(data))] if seed % 2 else data)
            for _ in range(3):
                same_as_without(run(folder, prompt), prompt)


# ---- processes ----------------------------------------------------------------------------------------------------------------------

def case_kills_lose_the_newest_entry_at_most():
    """Writers are killed at random moments; what was there before stays, and every answer is right."""
    n_kills = int(os.environ.get("PITH_TEST_KILLS", "6"))
    real = bool(DEFAULT and os.path.exists(DEFAULT)) and not WINE
    model, n_words = (DEFAULT, 250) if real else (TINY, 40)
    rng = random.Random(4711)
    with temporary() as folder:
        start = time.monotonic()
        run(folder, text_of(100, n_words), model)
        span, n_found, known = time.monotonic() - start, 0, {}
        for i in range(n_kills):
            before = len(entries(folder))
            prompt = text_of(1000 + i, n_words)
            process = subprocess.Popen(command(folder, prompt, model), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            time.sleep(rng.uniform(0, 1.05) * span)  # a moment of the writer's life, not a wait
            process.kill()
            process.communicate()
            listed = entries(folder)
            expect(len(listed) >= before, f"kill {i}: {before} entries, now {len(listed)}")
            known[i] = prompt
            which = rng.choice(list(known))
            answer = run(folder, known[which], model)
            n_found += answer["cache"] == "disk"
            same_as_without(answer, known[which], model)
            expect(all(note.startswith("nothing came from disk: no prompt") for note in answer["notes"]), answer["notes"])
        print(f"  {n_kills} kills within {span:.2f} s each, {n_found} answers went on from the disk")
        left = [n for n in os.listdir(folder) if n.endswith(".kv1")]
        expect(len(left) >= len(entries(folder)), "entries without files")


def case_processes_share_a_folder():
    with temporary() as folder:
        prompts = [text_of(20 + i // 2, 30) + " " + text_of(30 + i, 6) for i in range(6)]
        expected = [run("off", prompt)["ids"] for prompt in prompts]
        for _ in range(3):
            at_once = [subprocess.Popen(command(folder, prompt), stdout=subprocess.PIPE, stderr=subprocess.PIPE) for prompt in prompts]
            for process, ids in zip(at_once, expected):
                out, err = process.communicate(timeout=300)
                expect(process.returncode == 0, err)
                expect(json.loads(out)["ids"] == ids, "ids differ")
        expect(all(run(folder, prompt)["cache"] == "disk" for prompt in prompts), "not all are stored")


def case_clear_while_others_use_it():
    with temporary() as folder:
        prompts = [text_of(40 + i, 40) for i in range(4)]
        expected = [run("off", prompt)["ids"] for prompt in prompts]
        for _ in range(3):
            at_once = [subprocess.Popen(command(folder, prompt), stdout=subprocess.PIPE, stderr=subprocess.PIPE) for prompt in prompts]
            expect(pith("cache", "clear", "--cache", folder).returncode == 0, "clear failed")
            for process, ids in zip(at_once, expected):
                out, err = process.communicate(timeout=300)
                expect(process.returncode == 0 and json.loads(out)["ids"] == ids, err)


def case_the_folder_vanishes():
    with temporary() as folder:
        path = os.path.join(folder, "gone")
        prompt = text_of(50, 40)
        run(path, prompt)
        process = subprocess.Popen(command(path, prompt + " more"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        shutil.rmtree(path, ignore_errors=True)
        out, err = process.communicate(timeout=300)
        expect(process.returncode == 0, err)
        same_as_without(json.loads(out), prompt + " more")


def main():
    global PROGRAM
    PROGRAM = given_program(__doc__)
    if b"SQLite" not in pith("doctor", "--json").stdout:
        print("skipped: this build has no SQLite\n0 passed, 0 failed, 1 skipped")
        return 0
    return run_cases(globals(), sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
