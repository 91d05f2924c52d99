#!/usr/bin/env python3
"""Whether everything that the .md files name exists: links and their anchors, files, scripts, suites, presets, flags. Prints lines
'pass|fail NAME WHY', separated by tabs. Standard library only; reads what git tracks."""

import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXTENSIONS = "cc|h|inc|py|pyi|sh|md|proto|cmake|yaml|yml|json|toml|txt|java|rs|go|ts|mjs|xml|service|html|svg"
# Files that a user, a build or a run makes: they are in no checkout.
MADE = re.compile(
    r"^(/|~|build/|\$|\.\.?/?$|http)|[*<>{}$]|\b(LANG|NAME)|^(model|small|back|vectors?|codes|ranges|scales?|x|y|y_scale|in|out|tls|clients|ready|values|quantd-values)\b"
)


def tracked(*patterns):
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "--", *patterns], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return [path for path in listed.stdout.split("\n") if path and (ROOT / path).is_file()]


FILES = tracked()
FOLDERS = {str(parent) for path in FILES for parent in pathlib.PurePosixPath(path).parents}
ENDINGS = {"/".join(parts[i:]) for path in [*FILES, *FOLDERS] for parts in [path.split("/")] for i in range(len(parts))}


def prose_and_code(text):
    """(the text without its fenced blocks, [lines of each block])."""
    blocks = re.findall(r"^ *```\w*\n(.*?)^ *```", text, re.M | re.S)
    return re.sub(r"^ *```.*?^ *```", "", text, flags=re.M | re.S), [block.replace("\\\n", " ").split("\n") for block in blocks]


def anchor(title):
    """The anchor that GitHub makes of a heading."""
    return re.sub(r"[^\w\- ]", "", re.sub(r"[`*]", "", title).strip().lower()).replace(" ", "-")


def anchors(path):
    prose, _ = prose_and_code((ROOT / path).read_text())
    return {anchor(title) for title in re.findall(r"^#+ (.*)$", prose, re.M)}


def broken_links(path, prose):
    for target in re.findall(r"(?<!!)\]\(([^)\s]+)\)", prose):
        if re.match(r"\w+:", target):
            continue
        name, _, part = target.partition("#")
        to = (ROOT / path).parent / name if name else ROOT / path
        if not to.exists():
            yield f"link to {target}: no such file"
        elif part and part not in anchors(to.resolve().relative_to(ROOT)):
            yield f"link to {target}: no such heading"


def missing_files(path, prose):
    for code in re.findall(r"`([^`\n]+)`", prose):
        for word in re.findall(rf"[\w./{{}},*<>$-]+\.(?:{EXTENSIONS})(?![\w.])", code):
            word = word.removeprefix("./")
            if not MADE.search(word) and word.removeprefix("../") not in ENDINGS and not (ROOT / path).parent.joinpath(word).exists():
                yield f"`{word}`: no such file"


def suites():
    listed = subprocess.run([ROOT / "tests/run.sh", "--list"], capture_output=True, text=True, check=True).stdout
    return {line.split()[0] for line in listed.splitlines()}


def flags(*patterns):
    return {name for path in tracked(*patterns) for name in re.findall(r"--([a-z][a-z0-9_-]+)", (ROOT / path).read_text())}


SUITES = suites() | {"default", "gate", "long"}
PRESETS = set(re.findall(r'"name": "(\w+)"', (ROOT / "CMakePresets.json").read_text()))
# The table is that of --help (tests/e2e/test_start.py).
SERVER_FLAGS = set(re.findall(r"^\| `--(\w+)` \|", (ROOT / "deploy/OPERATIONS.md").read_text(), re.M)) | {"help", "version"}
METRICS = (ROOT / "tests/golden/metrics.txt").read_text()
CLI_FLAGS = flags("client/cli/*.cc", "client/cli/*.h")


def wrong_commands(path, prose, blocks):
    lines = [line for block in blocks for line in block] + re.findall(r"`([^`\n]+)`", prose)
    for line in lines:
        for script in re.findall(r"(?:^|\s)\.?/?((?:tests|deploy|client|core|server)/[\w/.-]+\.(?:sh|py))", line):
            if script not in ENDINGS:
                yield f"`{line.strip()[:60]}`: no {script}"
        run = re.search(r"\./tests/run\.sh(?! room)((?: [a-z_0-9]+)+)", line)
        for name in run.group(1).split() if run else ():
            if name not in SUITES:
                yield f"`{line.strip()[:60]}`: no suite {name}"
        for name in re.findall(r"cmake (?:--build )?--preset[ =](\w+)", line):
            if name not in PRESETS:
                yield f"`{line.strip()[:60]}`: no preset {name}"
        program = re.match(r"(?:\$ )?(?:[A-Z_]+=\S+ )*(?:\S*/)?(quantd|quantctl) ", line.strip())
        known = {"quantd": SERVER_FLAGS, "quantctl": CLI_FLAGS}.get(program.group(1)) if program else None
        for name in re.findall(r" --([a-z][\w-]*)", re.split(r" [|#;&]", line)[0]) if known else ():
            if name not in known:
                yield f"`{line.strip()[:60]}`: no flag --{name}"


def missing_metrics(prose):
    for name in re.findall(r"`(quantd_\w+_(?:total|seconds|bytes))\b", prose):
        if name not in METRICS:
            yield f"`{name}`: no such metric"


def main():
    found = {}
    for path in tracked("*.md"):
        prose, blocks = prose_and_code((ROOT / path).read_text())
        wrong = [*broken_links(path, prose), *missing_metrics(prose), *wrong_commands(path, prose, blocks)]
        if path != "CHANGELOG.md":  # which also names removed things
            wrong += missing_files(path, prose)
        found[path] = "; ".join(dict.fromkeys(wrong))
    for path, why in found.items():
        print("fail" if why else "pass", f"names in {path}", why, sep="\t")


if __name__ == "__main__":
    main()
