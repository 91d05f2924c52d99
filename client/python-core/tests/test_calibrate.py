"""calibrate: its arguments, states of others, threads, and interruption. What changes no bit of a result is tested in tests/core."""

import numpy as np
import pytest

import quantd
from support import bits, floats
from quantd import DataType, local

METHODS = ("min_max", "percentile", "entropy", "mse")
engine = local(threads=2)


def bytes_of(found):
    """All bits of a result."""
    zero_point = b"" if found.zero_point is None else bits(found.zero_point)
    return bits(found.scale), zero_point, bits(found.range), found.elements, found.non_finite_elements, found.state


def heavy(shape, seed=0):
    """Values of many octaves, with zeros and outliers among them."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape) * np.exp(rng.standard_normal(shape) * 3)
    return np.where(rng.random(shape) < 0.05, 0, x).astype(np.float32)


def test_min_max_and_its_scale():
    x = np.float32([-1, 0, 3])
    found = engine.calibrate(x, method="min_max")
    assert found.range.tolist() == [-1, 3] and found.elements == 3 and found.state is None and found.axis is None
    assert found.scale == np.float32(4 / 255) and found.zero_point == 64 and found.zero_point.dtype == np.uint8
    assert found.scale.shape == found.zero_point.shape == () and found.range.shape == (2,)
    symmetric = engine.calibrate(x, method="min_max", symmetry="symmetric", output_type="int8")
    assert symmetric.range.tolist() == [-3, 3] and symmetric.scale == np.float32(3 / 127) and symmetric.zero_point == 0
    for output_type in ("float8_e4m3fn", "float4_e2m1fn"):
        found = engine.calibrate(x, method="min_max", output_type=output_type)
        assert found.zero_point is None and found.scale == np.float32(3 / {"f": 448, "4": 6}["4" if "4_" in output_type[:7] else "f"])
    assert engine.calibrate(x).method == engine.calibrate(x, method=None).method == "min_max"


@pytest.mark.parametrize("output_type", ["uint8", "int8", "int4", "uint4", "int2", "int16", "uint16"])
def test_it_goes_into_quantize(output_type):
    x = floats((64, 32))
    for axis in (None, 1, -2):
        found = engine.calibrate(x, output_type=output_type, axis=axis)
        assert found.output_type == DataType[output_type.upper()] and found.zero_point.dtype == found.output_type.dtype
        back = engine.quantize(x, **found.quantize_arguments())
        assert back.y.dtype == found.output_type.dtype
        other = {None: (0, 1), 1: 0, -2: 1}[axis]
        error = np.abs(back.dequantize().y - x).max(axis=other)
        low, high = (bound.reshape(-1, 1) if axis == -2 else bound for bound in found.range)
        cut = np.maximum(np.maximum(low - x, x - high), 0).max(axis=other)
        assert (error <= cut + found.scale).all()


def test_ranges_go_into_quantize_embeddings():
    x = floats((500, 24))
    found = engine.calibrate((x[i : i + 7] for i in range(0, 500, 7)), method="min_max", axis=1)
    assert found.range.tolist() == [x.min(axis=0).tolist(), x.max(axis=0).tolist()]
    y = engine.quantize_embeddings(x, preset="sentence-transformers-uint8", ranges=found.range).y
    assert y.min() == 0 and y.max() == 255


def test_arguments_are_arrays_or_many_of_them():
    x = heavy((4, 50))
    wanted = bytes_of(engine.calibrate(x, return_state=True))
    for xs in ([x], (x[:1], x[1:]), list(x), (row for row in x), iter(x.reshape(-1)), x.T, x[::-1, ::-1], x.astype(">f4"),
               [x.tolist()], x.tolist(), [0.0 if v == 0 else v for v in x.reshape(-1).tolist()]):
        assert bytes_of(engine.calibrate(xs, return_state=True)) == wanted
    assert engine.calibrate(2.5, method="min_max").range.tolist() == [2.5, 2.5]
    for wrong, match in ((b"\0\0", "xs is a bytes"), ({"x": x}, "xs is a dict"), ("x", "xs is a str"), (x.astype(np.float64), "float64"),
                         ([x, None], "x: None"), ([x, "y"], "x: 'y'")):
        with pytest.raises(TypeError, match=match):
            engine.calibrate(wrong)


def test_what_is_refused_names_the_field():
    x = floats((3, 4))
    for field, options in (("method", dict(method="mse", output_type="float8_e5m2")), ("axis", dict(axis=2)), ("x", dict(xs=())),
                           ("state", dict(states=[b""]))):
        with pytest.raises(quantd.InvalidArgumentError) as caught:
            engine.calibrate(**{"xs": x, **options})
        assert caught.value.field == field, options
    for wrong in (dict(method="kl"), dict(symmetry="odd"), dict(non_finite="drop"), dict(output_type="float7"), dict(axis=1 << 64)):
        with pytest.raises(ValueError):
            engine.calibrate(x, **wrong)
    for wrong in (dict(states=[None]), dict(states=5), dict(states="QDC1"), dict(axis="0")):
        with pytest.raises(TypeError):
            engine.calibrate(x, **wrong)


def test_states_of_other_calibrations():
    x = floats((4, 6))
    with_bins = engine.calibrate(x, method="mse", return_state=True).state
    for kind in (bytearray, memoryview):
        assert engine.calibrate(states=[kind(with_bins)], method="mse").elements == 24
    of_rows = [engine.calibrate(row, method="percentile", return_state=True).state for row in x[1:]]
    assert engine.calibrate(x[0], states=of_rows, method="mse", return_state=True).state == with_bins
