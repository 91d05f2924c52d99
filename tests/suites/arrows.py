#!/usr/bin/env python3
"""The house rules that a machine can check: which room may include which, the coroutine dialect, names, and how many lines a
room may have. Prints lines 'pass|fail NAME WHY', separated by tabs. Standard library only; reads what git tracks.

arrows.py --budgets prints the table of BUDGETS as the lines are now, and the sums; --count=PERCENT adds so much room."""

import math
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

SERVER_ROOMS_BELOW_RPC = [
    "server/" + room
    for room in ("access", "admission", "log", "loop", "memory", "metrics", "net", "operations", "regions", "scheduling",
                 "trace", "transport", "wire")
]
SERVER_ROOMS_ABOVE = ["server/" + room for room in ("http", "options", "process", "rpc")]
# A room, and the rooms that it may include besides itself and core's public headers. Rooms that are not listed (the tests) may include
# anything. The most specific room counts.
ROOMS = {
    "core/include": [],
    "core/src/types": [],
    "core/src/rules": ["core/src/types"],
    "core/src/kernels": ["core/src/types", "core/src/rules"],
    "core/src/plan": ["core/src/types", "core/src/rules", "core/src/kernels"],
    "core/src/pool": [],
    "core/src/walk": ["core/src/kernels"],
    "core/src/linear": ["core/src/types", "core/src/kernels", "core/src/pool", "core/src/walk"],
    "core/src/dynamic": ["core/src/types", "core/src/rules", "core/src/kernels", "core/src/pool", "core/src/walk", "core/src/linear"],
    "core/src/embeddings": ["core/src/types", "core/src/rules", "core/src/kernels", "core/src/pool"],
    "core/src/calibrate": ["core/src/types", "core/src/rules", "core/src/kernels", "core/src/pool", "core/src/plan"],
    "core/src/layouts": ["core/src/types", "core/src/rules", "core/src/kernels", "core/src/pool"],
    "server/log": [],
    "server/loop": [],
    "server/scheduling": ["server/loop"],
    "server/memory": [],
    "server/net": [],
    "server/regions": ["server/net", "server/scheduling"],
    "server/process": ["server/net"],
    "server/access": ["server/net"],
    "server/http": ["server/access", "server/log", "server/loop", "server/net", "server/scheduling"],
    "server/options": ["server/log", "server/memory", "server/net", "server/scheduling", "server/transport"],
    "server/admission": ["server/loop", "server/memory", "server/scheduling"],
    "server/wire": ["server/memory", "proto"],
    "server/operations": ["server/wire"],
    "server/metrics": ["server/wire"],
    "server/trace": ["server/log"],
    "server/transport": [
        "server/access", "server/admission", "server/log", "server/loop", "server/memory", "server/net", "server/scheduling", "server/trace",
        "server/wire"  # FORBIDDEN: but a call's status
    ],
    "server/rpc": [*SERVER_ROOMS_BELOW_RPC, "proto"],
    "server": [*SERVER_ROOMS_BELOW_RPC, *SERVER_ROOMS_ABOVE, "proto"],
    "client": [],  # status_macros.h, for every C++ room below
    "client/cpp": ["proto", "client"],
    "client/python-core": ["client/checkpoints"],
    "client/checkpoints": ["client/cli/files", "client"],
    "client/cli/files": ["client"],
    "client/cli/engine": ["client/cli/files", "client/cpp", "proto", "client"],
    "client/cli/commands": ["client/cli/files", "client/cli/engine", "client/checkpoints", "client/cpp", "proto", "client"],
    "client/cli": ["client/cli/files", "client/cli/engine", "client/cli/commands", "client"],
}
# Folders that a quoted include may be in, besides the includer's.
INCLUDE_FOLDERS = ["", "core/include", "core/src", "client/cpp/include", "client", "client/cli"]
# Libraries that a room must not use, and core's public headers about requests and plans: only plan, linear, dynamic, embeddings and
# calibrate may include those.
PLANS = r"^quantd/(operation|parameters|plan|quantize|dequantize|dynamic_quantize|quantize_embeddings)\.h$"
FORBIDDEN = {
    "core": r"^(grpc|google/protobuf|prometheus|quantd/v1/)",
    "client/checkpoints": r"^(grpc|google/protobuf|prometheus|quantd/v1/)",
    "client/python-core": r"^(grpc|google/protobuf|prometheus|quantd/v1/)",
    "core/src/types": PLANS,
    "core/src/rules": PLANS,
    "core/src/kernels": PLANS,
    "core/src/pool": PLANS,
    "core/src/walk": PLANS,
    "server": r"^grpc(pp)?/(?!(health|reflection)/)",
    "server/operations": r"^(google/protobuf|quantd/v1/|nghttp2)",
    "server/transport": r"^(openssl/|google/protobuf|quantd/v1/|server/wire/(?!call_status))",
    "server/admission": r"^(google/protobuf|quantd/v1/|nghttp2)",
    "server/loop": r"^(google/protobuf|quantd/|nghttp2)",
    "server/scheduling": r"^(google/protobuf|quantd/|nghttp2)",
    "server/metrics": r"^(google/protobuf|quantd/v1/|nghttp2)",
    "server/regions": r"^(google/protobuf|quantd/v1/|nghttp2)",
    "server/access": r"^(google/protobuf|quantd/|nghttp2)",
    "server/http": r"^(openssl/|google/protobuf|prometheus|quantd/|nghttp2)",
}
# What the coroutines of server/rpc must not contain, and why.
DIALECT = [
    (r"\bco_await\b", r"^\s*(co_await [^;]*;|(const )?bool \w+ = co_await [^;]*;)\s*(//.*)?$", "co_await stands alone or fills a named bool"),
    (r"\bauto\s*&?&?\s*\[", r"(?!)", "no structured bindings: g++ 12 destroys their temporaries early"),
    (r"\bco_(yield)\b", r"(?!)", "no generators: a call is one coroutine"),
    (r"\bawait_suspend\s*\(", r"noinline|NOINLINE", "await_suspend is noinline (llvm#56301)"),
]
# The clock that can jump is only shown: in logs, spans, headers, ages of files and dates of certificates. All that waits uses steady clocks.
WALL_CLOCK = r"system_clock|CLOCK_REALTIME|absl::Now\(|gettimeofday|\btime\((nullptr|0|&)"
SHOWS_THE_TIME = r"^server/(log/|trace/|access/certificates|http/response|regions/directory|rpc/call_metrics|status\.cc)"
MAX_WIDTH = 100
# How many lines of product and of tests a room may have. To raise one is a line of a diff that somebody has to defend.
# A row counts what the rows below its folder do not.
BUDGETS = """
core/include               1416      0
core/src/calibrate         1515      0
core/src/dynamic            812      0
core/src/embeddings         371      0
core/src/kernels           5620      0
core/src/layouts           2569      0
core/src/linear             718      0
core/src/plan              1059      0
core/src/pool               643      0
core/src/rules              831      0
core/src/types              558      0
core/src/walk               429      0
core                         49   7880
server/access              1285   1111
server/admission            636   1232
server/http                 957    670
server/log                 1006    444
server/loop                 660    856
server/memory               436    429
server/metrics              729    315
server/net                  488    360
server/operations           525    343
server/options              680    283
server/process              563    337
server/regions              880    673
server/rpc                 2454   1583
server/scheduling          1108   1005
server/trace                310    186
server/transport           4646   3392
server/wire                1862   2145
server                     1294    240
client/checkpoints         5398      0
client/cli/commands        4030      0
client/cli/engine           980      0
client/cli/files           2543      0
client/cli                  114      0
client/cpp                 2541      0
client/go                   299    195
client/java                 280    152
client/node                 264    105
client/python              5600   2684
client/python-core         1674   1008
client/rust                 296    113
client                       40   2000
proto                       712      0
deploy/front                 72      0
deploy/helm                1915      0
deploy/kubernetes            28      0
deploy/monitoring           738      0
deploy/systemd               48      0
deploy                     1233      0
tests/bench                   0   4999
tests/browser                 0    201
tests/checkpoints             0    886
tests/conformance             0   1010
tests/conformance/quantd_conformance      0   4355
tests/deploy                  0   1170
tests/e2e                     0   8114
tests/fuzz                    0   1721
tests/image                   0     94
tests/interop                 0    676
tests/languages               0    445
tests/monitoring              0    753
tests/packages                0    159
tests/suites                  0   1901
tests                         0    683
.                           271      0
"""
CODE = re.compile(r"(\.(h|cc|c|inc|py|pyi|sh|go|js|mjs|java|rs|cmake|proto|ya?ml|tpl|toml)|CMakeLists\.txt|Dockerfile)$")
GENERATED = re.compile(r"^(client/go/quantdv1|deploy/kubernetes/(base|overlays)|proto/grpc)/")
OWN_TESTS = re.compile(r"^client/[\w-]+/(tests/|src/test/)|^client/.*(_test\.go|\.test\.mjs)$")


def tracked(*patterns):
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "--", *patterns], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return [path for path in listed.stdout.split("\n") if path and (ROOT / path).is_file()]


def room_of(path, rooms):
    matching = [room for room in rooms if path.startswith(room + "/")]
    return max(matching, key=len, default=None)


def resolve(name, includer):
    """The path in the repository of an included name, or None if it belongs to a library."""
    if re.match(r"(quantd/v1|google/rpc|grpc/(health|reflection))/.*\.pb\.h$", name):
        return "proto/" + name
    folders = [str(pathlib.PurePosixPath(includer).parent), *INCLUDE_FOLDERS]
    for folder in folders:
        if (ROOT / folder / name).is_file():
            return str(pathlib.PurePosixPath(folder) / name)
    return None


def includes(path):
    for number, line in enumerate((ROOT / path).read_text().split("\n"), 1):
        found = re.match(r'\s*#\s*include\s+[<"]([^">]+)[">]', line)
        if found:
            yield number, found.group(1)


def check_arrows(path):
    room = room_of(path, ROOMS)
    for number, name in includes(path):
        target = resolve(name, path)
        for prefix, pattern in FORBIDDEN.items():
            if path.startswith(prefix + "/") and re.search(pattern, name):
                return f"line {number}: {prefix} does without {name}"
        if room is None or target is None:
            continue
        allowed = [room, "core/include", *ROOMS[room]]
        if room_of(target, [*ROOMS, "proto"]) not in allowed:
            return f"line {number}: {room} must not include {target}"
    return ""


def check_one_way(room, seen=()):
    """Why a room can be reached from itself, or "". Rooms outside of ROOMS do not count."""
    if room in seen:
        return " -> ".join([*seen[seen.index(room) :], room])
    return next((way for way in (check_one_way(next_room, (*seen, room)) for next_room in ROOMS.get(room, [])) if way), "")


def check_dialect(path):
    lines = (ROOT / path).read_text().split("\n")
    for number, line in enumerate(lines, 1):
        code = re.sub(r"//.*", "", line)
        for what, unless, why in DIALECT:
            # An attribute may stand on the line above.
            if re.search(what, code) and not re.search(unless, code) and not re.search(unless, lines[number - 2]):
                return f"line {number}: {why}"
    return ""


def check_comments(path):
    """clang-format does not change comments, so as not to break examples; their width is checked here."""
    lines = enumerate((ROOT / path).read_text().split("\n"), 1)
    wide = next((number for number, line in lines if len(line) > MAX_WIDTH and line.lstrip().startswith("//")), 0)
    return f"line {wide}: more than {MAX_WIDTH} columns" if wide else ""


def check_clock(path):
    found = re.search(WALL_CLOCK, (ROOT / path).read_text())
    return f"uses {found.group()}" if found and not re.match(SHOWS_THE_TIME, path) else ""


def check_name(path, paths):
    twin = next((p for p in paths if p != path and p.rpartition("/")[2] == path.rpartition("/")[2]), "")
    return f"has a twin, {twin}: which is which?" if twin else ""


def check_unfinished(path):
    found = re.search(r"\b(TODO|FIXME|XXX|HACK)\b", (ROOT / path).read_text())
    return f"says {found.group()}" if found else ""


def check_listed(path, lists):
    return "" if re.search(rf"\b{path.rpartition('/')[2]}\b", lists) else "no CMake list names it, so it is not built"


def home(path, rooms):
    """The row that a file of code counts in, and whether it is a test; None for data, documents and generated code."""
    if not CODE.search(path) or GENERATED.search(path):
        return None
    # tests/server/wire tests server/wire; folders of tests/ that test no single room have rows of their own.
    tested = path.removeprefix("tests/")
    test = tested != path or bool(OWN_TESTS.search(path))
    if tested.split("/")[0] in ("core", "server", "client"):
        path = tested
    return room_of(path, rooms) or "", test


def count_lines(rooms):
    """{room: [lines of product, lines of tests]}."""
    lines = {room: [0, 0] for room in rooms}
    for path in tracked():
        found = home(path, rooms)
        if found:
            lines.setdefault(found[0], [0, 0])[found[1]] += (ROOT / path).read_bytes().count(b"\n")
    return lines


def check_budgets():
    budgets = {room: (int(product), int(test)) for room, product, test in (row.split() for row in BUDGETS.strip().split("\n"))}
    findings = {}
    for room, lines in count_lines([room for room in budgets if room != "."]).items():
        for what, have, may in zip(("product", "tests"), lines, budgets[room or "."]):
            if have > may:
                findings[room or "."] = f"{have} lines of {what}, {may} are allowed: take some away, or raise the row of BUDGETS and say why"
            else:
                findings.setdefault(room or ".", "")
    return findings


def print_budgets(arguments):
    """The table as it would be, with room for the given percentage, and the sums of the present lines."""
    percent = next((int(a.partition("=")[2]) for a in arguments if a.startswith("--count=")), 0)
    rooms = [row.split()[0] for row in BUDGETS.strip().split("\n")]
    lines = count_lines([room for room in rooms if room != "."])
    sums = [0, 0]
    for room in rooms:
        have = lines.get("" if room == "." else room, [0, 0])
        sums = [a + b for a, b in zip(sums, have)]
        print(f"{room:<24}{math.ceil(have[0] * (1 + percent / 100)):>7}{math.ceil(have[1] * (1 + percent / 100)):>7}")
    print(f"sum: {sums[0]} lines of product, {sums[1]} of tests", file=sys.stderr)


def report(rule, findings):
    """One case if a rule holds everywhere, a failed case for each place where it does not. findings: place -> why."""
    broken = {place: why for place, why in findings.items() if why}
    for place, why in broken.items():
        print("fail", f"{rule}: {place}", why, sep="\t")
    if findings and not broken:
        print("pass", f"{rule} ({len(findings)} places)", "", sep="\t")


def main():
    sources = tracked("*.h", "*.cc", "*.c", "*.inc")
    code = sources + tracked("*.py", "*.sh", "*.go", "*.ts", "*.java", "*.rs", "*.cmake", "*CMakeLists.txt", "*.proto")
    for room in [*ROOMS, "tests"]:
        report(f"include arrows of {room}", {p: check_arrows(p) for p in sources if room_of(p, [*ROOMS, "tests"]) == room})
    report("arrows run one way", {room: check_one_way(room) for room in ROOMS})
    coroutines = tracked("server/rpc/*.h", "server/rpc/*.cc", "server/rpc/*.h", "server/services/*.cc")
    report("coroutine dialect", {p: check_dialect(p) for p in coroutines})
    report("width of comments", {p: check_comments(p) for p in sources})
    core = [path for path in sources if path.startswith("core/")]
    report("names told apart in core", {path: check_name(path, core) for path in core})
    server = [path for path in sources if path.startswith("server/")]
    report("steady clocks in server", {path: check_clock(path) for path in server})
    report("names told apart in server", {path: check_name(path, server) for path in server})
    lists = "".join(re.sub(r"#.*", "", (ROOT / path).read_text()) for path in tracked("*.cmake", "*CMakeLists.txt"))
    report("tests are built", {p: check_listed(p, lists) for p in sources if p.endswith("_test.cc")})
    report("nothing left to do", {p: check_unfinished(p) for p in code if p != "tests/suites/arrows.py"})
    report("lines within the budgets", check_budgets())


if __name__ == "__main__":
    if sys.argv[1:]:
        print_budgets(sys.argv[1:])
    else:
        main()
