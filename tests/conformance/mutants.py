#!/usr/bin/env python3
"""Does the kit notice changes? Changes one place of the oracle, a rule, at a time, and runs the kit's cases on the changed oracle: a change with
which all of them pass has survived, and shows that a case is missing.

  python tests/conformance/mutants.py                      every change, and the survivors
  python tests/conformance/mutants.py --count=60 --seed=7  that many random ones
  python tests/conformance/mutants.py --least=95           exits with 1 if fewer percent were caught (95)

Needs the installed client (pip install ./client/python), whose oracle it reads.
"""

import argparse
import ast
import copy
import itertools
import multiprocessing
import random
import re
import sys
import types
import warnings
from pathlib import Path

from quantd.conformance import case as pristine
from quantd.conformance import cases

ROOM = Path(pristine.__file__).parent
MODULES = ("oracle_types", "oracle", "oracle_embeddings", "oracle_layouts_bnb", "oracle_layouts_gguf", "oracle_layouts")

COMPARES = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
OPERATIONS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
    ast.Pow: ast.Mult,
}
FUNCTIONS = {
    "rint": ("floor", "trunc"),
    "floor": ("rint", "ceil"),
    "trunc": ("floor", "rint"),
    "minimum": ("maximum",),
    "maximum": ("minimum",),
    "isinf": ("isnan",),
    "isnan": ("isinf",),
    "signbit": ("isnan",),
    "isfinite": ("isnan",),
    "abs": ("negative",),
    "sqrt": ("abs",),
}
BOOLEANS = {ast.And: ast.Or, ast.Or: ast.And}

# Changes that no answer can show, each with its reason: (module, pattern of the function, beginning of the change).
EQUIVALENT = [
    # The codes of a NaN that is not FLOAT8: all NaNs count as equal.
    ("oracle_types", "bf16_round", re.compile(r"^(64|bits >> 16 \| 64|16) ->")),
    # Sign extension in arrays of int4 and int2: only their codes are compared; both ways give the same 8 bits.
    ("oracle_types", "from_codes", re.compile("")),
    ("oracle_types", "to_float", re.compile(r"^(8|t\.bits < 8|t\.kind == 'int').*->")),
    ("oracle_types", "to_int", re.compile(r"^(8|t\.bits >= 8) ->")),
    ("oracle_types", "codes", re.compile(r"^(8|t\.bits < 8) ->")),
    # A block that is longer than its dimension; lengths of empty dimensions.
    ("oracle", "block_of", re.compile(r"^1 -> 2$")),
    ("oracle", "_dynamic_block", re.compile(r"^1 -> 2$")),
    # The value that replaces a NaN before it becomes the lowest code; a bound above all sums; a mask that the codes' own mask follows.
    ("oracle", "_integers", re.compile(r"^(0 -> 1|2\.0 \*\* 40|2\.0 ->|40\.0|40 ->|1 -> 2|1 << t\.bits)")),
    # Exponents of FLOAT stay below E8M0's largest; scales of NVFP4's blocks stay below E4M3FN's.
    ("oracle", "dynamic_quantize", re.compile(r"^(254 ->|True -> False)")),
    # 127 * x / length is never out of range; log10 of x / 0 is infinite by itself.
    ("oracle_embeddings", "_codes", re.compile(r"^127 -> 12[68]|^np\.clip\(wide \* 127")),
    ("oracle_embeddings", "_report", re.compile(r"^(0 -> 1|noise == 0)")),
    ("oracle", "_report", re.compile(r"^(0 -> 1|noise == 0)")),
    # A table or a sum with one more entry; 128 added to or subtracted from eight bits.
    ("oracle_embeddings", "lengths", re.compile(r"^16 -> 17")),
    ("oracle_embeddings", "quantize_embeddings", re.compile(r"^y\.astype\(np\.int16\) - 128 ->")),
    ("oracle_types", "_decode_table", re.compile(r"^2 -> 3")),
    # The value at a NaN's place before the NaN is written there; infinity is larger than the largest, like other large numbers.
    ("oracle_types", "encode_small", re.compile(r"^(0 -> 1|np\.isinf)")),
    # Any negative length in reshape means the rest; the last of two dimensions; slices that end behind what is used.
    ("oracle_layouts", re.compile("^(_scaled|pack4|unpack4|_unfp4)$"), re.compile(r"^(-1 -> 1|1 -> 2)$")),
    ("oracle_layouts_bnb", re.compile("^(absmax_of|four_bits|decode)$"), re.compile(r"^1 -> 2$")),
    ("oracle_layouts_gguf", re.compile("^(encode|decode|_q4_or_5)$"), re.compile(r"^1 -> 2$")),
    ("oracle_layouts_gguf", re.compile("^(_codes|_q._k|_q4_or_5_k)$"), re.compile(r"^(80 -> 81|108 -> 109|32 -> 33|96 -> 97)$")),
    ("oracle_layouts_gguf", re.compile("^(_codes|_q._k|_q4_or_5_k)$"), re.compile(r"^(48 -> 49|16 -> 17|208 -> 209)$")),
    ("oracle_layouts_gguf", "_six_bits", re.compile(r"^(3 -> 4|4 -> 3|11 -> 12)$")),
    # FLOAT4E2M1 has no other mode and no NaN. Bounds that no quotient reaches; the G of denormals, whose reciprocal overflows anyway.
    ("oracle_layouts", "fp4", re.compile(r"^(True ->|False ->)")),
    ("oracle_layouts", "e4m3", re.compile(r"^False ->")),
    ("oracle_layouts", "", re.compile(r"^(126 ->|14 ->|2\.0)")),
    ("oracle_layouts", re.compile("^(_scaled|_int4)$"), re.compile(r"^(128 -> 129|8 -> 9)$")),
    ("oracle_layouts_bnb", re.compile("^(nested_codes|four_bits)$"), re.compile(r"^np\.clip")),
    ("oracle_layouts_gguf", "_truncated", re.compile(r"^np\.trunc -> np\.floor")),
    # K types are not encoded. Zeros of both signs are left out of the cases; the replacement for the logarithm of 0.
    ("oracle_layouts", "columns_of", re.compile(r"^256 ->")),
    ("oracle_layouts_gguf", "_smallest", re.compile("")),
    ("oracle_layouts_gguf", "_mxfp4", re.compile(r"^(0|1) ->")),
    # A scale of 0 belongs to zeros alone, which are 0 whatever they are divided by; a middle that both formulas give.
    ("oracle_layouts_gguf", "_reciprocal", re.compile(r"^0 -> 1")),
    ("oracle_layouts_bnb", "nested_map", re.compile(r"^k < n")),
    ("oracle_layouts_bnb", "nested_codes", re.compile(r"^(0 -> 1|1 -> 2|np\.isnan|np\.trunc -> np\.floor)")),
]


def equivalent(module, function, words):
    return any(m == module and re.fullmatch(f, function) and pattern.search(words) for m, f, pattern in EQUIVALENT)


def replacements(node):
    """Nodes that may replace a node."""
    found = []

    def other(**changed):
        new = copy.copy(node)
        for name, value in changed.items():
            setattr(new, name, value)
        found.append(new)

    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARES:
        other(ops=[COMPARES[type(node.ops[0])]()])
    elif isinstance(node, ast.BinOp) and type(node.op) in OPERATIONS:
        other(op=OPERATIONS[type(node.op)]())
    elif isinstance(node, ast.BoolOp):
        other(op=BOOLEANS[type(node.op)]())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Not, ast.Invert)):
        found.append(node.operand)
    elif isinstance(node, ast.Attribute) and node.attr in FUNCTIONS and isinstance(node.value, ast.Name) and node.value.id == "np":
        for name in FUNCTIONS[node.attr]:
            other(attr=name)
    elif isinstance(node, ast.IfExp):
        other(body=node.orelse, orelse=node.body)
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        other(value=not node.value)
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        other(value=node.value + 1)
        if node.value not in (0, 1):
            other(value=node.value - 1)
    elif isinstance(node, ast.If):
        other(test=ast.copy_location(ast.UnaryOp(ast.Not(), node.test), node.test))
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "clip":
        found.append(node.args[0])  # no clamp
    return found


def places(tree):
    """(node's place, a replacement, the function, what changes) for a module's functions and tables."""
    found = []

    def visit(node, path, function):
        if isinstance(node, (ast.Raise, ast.Import, ast.ImportFrom, ast.JoinedStr, ast.AnnAssign, ast.arguments)):
            return
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            function = node.name
        if isinstance(node, ast.With):  # arguments of errstate do not change the result
            children = [("body", i, child) for i, child in enumerate(node.body)]
        else:
            children = []
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "_type":
                # The declaration of a type: its range is a rule, its number in files and its width are not. (Nothing is quantized to
                # INT32.)
                children = [("args", i, child) for i, child in enumerate(node.args) if i >= 5 and node.args[0].value != "INT32"]
                node = ast.Pass()
            for name, value in ast.iter_fields(node):
                if name in ("decorator_list", "returns", "annotation", "op", "ops", "ctx"):
                    continue
                if isinstance(value, ast.AST):
                    children.append((name, None, value))
                elif isinstance(value, list):
                    children += [(name, i, child) for i, child in enumerate(value) if isinstance(child, ast.AST)]
        for name, i, child in children:
            for new in replacements(child):
                if isinstance(child, ast.If):
                    words = f"if {ast.unparse(child.test)} -> if {ast.unparse(new.test)}"
                else:
                    words = f"{ast.unparse(child)} -> {ast.unparse(new)}"
                found.append(([*path, (name, i)], new, function, child.lineno, words))
            visit(child, [*path, (name, i)], function)

    visit(tree, [], "")
    return found


def changed(source, index):
    """The module's tree with one change, and a description of it."""
    tree = ast.parse(source)
    path, new, function, line, words = places(tree)[index]
    node = tree
    for name, i in path[:-1]:
        node = getattr(node, name) if i is None else getattr(node, name)[i]
    name, i = path[-1]
    if i is None:
        setattr(node, name, new)
    else:
        getattr(node, name)[i] = new
    return ast.fix_missing_locations(tree)


def mutant(module, index):
    """case.answer of an oracle with that change."""
    package = types.ModuleType("mutant")
    package.__path__ = []
    sys.modules["mutant"] = package
    for name in (*MODULES, "case"):
        source = (ROOM / f"{name}.py").read_text()
        code = compile(changed(source, index) if name == module else source, f"{name}.py", "exec", dont_inherit=True)
        made = types.ModuleType(f"mutant.{name}")
        made.__package__ = "mutant"
        sys.modules[f"mutant.{name}"] = made
        setattr(package, name, made)
        exec(code, made.__dict__)
    return sys.modules["mutant.case"].answer


def drawn(seed):
    """The kit's cases with their answers: first one of each rule and group, then the rest in any order."""
    every = list(cases.all_cases())
    random.Random(seed).shuffle(every)
    first, rest, seen = [], [], set()
    for one in every:
        key = (one.rule, one.group, one.opset)
        (rest if key in seen else first).append(one)
        seen.add(key)
    return [(one, one.expected()) for one in itertools.chain(first, rest)]


CASES = []
SEED = 5  # for the changes that test_mutants.py draws


def judge(job):
    """The name of the case that caught it, or None."""
    module, index = job[:2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            answer = mutant(module, index)
        except Exception as error:
            return f"it does not start: {type(error).__name__}"
        for one, wanted in CASES:
            if module.startswith("oracle_layouts") and one.operation not in pristine.LAYOUT_OPERATIONS:
                continue
            try:
                wrong = pristine.mismatches(answer(one.operation, one.inputs, one.attributes), wanted, exact_nan=True)
            except Exception as error:
                return f"{one.name}: {type(error).__name__}"
            if wrong:
                return one.name
    return None


def run(count=None, seed=1, processes=None):
    """(caught, survivors as (module, line, function, words))."""
    jobs = []
    for module in MODULES:
        for index, (_, _, function, line, words) in enumerate(places(ast.parse((ROOM / f"{module}.py").read_text()))):
            if not equivalent(module, function, words):
                jobs.append((module, index, line, function, words))
    random.Random(seed).shuffle(jobs)
    jobs = jobs[:count]
    CASES[:] = drawn(seed)
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        results = pool.map(judge, jobs, chunksize=4)
    survived = [(module, line, function, words) for (module, _, line, function, words), by in zip(jobs, results) if by is None]
    return len(jobs) - len(survived), survived


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--least", type=float, default=95)
    arguments = parser.parse_args()
    caught, survived = run(arguments.count, arguments.seed)
    for module, line, function, words in sorted(survived):
        print(f"survived {module}.py:{line} {function}: {words}")
    share = 100 * caught / (caught + len(survived))
    print(f"{caught} of {caught + len(survived)} changes caught ({share:.1f} %) by {len(CASES)} cases, seed {arguments.seed}")
    return 0 if share >= arguments.least else 1


if __name__ == "__main__":
    sys.exit(main())
