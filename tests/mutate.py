#!/usr/bin/env python3
"""Do the tests notice changes? Changes one place of a room's code at a time, builds the room's tests and runs them: a change with which they pass
has survived, and shows that a test is missing, or that code is superfluous.

  python3 tests/mutate.py server/wire                   30 changes, and the survivors
  python3 tests/mutate.py server/wire --count=10 --seed=7 --least=95
  python3 tests/mutate.py core/src                      changes in all of its rooms, each judged by the tests of its own
  python3 tests/mutate.py --list                        the rooms, with their tests

Works in a checkout of its own, of HEAD or of --at=COMMIT, under build/mutation; the working tree is not touched. Exits with 1 if
less than --least percent were noticed. The seed is printed: the same seed makes the same changes. Code that is compiled only for other
CPUs, and for AVX-512, which this one may not have, is not changed.

Effects that only a whole server shows are noticed by files of tests/e2e: these run last, with the changed binary and the Python that
./tests/run.sh e2e has made. Their failures count if they occur a second time.
"""

import argparse
import contextlib
import os
import pathlib
import platform
import random
import re
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build" / "mutation"
TREE = FOLDER / "tree"
BUILD = TREE / "build" / "release"  # as in any checkout: ccache knows these paths, and tests/e2e looks there
PYTHON = ROOT / "build" / "venv" / "bin" / "python"  # that of the suites
ENVIRONMENT = {**os.environ, "CCACHE_READONLY": "1"}  # old objects are found again, those of changes are not kept

# Room: the executables that must notice, and files of tests/e2e, which run in parallel.
OPERATIONS = ["core_operations_test"]
CALLS = "stream drain admission timing metrics logs traces shared_memory"
SERVER = "access admission http log memory metrics net options process regions trace transport"
ROOMS = {
    "client/cpp/src": ["client_test", "client_cpp_test"],
    "core/src/calibrate": ["core_calibrate_test"],
    "core/src/dynamic": OPERATIONS,
    "core/src/embeddings": ["core_operations_test"],
    "core/src/kernels": ["core_kernels_test", "core_operations_test"],
    "core/src/layouts": ["core_layouts_test"],
    "core/src/linear": ["core_linear_test", *OPERATIONS],
    "core/src/plan": ["core_plan_test", *OPERATIONS],
    "core/src/pool": ["core_pool_test"],
    "core/src/rules": ["core_rules_test", "core_layouts_test", *OPERATIONS],
    "core/src/types": ["core_types_test", "core_rules_test", "core_plan_test", "core_operations_test"],
    "core/src/walk": ["core_walk_test", *OPERATIONS],
    **{f"server/{room}": [f"{room}_test"] for room in SERVER.split()},
    "server/loop": ["loop_test", "rpc_test", "rpc_stress_test"],
    "server/scheduling": ["scheduling_test", "rpc_test", "rpc_stress_test"],
    "server/operations": ["operations_test", "plan_fuzz_test", "request_fuzz_test"],
    "server/rpc": ["rpc_test", "rpc_stress_test", " ".join(f"tests/e2e/test_{name}.py" for name in CALLS.split())],
    "server/wire": ["wire_test", "wire_memory_test"],
}
ROOMS["core/src"] = list(dict.fromkeys(test for room, tests in ROOMS.items() if room.startswith("core/") for test in tests))

# The texts to look for in a line, and their replacements. Spaces exclude templates and pointers.
SWAPS = [
    (r" < ", " <= "),
    (r" <= ", " < "),
    (r" > ", " >= "),
    (r" >= ", " > "),
    (r" == ", " != "),
    (r" != ", " == "),
    (r" && ", " || "),
    (r" \|\| ", " && "),
    (r" \+ ", " - "),
    (r" - ", " + "),
    (r" \* ", " + "),
    (r" / ", " * "),
    (r" % ", " / "),
    (r" \+= ", " -= "),
    (r" -= ", " += "),
    (r" << ", " >> "),
    (r" >> ", " << "),
    (r"\btrue\b", "false"),
    (r"\bfalse\b", "true"),
    (r"\bcontinue;", "break;"),
    (r"\bbreak;", "continue;"),
    (r"std::min\b", "std::max"),
    (r"std::max\b", "std::min"),
    (r"\b(?<![\w.])0(?![\w.])", "1"),
    (r"\b(?<![\w.])1(?![\w.])", "2"),
    (r"\bif \(([^;{}]*)\)(?= \{| return| continue| break|$)", r"if (!(\1))"),
    (r"^( *)(?:co_await )?[\w.>:\[\]-]+\([^;{}=]*\);$", r"\1;"),  # a call
    (r"^( *)[\w.>:\[\]-]+ [+|-]?= [^;{}]*;$", r"\1;"),  # an assignment
]
LEFT_OUT = re.compile(r"^\s*(//|#|static_assert|using |namespace |template|friend |assert\(|DCHECK|\}|public:|private:)|LOG\(|std::abort|operator")

# Lines whose change no test can notice: memory that is reserved early, a function without a body. They are skipped one by one when their
# turn comes, so that they do not change what a seed makes of the others.
NO_DIFFERENCE = re.compile(r"\breserve\(|\bvirtual .* = 0;")

# Conditions of the preprocessor that are true here, and those that are false; all others may be either.
HOLDS = re.compile(r"HWY_ARCH_X86|== HWY_AVX2|__x86_64__")
FAILS = re.compile(r"HWY_AVX3|HWY_NEON|__aarch64__|QUANTD_TSAN")


def compiled(lines):
    """For each line, whether it is compiled here."""
    blocks, found = [], []  # for each block, whether its branch is compiled, and whether one before it was
    for line in lines:
        if re.match(r"#\s*if", line):
            blocks.append((not FAILS.search(line), bool(HOLDS.search(line))))
        elif re.match(r"#\s*el", line):
            taken = blocks.pop()[1]
            blocks.append((not taken and not FAILS.search(line.split("//")[0]), taken or bool(HOLDS.search(line))))
        elif re.match(r"#\s*endif", line):
            blocks.pop()
        found.append(all(branch for branch, _ in blocks))
    return found


def changes(path):
    """(path, line, new line) for every possible change of this file."""
    found = []
    lines = path.read_text().split("\n")
    for number, (line, here) in enumerate(zip(lines, compiled(lines))):
        code, comment = (line.split(" //", 1) + [""])[:2]
        if not here or LEFT_OUT.search(code):
            continue
        bare = re.sub(r'"(?:[^"\\]|\\.)*"', lambda text: "\0" * len(text.group()), code)
        for pattern, replacement in SWAPS:
            for hit in re.finditer(pattern, bare):
                if "\0" in hit.group() and "\\1" not in replacement:
                    continue
                new = code[: hit.start()] + re.sub(pattern, replacement, code[hit.start() : hit.end()]) + code[hit.end() :]
                if new != code:
                    found.append((path, number, new + (" //" + comment if comment else "")))
    return found


def run(command, seconds):
    """Whether it succeeded within `seconds`. Everything that it started ends with it."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, cwd=TREE, env=ENVIRONMENT, start_new_session=True, **quiet)
    try:
        return process.wait(seconds) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def of_e2e(test):
    return test.startswith("tests/e2e/")


def build(test):
    return run(["cmake", "--build", str(BUILD), "--target", "quantd" if of_e2e(test) else test], 900)


def passes(test, seconds):
    if of_e2e(test):
        pytest = [PYTHON, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-n", str(os.cpu_count() + 1), "--dist", "loadfile"]
        return run([*pytest, *test.split()], seconds) or run([*pytest, *test.split()], seconds)
    (program,) = BUILD.glob(f"tests/**/{test}")
    if test.endswith("_fuzz_test"):
        return run([program, "10000"], seconds)
    return run([program, "--gtest_fail_fast", "--gtest_brief=1"], seconds)


def prepare(tests, commit):
    """A checkout of that commit, with the tests of a room built; [(test, seconds that it takes)], the longest last."""
    git = ["git", "-C", str(ROOT)]
    FOLDER.mkdir(parents=True, exist_ok=True)
    if not TREE.exists():
        subprocess.run([*git, "worktree", "prune"], check=True)
        subprocess.run([*git, "worktree", "add", "--quiet", "--detach", str(TREE), "HEAD"], check=True)
    head = subprocess.run([*git, "rev-parse", commit], check=True, capture_output=True, text=True).stdout.strip()
    subprocess.run(["git", "-C", str(TREE), "checkout", "--quiet", "--force", "--detach", head], check=True)
    configure = ["cmake", "-S", str(TREE), "-B", str(BUILD), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DQUANTD_BUILD_TESTS=ON"]
    if platform.machine() == "x86_64":
        configure += ["-DCMAKE_CXX_FLAGS=-DQUANTD_SIMD_TARGETS=HWY_AVX2"]
    subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
    found = []
    for test in tests:
        if not build(test):
            sys.exit(f"{test} does not build")
        begin = time.monotonic()
        if not passes(test, 900):
            sys.exit(f"{test} fails without any change")
        found.append((test, time.monotonic() - begin))
    return sorted(found, key=lambda one: (of_e2e(one[0]), one[1]))


def judge(path, tests):
    """The verdict of the tests of the changed file's room: "killed", "survived", or "unbuilt"."""
    room = max((room for room in ROOMS if path.is_relative_to(TREE / room)), key=len)
    own = [(test, took) for test, took in tests if test in ROOMS[room]]
    if not build(own[0][0]):
        return "unbuilt"
    return "survived" if all(build(test) and passes(test, 30 + 5 * took) for test, took in own) else "killed"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("room", nargs="?", choices=ROOMS, metavar="ROOM")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--least", type=float, default=95)
    parser.add_argument("--at", default="HEAD", metavar="COMMIT")
    arguments = parser.parse_args()
    if arguments.list or not arguments.room:
        print(*(f"{room}: {' '.join(tests)}" for room, tests in ROOMS.items()), sep="\n")
        return 0
    room, tests = arguments.room, ROOMS[arguments.room]
    tests = prepare(tests, arguments.at)
    sources = sorted(path for suffix in ("cc", "h", "inc") for path in (TREE / room).rglob(f"*.{suffix}"))
    candidates = [change for path in sources for change in changes(path)]
    random.Random(arguments.seed).shuffle(candidates)
    killed, survived, unbuilt = 0, [], 0
    for path, number, new in candidates:
        if killed + len(survived) == arguments.count:
            break
        text = path.read_text()
        lines = text.split("\n")
        old, lines[number] = lines[number], new
        if NO_DIFFERENCE.search(old):
            continue
        path.write_text("\n".join(lines))
        try:
            result = judge(path, tests)
        finally:
            path.write_text(text)
        if result == "unbuilt":
            unbuilt += 1
        elif result == "survived":
            survived.append((path.relative_to(TREE), number + 1, old.strip(), new.strip()))
            print("survived {}:{}\n  - {}\n  + {}".format(*survived[-1]), flush=True)
        else:
            killed += 1
    total = killed + len(survived)
    share = 100 * killed / total if total else 0
    print(f"{room}: {killed} of {total} killed ({share:.0f} %), {unbuilt} did not compile; of {len(candidates)}, seed {arguments.seed}")
    return 0 if share >= arguments.least else 1


if __name__ == "__main__":
    sys.exit(main())
