"""DequantizeLinear and DynamicQuantizeLinear, all versions: cases that their text defines."""

import itertools
from typing import Any, Dict, Iterator

import numpy as np

from .. import oracle
from .. import oracle_types as ot
from ..case import Case
from ..values import any_codes, data, every_code, rng, scales, zero_points
from ..versions import SINCE, SINCE_FLOAT, SINCE_PRECISION, outputs
from .quantize_linear import F32, GRAINS, default_zero, rule_of


def case(opset: int, rule: str, what: str, x: Any, scale: Any, zero: Any = None, **attributes: Any) -> Case:
    output = attributes.get("output_type", ot.of(scale).name)
    name = f"test_dequantizelinear_{opset}_{rule.split('-', 1)[1]}_{ot.of(x).name}_{ot.of(scale).name}_{output}_{what}"
    given = {"x": x, "scale": scale}
    if zero is not None:
        given["zero_point"] = zero
    return Case(name.lower().replace("-", "_").rstrip("_"), rule, "dequantize", given, attributes, opset=opset)


def inputs_of(opset: int) -> Any:
    """Types of x."""
    return [*outputs(opset), ot.INT32]


def products(x: np.ndarray, s_each: np.ndarray, z_each: Any, output: ot.Type) -> Dict[str, np.ndarray]:
    """The results for each reading of the product's precision: rounded once, like the oracle; with operands in the output type; and
    for INT32 with operands that are converted to FLOAT before the subtraction."""
    with np.errstate(all="ignore"):
        difference = ot.to_float(x) if z_each is None else ot.to_float(x) - ot.to_float(z_each)
        if ot.of(x) is ot.INT32 and z_each is not None:
            exact = (ot.to_int(x) - ot.to_int(z_each)).astype(F32)
        else:
            exact = difference
        s = ot.to_float(s_each)
        narrow = ot.to_float(ot.round_to(difference, output)) * ot.to_float(ot.round_to(s, output))
        return {
            "product-rounded-once": ot.round_to((exact * s).astype(F32), output),
            "operands-in-the-output-type": ot.round_to(narrow.astype(F32), output),
        }


def disagree(x: Any, s_each: Any, z_each: Any, output: ot.Type) -> np.ndarray:
    one, other = products(x, s_each, z_each, output).values()
    same = (ot.codes(one) == ot.codes(other)) | (np.isnan(ot.to_float(one)) & np.isnan(ot.to_float(other)))
    return ~same


def settled(x: Any, s_each: Any, z_each: Any, output: ot.Type) -> np.ndarray:
    """x, replaced by the zero point (or 0) where the precision of the product matters."""
    filler = np.zeros_like(x) if z_each is None else z_each
    return np.where(disagree(x, s_each, z_each, output), ot.codes(filler), ot.codes(x))


def fixed(opset: int, rule: str, what: Any, x: Any, scale: Any, zero: Any, g: Any = None, **attributes: Any) -> Case:
    """A case without the elements that the specification leaves open."""
    output = ot.TYPES[attributes["output_type"]] if "output_type" in attributes else ot.of(scale)
    block = [max(d, 1) for d in x.shape] if g is None else g.block()
    s_each = oracle.spread(scale, x.shape, block)
    z_each = None if zero is None else oracle.spread(zero, x.shape, block)
    x = ot.from_codes(settled(x, s_each, z_each, output), ot.of(x))
    return case(opset, rule, what, x, scale, zero, **attributes)


def floats(opset: int) -> Any:
    return [t for t in ot.FLOATS if SINCE_FLOAT[t] <= opset]


def scale_for(r: Any, shape: Any, st: ot.Type, output: ot.Type) -> np.ndarray:
    """A scale that the output type can represent."""
    value = scales(r, shape, st)
    return value if st is ot.E8M0 else ot.round_to(ot.to_float(ot.round_to(ot.to_float(value), output)), st)


def zero_of(r: Any, shape: Any, t: ot.Type) -> Any:
    """None for INT32, for which it is open; 0 for FLOAT6 and FLOAT4, except in the cases of that rule."""
    return None if t is ot.INT32 else default_zero(t, shape) if t.kind == "mini" else zero_points(r, shape, t)


def codes_of(r: Any, t: ot.Type) -> np.ndarray:
    """Every code; for 16 and 32 bits some of them, with both ends."""
    if t.bits <= 8:
        return every_code(t)
    if t is ot.INT32:
        return np.concatenate(
            [r.integers(-(2**24), 2**24, 61).astype(np.int32), np.array([0, 1, -1, 2**24, -(2**24), 2**31 - 128, -(2**31)], np.int32)]
        )
    return np.concatenate([any_codes(r, (120,), t), ot.from_codes(np.array([0, 1, 0x7FFF, 0x8000, 0xFFFF]), t)])


def every(opset: int) -> Iterator[Case]:
    """Every code of every type, with and without a zero point, with each scale and output type."""
    for t, st in itertools.product(inputs_of(opset), floats(opset)):
        for output in floats(opset) if opset >= SINCE_PRECISION else (st,):
            r = rng("codes", opset, t.name, st.name, output.name)
            given = {"output_type": output.name} if output is not st or (opset >= SINCE_PRECISION and output is ot.FLOAT) else {}
            rule = "dequantize-output-dtype" if given else "dequantize-int32" if t is ot.INT32 else "dequantize-every-code"
            scale = scale_for(r, (), st, output)
            yield fixed(opset, rule, "", codes_of(r, t), scale, None, **given)
            zero = zero_of(r, (), t)
            if zero is None:
                continue
            yield fixed(opset, rule if given else "dequantize-zero-point", "with_zero_point", codes_of(r, t), scale, zero, **given)
        if t.kind == "mini" and st is ot.FLOAT:
            for i, zero in enumerate(every_code(t)[:: 1 << (t.bits - 4)]):
                yield fixed(opset, "dequantize-minifloat-zero-point", f"{i}", every_code(t), F32(0.5), np.asarray(zero))
            for st_, z in ((ot.FLOAT16, 3), (ot.BFLOAT16, 6)):
                scale = ot.round_to(np.array(0.25, F32), st_)
                yield fixed(opset, "dequantize-minifloat-zero-point", "", every_code(t), scale, ot.from_codes(np.array(z), t))
                yield fixed(
                    opset, "dequantize-minifloat-zero-point", "", every_code(t), F32(2), ot.from_codes(np.array(z), t), output_type=st_.name
                )


def granularities(opset: int) -> Iterator[Case]:
    names = {"per-tensor": "every-code"}
    for t, (since, g) in itertools.product(inputs_of(opset), GRAINS):
        for st in (ot.FLOAT, ot.FLOAT16) if opset >= 19 else (ot.FLOAT,):
            if since > opset:
                continue
            r = rng("dequantize granularity", opset, t.name, st.name, g.name)
            x, zero = any_codes(r, g.shape, t), zero_of(r, g.scale_shape, t)
            if t is ot.INT32:
                x = (x.astype(np.int64) % 60000).astype(np.int32)
            what = rule_of("dequantize", g).split("-", 1)[1]
            yield fixed(
                opset, f"dequantize-{names.get(what, what)}", g.name, x, scale_for(r, g.scale_shape, st, st), zero, g, **g.arguments
            )


def special_scales(opset: int) -> Iterator[Case]:
    """0, denormals and huge scales, each on its own in a row; IEEE 754 defines the results. Also infinities and NaN."""
    special = np.array([0, -0.0, 1e-45, -1e-40, 1e-38, 3e38, np.inf, -np.inf, np.nan], F32)
    for t in inputs_of(opset):
        r = rng("special scales", opset, t.name)
        if opset < 13:
            for i, value in enumerate(special):
                yield fixed(opset, "dequantize-special-scales", f"{i}", codes_of(r, t)[:33], np.asarray(value), None)
            continue
        x = np.repeat(codes_of(r, t)[:33, None], special.size, axis=1)
        yield fixed(
            opset,
            "dequantize-special-scales",
            "",
            x,
            special,
            zero_of(r, special.shape, t),
            None if x.ndim == 1 else _by_axis(x.shape),
            axis=1,
        )
        if SINCE_FLOAT[ot.E8M0] <= opset:
            scale = every_code(ot.E8M0)
            x = any_codes(r, (3, 256), t)
            yield fixed(opset, "dequantize-float8e8m0-scale", "", x, scale, None, _by_axis(x.shape), axis=1, output_type="FLOAT")


def _by_axis(shape: Any) -> Any:
    from ..granularity import Granularity

    return Granularity("axis1", shape, (shape[1],), (("axis", 1),))


def dynamic() -> Iterator[Case]:
    """DynamicQuantizeLinear 11."""

    def one(rule, what, x):
        return Case(
            f"test_dynamicquantizelinear_11_{rule.split('-', 1)[1].replace('-', '_')}_{what}", rule, "dynamic_quantize", {"x": x}, opset=11
        )

    for i, (kind, shape) in enumerate(itertools.product(("plain", "wide", "sparse"), ((67,), (5, 13), (3, 4, 5), (1,), ()))):
        x = data(rng("dynamic linear", kind, shape), shape, ot.FLOAT, kind)
        if x.any():
            yield one("dynamic-scale", f"{i}_{kind}", x)
    for i, (kind, shape) in enumerate(itertools.product(("positive", "negative", "constant"), ((67,), (5, 13), (1,)))):
        yield one("dynamic-range-holds-zero", f"{i}_{kind}", data(rng("dynamic zero", kind, shape), shape, ot.FLOAT, kind))
    r = rng("dynamic zero point")
    for i in range(24):
        low, high = -r.uniform(0, 3), r.uniform(0, 3)
        yield one("dynamic-zero-point", str(i), np.array([low, 0, high, low / 3, high / 7], F32))
    for i, offset in enumerate(range(0, 256, 17)):  # the scale is 1, so zero points and quotients are ties
        yield one("dynamic-ties-to-even", str(i), np.array([-offset, 255 - offset, 0.5, -0.5, 1.5, 2.5, -1.5, -2.5], F32))
        yield one("dynamic-ties-to-even", f"half_{i}", np.array([-offset - 0.5, 254.5 - offset, 0.5, 3.5], F32))
    for i, exponent in enumerate((-120, -126, -130, -136, 100, 120)):
        yield one("dynamic-denormals", str(i), np.ldexp(r.uniform(-1, 1, 19), exponent).astype(F32))


def cases(opset: int) -> Iterator[Case]:
    yield from every(opset)
    yield from granularities(opset)
    yield from special_scales(opset)


__all__ = ["SINCE", "cases", "default_zero", "dynamic"]
