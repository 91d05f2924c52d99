"""The server's casts against ml_dtypes: every FLOAT16 and BFLOAT16 pattern through every small float, every code of
every small type back, and the roundings to FLOAT16 and BFLOAT16."""

import ml_dtypes
import numpy as np
import pytest

import ask
from quantd_conformance import oracle_types as ot
from compare import count, name, same
from generate import rng
from quantd_conformance.values import any_codes, quotients

VERSION = f"ml_dtypes {ml_dtypes.__version__}"
ONE = np.array(1, np.float32)


def cast(x, t):
    with np.errstate(all="ignore"):
        return x.astype(t.dtype)


def check(ours, theirs, x, t, what):
    same(ours, theirs, what, x)
    count(f"{VERSION}, casts", x.size)


@pytest.mark.parametrize("t", ot.SMALL, ids=name)
@pytest.mark.parametrize("xt", ot.FLOATS, ids=name)
def test_cast_to_small_float(client, xt, t):
    """All 2^16 patterns; for FLOAT random numbers, ties and special values. ml_dtypes does not saturate FLOAT8."""
    x = quotients(rng("cast", t.name), (200000,), t, True) if xt is ot.FLOAT else ot.from_codes(np.arange(1 << 16), xt)
    scale = ONE if xt is ot.FLOAT else ot.round_to(ONE, xt)
    check(ask.quantize(client, x, scale, output_type=t, saturate=False).y, cast(x, t), x, t, f"{xt.name} to {t.name}")
    # Saturation is a clamp before the cast, for everything except NaN.
    with np.errstate(invalid="ignore"):
        clamped = ot.round_to(np.clip(ot.to_float(x), -ot.largest(t), ot.largest(t)), xt)
    check(ask.quantize(client, x, scale, output_type=t).y, cast(clamped, t), x, t, f"{xt.name} to {t.name}, saturated")


@pytest.mark.parametrize("t", (*ot.SMALL, ot.INT4, ot.UINT4, ot.INT2, ot.UINT2), ids=name)
@pytest.mark.parametrize("output", ot.FLOATS, ids=name)
def test_every_code_back(client, output, t):
    x = ot.from_codes(np.arange(1 << t.bits), t)
    same(ask.dequantize(client, x, ONE, output_type=output).y, x.astype(output.dtype), f"{t.name} to {output.name}")
    count(f"{VERSION}, codes back", x.size)


@pytest.mark.parametrize("output", ot.FLOATS, ids=name)
def test_every_e8m0_scale(client, output):
    scale = ot.from_codes(np.arange(256), ot.E8M0)
    ours = ask.dequantize(client, np.ones((1, 256), np.int8), scale, output_type=output).y[0]
    with np.errstate(over="ignore"):
        same(ours, scale.astype(np.float32).astype(output.dtype), f"FLOAT8E8M0 to {output.name}", scale)
    count(f"{VERSION}, codes back", 256)


@pytest.mark.parametrize("output", (ot.FLOAT16, ot.BFLOAT16), ids=name)
def test_rounding_to_half_precision(client, output):
    r = rng("half", output.name)
    x = any_codes(r, (300, 1000), ot.INT16)
    scale = np.exp2(r.uniform(-40, 10, 1000)).astype(np.float32)
    with np.errstate(over="ignore"):
        expected = (x.astype(np.float32) * scale).astype(output.dtype)
    same(ask.dequantize(client, x, scale, output_type=output).y, expected, f"FLOAT to {output.name}")
    count(f"{VERSION}, roundings", x.size)


def test_mx_scales_are_e8m0_powers_of_two(client):
    """y_scale of FLOAT8E8M0, read by ml_dtypes, is the power of two of the OCP formula, computed in float64."""
    x = (rng("mx").standard_normal((500, 32)) * np.exp2(rng("mx2").integers(-100, 100, (500, 1)))).astype(np.float32)
    for t, emax in ((ot.E4M3FN, 8), (ot.E5M2, 15), (ot.E2M3, 2), (ot.E3M2, 4), (ot.E2M1, 2)):
        answer = ask.dynamic_quantize(client, x, output_type=t, scale_type=ot.E8M0, axis=1, block_size=32)
        expected = np.exp2(np.floor(np.log2(np.abs(x.astype(np.float64)).max(1))) - emax)
        assert (answer.scale.astype(np.float64)[:, 0] == expected).all()
        with np.errstate(over="ignore"):
            v = np.clip(x / expected[:, None].astype(np.float32), -ot.largest(t), ot.largest(t))
        same(answer.y, v.astype(t.dtype), f"MX {t.name}", x)
        count(f"{VERSION}, microscaling", x.size)
