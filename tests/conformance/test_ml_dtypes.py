"""The server's casts against ml_dtypes: every FLOAT16 and BFLOAT16 pattern through every small float, and every code of every small type back."""

import ml_dtypes
import numpy as np
import pytest

import ask
from quantd_conformance import oracle_types as ot
from compare import count, name, same
from generate import rng
from quantd_conformance.values import quotients

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
