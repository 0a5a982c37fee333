"""What the scripts of this folder share: cases are functions named case_*, called in the order of their names. A case fails by an
exception and is left out by Skip."""
import os
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODELS = os.environ.get("PITH_TEST_MODELS", "")
DEFAULT = os.path.join(MODELS, "smollm2-135m-q4_1.gguf") if MODELS else ""


class Skip(Exception):
    """Raised by a case that cannot run here; its text says what is missing."""


def expect(condition, *shown):
    if not condition:
        raise AssertionError(" | ".join(str(s)[-600:] for s in shown))


def default_model():
    if not DEFAULT or not os.path.exists(DEFAULT):
        raise Skip("the default model is not in $PITH_TEST_MODELS")
    return DEFAULT


def given_program(usage, at=1):
    """The program that the command line names first, of `at` words that must be there; otherwise ends the script with its usage."""
    if len(sys.argv) <= at:
        sys.exit(usage)
    return os.path.abspath(sys.argv[1])


def run_cases(functions, words, noun=""):
    """Runs the case_* of {name: function} whose names have one of the words (all without words); the exit status. None at all is a
    failure. noun: what those that pass do, told as "N of N"."""
    passed = failed = skipped = 0
    for name, case in sorted((n, f) for n, f in functions.items() if n.startswith("case_")):
        if words and not any(word in name for word in words):
            continue
        start = time.monotonic()
        try:
            case()
            passed += 1
            print(f"ok      {name[5:]} ({time.monotonic() - start:.1f} s)", flush=True)
        except Skip as reason:
            skipped += 1
            print(f"skipped {name[5:]}: {reason}", flush=True)
        except (AssertionError, subprocess.TimeoutExpired, ValueError, KeyError, OSError) as error:
            failed += 1
            print(f"FAILED  {name[5:]}: {type(error).__name__}: {error}", flush=True)
    if not passed + failed + skipped:
        print(f"no case has one of the words {' '.join(words)} in its name")
        failed += 1
    if noun:
        print(f"{passed} of {passed + failed} {noun}")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0
