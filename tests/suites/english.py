#!/usr/bin/env python3
"""Words that readers stumble over, in the files given: everywhere in documents, protos, Python and public headers (include/), comments among
that; in other C++ in its comments and literals; in other product code in what it prints (literals). Prints lines FILE:LINE: TEXT; ends with
1 if there are any.

Say "is not a PEM file", not "is no PEM file"; "a client that ...", not "whoever ..."; "the formats of vector databases", not "the codes that a
vector database has".
"""

import re
import sys
from pathlib import Path

WORDS = re.compile(
    r"(?<!there )\b(?:is|are|was|were) no (?!longer\b|more\b|less\b|fewer\b|such\b|matter\b)|\bwhoever\b|\bwhose codes\b|"
    r"\bcodes? that (?:(?:a|an|the) )?[\w ]+ ha(?:s|ve)\b|(?:[.;] |\bfor )who\b|\b(?:has|have) not[,.;)]|\bgood for nothing\b|"
    r"\b(?:come|came|comes) to nothing\b|\bso many\b|\bas [\w.']+ ha(?:s|ve) (?:it|them)\b|(?:the|its|'s) begin\b|\bwithout which\b|"
    r"\bas (?:it|they) comes?\b|\bbut for (?:the|those|its|what)\b|\ball there is\b",
    re.IGNORECASE,
)
LITERAL = re.compile(r'"(?:[^"\\\n]|\\.)*"')
COMMENT = re.compile(r"(?:^|\s)//+ (.*)")
MARKS = re.compile(r"^\s*(?://+|#+|\*)?\s*")
OF_TYPESCRIPT = re.compile(LITERAL.pattern + r"|`[^`\n]*`|'(?:[^'\\\n]|\\.)*'")


def found(path):
    literal = OF_TYPESCRIPT if path.suffix == ".ts" else LITERAL
    whole = path.suffix in (".md", ".proto", ".py") or "include" in path.parts
    before = ""  # a sentence may go on from the line above
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        comment = COMMENT.search(LITERAL.sub("", line)) if path.suffix in (".h", ".cc") and not whole else None
        text = MARKS.sub("", line) if whole else " ".join([*literal.findall(line), comment[1] if comment else ""])
        if any(match.end() > len(before) for match in WORDS.finditer(f"{before} {text}")):
            yield f"{path}:{number}: {line.strip()}"
        before = text if whole or comment else ""


def main(paths):
    lines = [line for path in paths for line in found(Path(path))]
    print("\n".join(lines), end="\n" if lines else "")
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
