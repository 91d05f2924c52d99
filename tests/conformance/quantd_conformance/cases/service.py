"""Quantize and Dequantize beyond ONNX: every type of x, scale and y, every granularity, precision and order of the zero point.

Each function takes LARGE or SMALL granularities (../granularity.py): our suites use large tensors, the archive small ones
with the same names, made by the same code.
"""

import itertools
from typing import Any, Dict, Iterator, List, Optional

import numpy as np

from .. import oracle
from .. import oracle_types as ot
from ..case import Case
from ..granularity import SMALL, Granularity
from ..values import any_codes, inputs, rng, scales, ties, zero_points

XS = (*ot.FLOATS, ot.INT32)
SCALES = (*ot.FLOATS, ot.INT32, ot.E8M0)
F32 = np.float32
Grains = List[Granularity]


def words(**options: Any) -> Dict[str, Any]:
    """Attributes: types by name; unset ones are left out."""
    found = {k: v.name if isinstance(v, ot.Type) else v for k, v in options.items()}
    return {k: v for k, v in found.items() if v is not None and v is not False and v != [] or k == "saturate" and v is False}


def named(grains: Grains, *names: str) -> Grains:
    return [g for g in grains if g.name in names] if names else grains


def made(
    family: str,
    group: str,
    rule: str,
    operation: str,
    what: Any,
    x: Any,
    scale: Any = None,
    zero: Any = None,
    *,
    tensor_scale: Any = None,
    **options: Any,
) -> Case:
    given = {"x": x, "scale": scale, "zero_point": zero, "tensor_scale": tensor_scale}
    name = "_".join(str(getattr(w, "name", w)).replace(" ", "_").replace("-", "minus").lower() for w in what)
    return Case(name, rule, operation, {k: v for k, v in given.items() if v is not None}, words(**options), family=family, group=group)


def _quantize(group: str, rule: str, what: Any, x: Any, scale: Any, zero: Any = None, family: str = "quantize", **options: Any) -> Case:
    return made(family, group, rule, "quantize", what, x, scale, zero, **options)


def _saturates(t: ot.Type) -> Any:
    return (None, False) if t.kind == "fp8" else (None,)


def quantize_types(xt: ot.Type, t: ot.Type, grains: Grains = SMALL) -> Iterator[Case]:
    g = grains[0]
    for st, with_zero in itertools.product(SCALES, (True, False)):
        r = rng("types", xt.name, st.name, t.name, with_zero)
        scale = scales(r, g.scale_shape, st)
        zero = zero_points(r, g.scale_shape, t) if with_zero else None
        x = inputs(r, g.shape, xt, oracle.spread(scale, g.shape, g.block()), t)
        for saturate in _saturates(t):
            yield _quantize(
                "types",
                "service-types",
                (xt, st, t, "zero" if with_zero else "", "unsaturated" if saturate is False else ""),
                x,
                scale,
                zero,
                output_type=t,
                saturate=saturate,
                report_error=with_zero,
            )


def quantize_granularities(t: ot.Type, g: Granularity) -> Iterator[Case]:
    for xt, st in ((ot.FLOAT, ot.FLOAT), (ot.FLOAT16, ot.FLOAT16), (ot.BFLOAT16, ot.FLOAT), (ot.FLOAT, ot.E8M0)):
        r = rng("granularity", t.name, g.name, xt.name, st.name)
        scale, zero = scales(r, g.scale_shape, st), zero_points(r, g.scale_shape, t)
        x = inputs(r, g.shape, xt, oracle.spread(scale, g.shape, g.block()), t)
        yield _quantize("granularities", "service-granularity", (g, xt, st, t), x, scale, zero, report_error=xt is ot.FLOAT, **g.arguments)


def quantize_precision(precision: ot.Type, t: ot.Type, grains: Grains = SMALL) -> Iterator[Case]:
    for xt, st in itertools.product(XS, SCALES):
        g = named(grains, "tensor" if xt is ot.FLOAT else "axis 1")[0]
        r = rng("precision", precision.name, t.name, xt.name, st.name)
        scale, zero = scales(r, g.scale_shape, st), zero_points(r, g.scale_shape, t)
        x = inputs(r, g.shape, xt, oracle.spread(scale, g.shape, g.block()), t)
        yield _quantize("precision", "service-precision", (xt, st, t, precision), x, scale, zero, precision=precision, **g.arguments)


def before_rounding(t: ot.Type, zt: Optional[ot.Type], grains: Grains = SMALL) -> Iterator[Case]:
    """oneDNN's order."""
    for g, (xt, st) in itertools.product(named(grains, "tensor", "axis 1", "blocks last", "tiles"), itertools.product(XS, SCALES)):
        r = rng("before", g.name, t.name, xt.name, st.name, zt and zt.name)
        scale = scales(r, g.scale_shape, st)
        zero = None
        if zt is ot.INT32:
            zero = r.integers(-70000, 70000, g.scale_shape).astype(np.int32)
        elif zt is not None:
            zero = any_codes(r, g.scale_shape, zt)
        x = inputs(r, g.shape, xt, oracle.spread(scale, g.shape, g.block()), t)
        yield _quantize(
            "order",
            "onednn-order",
            (g, xt, st, t, zt or "no zero"),
            x,
            scale,
            zero,
            family="onednn",
            output_type=t,
            zero_point_order="BEFORE_ROUNDING",
            **g.arguments,
        )


def quantize_scales_of_every_size(t: ot.Type, rows: int = 5) -> Iterator[Case]:
    """Denormal, tiny, huge and negative scales, each with x that is in range; also scales for which a reciprocal fails."""
    r = rng("sizes", t.name)
    exponents = np.concatenate([np.arange(-149, -120), np.arange(-120, 128, 8), np.arange(70, 80)])
    scale = np.ldexp(r.uniform(1, 1.999, exponents.size), exponents).astype(F32)
    scale *= r.choice(np.array([-1, 1], F32), scale.size)
    x = inputs(r, (rows, scale.size), ot.FLOAT, np.broadcast_to(scale, (rows, scale.size)), t)
    yield _quantize("sizes", "service-scales-of-every-size", (t,), x, scale, zero_points(r, scale.shape, t))


def quantize_every_e8m0_scale(t: ot.Type, rows: int = 2) -> Iterator[Case]:
    """2^-127, a denormal, to 2^127; code FF is NaN and is refused."""
    scale = ot.from_codes(np.arange(255), ot.E8M0)
    for xt in XS:
        r = rng("e8m0", t.name, xt.name)
        x = inputs(r, (rows, 255), xt, np.broadcast_to(scale, (rows, 255)), t)
        yield _quantize("float8e8m0", "service-float8e8m0-scales", (xt, t), x, scale, zero_points(r, (255,), t))
    yield _quantize("float8e8m0", "service-refused", (t, "nan"), np.ones(3, F32), ot.from_codes(np.array(255), ot.E8M0), output_type=t)


def quantize_every_pattern(xt: ot.Type, t: ot.Type, step: int = 1) -> Iterator[Case]:
    """All 2^16 bit patterns of x (or every step-th), with scales that divide them exactly or not."""
    x = ot.from_codes(np.arange(1 << 16)[::step], xt)
    for st, value in ((xt, 1.0), (xt, 0.1), (ot.FLOAT, -0.037), (ot.FLOAT, 3.0)):
        scale = ot.round_to(np.array(value, F32), st)
        for saturate in _saturates(t):
            yield _quantize(
                "patterns",
                "service-every-pattern",
                (xt, st, t, value, "unsaturated" if saturate is False else ""),
                x,
                scale,
                output_type=t,
                saturate=saturate,
            )


def quantize_every_tie(t: ot.Type) -> Iterator[Case]:
    x = ties(t)
    for scale in (1.0, -1.0, 0.25, 2.0**-30):
        yield _quantize("ties", "service-ties", (t, scale), x * F32(scale), np.array(scale, F32), output_type=t)


def quantize_corners() -> Iterator[Case]:
    """Zero points of [1] for scales of [], and vice versa; an error report of INT32s that FLOAT can't represent."""
    x = np.linspace(-9, 9, 19).astype(F32)
    for i, (scale_shape, zero_shape) in enumerate((((), (1,)), ((1,), ()))):
        scale, zero = np.full(scale_shape, 0.5, F32), np.full(zero_shape, 3, np.uint8)
        yield _quantize("corners", "service-granularity", ("zero_point", i), x, scale, zero)
    wide = np.array([2**24 + 1, 2**24 + 3, -(2**24) - 5], np.int32)
    yield _quantize("corners", "service-types", ("int32",), wide, F32(1024), np.array(0, np.int16), report_error=True)


# ---- Dequantize


def _dequantize(group: str, rule: str, what: Any, x: Any, scale: Any, zero: Any = None, **options: Any) -> Case:
    return made("dequantize", group, rule, "dequantize", what, x, scale, zero, **options)


def dequantize_every_code(output: ot.Type, t: ot.Type, length: int = 200) -> Iterator[Case]:
    r = rng("codes", t.name, output.name)
    x = ot.from_codes(np.arange(1 << t.bits), t) if t.bits <= 8 or (t.bits <= 16 and length > 1 << 12) else any_codes(r, (length,), t)
    for st, with_zero in itertools.product(SCALES, (True, False)):
        yield _dequantize(
            "codes",
            "service-every-code",
            (t, st, output, "zero" if with_zero else ""),
            x,
            scales(r, (), st),
            zero_points(r, (), t) if with_zero else None,
            output_type=output,
        )


def dequantize_granularities(t: ot.Type, g: Granularity) -> Iterator[Case]:
    for st, output in itertools.product((ot.FLOAT, ot.BFLOAT16, ot.E8M0), ot.FLOATS):
        r = rng("granularity", g.name, t.name, st.name, output.name)
        yield _dequantize(
            "granularities",
            "service-granularity",
            (g, t, st, output),
            any_codes(r, g.shape, t),
            scales(r, g.scale_shape, st),
            zero_points(r, g.scale_shape, t),
            output_type=output,
            **g.arguments,
        )


def dequantize_int32_zero_points(t: ot.Type, grains: Grains = SMALL) -> Iterator[Case]:
    for g in named(grains, "tensor", "axis 1", "blocks last odd", "tiles 3-D"):
        r = rng("int32", g.name, t.name)
        zero = r.integers(-70000, 70000, g.scale_shape).astype(np.int32)
        yield _dequantize(
            "int32", "service-int32", (g, t), any_codes(r, g.shape, t), scales(r, g.scale_shape, ot.FLOAT), zero, **g.arguments
        )


def dequantize_int32() -> Iterator[Case]:
    x = np.array([2**31 - 1, -(2**31), 2**24 + 1, 5], np.int32)
    for zero in (-(2**31), 2**31 - 1, 2**24, 0):
        yield _dequantize("int32", "service-int32", ("exact", zero), x, np.array(1, F32), np.array(zero, np.int32))


def dequantize_special_scales(t: ot.Type, rows: int = 9) -> Iterator[Case]:
    special = np.array([0, -0.0, np.nan, np.inf, -np.inf, 1e-45, -1e-40, 1e-38, 3e38], F32)
    r = rng("ieee", t.name)
    x = any_codes(r, (rows, special.size), t)
    x[0] = ot.from_codes(np.zeros(special.size, int), t)
    for output in ot.FLOATS:
        yield _dequantize(
            "special", "service-special-scales", (t, output), x, special, zero_points(r, special.shape, t), output_type=output
        )


def dequantize_every_e8m0_scale(t: ot.Type, rows: int = 2) -> Iterator[Case]:
    scale = ot.from_codes(np.arange(256), ot.E8M0)
    r = rng("e8m0", t.name)
    for output in ot.FLOATS:
        yield _dequantize("float8e8m0", "service-float8e8m0-scales", (t, output), any_codes(r, (rows, 256), t), scale, output_type=output)


def dequantize_tensor_scale(st: ot.Type, t: ot.Type, shape: Any = (3, 37)) -> Iterator[Case]:
    r = rng("tensor scale", t.name, st.name)
    x = any_codes(r, shape, t)
    scale_shape = (shape[0], -(-shape[1] // 16))
    scale = ot.from_codes(r.integers(1, 0x7F, scale_shape), st) if st is ot.E4M3FN else scales(r, scale_shape, st)
    for ts in (1 / 3, 1e-6, 0.0):
        yield _dequantize(
            "tensor_scale",
            "service-tensor-scale",
            (t, st, ts),
            x,
            scale,
            tensor_scale=np.array(ts, F32),
            output_type=ot.FLOAT,
            axis=1,
            block_size=16,
        )


# The types in Dequantize's tests, in the order of the tests.
INPUTS = (*ot.OUTPUTS, ot.INT32)
TENSOR_SCALED = ((ot.E2M1, ot.E2M3, ot.E3M2, ot.INT8, ot.E4M3FN), (ot.FLOAT, ot.E4M3FN, ot.BFLOAT16))


def cases() -> Iterator[Case]:
    for xt, t in itertools.product(XS, ot.OUTPUTS):
        yield from quantize_types(xt, t)
    for t, g in itertools.product(ot.OUTPUTS, SMALL):
        yield from quantize_granularities(t, g)
    for t, precision in itertools.product(ot.OUTPUTS, ot.FLOATS):
        yield from quantize_precision(precision, t)
    for t, zt in itertools.product(ot.INTEGERS, (None, ot.INT32, ot.INT8, ot.UINT8)):
        yield from before_rounding(t, zt)
    for t in ot.OUTPUTS:
        yield from quantize_scales_of_every_size(t)
        yield from quantize_every_e8m0_scale(t)
        if t.bits <= 8:
            yield from quantize_every_tie(t)
    for xt, t in itertools.product((ot.FLOAT16, ot.BFLOAT16), ot.OUTPUTS):
        yield from quantize_every_pattern(xt, t, 11)
    yield from quantize_corners()
    for output, t in itertools.product(ot.FLOATS, INPUTS):
        yield from dequantize_every_code(output, t)
    for g, t in itertools.product(SMALL, INPUTS):
        yield from dequantize_granularities(t, g)
    for t in ot.INTEGERS:
        yield from dequantize_int32_zero_points(t)
    yield from dequantize_int32()
    for t in INPUTS:
        yield from dequantize_special_scales(t)
        yield from dequantize_every_e8m0_scale(t)
    for t, st in itertools.product(*TENSOR_SCALED):
        yield from dequantize_tensor_scale(st, t)
