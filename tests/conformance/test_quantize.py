"""Quantize against the oracle: every type of x, scale and y, every granularity, precision and zero-point order."""

import itertools

import numpy as np
import pytest

import ask
import oracle
import oracle_types as ot
from cases import GRANULARITIES
from compare import count, same
from generate import any_codes, inputs, rng, scales, zero_points

XS = ot.FLOATS + (ot.INT32,)
SCALES = ot.FLOATS + (ot.INT32, ot.E8M0)
SOURCE = "numerics oracle, Quantize"


def name(p):
    return getattr(p, "name", None) or str(p)


def check(client, x, scale, zero_point=None, **options):
    ours, expected = ask.both("quantize", client, x, scale, zero_point, **options)
    count(SOURCE, x.size)
    if expected is None:
        return
    s_each = oracle.spread(scale, x.shape, oracle.block_of(
        x.shape, scale.shape, options.get("axis"), options.get("block_size", 0), options.get("block_shape")))
    same(ours.y, expected.y, f"x {ot.of(x).name}, scale {ot.of(scale).name}, {options}", x, s_each)
    if options.get("report_error"):
        errors_match(ours.error, expected.error)


def errors_match(ours, expected):
    assert ours.saturated_elements == expected.saturated_elements
    assert ours.non_finite_elements == expected.non_finite_elements
    for figure in ("sqnr_db", "mean_squared_error", "max_absolute_error"):
        a, b = getattr(ours, figure), getattr(expected, figure)
        assert a == pytest.approx(b, rel=1e-6, nan_ok=True), f"{figure}: {a}, expected {b}"


@pytest.mark.parametrize("t", ot.OUTPUTS, ids=name)
@pytest.mark.parametrize("xt", XS, ids=name)
def test_types(client, xt, t):
    for st, with_zero in itertools.product(SCALES, (True, False)):
        g = GRANULARITIES[0]
        r = rng("types", xt.name, st.name, t.name, with_zero)
        scale = scales(r, g.scale_shape, st)
        zero = zero_points(r, g.scale_shape, t) if with_zero else None
        x = inputs(r, g.shape, xt, oracle.spread(scale, g.shape, g.block()), t)
        for saturate in (True, False) if t.kind == "fp8" else (True,):
            check(client, x, scale, zero, output_type=t, saturate=saturate, report_error=with_zero)


@pytest.mark.parametrize("g", GRANULARITIES, ids=name)
@pytest.mark.parametrize("t", ot.OUTPUTS, ids=name)
def test_granularities(client, t, g):
    for xt, st in ((ot.FLOAT, ot.FLOAT), (ot.FLOAT16, ot.FLOAT16), (ot.BFLOAT16, ot.FLOAT), (ot.FLOAT, ot.E8M0)):
        r = rng("granularity", t.name, g.name, xt.name, st.name)
        scale, zero = scales(r, g.scale_shape, st), zero_points(r, g.scale_shape, t)
        x = inputs(r, g.shape, xt, oracle.spread(scale, g.shape, g.block()), t)
        check(client, x, scale, zero, report_error=xt is ot.FLOAT, **g.arguments)


@pytest.mark.parametrize("t", ot.OUTPUTS, ids=name)
@pytest.mark.parametrize("precision", ot.FLOATS, ids=name)
def test_precision(client, precision, t):
    for xt, st in itertools.product(XS, SCALES):
        g = GRANULARITIES[0] if xt is ot.FLOAT else GRANULARITIES[4]
        r = rng("precision", precision.name, t.name, xt.name, st.name)
        scale, zero = scales(r, g.scale_shape, st), zero_points(r, g.scale_shape, t)
        x = inputs(r, g.shape, xt, oracle.spread(scale, g.shape, g.block()), t)
        check(client, x, scale, zero, precision=precision, **g.arguments)


@pytest.mark.parametrize("t", ot.INTEGERS, ids=name)
@pytest.mark.parametrize("zt", (None, ot.INT32, ot.INT8, ot.UINT8), ids=lambda t: t.name if t else "no zero point")
def test_before_rounding(client, zt, t):
    for g, (xt, st) in itertools.product((GRANULARITIES[0], GRANULARITIES[4], GRANULARITIES[7], GRANULARITIES[15]),
                                         itertools.product(XS, SCALES)):
        r = rng("before", g.name, t.name, xt.name, st.name, zt and zt.name)
        scale = scales(r, g.scale_shape, st)
        zero = None
        if zt is ot.INT32:
            zero = r.integers(-70000, 70000, g.scale_shape).astype(np.int32)
        elif zt is not None:
            zero = any_codes(r, g.scale_shape, zt)
        x = inputs(r, g.shape, xt, oracle.spread(scale, g.shape, g.block()), t)
        check(client, x, scale, zero, output_type=t, before_rounding=True, **g.arguments)


@pytest.mark.parametrize("t", ot.OUTPUTS, ids=name)
def test_scales_of_every_size(client, t):
    """Denormal, tiny, huge and negative scales, each with x that lands in range; past where a reciprocal works, too."""
    r = rng("sizes", t.name)
    exponents = np.concatenate([np.arange(-149, -120), np.arange(-120, 128, 8), np.arange(70, 80)])
    scale = (np.exp2(exponents.astype(np.float64)) * r.uniform(1, 1.999, exponents.size)).astype(np.float32)
    scale *= r.choice(np.array([-1, 1], np.float32), scale.size)
    x = inputs(r, (31, scale.size), ot.FLOAT, np.broadcast_to(scale, (31, scale.size)), t)
    check(client, x, scale, zero_points(r, scale.shape, t))


@pytest.mark.parametrize("t", ot.OUTPUTS, ids=name)
def test_every_e8m0_scale(client, t):
    """2^-127, a denormal, to 2^127; code FF is NaN and refused."""
    scale = ot.from_codes(np.arange(255), ot.E8M0)
    for xt in XS:
        r = rng("e8m0", t.name, xt.name)
        x = inputs(r, (21, 255), xt, np.broadcast_to(scale, (21, 255)), t)
        check(client, x, scale, zero_points(r, (255,), t))
    check(client, np.ones(3, np.float32), ot.from_codes(np.array(255), ot.E8M0), output_type=t)


@pytest.mark.parametrize("t", ot.OUTPUTS, ids=name)
@pytest.mark.parametrize("xt", (ot.FLOAT16, ot.BFLOAT16), ids=name)
def test_every_pattern(client, xt, t):
    """All 2^16 bit patterns of x, by scales that divide them exactly and not."""
    x = ot.from_codes(np.arange(1 << 16), xt)
    for st, value in ((xt, 1.0), (xt, 0.1), (ot.FLOAT, -0.037), (ot.FLOAT, 3.0)):
        scale = ot.round_to(np.array(value, np.float32), st)
        for saturate in (True, False) if t.kind == "fp8" else (True,):
            check(client, x, scale, output_type=t, saturate=saturate)


@pytest.mark.parametrize("t", ot.OUTPUTS, ids=name)
def test_every_tie(client, t):
    """Each midpoint of two neighbours of the output's grid, and the floats beside it."""
    grid = np.unique(ot.to_float(any_of(t)))
    grid = grid[np.isfinite(grid)].astype(np.float64)
    middle = ((grid[1:] + grid[:-1]) / 2).astype(np.float32)
    middle = np.concatenate([middle, middle[-1:] + (middle[-1:] - grid[-2:-1].astype(np.float32)) * 2])
    x = np.concatenate([middle, np.nextafter(middle, np.float32(np.inf)), np.nextafter(middle, np.float32(-np.inf))])
    for scale in (1.0, -1.0, 0.25, 2.0**-30):
        check(client, x * np.float32(scale), np.array(scale, np.float32), output_type=t)


def any_of(t):
    return ot.from_codes(np.arange(1 << t.bits), t)


@pytest.mark.parametrize("length", [*range(0, 70), 127, 128, 129, 255, 256, 257, 1023, 1024, 1025, 4097], ids=str)
def test_lengths(client, length):
    for t in (ot.UINT8, ot.INT16, ot.INT4, ot.UINT2, ot.E4M3FN, ot.E2M1, ot.E2M3, ot.E3M2):
        r = rng("length", length, t.name)
        scale = scales(r, (), ot.FLOAT)
        check(client, inputs(r, (length,), ot.FLOAT, np.broadcast_to(scale, (length,)), t), scale, zero_points(r, (), t))


@pytest.mark.parametrize("t", ot.OUTPUTS, ids=name)
def test_large(client, t):
    """Past one slice, one tile and one task: what is split over buffers and threads is put together again."""
    r = rng("large", t.name)
    scale = scales(r, (1031,), ot.FLOAT)
    x = inputs(r, (701, 1031), ot.FLOAT, np.broadcast_to(scale, (701, 1031)), t)
    check(client, x, scale, zero_points(r, scale.shape, t), report_error=True)
