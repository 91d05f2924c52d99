#!/usr/bin/env python3
"""Which lines of a folder the fuzzers' short runs reach.

  cmake --preset coverage && cmake --build build/coverage --target http2_fuzz_test http2_differential_fuzz_test request_fuzz_test
  tests/fuzz/coverage.py build/coverage server/transport server/wire [--missing]

Runs the three programs (their corpus, then generated inputs), and prints how many of all lines were run, for each folder and file, headers included;
--missing prints the other lines. Standard library and gcov only.
"""

import argparse
import collections
import json
import pathlib
import subprocess

TARGETS = ("http2", "http2_differential", "request")


def count_lines(tree, root, folders):
    """(file, line) -> how often it ran. A line of a template or a header has a count for each place where it was compiled."""
    counts = collections.Counter()
    for notes in tree.rglob("*.gcda"):
        told = subprocess.run(["gcov", "--json-format", "--stdout", notes], capture_output=True, check=True, cwd=tree, text=True).stdout
        for part in filter(None, told.split("\n")):
            told = json.loads(part)
            for file in told["files"]:
                path = (tree / file["file"]).resolve()
                if not path.is_relative_to(root) or not any(path.is_relative_to(root / folder) for folder in folders):
                    continue
                for line in file["lines"]:
                    counts[str(path.relative_to(root)), line["line_number"]] += line["count"]
    return counts


def show(name, lines):
    ran = sum(count > 0 for count in lines)
    print(f"{100 * ran / len(lines):6.1f} %  {ran:5} of {len(lines):5}  {name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=pathlib.Path)
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--missing", action="store_true")
    arguments = parser.parse_args()
    tree, root = arguments.tree.resolve(), pathlib.Path(__file__).resolve().parents[2]
    for notes in tree.rglob("*.gcda"):
        notes.unlink()
    for target in TARGETS:
        subprocess.run([tree / "tests" / "fuzz" / f"{target}_fuzz_test"], check=True)
    counts = count_lines(tree, root, arguments.folders)
    for folder in arguments.folders:
        in_folder = {place: count for place, count in counts.items() if place[0].startswith(folder.rstrip("/") + "/")}
        show(folder, in_folder.values())
        for file in sorted({place[0] for place in in_folder}):
            show(f"  {file}", [count for place, count in in_folder.items() if place[0] == file])
    if arguments.missing:
        for (file, line), count in sorted(counts.items()):
            if count == 0:
                text = (root / file).read_text().split("\n")[line - 1]
                print(f"{file}:{line}: {text}")


if __name__ == "__main__":
    main()
