"""QuantizeLinear, all versions: cases that its text defines. Each tests one rule, and has no element that depends on an open question."""

import itertools
from typing import Any, Dict, Iterator, List, Optional

import numpy as np

from .. import division, oracle
from .. import oracle_types as ot
from ..case import Case
from ..granularity import Granularity
from ..values import any_codes, inputs, of_type, rng, scales, ties, zero_points
from ..versions import SINCE_BLOCKS, SINCE_PRECISION, outputs, scales_of, xs

LENGTH = 67
F32 = np.float32


def _g(name: Any, shape: Any, scale_shape: Any, since: Any, **options: Any) -> Any:
    return since, Granularity(name, shape, scale_shape, tuple(options.items()))


GRAINS = [
    _g("0d", (), (), 10),
    _g("3d", (3, 4, 5), (), 10),
    _g("axis1", (5, 13), (13,), 13, axis=1),
    _g("axis_default", (5, 13), (13,), 13),
    _g("axis0", (5, 13), (5,), 13, axis=0),
    _g("axis_minus2", (3, 5, 4), (5,), 13, axis=-2),
    _g("blocks_last", (3, 32), (3, 2), 21, axis=-1, block_size=16),
    _g("blocks_first", (8, 5), (2, 5), 21, axis=0, block_size=4),
    _g("blocks_middle", (2, 6, 3), (2, 3, 3), 21, axis=1, block_size=2),
    _g("ragged_last", (3, 17), (3, 3), 21, axis=1, block_size=7),
    _g("ragged_first", (11, 5), (2, 5), 21, axis=0, block_size=8),
    _g("ragged_middle", (3, 11, 3), (3, 3, 3), 21, axis=1, block_size=4),
    _g("empty", (0, 3), (), 10),
]
RULES = {"0d": "per-tensor", "3d": "per-tensor", "axis": "per-axis", "blocks": "blocks", "ragged": "ragged-blocks", "empty": "empty"}


def rule_of(prefix: str, g: Granularity) -> str:
    return f"{prefix}-{RULES[g.name.split('_')[0].rstrip('01')] if g.name not in RULES else RULES[g.name]}"


def case(opset: int, rule: str, what: str, x: Any, scale: Any, zero: Any = None, **attributes: Any) -> Case:
    """The type of y is that of zero, or else output_type. Attributes without effect are left out."""
    t = ot.of(zero) if zero is not None else ot.TYPES[attributes.get("output_type", "UINT8")]
    name = f"test_quantizelinear_{opset}_{rule.split('-', 1)[1]}_{ot.of(x).name}_{ot.of(scale).name}_{t.name}_{what}"
    given = {"x": x, "scale": scale}
    if zero is not None:
        given["zero_point"] = zero
    return Case(name.lower().replace("-", "_").rstrip("_"), rule, "quantize", given, attributes, opset=opset)


def default_zero(t: ot.Type, shape: Any = ()) -> np.ndarray:
    return ot.from_codes(np.zeros(shape, np.uint8), t)


def saturates(t: ot.Type) -> List[Dict[str, Any]]:
    """The attribute saturate, with both values for FLOAT8."""
    return [{}, {"saturate": False}] if t.kind == "fp8" else [{}]


def safe(x: np.ndarray, s_each: np.ndarray, t: ot.Type, opset: int, z_each: Optional[np.ndarray]) -> np.ndarray:
    """Leaves out open questions (quotients for which readings of the division disagree, and zeros of FLOAT8 and smaller types), and what
    other rules test: infinities, and quotients that are not finite in their precision."""
    x = division.settled(opset, x, s_each, z_each, t)
    with np.errstate(all="ignore"):
        quotient = next(iter(division.readings(opset, x, s_each).values()))
    other = ~np.isfinite(quotient) | ((quotient == 0) & (t.kind != "int"))
    filler = s_each.astype(np.int32) if ot.of(x) is ot.INT32 else ot.round_to(ot.to_float(s_each), ot.of(x))
    return np.where(other, filler, x).astype(x.dtype)


def pairs(opset: int) -> Iterator[Case]:
    """Every combination of types of x, scale and y, except those for which the whole division is open."""
    for xt, t in itertools.product(xs(opset), outputs(opset)):
        for st in scales_of(opset, xt):
            r = rng("types", opset, xt.name, st.name, t.name)
            attributes: Dict[str, Any] = {}
            rule = "quantize-types"
            if st is ot.INT32:
                continue
            if st is ot.E8M0:
                attributes, rule = {"precision": "FLOAT"}, "quantize-precision"
            elif opset >= SINCE_PRECISION and (st is not xt or st is not ot.FLOAT):
                rule = "quantize-precision-of-scale"
            scale = scales(r, (), st)
            zero = zero_points(r, (), t) if t.kind != "mini" or (xt, st) == (ot.FLOAT, ot.FLOAT) else None
            s_each = np.broadcast_to(scale, (LENGTH,))
            z_each = None if zero is None else np.broadcast_to(zero, (LENGTH,))
            x = safe(inputs(r, (LENGTH,), xt, s_each, t, specials=False), s_each, t, opset, z_each)
            if zero is None:
                attributes = {**attributes, "output_type": t.name}
            yield case(opset, rule, "", x, scale, zero, **attributes)
            if st is ot.E8M0:
                attributes.pop("precision")
                yield case(opset, "quantize-float8e8m0-scale", "", x, scale, zero, **attributes)


def granularities(opset: int) -> Iterator[Case]:
    for t, (since, g) in itertools.product(outputs(opset), GRAINS):
        for xt in (ot.FLOAT, ot.FLOAT16) if opset >= SINCE_PRECISION else (ot.FLOAT,):
            if since > opset:
                continue
            r = rng("granularity", opset, xt.name, t.name, g.name)
            scale, zero = scales(r, g.scale_shape, xt), zero_points(r, g.scale_shape, t)
            if xt is ot.FLOAT16 and t.kind == "mini":
                zero = default_zero(t, g.scale_shape)
            s_each, z_each = oracle.spread(scale, g.shape, g.block()), oracle.spread(zero, g.shape, g.block())
            # As if the precision of the division were open, because that is another rule.
            x = safe(inputs(r, g.shape, xt, s_each, t, specials=False), s_each, t, SINCE_PRECISION - 1, z_each)
            yield case(opset, rule_of("quantize", g), g.name, x, scale, zero, **g.arguments)


def _spread_ties(t: ot.Type) -> np.ndarray:
    """All ties, or 200 of them if there are thousands, including those at both ends."""
    found = ties(t)
    size = found.size // 3
    if size <= 256:
        return found
    keep = np.unique(np.concatenate([np.arange(8), np.arange(size - 8, size), np.linspace(8, size - 9, 60).astype(int)]))
    return np.concatenate([found[keep + i * size] for i in range(3)])


def integers(opset: int, t: ot.Type) -> Iterator[Case]:
    """The rules of an integer type, x and scale FLOAT."""
    one = F32(1)
    r = rng("integers", opset, t.name)
    lowest, highest = (ot.from_codes(np.array(v & ((1 << t.bits) - 1)), t) for v in (t.qmin, t.qmax))
    odd = ot.from_codes(np.array(1), t)
    zero = default_zero(t)

    def each(rule, what, v, scale=one, z=zero):
        with np.errstate(all="ignore"):
            return case(opset, f"quantize-{rule}", what, (np.asarray(v, F32) * scale).astype(F32), np.asarray(scale, F32), z)

    yield each("ties-to-even", "", _spread_ties(t))
    yield each("ties-to-even", "quarter", _spread_ties(t), F32(0.25))
    inside = np.linspace(t.qmin, t.qmax, 41)
    for what, z in (("odd", odd), ("lowest", lowest), ("highest", highest)):
        yield each("zero-point", what, np.rint(inside) + 0.5 - int(ot.to_int(z)), z=z)
    past = np.array(
        [t.qmax + 0.5, t.qmax + 1, t.qmin - 0.5, t.qmin - 1, t.qmax * 2.0 + 3, t.qmin * 2.0 - 3, 2.0**20, -(2.0**20), 2.0**30, -(2.0**30)]
    )
    for what, z in (("", zero), ("lowest", lowest), ("highest", highest)):
        yield each("saturates", what, past, z=z)
    huge = [
        2.0**31,
        -(2.0**31),
        2.0**31 + 256,
        3e9,
        -3e9,
        2.0**32,
        -(2.0**32),
        2.0**32 + 1024,
        1e10,
        -1e10,
        2.0**63,
        -(2.0**63),
        2.0**64,
        1e20,
        -1e20,
        3e38,
        -3e38,
    ]
    for what, z in (("", zero), ("lowest", lowest), ("highest", highest)):
        yield each("saturates-past-int32", what, huge, z=z)
        yield each("saturates-infinity", what, [np.inf, -np.inf], z=z)
    inside = r.uniform(t.qmin, t.qmax, LENGTH)
    yield each("negative-scale", "", -np.floor(inside) - 0.5, F32(-0.5))
    yield each("negative-scale", "odd", inside, F32(-0.3), odd)
    small = F32(2.0**-140)
    yield each("denormals", "scale", np.floor(np.clip(inside, -127, 127)) / 2, small)
    yield case(opset, "quantize-denormals", "x", of_type(np.ldexp(r.uniform(-1, 1, LENGTH), -130).astype(F32), ot.FLOAT), one, odd)
    for what, exponent in (("tiny", -120), ("small", -60), ("large", 60), ("huge", 110)):
        yield each("extreme-scales", what, np.clip(inside, -2000, 2000), F32(np.ldexp(1.37, exponent)))
    yield _division(opset, t)


def _division(opset: int, t: ot.Type) -> Case:
    """Quotients so close to a tie that a reciprocal, a double division or a fused operation rounds to another integer."""
    r = rng("division", opset, t.name)
    scale = np.array(0x3CA0A0A1, np.uint32).view(F32)
    target = np.floor(r.uniform(max(t.qmin, -2000), min(t.qmax, 2000), 20000)) + 0.5
    scales_ = np.where(r.random(20000) < 0.2, scale, np.ldexp(1 + r.random(20000), r.integers(-9, 3, 20000)).astype(F32)).astype(F32)
    x = (target * scales_.astype(np.float64)).astype(F32)
    x = (x.view(np.int32) + r.integers(-1, 2, x.size).astype(np.int32)).view(F32)
    single = np.rint(x / scales_)
    hard = (single != np.rint(x * (F32(1) / scales_))) | (single != np.rint(x.astype(np.float64) / scales_))
    chosen = np.flatnonzero(hard)[:48] if opset >= 13 else np.flatnonzero(hard & (scales_ == scale))[:48]
    if opset < 13:
        return case(opset, "quantize-division", "", x[chosen], scale, default_zero(t))
    return case(opset, "quantize-division", "", x[chosen][None], scales_[chosen], default_zero(t, (chosen.size,)), axis=1)


def small_floats(opset: int, t: ot.Type) -> Iterator[Case]:
    """The rules of FLOAT8 and smaller types, x and scale FLOAT."""
    zero = default_zero(t)
    largest = float(ot.largest(t))
    fp8 = t.kind == "fp8"
    family = "float8" if fp8 else "minifloat"
    middles = ties(t)
    middles = middles[middles != 0]
    inside = middles[np.abs(middles) <= largest]
    last = np.unique(np.abs(middles))[-3:]  # the tie after the largest number, and the neighbouring floats
    for option in saturates(t):
        what = "unsaturated" if option else ""
        for how, scale in (("", F32(1)), ("negative", F32(-0.25)), ("tiny", F32(2.0**-100))):
            yield case(opset, f"quantize-{family}-rounds", f"{what}_{how}".strip("_"), (inside * scale).astype(F32), scale, zero, **option)
        near = np.linspace(float(last[-1]), largest * 1.2, 12)
        beyond = np.array([*last, *-last, *near, *-near, largest * 1.5, -largest * 2, 1e10, -1e10, 3e38, -3e38], F32)
        infinite = np.array([np.inf, -np.inf], F32)
        if not fp8:
            yield case(opset, "quantize-minifloat-saturates", "", beyond, F32(1), zero)
            yield case(opset, "quantize-minifloat-infinity", "", infinite, F32(1), zero)
            continue
        yield case(opset, "quantize-float8-overflows" if option else "quantize-float8-saturates", "", beyond, F32(1), zero, **option)
        rule = "quantize-float8-infinity-overflows" if option else "quantize-float8-infinity-saturates"
        if option or opset >= 24 or t in (ot.E4M3FN, ot.E5M2):
            yield case(opset, rule, "", infinite, F32(1), zero, **option)
        yield case(opset, "quantize-float8-nan", what, np.array([np.nan, -np.nan], F32), F32(1), zero, **option)
        if opset >= SINCE_BLOCKS:
            yield case(opset, "quantize-float8-zeros", what, np.array([0.0, -0.0], F32), F32(1), output_type=t.name, **option)
    if not fp8:
        for i, z in enumerate(ot.from_codes(np.arange(1 << t.bits), t)[:: 1 << (t.bits - 4)]):
            v = np.linspace(-2 * largest, 2 * largest, 33).astype(F32)
            yield case(opset, "quantize-minifloat-zero-point", f"{i}", v, F32(1), np.asarray(z))
        yield case(opset, "quantize-minifloat-rounds", "without_zero_point", inside, F32(1), output_type=t.name)


def halves(opset: int, xt: ot.Type, t: ot.Type) -> Iterator[Case]:
    """x and scale FLOAT16 or BFLOAT16, in versions that divide in the type of the scale."""
    r = rng("halves", opset, xt.name, t.name)
    one = ot.round_to(np.array(1, F32), xt)
    zero = default_zero(t) if t.kind != "mini" else None
    option = {} if zero is not None else {"output_type": t.name}
    values = of_type(_spread_ties(t), xt)
    values = values[np.isfinite(ot.to_float(values)) & (ot.to_float(values) != 0)]
    rounding = {"int": "ties-to-even", "fp8": "float8-rounds", "mini": "minifloat-rounds"}[t.kind]
    values = values[np.abs(ot.to_float(values)) <= (ot.largest(t) if t.kind != "int" else 65504)]
    yield case(opset, f"quantize-{rounding}", "", values, one, zero, **option)
    scale = of_type(np.array(0.3, F32), xt)
    v = r.uniform(-1, 1, 4000) * (min(-t.qmin or t.qmax, 200) if t.kind == "int" else min(float(ot.largest(t)), 200))
    x = of_type((v * 0.3).astype(F32), xt)
    s_each = np.broadcast_to(scale, x.shape)
    z_each = None if zero is None else np.broadcast_to(zero, x.shape)
    other = division.disagree(SINCE_PRECISION - 1, x, s_each, z_each, t)  # wrong if divided in FLOAT
    x = safe(x[np.argsort(~other, kind="stable")[:LENGTH]], s_each[:LENGTH], t, opset, None if z_each is None else z_each[:LENGTH])
    yield case(opset, "quantize-precision-of-scale", "quotient", x, scale, zero, **option)
    if t.kind == "int":
        yield case(opset, "quantize-saturates-infinity", "", of_type(np.array([np.inf, -np.inf], F32), xt), one, zero)


def defaults(opset: int) -> Iterator[Case]:
    r = rng("defaults", opset)
    x = inputs(r, (LENGTH,), ot.FLOAT, np.full(LENGTH, F32(0.1)), ot.UINT8, specials=False)
    yield case(opset, "quantize-default-is-uint8", "", x, F32(0.1))
    if opset < SINCE_BLOCKS:
        return
    for t in outputs(opset):
        x = inputs(r, (LENGTH,), ot.FLOAT, np.full(LENGTH, F32(0.1)), t, specials=False)
        x = np.where(x == 0, F32(0.1), x)
        yield case(opset, "quantize-output-dtype", "alone", x, F32(0.1), output_type=t.name)
        yield case(opset, "quantize-output-dtype", "with_zero_point", x, F32(0.1), default_zero(t), output_type=t.name)


def precisions(opset: int) -> Iterator[Case]:
    """The attribute precision: all combinations in the version that introduced it and in the last, only new ones in between."""
    if opset < SINCE_PRECISION:
        return
    for t in (ot.INT8, ot.UINT4, ot.INT16, ot.E4M3FN, ot.E5M2, ot.E2M1, ot.UINT2, ot.E3M2):
        for xt, precision in itertools.product(xs(opset), ot.FLOATS):
            for st in scales_of(opset, xt):
                new = st is ot.E8M0 if opset == 24 else t.bits == 2 if opset == 25 else True
                if t not in outputs(opset) or not new or (precision is ot.FLOAT16 and st is ot.E8M0):
                    continue
                r = rng("precision", opset, xt.name, st.name, t.name, precision.name)
                scale = scales(r, (), st)
                if st is ot.E8M0:
                    scale = ot.from_codes(np.array(125 + int(r.integers(5)), np.uint8), st)
                s_each = np.broadcast_to(scale, (LENGTH,))
                x = inputs(r, (LENGTH,), xt, s_each, t if t is not ot.INT16 else ot.INT8, specials=False)
                filler = np.broadcast_to(scale.astype(np.int32) if xt is ot.INT32 else ot.round_to(ot.to_float(scale), xt), x.shape)
                x = np.where(((ot.to_float(x) == 0) & (t.kind != "int")) | ~np.isfinite(ot.to_float(x)), filler, x).astype(x.dtype)
                if xt is ot.INT32:
                    x = np.clip(x, -60000, 60000)
                zero = any_codes(r, (), t) if t.kind == "int" else default_zero(t) if t.kind == "fp8" else None
                option = {"output_type": t.name} if zero is None else {}
                yield case(opset, "quantize-precision", precision.name, x, scale, zero, precision=precision.name, **option)


def cases(opset: int) -> Iterator[Case]:
    yield from pairs(opset)
    yield from granularities(opset)
    yield from defaults(opset)
    yield from precisions(opset)
    for t in outputs(opset):
        yield from integers(opset, t) if t.kind == "int" else small_floats(opset, t)
        if opset >= SINCE_PRECISION:
            for xt in (ot.FLOAT16, ot.BFLOAT16):
                yield from halves(opset, xt, t)
