#!/usr/bin/env python3
"""An installed pith is whole: README's C program is built against the installed header and library alone, as README says, and runs; the
program runs from there. tests/docs/test_install.py BUILD_FOLDER EXAMPLE.c MODEL.gguf"""
import glob
import os
import shutil
import subprocess
import sys
import tempfile


def run(*command, **options):
    result = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {result.returncode}: {result.stdout}{result.stderr}")
    return result.stdout


def finds_itself(source, libdir):
    """pith.pc of a library folder of several parts: what it names is the tree it lies in, wherever that is."""
    with tempfile.TemporaryDirectory(prefix="pith-pc-") as folder:
        run("cmake", "-S", source, "-B", f"{folder}/build", "-G", "Ninja", f"-DCMAKE_INSTALL_LIBDIR={libdir}")
        place = f"{folder}/moved/{libdir}/pkgconfig"
        os.makedirs(place)
        shutil.copy(f"{folder}/build/pith.pc", place)
        env = dict(os.environ, PKG_CONFIG_PATH=place)
        for name, expected in (("prefix", ""), ("libdir", libdir), ("includedir", "include")):
            value = os.path.realpath(run("pkg-config", f"--variable={name}", "pith", env=env).strip())
            wanted = os.path.realpath(f"{folder}/moved/{expected}")
            assert value == wanted, (libdir, name, value, wanted)


def main():
    build, example, model = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="pith-install-") as prefix:
        run("cmake", "--install", build, "--prefix", prefix)
        found = glob.glob(f"{prefix}/lib*/**/pith.pc", recursive=True)
        assert len(found) == 1, found
        env = dict(os.environ, PKG_CONFIG_PATH=os.path.dirname(found[0]))
        flags = run("pkg-config", "--cflags", "--libs", "pith", env=env).split()
        run("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", example, "-o", f"{prefix}/example", *flags, cwd=prefix)
        text = run(f"{prefix}/example", model, cwd=prefix)
        assert text.strip(), "README's example says nothing"
        version = run(f"{prefix}/bin/pith", "--version", cwd=prefix)
        assert version.startswith("pith "), version
        headers = sorted(os.listdir(f"{prefix}/include"))
        assert headers == ["pith.h"], headers
    source = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    finds_itself(source, "lib/x86_64-linux-gnu")
    print("2 passed, 0 failed")


if __name__ == "__main__":
    main()
