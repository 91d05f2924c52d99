"""The oracle's own test: the examples and edge cases in the specification. No server, only numpy."""

import numpy as np
import pytest

from quantd_conformance import oracle
from quantd_conformance import oracle_types as ot
from generate import rng


def f(*values):
    return np.array(values, np.float32)


def quantized(x, scale=1.0, **options):
    zero_point = options.pop("zero_point", None)
    x = x if isinstance(x, np.ndarray) else f(*x)
    return ot.codes(oracle.quantize(x, np.array(scale, np.float32), zero_point, **options).y).tolist()


def test_the_quotient_is_a_true_division():
    scale = np.array(0x3CA0A0A1, np.uint32).view(np.float32)
    assert quantized([-2.5], scale, output_type=ot.INT8) == [256 - 127]


def test_zero_point_order():
    one = ot.from_codes(np.array(1), ot.UINT8)
    assert quantized([3.0], 2.0, zero_point=one) == [3]
    assert quantized([3.0], 2.0, zero_point=one, before_rounding=True) == [2]
    wide = np.array(1000, np.int32)
    assert quantized([-990.5], 1.0, zero_point=wide, before_rounding=True, output_type=ot.UINT8) == [10]


def test_values_that_no_integer_holds():
    x = [np.inf, 1e30, -np.inf, -1e30, np.nan, -np.nan]
    for t in ot.INTEGERS:
        high, low = t.qmax, t.qmin & ((1 << t.bits) - 1)
        assert quantized(x, output_type=t) == [high, high, low, low, low, low]


def test_ties_go_to_even_before_the_zero_point():
    three = ot.from_codes(np.array(3), ot.UINT8)
    assert quantized([0.5, 1.5, 2.5, -0.5, -1.5], zero_point=three) == [3, 5, 5, 3, 1]


E4M3FN_EDGES = {464.0: 0x7E, np.nextafter(np.float32(464), np.float32(465)): 0x7F, 2.0**-9: 1, 2.0**-10: 0,
                np.inf: 0x7F, -np.inf: 0xFF, np.nan: 0x7F, -0.0: 0x80, -(2.0**-11): 0x80}


@pytest.mark.parametrize("t,edges", [
    (ot.E4M3FN, E4M3FN_EDGES),
    (ot.E4M3FNUZ, {248.0: 0x80, 247.9: 0x7F, np.inf: 0x80, np.nan: 0x80, -0.0: 0, -(2.0**-20): 0}),
    (ot.E5M2, {61440.0: 0x7C, 61439.0: 0x7B, -np.inf: 0xFC, np.nan: 0x7E, -0.0: 0x80}),
    (ot.E5M2FNUZ, {61440.0: 0x80, 61439.0: 0x7F, -np.inf: 0x80, -0.0: 0, -1e-9: 0}),
], ids=lambda p: getattr(p, "name", ""))
def test_float8_without_saturate(t, edges):
    assert quantized(list(edges), output_type=t, saturate=False) == list(edges.values())


@pytest.mark.parametrize("t,edge", [(ot.E4M3FN, 0x7E), (ot.E4M3FNUZ, 0x7F), (ot.E5M2, 0x7B), (ot.E5M2FNUZ, 0x7F)],
                         ids=lambda p: getattr(p, "name", ""))
def test_float8_saturates(t, edge):
    assert quantized([np.inf, 1e9, -np.inf, -1e9], output_type=t) == [edge, edge, edge | 0x80, edge | 0x80]


def test_a_nan_keeps_its_sign():
    assert quantized([np.nan, -np.nan], -1.0, output_type=ot.E4M3FN) == [0x7F, 0xFF]
    assert quantized([np.nan, -np.nan], -1.0, output_type=ot.E5M2) == [0x7E, 0xFE]
    assert quantized([np.nan, -np.nan], output_type=ot.E2M1) == [8, 0]


@pytest.mark.parametrize("t,values", [(ot.E2M3, [0, 0.125, 0.875, 1, 2, 7.5]), (ot.E3M2, [0, 0.0625, 1.75, 2, 8, 28])], ids=["E2M3", "E3M2"])
def test_float6(t, values):
    numbers = ot.to_float(ot.from_codes(np.array([0, 1, {ot.E2M3: 7, ot.E3M2: 15}[t], {ot.E2M3: 8, ot.E3M2: 16}[t],
                                                  {ot.E2M3: 16, ot.E3M2: 24}[t], 31]), t))
    assert numbers.tolist() == values
    assert quantized([-0.0, np.nan, -np.nan, np.inf, -np.inf, 1e30], output_type=t) == [32, 32, 0, 31, 63, 31]
    step = values[1]
    assert quantized([0.5 * step, 1.5 * step, 2.5 * step, -0.5 * step], output_type=t) == [0, 2, 2, 32]


def test_float4():
    x = [0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, 7, np.inf, -np.inf, -0.0]
    assert quantized(x, output_type=ot.E2M1) == [0, 2, 2, 4, 4, 6, 6, 7, 7, 15, 8]
    assert quantized([-0.0, 1.0], zero_point=ot.from_codes(np.array(0), ot.E2M1)) == [0, 2]
    assert quantized([1.0], zero_point=ot.from_codes(np.array(7), ot.E2M1)) == [7]
    assert ot.to_float(ot.from_codes(np.arange(8), ot.E2M1)).tolist() == [0, 0.5, 1, 1.5, 2, 3, 4, 6]


def test_precision():
    x, scale = np.array([1000.5], np.float16), np.array(3.3, np.float16)
    assert ot.codes(oracle.quantize(x, scale, output_type=ot.INT16).y).tolist() == [303]
    with pytest.raises(oracle.Invalid, match="scale"):
        oracle.quantize(f(1), f(1e-9), precision=ot.FLOAT16)
    with pytest.raises(oracle.Invalid, match="scale"):
        oracle.quantize(f(1), f(1e9), precision=ot.FLOAT16)


def test_bad_scales_are_named():
    for bad in (0.0, np.nan, np.inf):
        with pytest.raises(oracle.Invalid, match="scale: element 1"):
            oracle.quantize(np.ones((1, 2), np.float32), f(1, bad))


def test_dequantize():
    x = ot.from_codes(np.array([0, 128, 255]), ot.UINT8)
    y = oracle.dequantize(x, f(0.5)[0], ot.from_codes(np.array(128), ot.UINT8)).y
    assert y.tolist() == [-64, 0, 63.5]
    big = np.array([2**31 - 1, -(2**31)], np.int32)
    assert oracle.dequantize(big, f(1)[0], np.array(2**31 - 1, np.int32)).y.tolist() == [0, -(2.0**32)]
    e8m0 = ot.from_codes(np.array(0), ot.E8M0)
    assert oracle.dequantize(np.array([1], np.uint8), e8m0, output_type=ot.FLOAT).y.tolist() == [2.0**-127]
    with pytest.raises(oracle.Invalid, match="output_type"):
        oracle.dequantize(np.array([1], np.uint8), e8m0)


def test_granularity():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    by_axis = oracle.quantize(x, f(1, 2, 4, 8)).y
    assert by_axis.tolist() == [[0, 0, 0, 0], [4, 2, 2, 1], [8, 4, 2, 1]]
    assert (oracle.quantize(x, f(1, 2, 4, 8), axis=-1).y == by_axis).all()
    assert (oracle.quantize(x, f(1, 2, 4, 8).reshape(1, 4)).y == by_axis).all()  # groups of 3 x 1
    assert (oracle.quantize(x, f(1, 2, 4, 8).reshape(1, 4), block_shape=[-1, 1]).y == by_axis).all()
    ragged = oracle.quantize(x, f(1, 2, 1, 2, 1, 2).reshape(3, 2), axis=1, block_size=3).y
    assert ragged.tolist() == [[0, 1, 2, 2], [4, 5, 6, 4], [8, 9, 10, 6]]
    for bad in (f(1, 2), np.ones((3, 3), np.float32), np.ones((1, 1, 1), np.float32)):
        with pytest.raises(oracle.Invalid):
            oracle.quantize(x, bad)


def test_dynamic():
    r = oracle.dynamic_quantize(f(-1, 0, 4))
    assert (float(r.scale), int(r.zero_point), r.y.tolist()) == (float(np.float32(5) / np.float32(255)), 51, [0, 51, 255])
    zeros = oracle.dynamic_quantize(np.zeros((2, 3), np.float32), axis=0)
    assert (zeros.scale.tolist(), zeros.zero_point.tolist(), zeros.y.tolist()) == ([1, 1], [0, 0], [[0] * 3] * 2)
    signed = oracle.dynamic_quantize(f(-1, 1, np.nan, -np.inf), output_type=ot.INT8, ignore=True)
    assert signed.y.tolist() == [-127, 127, -127, -127] and signed.zero_point == 0
    symmetric = oracle.dynamic_quantize(f(-4, 4), symmetric=True)
    assert symmetric.zero_point is None and symmetric.y.tolist() == [0, 255]
    with pytest.raises(oracle.Invalid, match="element 1"):
        oracle.dynamic_quantize(f(1, np.nan))
    with pytest.raises(oracle.Invalid):
        oracle.dynamic_quantize(f(1e-45))


def test_microscaling():
    x = f(*[0.0] * 31, 700.0, *[0.0] * 32).reshape(2, 32)
    mx = oracle.dynamic_quantize(x, output_type=ot.E4M3FN, scale_type=ot.E8M0, block_size=32)
    assert ot.codes(mx.scale).tolist() == [[127 + 9 - 8], [127]]
    mxint = oracle.dynamic_quantize(f(1.0, -1.99), output_type=ot.INT8, scale_type=ot.E8M0, axis=0, block_size=32)
    assert ot.codes(mxint.scale).tolist() == [127 - 6] and mxint.y.tolist() == [64, -127]
    tiny = oracle.dynamic_quantize(f(1e-45), output_type=ot.E2M1, scale_type=ot.E8M0, axis=0, block_size=32)
    assert ot.codes(tiny.scale).tolist() == [0]


def test_nvfp4():
    x = np.linspace(-8, 8, 32, dtype=np.float32)
    nv = oracle.dynamic_quantize(x, output_type=ot.E2M1, scale_type=ot.E4M3FN, axis=0, block_size=16)
    assert nv.tensor_scale == np.float32(8) / np.float32(2688)
    assert ot.to_float(nv.scale).tolist() == [448, 448]
    assert np.abs(oracle.dequantize(nv.y, nv.scale, axis=0, block_size=16, tensor_scale=nv.tensor_scale,
                                    output_type=ot.FLOAT).y - x).max() < 1.4


def test_the_error_report():
    e = oracle.quantize(f(0.25, 300, np.inf, np.nan), np.float32(1), report_error=True).error
    assert (e.saturated_elements, e.non_finite_elements, e.max_absolute_error) == (2, 2, 45)
    assert e.mean_squared_error == (0.25**2 + 45**2) / 2
    assert oracle.quantize(f(1, 2), np.float32(1), report_error=True).error.sqnr_db == np.inf


@pytest.mark.parametrize("t", ot.SMALL, ids=lambda t: t.name)
def test_every_small_float_encodes_to_itself(t):
    codes = ot.from_codes(np.arange(1 << t.bits), t)
    values = ot.to_float(codes)
    back, past = ot.encode_small(values, t, False, np.signbit(values))
    fine = np.isfinite(values)
    assert (ot.codes(back)[fine] == ot.codes(codes)[fine]).all() and not past[fine].any()


def test_bfloat16_rounding():
    v = rng("bf16").standard_normal(10000).astype(np.float32)
    exact = ot.to_float(ot.bf16_round(v)).astype(np.float64)
    below, above = v.view(np.uint32) & 0xFFFF0000, (v.view(np.uint32) & 0xFFFF0000) + 0x10000
    for other in (below.astype(np.uint32).view(np.float32), above.astype(np.uint32).view(np.float32)):
        assert (np.abs(exact - v) <= np.abs(other.astype(np.float64) - v)).all()
