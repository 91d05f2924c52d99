"""Dequantize against the oracle: every code of every type, every zero point, scale, output and granularity."""

import itertools

import numpy as np
import pytest

import ask
import oracle_types as ot
from cases import GRANULARITIES
from compare import count, same
from generate import any_codes, rng, scales, zero_points

SCALES = ot.FLOATS + (ot.INT32, ot.E8M0)
INPUTS = ot.OUTPUTS + (ot.INT32,)


def name(p):
    return getattr(p, "name", None) or str(p)


def check(client, x, scale, zero_point=None, **options):
    ours, expected = ask.both("dequantize", client, x, scale, zero_point, **options)
    count("numerics oracle, Dequantize", x.size)
    if expected is not None:
        same(ours.y, expected.y, f"x {ot.of(x).name}, scale {ot.of(scale).name}, {options}", x)


@pytest.mark.parametrize("t", INPUTS, ids=name)
@pytest.mark.parametrize("output", ot.FLOATS, ids=name)
def test_every_code(client, output, t):
    r = rng("codes", t.name, output.name)
    x = ot.from_codes(np.arange(1 << t.bits), t) if t.bits <= 16 else any_codes(r, (5000,), t)
    for st, with_zero in itertools.product(SCALES, (True, False)):
        check(client, x, scales(r, (), st), zero_points(r, (), t) if with_zero else None, output_type=output)


@pytest.mark.parametrize("t", INPUTS, ids=name)
@pytest.mark.parametrize("g", GRANULARITIES, ids=name)
def test_granularities(client, g, t):
    for st, output in itertools.product((ot.FLOAT, ot.BFLOAT16, ot.E8M0), ot.FLOATS):
        r = rng("granularity", g.name, t.name, st.name, output.name)
        check(client, any_codes(r, g.shape, t), scales(r, g.scale_shape, st), zero_points(r, g.scale_shape, t),
              output_type=output, **g.arguments)


@pytest.mark.parametrize("t", ot.INTEGERS, ids=name)
def test_int32_zero_points(client, t):
    for g in (GRANULARITIES[0], GRANULARITIES[4], GRANULARITIES[8], GRANULARITIES[16]):
        r = rng("int32", g.name, t.name)
        zero = r.integers(-70000, 70000, g.scale_shape).astype(np.int32)
        check(client, any_codes(r, g.shape, t), scales(r, g.scale_shape, ot.FLOAT), zero, **g.arguments)


def test_int32_is_subtracted_exactly(client):
    x = np.array([2**31 - 1, -(2**31), 2**24 + 1, 5], np.int32)
    for zero in (-(2**31), 2**31 - 1, 2**24, 0):
        check(client, x, np.array(1, np.float32), np.array(zero, np.int32))


@pytest.mark.parametrize("t", INPUTS, ids=name)
def test_scales_follow_ieee_754(client, t):
    special = np.array([0, -0.0, np.nan, np.inf, -np.inf, 1e-45, -1e-40, 1e-38, 3e38], np.float32)
    r = rng("ieee", t.name)
    x = any_codes(r, (41, special.size), t)
    x = x.copy()
    x[0] = ot.from_codes(np.zeros(special.size, int), t)
    for output in ot.FLOATS:
        check(client, x, special, zero_points(r, special.shape, t), output_type=output)


@pytest.mark.parametrize("t", INPUTS, ids=name)
def test_every_e8m0_scale(client, t):
    scale = ot.from_codes(np.arange(256), ot.E8M0)
    r = rng("e8m0", t.name)
    for output in ot.FLOATS:
        check(client, any_codes(r, (9, 256), t), scale, output_type=output)


@pytest.mark.parametrize("t", (ot.E2M1, ot.E2M3, ot.E3M2, ot.INT8, ot.E4M3FN), ids=name)
@pytest.mark.parametrize("st", (ot.FLOAT, ot.E4M3FN, ot.BFLOAT16), ids=name)
def test_tensor_scale(client, st, t):
    r = rng("tensor scale", t.name, st.name)
    x = any_codes(r, (33, 101), t)
    if st is ot.E4M3FN:
        scale = ot.from_codes(r.integers(1, 0x7F, (33, 7)), st)
    else:
        scale = scales(r, (33, 7), st)
    for ts in (1 / 3, 1e-6, 0.0):
        check(client, x, scale, tensor_scale=np.array(ts, np.float32), output_type=ot.FLOAT, axis=1, block_size=16)
