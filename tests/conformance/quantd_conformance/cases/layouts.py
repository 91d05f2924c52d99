"""Weights in the layouts of checkpoints: encoded, and decoded again. One group per layout.

There are no cases where the package's own result varies: gguf's smallest element among zeros of both signs (its sign depends on the
CPU), and sums of -double that depend on the order (here all partial sums are exact).
"""

import math
from typing import Any, Dict, Iterator, Tuple

import numpy as np

from .. import oracle, oracle_layouts
from .. import oracle_layouts_bnb as bnb
from .. import oracle_layouts_gguf as gguf
from .. import oracle_types as ot
from ..case import Case
from ..values import rng

F32 = np.float32
EXPONENT = {"FLOAT": 8, "FLOAT16": 5, "BFLOAT16": 8}
# Kinds of elements, and the shape of the weight; for rows of whole groups the second number counts groups.
KINDS: Dict[str, Tuple[int, int]] = {
    "noise": (3, 33),
    "ties": (9, 13),
    "zeros": (2, 5),
    "denormals": (2, 37),
    "any_size": (5, 29),
    "one_huge": (3, 31),
    "sparse": (11, 7),
    "positive": (2, 65),
    "negative": (5, 27),
    "near_powers": (4, 31),
    "many_sizes": (17, 9),
    "whole": (7, 17),
    "tiny": (3, 30),
    "ternary": (6, 25),
    "one_row": (1, 130),
    "one_column": (130, 1),
    "one_element": (1, 1),
}
# For -double: a power of two of blocks of 64, so that their mean is exact, too.
WHOLE_BLOCKS = ("noise", "ties", "denormals", "any_size", "one_huge", "sparse", "near_powers")  # again, for bitsandbytes' 4 bits
DOUBLE_KINDS = {**KINDS, "denormals": (2, 128), "tiny": (4, 64), "ternary": (6, 20), "one_row": (1, 256), "one_column": (128, 1), "blocks": (1, 1024)}
HALVES: Dict[str, Tuple[int, ...]] = {"q2_k": (80, 82), "q3_k": (108,), "q4_k": (0, 2), "q5_k": (0, 2), "q6_k": (208,)}  # where a block has FLOAT16s
RULES = {
    "fp8-tiles": "layout-fp8-tiles",
    **{name: "layout-int8" if name.startswith("int8") else "layout-fp8" for name in oracle_layouts.SCALED},
    **{name: "layout-int4-zero-point" if name.endswith("asym") else "layout-int4" for name in oracle_layouts.GROUPS},
    "nvfp4": "layout-nvfp4",
    "mxfp4": "layout-mxfp4",
    "gguf:f16": "layout-gguf-floats",
    "gguf:bf16": "layout-gguf-floats",
    "gguf:q8_0": "layout-gguf-q8-0",
    **{f"gguf:{name}": f"layout-gguf-q4-{name[-1]}" for name in ("q4_0", "q4_1", "q5_0", "q5_1")},
    "gguf:mxfp4": "layout-gguf-mxfp4",
    **{f"bnb:{name}": "layout-bnb-double" if name.endswith("double") else "layout-bnb-4-bits" for name in bnb.NAMES},
    "bnb:int8": "layout-bnb-int8",
}


def name_of(layout: str) -> str:
    return layout[len(oracle_layouts.COMPRESSED) :] if layout.startswith(oracle_layouts.COMPRESSED) else layout


# ---------------------------------------------------------------- weights


def weight(layout: str, kind: str, t: ot.Type, shape: Tuple[int, int]) -> np.ndarray:
    """Finite elements of a kind, made of signs, exponents and mantissas."""
    r, mantissa, exponent = rng("layouts", kind, t.name, shape), oracle_layouts.MANTISSA[t.name], EXPONENT[t.name]
    count, center = math.prod(shape), 2 ** (EXPONENT[t.name] - 1) - 7
    sign, m, e = r.integers(0, 2, count), r.integers(0, 2**mantissa, count), center + r.integers(0, 4, count)
    if kind == "ties":
        e, m = center + r.integers(0, 6, count), m >> (mantissa - 2) << (mantissa - 2)
    elif kind in ("zeros", "denormals"):
        e, m = 0 * e, m if kind == "denormals" else 0 * m
    elif kind == "tiny":  # a few of the smallest denormals
        e, m = 0 * e, r.integers(0, 4, count)
    elif kind == "ternary":  # -1, 0, 1
        zero = r.integers(0, 3, count) == 0
        e, m = np.where(zero, 0, center + 6), 0 * m
    elif kind == "any_size":
        e = r.integers(0, 2**exponent - 1, count)
    elif kind == "one_huge":
        e[count * 5 // 7], m[count * 5 // 7] = 2**exponent - 2, 2**mantissa - 1
    elif kind == "sparse":
        zero = r.integers(0, 3, count) != 0
        e, m = np.where(zero, 0, e), np.where(zero, 0, m)
    elif kind in ("positive", "negative"):
        sign = 0 * sign + (kind == "negative")
    elif kind == "near_powers":
        m = 2**mantissa - 1 - r.integers(0, 4, count)
    elif kind == "many_sizes":
        e = center + 4 - r.integers(0, 12, count)
    elif kind == "whole":
        whole = r.integers(0, 256, count)
        top = np.frexp(np.maximum(whole, 1))[1] - 1
        e = np.where(whole == 0, 0, center + 6 + top)
        m = np.where(whole == 0, 0, ((whole << mantissa) >> top) - 2**mantissa)
    if layout.endswith("-double"):  # few digits, so that sums of absmax are exact
        m = m if kind == "tiny" else m >> (mantissa - 4) << (mantissa - 4)
    if layout in ("gguf:q4_1", "gguf:q5_1"):  # no zero of either sign is the smallest element
        sign = np.where((e == 0) & (m == 0), 0, sign)
    bits = sign << (exponent + mantissa) | e << mantissa | m
    return ot.from_codes(bits.astype(np.uint64), t).reshape(shape)


def _points(layout: str) -> Tuple[np.ndarray, np.ndarray]:
    """The beginning of a block that makes its scale 1 or close to it; and the edges between two codes at that scale."""
    name = name_of(layout)
    halves = {"int8": 127.5, "int8-tensor": 127.5, "gguf:q8_0": 127, "bnb:int8": 127, "gguf:q4_0": 8, "gguf:q5_0": 16}
    if name in halves or name in ("int4-g128", "int4-g32"):
        most = halves.get(name, 7.5)
        first = [-most] if name in ("gguf:q4_0", "gguf:q5_0") else [most]
        return F32(first), F32(np.arange(-2 * most, 2 * most) / 2)
    if name.endswith("asym") or name in ("gguf:q4_1", "gguf:q5_1"):
        most = 31 if name == "gguf:q5_1" else 15
        return F32([1, most + 1]), F32(np.arange(2, 2 * most + 3) / 2)
    if name.startswith("fp8"):
        return F32([448]), _middles(ot.E4M3FN)
    if name.endswith("fp4"):
        return F32([6]), _middles(ot.E2M1)
    table = np.sort(bnb.TABLES[name[4:7]])
    return F32([1]), (table[:-1] + table[1:]) / F32(2)


def _middles(t: ot.Type) -> np.ndarray:
    grid = np.unique(ot.to_float(ot.from_codes(np.arange(1 << t.bits), t)))
    grid = grid[np.isfinite(grid)].astype(np.float64)
    return F32((grid[1:] + grid[:-1]) / 2)


def edges(layout: str, t: ot.Type) -> np.ndarray:
    """Every edge between two codes, and its two neighbours of T, in blocks whose scale is 1 or close to it."""
    first, points = _points(layout)
    with np.errstate(all="ignore"):
        on = ot.round_to(points, t)
        bits = ot.codes(on).astype(np.int64)
        around = [ot.from_codes(np.where(on == 0, bits, bits + step).astype(np.uint64), t) for step in (0, 1, -1)]
    values = ot.to_float(np.concatenate(around))
    group = {"bnb:int8": 64}.get(layout, bnb.BLOCK if layout.startswith("bnb") else oracle_layouts.columns_of(layout))
    group = group if group > 1 else 64
    rest = group - first.size
    values = np.concatenate([values, np.full(-values.size % rest, values[0])]).reshape(-1, rest)
    if layout.endswith("-double"):  # all absmax are 1
        values = values[: 1 << (len(values).bit_length() - 1)]
    rows = np.concatenate([np.tile(first, (len(values), 1)), values], axis=1)
    return ot.round_to(rows.astype(F32), t)


def shape_of(layout: str, shape: Tuple[int, int]) -> Tuple[int, int]:
    columns = oracle_layouts.columns_of(layout)
    if columns == 1:
        return shape
    return shape[0] if columns < 128 else min(shape[0], 9), columns * max(1, min(shape[1] // columns, 3))


def weights(layout: str) -> Iterator[Tuple[str, np.ndarray]]:
    kinds = DOUBLE_KINDS if layout.endswith("-double") else KINDS
    for t in ot.FLOATS:
        for kind, shape in kinds.items():
            yield f"{kind}_{t.name}".lower(), weight(layout, kind, t, shape_of(layout, shape))
        for kind in WHOLE_BLOCKS if layout in ("bnb:nf4", "bnb:fp4") else ():
            yield f"whole_blocks_{kind}_{t.name}".lower(), weight(layout, kind, t, (4, 48))
        if layout not in ("gguf:f16", "gguf:bf16"):
            yield f"edges_{t.name}".lower(), edges(layout, t)
    b = ot.BFLOAT16
    if layout in ("fp8-tiles", "compressed-tensors:fp8-block"):
        for shape in ((3, 259), (259, 3), (130, 129)):
            yield f"tiles_{shape[0]}_{shape[1]}", weight(layout, "many_sizes", b, shape)
    if layout.endswith("-double"):
        yield "blocks_of_blocks", weight(layout, "many_sizes", b, (128, 256))
        yield from nested_edges()
        # The reciprocal of 0, which is infinite.
        yield "infinite_reciprocal", _of_absmax(np.array([1, 2, 2, 3]), 2.0**-140)


def _of_absmax(absmax: np.ndarray, unit: float) -> np.ndarray:
    """A weight whose blocks have these largest magnitudes."""
    x = np.zeros((absmax.size, bnb.BLOCK), F32)
    x[np.arange(absmax.size), np.arange(absmax.size) % bnb.BLOCK] = absmax * unit
    return x


def nested_edges() -> Iterator[Tuple[str, np.ndarray]]:
    """For -double: absmax - offset on both sides of every edge between two codes.

    v is a whole number of at most 65535 = b, so that k is half of v + 65536; for each v there is also -v, so that the offset is the
    common part.
    """
    k = np.arange(65536)
    code = np.abs(bnb.NESTED.astype(np.float64) - (k / 32767.5 - 1)[:, None]).argmin(axis=1)
    last = np.flatnonzero(np.diff(code))
    v = np.abs(np.concatenate([2 * last - 65535, 2 * last - 65534]))
    pairs = np.concatenate([v, np.zeros(-v.size % 31, np.int64)]).reshape(-1, 31)
    for i, some in enumerate(pairs):
        yield f"edges_of_nested_codes_{i}", _of_absmax(2**17 + np.array([65535, -65535, *some, *-some]), 2.0**-18)


def settled(layout: str, x: np.ndarray) -> bool:
    """For -double: whether every sum of absmax is exact in FLOAT in any order, and the mean is a division by a power of two."""
    if not layout.endswith("-double"):
        return True
    absmax = bnb.absmax_of(ot.to_float(x)).astype(np.float64)
    used = absmax[absmax > 0]
    if absmax.size & (absmax.size - 1):
        return False
    if not used.size:
        return True
    lowest = min(math.frexp(v)[1] for v in used) - 24
    whole = [int(math.ldexp(v, -lowest)) for v in used]
    unit = math.gcd(*whole)
    return sum(whole) // unit < 1 << 24


# ---------------------------------------------------------------- cases


def rule_of(layout: str, x: np.ndarray, parts: Dict[str, np.ndarray]) -> str:
    name, wide = name_of(layout), ot.to_float(x)
    if layout == "fp8-tiles" and ((parts["weight_scale_inv"] == 1) & _used(wide)).any():
        return "layout-not-followed"
    if layout == "gguf:mxfp4":
        largest = np.abs(wide).reshape(-1, gguf.BLOCK).max(axis=1)
        if ((largest > 0) & (largest < F32(2.0**-125))).any():
            return "layout-not-followed"
    epsilon = F32(2.0 ** -oracle_layouts.MANTISSA[ot.of(x).name])
    if (name in oracle_layouts.SCALED or name.startswith("int4")) and (ot.to_float(parts["weight_scale"]) == epsilon).any():
        return "layout-scale-of-zero"
    if name in ("bnb:nf4", "bnb:fp4") and x.size % bnb.BLOCK:
        return "layout-bnb-last-block"
    return RULES[name]


def _used(x: np.ndarray) -> np.ndarray:
    """Whether a tile has an element that is not 0, but is too small for its scale."""
    largest = np.maximum.reduceat(
        np.maximum.reduceat(np.abs(x), np.arange(0, x.shape[0], 128), axis=0), np.arange(0, x.shape[1], 128), axis=1
    )
    return (largest > 0) & (largest < F32(1.4e-36))


def made(layout: str, name: str, rule: str, operation: str, inputs: Dict[str, np.ndarray], **attributes: Any) -> Case:
    group = layout.replace(":", "-")
    return Case(f"{group}_{name}", rule, operation, inputs, {"layout": layout, **attributes}, family="layouts", group=group)


def back(layout: str, name: str, parts: Dict[str, np.ndarray], output: ot.Type) -> Case:
    rule = "layout-decode-" + (layout if layout == "fp8-tiles" else layout.split(":")[0])
    if name_of(layout) in ("nvfp4", "mxfp4"):
        rule += "-4-bits"
    elif name_of(layout) == "bnb:int8":
        rule += "-int8"
    elif layout in oracle_layouts.DECODED_ALONE:
        rule += "-k-types"
    case = made(layout, f"{name}_back_to_{output.name}".lower(), rule, "decode_layout", parts, output_type=output.name)
    case.rule = "layout-refused" if case.expected().refused is not None else rule
    return case


def any_codes(layout: str, parts: Dict[str, np.ndarray]) -> Dict[str, np.ndarray]:
    """The parts with random codes and zero points. The heads of gguf's blocks are kept."""
    r, found = rng("layouts", "any codes", layout), dict(parts)
    for part in ("weight", "weight_packed", "weight_zero_point", "weight.absmax"):
        if part in parts and parts[part].dtype not in (np.float32, np.float16, ot.BFLOAT16.dtype):
            raw = np.asarray(r.integers(0, 256, parts[part].nbytes), np.uint8)
            found[part] = raw.view(parts[part].dtype).reshape(parts[part].shape)
    if layout.startswith("gguf:"):
        head = {"q4_1": 4, "q5_1": 4, "mxfp4": 1}.get(layout[5:], 2)
        blocks = found["weight"].reshape(-1, gguf.BYTES[layout[5:]])
        blocks[:, :head] = parts["weight"].reshape(blocks.shape)[:, :head]
    return found


def refused(layout: str) -> Iterator[Case]:
    for t, value in zip(ot.FLOATS, (np.nan, np.inf, -np.inf)):
        x = weight(layout, "noise", t, shape_of(layout, (3, 33)))
        x[x.shape[0] - 1, x.shape[1] // 2] = value
        yield made(layout, f"{value}_{t.name}".lower().replace("-", "minus_"), "layout-refused", "encode_layout", {"x": x})
    x = np.zeros((2, oracle_layouts.columns_of(layout)), F32)
    x[0, 0], x[1, 0] = 3e38, -3e38
    for name, large in (("huge", x), ("past_float16", x / F32(3e38) * F32(8323073))):
        try:
            oracle_layouts.encode(large, layout)
        except oracle.Invalid:
            yield made(layout, name, "layout-refused", "encode_layout", {"x": large})
    if oracle_layouts.columns_of(layout) > 1 and not layout.startswith("gguf:"):  # those store FLOAT16 instead
        short = np.ones((2, oracle_layouts.columns_of(layout) - 1), F32)
        yield made(layout, "columns", "layout-refused", "encode_layout", {"x": short})


def of_layout(layout: str) -> Iterator[Case]:
    for i, (name, x) in enumerate(weights(layout)):
        if not settled(layout, x):
            continue
        try:
            parts = oracle_layouts.encode(x, layout)
        except oracle.Invalid:
            yield made(layout, name, "layout-refused", "encode_layout", {"x": x})
            continue
        yield made(layout, name, rule_of(layout, x, parts), "encode_layout", {"x": x})
        output = ot.FLOATS[i % 3]
        same = {"gguf:f16": ot.FLOAT16, "gguf:bf16": ot.BFLOAT16}.get(layout) is output  # nothing to convert
        if not name.startswith("edges_of_nested") and not same:
            yield back(layout, name, parts, output)
        if name.startswith("sparse") and layout not in ("gguf:f16", "gguf:bf16"):
            for output in ot.FLOATS:
                yield back(layout, f"any_codes_{name}", any_codes(layout, parts), output)
    yield from refused(layout)


def k_type(layout: str) -> Iterator[Case]:
    size = gguf.K_TYPES[layout[5:]]
    for i, output in enumerate(ot.FLOATS):
        stored = np.asarray(rng("layouts", layout, i).integers(0, 256, 5 * size), np.uint8).reshape(5, size)
        for half in HALVES[layout[5:]]:
            stored[:, half + 1] &= 0xBF  # finite
        yield back(layout, f"any_blocks_{i}", {"weight": stored}, output)


def cases() -> Iterator[Case]:
    for layout in oracle_layouts.LAYOUTS:
        yield from of_layout(layout)
    for layout in oracle_layouts.DECODED_ALONE:
        yield from k_type(layout)
