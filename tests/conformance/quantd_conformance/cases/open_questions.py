"""What ONNX's text leaves open: one question per case, with every known answer, the oracle's first."""

import itertools
from typing import Any, Dict, Iterator, Optional

import numpy as np

from .. import division, oracle
from .. import oracle_types as ot
from ..case import Answer, Case
from ..values import any_codes, inputs, rng, scales
from ..versions import SINCE, SINCE_BLOCKS, SINCE_FLOAT, SINCE_PRECISION, outputs, scales_of, xs
from . import dequantize_linear, quantize_linear
from .quantize_linear import F32, default_zero

REFUSED = Answer(refused="")


def asked(case: Case, answers: Dict[str, Optional[Answer]]) -> Case:
    """The case with its known answers. None stands for the oracle's, which comes first."""
    case.family, own = "open", case.expected()
    case.answers = {name: own if found is None else found for name, found in answers.items()}
    return case


def _y(*tensors: Any) -> Answer:
    return Answer(dict(zip(("y", "y_scale", "y_zero_point"), tensors)))


def nan_to_integer(opset: int, t: ot.Type) -> Iterator[Case]:
    nan = np.array([np.nan, -np.nan], F32)
    for what, code in (("zero", 0), ("one", 1), ("highest", t.qmax)):
        z = ot.from_codes(np.array(code), t)

        def all_are(value, z=z):
            clamped = int(np.clip(value, t.qmin, t.qmax))
            return _y(ot.from_codes(np.full(2, clamped & ((1 << t.bits) - 1)), t))

        wrapped = -(2**31) + int(ot.to_int(z))
        yield asked(
            quantize_linear.case(opset, "open-nan-to-integer", what, nan, F32(1), z),
            {
                "the-lowest": None,
                "the-zero-point": all_are(int(ot.to_int(z))),
                "the-highest": all_are(t.qmax),
                "INT_MIN-and-the-zero-point": all_are(wrapped if wrapped >= -(2**31) else wrapped + 2**32),
            },
        )
    if t.qmin < 0:
        z = ot.from_codes(np.array((1 << t.bits) - 1), t)
        yield asked(
            quantize_linear.case(opset, "open-nan-to-integer", "minus_one", nan, F32(1), z),
            {
                "the-lowest": None,
                "the-zero-point": _y(ot.from_codes(np.full(2, (1 << t.bits) - 1), t)),
                "INT_MIN-and-the-zero-point": _y(ot.from_codes(np.full(2, t.qmax), t)),
            },
        )


def nan_to_minifloat(opset: int, t: ot.Type) -> Iterator[Case]:
    half = 1 << (t.bits - 1)

    def codes(*values):
        return _y(ot.from_codes(np.array(values), t))

    yield asked(
        quantize_linear.case(opset, "open-nan-to-minifloat", "", np.array([np.nan, -np.nan], F32), F32(1), output_type=t.name),
        {
            "zero-of-the-other-sign": None,
            "zero": codes(0, 0),
            "zero-of-its-sign": codes(0, half),
            "largest": codes(half - 1, half - 1),
            "largest-of-its-sign": codes(half - 1, 2 * half - 1),
        },
    )


def float8(opset: int, t: ot.Type) -> Iterator[Case]:
    zero = default_zero(t)

    def codes(*values):
        return _y(ot.from_codes(np.array(values), t))

    nan = np.array([np.nan, -np.nan], F32)
    for saturate in (True, False) if t in (ot.E4M3FN, ot.E5M2) else ():  # the others have only one NaN
        answers: Dict[str, Optional[Answer]] = {"as-ml_dtypes": None}
        answers["positive"] = codes(0x7E, 0x7E) if t is ot.E5M2 else codes(0x7F, 0x7F)
        if t is ot.E5M2:
            answers.update({"all-bits": codes(0x7F, 0xFF), "all-bits-positive": codes(0x7F, 0x7F), "lowest": codes(0x7D, 0xFD)})
        yield asked(
            quantize_linear.case(
                opset, "open-which-nan", "" if saturate else "unsaturated", nan, F32(1), zero, **({} if saturate else {"saturate": False})
            ),
            answers,
        )
    if opset < 24 and t in (ot.E4M3FNUZ, ot.E5M2FNUZ):
        yield asked(
            quantize_linear.case(opset, "open-float8-infinity-saturates", "", np.array([np.inf, -np.inf], F32), F32(1), zero),
            {"FLT_MAX": None, "NaN": codes(0x80, 0x80)},
        )
    if t in (ot.E4M3FN, ot.E5M2):
        yield asked(
            quantize_linear.case(opset, "open-float8-negative-zero", "", np.array([-0.0, 0.0], F32), F32(1), zero),
            {"no-zero-point-is-added": None, "it-is-added": codes(0, 0)},
        )
    one = ot.from_codes(ot.codes(ot.encode_small(np.array(1, F32), t, True, np.array(False))[0]), t)
    x = np.array([1.0, -3.0, 16.0], F32)
    added = ot.encode_small(x + F32(1), t, True, np.signbit(x))[0]
    ignored = ot.encode_small(x, t, True, np.signbit(x))[0]
    yield asked(
        quantize_linear.case(opset, "open-float8-zero-point", "", x, F32(1), one),
        {"refused": None, "it-is-added": _y(added), "it-is-ignored": _y(ignored)},
    )
    values = ot.to_float(ignored)
    yield asked(
        dequantize_linear.case(opset, "open-dequantize-float8-zero-point", "", ignored, F32(1), one),
        {"refused": None, "it-is-subtracted": _y(values - F32(1)), "it-is-ignored": _y(values)},
    )


def divisions(opset: int) -> Iterator[Case]:
    """Elements for which the readings of the division disagree."""
    names = {ot.INT32: "open-int32-scale" if opset >= SINCE_PRECISION else "open-int32-division"}
    for xt, t in itertools.product(xs(opset), outputs(opset)):
        for st in scales_of(opset, xt):
            r = rng("open division", opset, xt.name, st.name, t.name)
            scale = scales(r, (), st, negative=False)
            if st is ot.INT32:
                scale = np.maximum(scale, np.int32(3))
            s_each = np.broadcast_to(scale, (6000,))
            zero = default_zero(t) if t.kind != "mini" else None
            x = inputs(r, (6000,), xt, s_each, t, specials=False)
            if xt is not ot.INT32:
                x = np.where(np.isfinite(ot.to_float(x)), x, x.dtype.type(1)).astype(x.dtype)
            if xt is ot.INT32 and st is not ot.INT32:
                # Next to ties, and with more digits than FLOAT has.
                scale = np.array(2.0**25, F32) if st is ot.FLOAT else scale
                x = ((2 * r.integers(-60, 60, 6000) + 1) * 2**24 + r.integers(-3, 4, 6000)).astype(np.int32)
                s_each = np.broadcast_to(scale, (6000,))
            found = np.flatnonzero(division.disagree(opset, x, s_each, None, t))[:19]
            if not found.size:
                continue  # all readings agree: quantize_linear.py has the cases for such types
            x = x[found]
            x = np.where((ot.to_float(x) == 0) & (t.kind != "int"), x[:1], x).astype(x.dtype)
            if t.kind != "int" and (ot.to_float(x) == 0).any():
                continue
            rule = names.get(st) or ("open-int32-division" if xt is ot.INT32 else "open-precision-of-division")
            option = {"output_type": t.name} if zero is None else {}
            case = quantize_linear.case(opset, rule, "", x, scale, zero, **option)
            each = division.readings(opset, x, np.broadcast_to(scale, x.shape))
            answers: Dict[str, Optional[Answer]] = {name: _y(division.codes(v, None, t)) for name, v in each.items()}
            answers[next(iter(answers))] = None
            yield asked(case, answers)


def bad_scales(opset: int, t: ot.Type) -> Iterator[Case]:
    x = np.array([1, -1, 3], F32)
    for what, value in (("zero", 0.0), ("infinity", np.inf), ("nan", np.nan)):
        with np.errstate(all="ignore"):
            v = x / F32(value)
        answers: Dict[str, Optional[Answer]] = {"refused": None}
        if what != "nan":
            answers["by-IEEE-754"] = _y(division.codes(v.astype(F32), None, t))
            if t.kind == "int":
                answers["the-lowest"] = _y(ot.from_codes(np.full(3, t.qmin & ((1 << t.bits) - 1)), t))
        elif t.kind == "int":
            answers["the-lowest"] = _y(ot.from_codes(np.full(3, t.qmin & ((1 << t.bits) - 1)), t))
            answers["zero"] = _y(ot.from_codes(np.zeros(3, int), t))
        elif t.kind == "fp8":
            answers["NaN"] = _y(ot.encode_small(v, t, True, np.zeros(3, bool))[0])
            answers["NaN-with-a-sign"] = _y(ot.encode_small(v, t, True, np.ones(3, bool))[0])
            if t is ot.E5M2:
                answers["NaN-of-all-bits"] = _y(ot.from_codes(np.full(3, 0x7F), t))
        else:
            continue
        yield asked(quantize_linear.case(opset, "open-scale-zero", what, x, F32(value), default_zero(t)), answers)


def products(opset: int) -> Iterator[Case]:
    """Elements for which rounding the operands first makes a difference."""
    for t, st in itertools.product(dequantize_linear.inputs_of(opset), dequantize_linear.floats(opset)):
        for output in dequantize_linear.floats(opset) if opset >= SINCE_PRECISION else (st,):
            r = rng("open product", opset, t.name, st.name, output.name)
            x, scale = any_codes(r, (3000,), t), scales(r, (), st, negative=False)
            if t is ot.INT32:
                x = (x.astype(np.int64) // 64).astype(np.int32)
            s_each = np.broadcast_to(scale, x.shape)
            found = np.flatnonzero(dequantize_linear.disagree(x, s_each, None, output))[:19]
            if not found.size:
                continue
            option = {"output_type": output.name} if output is not st else {}
            case = dequantize_linear.case(opset, "open-precision-of-product", "", x[found], scale, **option)
            each = dequantize_linear.products(x[found], s_each[found], None, output)
            yield asked(case, {name: None if i == 0 else _y(y) for i, (name, y) in enumerate(each.items())})


def int32_zero_points(opset: int) -> Iterator[Case]:
    x = np.array([5, 2**24 + 1, 2**31 - 1, -(2**31)], np.int32)
    for what, z in (("one", 1), ("minus_one", -1), ("large", 2**24 + 1)):
        zero = np.array(z, np.int32)
        wrapped = (x.astype(np.int64) - z).astype(np.int64).astype(np.uint32).view(np.int32).astype(F32)
        yield asked(
            dequantize_linear.case(opset, "open-dequantize-int32-zero-point", what, x, F32(1), zero),
            {
                "subtracted-exactly": None,
                "subtracted-as-FLOAT": _y(x.astype(F32) - F32(z)),
                "subtracted-in-32-bits": _y(wrapped),
                "x-as-FLOAT-subtracted-in-double": _y((x.astype(F32).astype(np.float64) - z).astype(F32)),
                "ignored": _y(x.astype(F32)),
                "refused": REFUSED,
            },
        )


def dynamic() -> Iterator[Case]:
    def one(rule, what, *x):
        return Case(
            f"test_dynamicquantizelinear_11_{rule.split('-', 1)[1].replace('-', '_')}_{what}",
            rule,
            "dynamic_quantize",
            {"x": np.array(x, F32)},
            opset=11,
        )

    def answer(y, scale, zero):
        return _y(np.array(y, np.uint8), np.array(scale, F32), np.array(zero, np.uint8))

    for what, x in (("positive", (0, 0)), ("negative", (-0.0, -0.0)), ("one", (0,))):
        zeros = [0] * len(x)
        yield asked(
            one("open-dynamic-zeros", what, *x),
            {"scale-1": None, "scale-1-over-255": answer(zeros, F32(1) / F32(255), 0), "scale-0": answer(zeros, 0, 0)},
        )
    yield asked(
        one("open-dynamic-zeros", "empty"), {"scale-1": None, "scale-1-over-255": answer([], F32(1) / F32(255), 0), "refused": REFUSED}
    )
    for what, x in (("nan", (1, np.nan)), ("nan_first", (np.nan, 1)), ("infinity", (1, np.inf)), ("minus_infinity", (1, -np.inf))):
        answers: Dict[str, Optional[Answer]] = {"refused": None}
        if "nan" in what:
            for name, zero, y in (
                ("scale-nan", 0, [0, 0]),
                ("scale-nan-highest", 255, [255, 255]),
                ("scale-nan-zero-point-255", 255, [0, 0]),
            ):
                answers[name] = answer(y, np.nan, zero)
            answers["nan-left-out"] = answer([255, 0] if what == "nan" else [0, 255], F32(1) / F32(255), 0)
        elif what == "infinity":
            answers.update({"scale-infinity": answer([0, 0], np.inf, 0), "scale-infinity-and-clamped": answer([0, 255], np.inf, 0)})
        else:
            answers.update(
                {
                    "scale-infinity": answer([0, 0], np.inf, 0),
                    "scale-infinity-and-highest": answer([255, 255], np.inf, 255),
                    "scale-infinity-and-clamped": answer([255, 0], np.inf, 255),
                }
            )
        yield asked(one("open-dynamic-not-finite", what, *x), answers)
    yield asked(
        one("open-dynamic-underflow", "", 1e-45),
        {
            "refused": None,
            "scale-0-highest": answer([255], 0, 0),
            "scale-0-zero-point-255": answer([255], 0, 255),
            "scale-0": answer([0], 0, 0),
        },
    )


def one_element(opset: int) -> Iterator[Case]:
    x = np.array([[1, 2, 3], [4, 5, 6]], F32)
    yield asked(
        quantize_linear.case(opset, "open-scale-of-one-element", "", x, np.array([2], F32), np.array([3], np.uint8)),
        {"per-tensor": None, "refused": REFUSED},
    )


def cases(opset: int) -> Iterator[Case]:
    for t in outputs(opset):
        if t.kind == "int":
            yield from nan_to_integer(opset, t)
        elif t.kind == "fp8":
            yield from float8(opset, t)
        elif opset >= SINCE_BLOCKS:
            yield from nan_to_minifloat(opset, t)
        yield from bad_scales(opset, t)
    yield from divisions(opset)
    yield from products(opset)
    yield from int32_zero_points(opset)
    yield from one_element(opset)


__all__ = ["SINCE", "SINCE_FLOAT", "cases", "dynamic", "oracle"]
