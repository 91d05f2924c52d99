#!/usr/bin/env python3
"""Words that readers stumble over, in the files given: in documents and protos everywhere, in product code in what it prints (literals) and,
of Python, in docstrings and comments, too. Prints lines FILE:LINE: TEXT; ends with 1 if there are any.

Say "is not a PEM file", not "is no PEM file"; "a client that ...", not "whoever ..."; "the formats of vector databases", not "the codes that a
vector database has".
"""

import re
import sys
from pathlib import Path

WORDS = re.compile(
    r"(?<!there )\b(?:is|are|was|were) no (?!longer\b|more\b|less\b|fewer\b|such\b|matter\b)|\bwhoever\b|\bwhose codes\b|"
    r"\bcodes? that (?:a|an|the) [\w ]+ has\b",
    re.IGNORECASE,
)
LITERAL = re.compile(r'"(?:[^"\\\n]|\\.)*"')
OF_TYPESCRIPT = re.compile(LITERAL.pattern + r"|`[^`\n]*`|'(?:[^'\\\n]|\\.)*'")


def found(path):
    literal = OF_TYPESCRIPT if path.suffix == ".ts" else LITERAL
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        text = line if path.suffix in (".md", ".proto", ".py") else " ".join(literal.findall(line))
        if WORDS.search(text):
            yield f"{path}:{number}: {line.strip()}"


def main(paths):
    lines = [line for path in paths for line in found(Path(path))]
    print("\n".join(lines), end="\n" if lines else "")
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
