#!/usr/bin/env python3
"""The house rules that a machine can check: which room may include which, the coroutine dialect, file lengths and names, a
README in every room. Prints lines 'pass|fail NAME WHY', separated by tabs. Standard library only; reads what git tracks."""

import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]

SERVER_ROOMS_BELOW_RPC = [
    "server/" + room
    for room in ("access", "admission", "errors", "fd", "log", "loop", "memory", "metrics", "net", "operations", "regions",
                 "stored_parameters", "trace", "transport", "wire")
]
SERVER_ROOMS_ABOVE = ["server/" + room for room in ("http", "options", "process", "reports", "rpc", "services")]
# A room, and the rooms that it may include besides itself and core's public headers. Rooms that are not listed (the tests) may include
# anything. The most specific room counts.
ROOMS = {
    "core/include": [],
    "core/c": [],
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
    "server/fd": [],
    "server/errors": [],
    "server/log": [],
    "server/loop": [],
    "server/memory": [],
    "server/net": ["server/fd"],
    "server/regions": ["server/fd"],
    "server/process": [],
    "server/access": ["server/fd"],
    "server/http": ["server/access", "server/fd", "server/log", "server/loop", "server/net"],
    "server/options": ["server/log", "server/loop", "server/memory", "server/net", "server/transport"],
    "server/admission": ["server/loop", "server/memory"],
    "server/wire": ["server/errors", "server/memory", "proto"],
    "server/operations": ["server/wire"],
    "server/stored_parameters": ["server/fd", "server/errors", "server/log", "server/loop", "server/wire", "proto"],
    "server/metrics": ["server/errors", "server/wire"],
    "server/trace": ["server/log"],
    "server/transport": [
        "server/access", "server/admission", "server/errors", "server/log", "server/loop", "server/memory", "server/net", "server/trace"
    ],
    "server/reports": ["server/access", "server/log", "server/metrics", "server/transport", "server/wire"],
    "server/rpc": SERVER_ROOMS_BELOW_RPC,
    "server/services": [*SERVER_ROOMS_BELOW_RPC, "server/rpc", "proto"],
    "server": [*SERVER_ROOMS_BELOW_RPC, *SERVER_ROOMS_ABOVE, "proto"],
    "client": [],  # status_macros.h, for every C++ room below
    "client/cpp": ["proto", "client"],
    "client/python-core": ["client/checkpoints"],
    "client/checkpoints": ["client/cli/files", "client"],
    "client/cli/files": ["client"],
    "client/cli/engine": ["client/cli/files", "client/cpp", "proto", "client"],
    "client/cli/kit": ["client/cli/files", "client/cpp", "proto", "client"],
    "client/cli/commands": ["client/cli/files", "client/cli/engine", "client/cli/kit", "client/checkpoints", "client/cpp", "proto", "client"],
    "client/cli": ["client/cli/files", "client/cli/engine", "client/cli/commands", "client"],
}
# Folders that a quoted include may be in, besides the includer's.
INCLUDE_FOLDERS = ["", "core/include", "core/src", "core/c/include", "client/cpp/include", "client", "client/cli"]
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
    "server/transport": r"^(openssl/|google/protobuf|quantd/v1/)",
    "server/admission": r"^(google/protobuf|quantd/v1/|nghttp2)",
    "server/loop": r"^(google/protobuf|quantd/|nghttp2)",
    "server/metrics": r"^(google/protobuf|quantd/v1/|nghttp2)",
    "server/regions": r"^(google/protobuf|quantd/v1/|nghttp2)",
    "server/access": r"^(google/protobuf|quantd/|nghttp2)",
    "server/http": r"^(openssl/|google/protobuf|prometheus|quantd/|nghttp2)",
}
# What the coroutines of server/rpc and server/services must not contain, and why.
DIALECT = [
    (r"\bco_await\b", r"^\s*(co_await [^;]*;|(const )?bool \w+ = co_await [^;]*;)\s*(//.*)?$", "co_await stands alone or fills a named bool"),
    (r"\bauto\s*&?&?\s*\[", r"(?!)", "no structured bindings: g++ 12 destroys their temporaries early"),
    (r"\bco_(yield)\b", r"(?!)", "no generators: a call is one coroutine"),
    (r"\bawait_suspend\s*\(", r"noinline|NOINLINE", "await_suspend is noinline (llvm#56301)"),
]
MAX_LINES = 400
MAX_WIDTH = 100


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


def check_length(path):
    text = (ROOT / path).read_text()
    if text.startswith("// Code generated by "):
        return ""
    lines = text.count("\n")
    if path.endswith(".proto"):  # there, comments are the documentation for clients, one for each element
        lines -= len(re.findall(r"^\s*//", text, re.MULTILINE))
    return f"{lines} lines, more than {MAX_LINES}: which two things does it do?" if lines > MAX_LINES else ""


def check_comments(path):
    """clang-format does not change comments, so as not to break examples; their width is checked here."""
    lines = enumerate((ROOT / path).read_text().split("\n"), 1)
    wide = next((number for number, line in lines if len(line) > MAX_WIDTH and line.lstrip().startswith("//")), 0)
    return f"line {wide}: more than {MAX_WIDTH} columns" if wide else ""


def check_name(path, paths):
    twin = next((p for p in paths if p != path and p.rpartition("/")[2] == path.rpartition("/")[2]), "")
    return f"has a twin, {twin}: which is which?" if twin else ""


def check_readme(room, paths):
    """If a room's README says what it includes, it names every room that it does include. That of server refers to the table."""
    readme = ROOT / room / "README.md"
    said = re.search(r"\b([Ii]ncludes|May include): .*", readme.read_text(), re.DOTALL) if readme.is_file() else None
    if said is None or room == "server":
        return ""
    targets = [resolve(name, path) for path in paths for _, name in includes(path)]
    rooms = {room_of(target, [*ROOMS, "proto"]) for target in targets if target} - {None, room, "core/include"}
    names = {other: "proto|generated messages" if other == "proto" else other.rpartition("/")[2] for other in rooms}
    missing = sorted(other for other, name in names.items() if not re.search(rf"\b({name})\b", said.group()))
    return f"does not say that it includes {', '.join(missing)}" if missing else ""


def check_unfinished(path):
    found = re.search(r"\b(TODO|FIXME|XXX|HACK)\b", (ROOT / path).read_text())
    return f"says {found.group()}" if found else ""


def check_listed(path, lists):
    return "" if re.search(rf"\b{path.rpartition('/')[2]}\b", lists) else "no CMake list names it, so it is not built"


def rooms_with_files():
    """Folders with tracked files, of the first two levels and of core/src; dotted folders are not rooms."""
    found = set()
    for path in tracked():
        parts = pathlib.PurePosixPath(path).parts[:-1]
        if parts and not parts[0].startswith("."):
            found.add(parts[0])
            if len(parts) > 1 and parts[0] in ("server", "client", "tests"):
                found.add("/".join(parts[:2]))
            if len(parts) > 2 and parts[:2] == ("core", "src"):
                found.add("/".join(parts[:3]))
    return sorted(found)


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
    coroutines = tracked("server/rpc/*.h", "server/rpc/*.cc", "server/services/*.h", "server/services/*.cc")
    report("coroutine dialect", {p: check_dialect(p) for p in coroutines})
    report("file length", {p: check_length(p) for p in code})
    report("width of comments", {p: check_comments(p) for p in sources})
    core = [path for path in sources if path.startswith("core/")]
    report("names told apart in core", {path: check_name(path, core) for path in core})
    server = [path for path in sources if path.startswith("server/")]
    report("names told apart in server", {path: check_name(path, server) for path in server})
    of_room = {room: [path for path in sources if room_of(path, ROOMS) == room] for room in ROOMS}
    report("what READMEs say of includes", {room: check_readme(room, paths) for room, paths in of_room.items()})
    lists = "".join(re.sub(r"#.*", "", (ROOT / path).read_text()) for path in tracked("*.cmake", "*CMakeLists.txt"))
    report("tests are built", {p: check_listed(p, lists) for p in sources if p.endswith("_test.cc")})
    report("nothing left to do", {p: check_unfinished(p) for p in code if p != "tests/suites/arrows.py"})
    report("a README in every room", {r: "" if (ROOT / r / "README.md").is_file() else "none" for r in rooms_with_files()})


if __name__ == "__main__":
    main()
