#!/usr/bin/env python3
"""Do the tests notice? Changes one place of a room's code at a time, builds the room's tests and runs them: a change that they pass
has survived, and is a test that is missing, or code that is.

  python3 tests/mutate.py server/wire                   30 changes, and what survived
  python3 tests/mutate.py server/wire --count=10 --seed=7 --least=95
  python3 tests/mutate.py core/src                      drawn over all rooms of it, each judged by the tests of its own
  python3 tests/mutate.py --list                        the rooms, with their tests

Works in a checkout of its own, of HEAD, under build/mutation; the working tree is not touched. Exits with 1 when less than
--least percent were killed. The seed is printed: the same seed makes the same changes. What is compiled only for other CPUs, and
for AVX-512, which this one may not have, is not changed.
"""

import argparse
import os
import pathlib
import platform
import random
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build" / "mutation"
TREE, BUILD = FOLDER / "tree", FOLDER / "build"

# Room: the executables that must notice, those that take longest last.
OPERATIONS = ["core_operations_test", "core_oracle_test"]
ROOMS = {
    "core/src/calibrate": ["core_calibrate_test"],
    "core/src/dynamic": OPERATIONS,
    "core/src/embeddings": ["core_operations_test"],
    "core/src/kernels": ["core_kernels_test", "core_operations_test"],
    "core/src/linear": OPERATIONS,
    "core/src/plan": ["core_plan_test", *OPERATIONS],
    "core/src/pool": ["core_pool_test"],
    "core/src/rules": ["core_rules_test", *OPERATIONS],
    "core/src/types": ["core_types_test", "core_rules_test", "core_plan_test", "core_operations_test"],
    "core/src/walk": ["core_walk_test", *OPERATIONS],
    "server/access": ["access_test"],
    "server/admission": ["admission_test"],
    "server/loop": ["loop_test", "rpc_cores_test", "rpc_stress_test"],
    "server/operations": ["operations_test", "operations_memory_test"],
    "server/rpc": ["rpc_cores_test", "rpc_stress_test"],
    "server/transport": ["transport_test"],
    "server/wire": ["wire_test", "wire_memory_test"],
}
ROOMS["core/src"] = list(dict.fromkeys(test for room, tests in ROOMS.items() if room.startswith("core/") for test in tests))

# What is looked for in a line, and what stands there instead. Spaces keep templates and pointers out.
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

# Conditions of the preprocessor that hold here, and that do not; all others may.
HOLDS = re.compile(r"HWY_ARCH_X86|== HWY_AVX2|__x86_64__")
FAILS = re.compile(r"HWY_AVX3|HWY_NEON|__aarch64__|QUANTD_TSAN")


def compiled(lines):
    """For each line whether it is, here."""
    blocks, found = [], []  # of each block whether its branch is, and whether one before it was
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
    """(path, line, new line) for every change that this file could have."""
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
    """Whether it ended well within so many seconds. (No cache keeps what a change made of a file.)"""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    try:
        environment = {**os.environ, "CCACHE_DISABLE": "1"}
        return subprocess.run(command, cwd=TREE, env=environment, timeout=seconds, **quiet).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def prepare(tests):
    """A checkout of HEAD, with the tests of a room built; {test: (its program, seconds that it takes)}."""
    git = ["git", "-C", str(ROOT)]
    FOLDER.mkdir(parents=True, exist_ok=True)
    if not TREE.exists():
        subprocess.run([*git, "worktree", "prune"], check=True)
        subprocess.run([*git, "worktree", "add", "--quiet", "--detach", str(TREE), "HEAD"], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    subprocess.run(["git", "-C", str(TREE), "checkout", "--quiet", "--force", "--detach", head], check=True)
    configure = ["cmake", "-S", str(TREE), "-B", str(BUILD), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DQUANTD_BUILD_TESTS=ON"]
    if platform.machine() == "x86_64":
        configure += ["-DCMAKE_CXX_FLAGS=-DQUANTD_SIMD_TARGETS=HWY_AVX2"]
    subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", str(BUILD), "--target", *tests], check=True, stdout=subprocess.DEVNULL)
    seconds = {}
    for test in tests:
        (program,) = BUILD.glob(f"tests/**/{test}")
        begin = time.monotonic()
        if not run([program], 900):
            sys.exit(f"{test} fails without any change")
        seconds[test] = program, time.monotonic() - begin
    return seconds


def judge(path, seconds):
    """What the tests of the room that a changed file is in make of it: "killed", "survived", or "unbuilt". Those that take long are
    built last, if at all."""
    room = max((room for room in ROOMS if path.is_relative_to(TREE / room)), key=len)
    for test in ROOMS[room]:
        if not run(["cmake", "--build", str(BUILD), "--target", test], 900):
            return "unbuilt"
        program, took = seconds[test]
        if not run([program, "--gtest_fail_fast", "--gtest_brief=1"], 30 + 5 * took):
            return "killed"
    return "survived"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("room", nargs="?", choices=ROOMS, metavar="ROOM")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--least", type=float, default=95)
    arguments = parser.parse_args()
    if arguments.list or not arguments.room:
        print(*(f"{room}: {' '.join(tests)}" for room, tests in ROOMS.items()), sep="\n")
        return 0
    room, tests = arguments.room, ROOMS[arguments.room]
    seconds = prepare(tests)
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
        path.write_text("\n".join(lines))
        try:
            result = judge(path, seconds)
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
