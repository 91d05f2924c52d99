"""python -m quantd_conformance: writes the kit, and judges an engine by it. --help says the rest."""

import argparse
import contextlib
import re
import sys
import tempfile
from pathlib import Path
from typing import List, Optional

from quantd import __version__

from . import cases, engines, files, verify
from .rules import RULES

DESCRIPTION = """The conformance kit of quantd: cases of QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear in every version as ONNX
backend tests, and of oneDNN's order, microscaling, NVFP4 and embeddings as safetensors with JSON. What is
expected comes from an oracle that was written from the specifications."""
ENGINES = f"""{", ".join(engines.NAMES)}, quantd=HOST:PORT (any server of quantd's protos), or MODULE:FUNCTION: a function of a case
(.operator, .opset, .inputs, .attributes, .model) that returns its outputs; it raises NotImplementedError for what it has not got, ValueError
for what it refuses. Extras bring the packages: pip install './tests/conformance[onnxruntime,openvino,local]'."""


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(prog="python -m quantd_conformance", description=DESCRIPTION)
    p.add_argument("--version", action="version", version=__version__)
    commands = p.add_subparsers(dest="command", required=True)
    export = commands.add_parser(
        "export", help="write the kit", description="Writes the kit: a new folder, or an archive that is the same byte for byte each time."
    )
    export.add_argument("path", type=Path, metavar="DIR|FILE.tar.xz")
    judge = commands.add_parser(
        "verify",
        help="judge an engine",
        description="Asks an engine all cases and prints a table by rule. Exit code 1 when a rule that a "
        "specification fixes fails; 2 for wrong usage, or a kit or engine that is not available.",
    )
    judge.add_argument(
        "path", type=Path, metavar="DIR|FILE.tar.xz", help="what export wrote, or any folder of ONNX backend tests of these operators"
    )
    judge.add_argument("--engine", required=True, metavar="NAME", help=ENGINES)
    judge.add_argument("--only", metavar="RE", help="cases whose family/name or rule matches this regular expression")
    judge.add_argument("--json", action="store_true", help="print the result as JSON in place of the table")
    judge.add_argument("--junit", type=Path, metavar="FILE", help="write a JUnit report as well")
    judge.add_argument(
        "--exact",
        action="store_true",
        help="the oracle's answer bit for bit in what is open, too, and in the NaNs of FLOAT8: what quantd promises",
    )
    rules = commands.add_parser("rules", help="list the rules", description="Prints the rules with their sentences.")
    rules.add_argument("--only", metavar="RE")
    return p


def _pattern(text: Optional[str]) -> "re.Pattern[str]":
    try:
        return re.compile(text or "")
    except re.error as error:
        raise ValueError(f"--only={text} is not a regular expression: {error}") from None


def _verify(arguments: argparse.Namespace) -> int:
    pattern = _pattern(arguments.only)
    with contextlib.ExitStack() as stack:
        folder = arguments.path
        if folder.name.endswith(".tar.xz"):
            folder = files.unpacked(folder, Path(stack.enter_context(tempfile.TemporaryDirectory())))
        name, ask = stack.enter_context(engines.engine(arguments.engine))
        found = [c for c in files.read(folder) if pattern.search(c.rule) or pattern.search(f"{c.family}/{c.name}")]
        if not found:
            raise ValueError(f"--only={arguments.only} matches no case")
        shown = sys.stderr.isatty()

        def progress(done: int) -> None:
            if done % 100 == 0:
                print(f"\r{done} of {len(found)}", end="", file=sys.stderr, flush=True)

        result = verify.verify(found, ask, name, arguments.exact, progress if shown else None)
        if shown:
            print("\r\033[K", end="", file=sys.stderr)
    print(verify.as_json(result) if arguments.json else verify.table(result))
    if arguments.junit:
        arguments.junit.write_bytes(verify.as_junit(result))
    return 1 if result.failed else 0


def _rules(arguments: argparse.Namespace) -> int:
    pattern = _pattern(arguments.only)
    for rule in RULES.values():
        if pattern.search(rule.name):
            print(f"{rule.name}\n    {rule.source}: {rule.sentence(0)}" + (f"\n    open: {rule.open}" if rule.open else ""))
    return 0


def main(argv: Optional[List[str]] = None) -> int:
    arguments = parser().parse_args(argv)
    try:
        if arguments.command == "rules":
            return _rules(arguments)
        if arguments.command == "verify":
            return _verify(arguments)
        manifest = files.write(arguments.path, cases.all_cases())
        print(f"{arguments.path}: {manifest['cases']} cases of {len(manifest['rules'])} rules, digest {manifest['digest']}")
        return 0
    except (ImportError, OSError, ValueError) as error:
        print(f"quantd_conformance: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
