#!/usr/bin/env python3
"""Which suites a change can break: changed.py REV prints those for the files that differ from REV, in the order of tests/run.sh;
changed.py --check finds tracked files that no row covers, and rows that name a suite that does not exist.

A row is a pattern of paths and suites; the first row that matches a file decides. Every change is checked by arrows and format.
"""

import fnmatch
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ALWAYS = "arrows format"
CPP = "unit e2e attacks asan_wire asan tsan"
ROWS = [
    # Files that decide whether everything works on a bare machine.
    ("*CMakeLists.txt", "*"),
    ("*.cmake", "*"),
    ("tests/suites/tsan.supp", "tsan tsan_e2e"),
    ("tests/suites/*", "*"),
    ("deploy/quickstart.sh", "deploy fresh"),
    ("tests/core/*", "unit asan_wire asan tsan neon"),
    ("tests/server/*", "unit asan_wire asan tsan"),
    ("tests/client/*", "unit"),
    ("tests/e2e/*", "e2e attacks asan_wire asan tsan tsan_e2e soak"),
    ("tests/fuzz/*", "unit asan_wire asan fuzz"),
    ("tests/browser/*", "browser"),
    ("server/status*", f"{CPP} browser"),
    ("tests/golden/*", "unit e2e attacks"),
    ("tests/conformance/*", "python conformance outside local engine deploy"),
    ("tests/checkpoints/*", "checkpoints"),
    ("tests/languages/*", "clients"),
    ("tests/deploy/*", "deploy"),
    ("tests/monitoring/*", "monitoring"),
    ("tests/image/*", "image"),
    ("tests/packages/*", "packages"),
    ("tests/interop/*", "interop_short interop h2spec"),
    ("tests/bench/*", "bench local engine"),
    ("proto/*", "*"),
    ("core/*.md", ""),
    ("core/src/layouts/*", f"{CPP} local engine neon lint image checkpoints"),
    ("core/*", f"{CPP} python types conformance outside local engine neon lint image"),
    ("server/*", f"{CPP} python types conformance outside local monitoring clients interop_short interop h2spec tsan_e2e soak fuzz lint"
     " image packages"),
    ("client/cli/files/*", "unit e2e attacks asan_wire asan local engine lint image packages"),
    ("client/cli/*", "unit e2e attacks engine asan_wire asan lint image packages"),
    ("client/checkpoints/*", "unit e2e attacks asan_wire asan local engine checkpoints lint image packages"),
    ("client/status_macros.h", "unit e2e attacks asan_wire asan local engine checkpoints lint image packages"),
    ("client/cpp/*", "unit e2e attacks engine asan_wire asan lint"),
    ("client/python-core/*", "local engine"),
    ("client/python/*", "python types conformance outside local engine e2e attacks"),
    ("client/go/*", "clients"),
    ("client/rust/*", "clients"),
    ("client/java/*", "clients"),
    ("client/node/*", "clients"),
    ("client/*.md", "types"),
    ("client/*", "unit"),
    ("deploy/packages.sh", "*"),
    ("deploy/lib.sh", "*"),
    ("deploy/monitoring/*", "deploy monitoring"),
    ("deploy/*", "deploy e2e attacks clients image packages"),
    ("Dockerfile", "deploy image"),
    (".dockerignore", "deploy image"),
    (".clang-tidy", "lint"),
    (".clang-format", ""),
    (".ruff.toml", ""),
    ("tests/format.sh", "proto clients"),
    ("*.md", "deploy"),
    ("LICENSE", "image packages"),
    (".devcontainer/*", "deploy"),
    ("*", "*"),  # CMake's files at the top, tests/run.sh: anything
]


def suites():
    """All suites, in the order in which they run."""
    listed = subprocess.run([ROOT / "tests/run.sh", "--list"], capture_output=True, text=True, check=True).stdout
    return [line.split()[0] for line in listed.splitlines()]


def of_file(path, known):
    """The suites of one file."""
    own = re.fullmatch(r"tests/suites/(\w+)\.sh", path)
    if own and own.group(1) in known:
        return {own.group(1), "fresh"}
    for pattern, names in ROWS:
        if fnmatch.fnmatchcase(path, pattern):
            return set(known) if names == "*" else set(names.split())
    raise AssertionError(path)


def git(*arguments):
    out = subprocess.run(["git", "-c", "safe.directory=*", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in out.stdout.split("\0") if name]


def main():
    known = suites()
    if sys.argv[1:] == ["--check"]:
        files = git("ls-files", "-z")
        unused = [p for p, _ in ROWS if not any(fnmatch.fnmatchcase(name, p) for name in files)]
        wrong = {name for _, names in ROWS for name in names.split()} - {*known, "*"}
        sys.exit(f"rows that fit no file: {unused}; suites that do not exist: {wrong}" if unused or wrong else 0)
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    files = git("diff", "--name-only", "-z", sys.argv[1], "--") + git("ls-files", "--others", "--exclude-standard", "-z")
    wanted = set().union(*(of_file(name, known) for name in files), ALWAYS.split()) if files else set()
    print(*(name for name in known if name in wanted), sep="\n")


if __name__ == "__main__":
    main()
