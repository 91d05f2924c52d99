"""Arrays of every kind as arguments, however strange: each is read correctly or refused with a text."""

import mmap

import numpy as np
import pytest

import quantd
from support import FLOATS, OUTPUTS, codes, floats, same
from quantd import local

engine = local(threads=2)


def misaligned(array):
    """The same elements, one byte off."""
    memory = np.empty(array.nbytes + 1, np.uint8)
    view = memory[1:].view(array.dtype).reshape(array.shape) if array.dtype.itemsize == 1 else np.ndarray(
        array.shape, array.dtype, memory, 1)
    view[...] = array
    return view


VIEWS = {
    "negative strides": lambda a: np.ascontiguousarray(a[::-1, ::-1])[::-1, ::-1],
    "transposed": lambda a: np.ascontiguousarray(a.T).T,
    "every other": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
    "a column of more": lambda a: np.stack([a, a], axis=-1)[..., 0],
    "misaligned": misaligned,
    "misaligned and strided": lambda a: misaligned(np.repeat(a, 2, axis=1))[:, ::2],
    "read-only": lambda a: np.frombuffer(a.tobytes(), a.dtype).reshape(a.shape),
    "a subclass": lambda a: a.view(np.matrix),
    "mapped": lambda a: np.frombuffer(mapped(a.tobytes()), a.dtype, a.size).reshape(a.shape),
    "masked": lambda a: np.ma.masked_array(a, mask=False),
}


def mapped(raw):
    memory = mmap.mmap(-1, len(raw))
    memory[:] = raw
    return memory


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_x_lies_anywhere(view, dtype):
    x = floats((37, 129), dtype)
    same(engine.quantize(VIEWS[view](x), 0.5, 3).y, engine.quantize(x, 0.5, 3).y)
    ours, expected = engine.dynamic_quantize(VIEWS[view](x), axis=0), engine.dynamic_quantize(x, axis=0)
    same(ours.y, expected.y)
    same(ours.scale, expected.scale)
    same(ours.zero_point, expected.zero_point)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("kind", OUTPUTS, ids=lambda kind: kind.name)
def test_codes_scales_and_zero_points_lie_anywhere(view, kind):
    x, scale = codes((36, 128), kind), floats((36, 8), "float32", 1)
    zero_point = np.zeros((36, 8), kind.dtype) if kind.name.startswith("FLOAT8") else codes((36, 8), kind, 1)
    options = dict(axis=1, block_size=16)
    expected = engine.dequantize(x, scale, zero_point, **options).y
    place = VIEWS[view]
    same(engine.dequantize(place(x), place(scale), place(zero_point), **options).y, expected)


def test_masked_elements_are_refused():
    """As in Client, with the same message: a masked value is not a number."""
    x = np.ma.masked_array(np.ones((2, 3), np.float32), mask=[[0, 1, 0], [0, 0, 1]])
    said = "{}: 2 of 6 elements are masked; fill them, as by .filled(0)"
    for name, call in {
        "x": lambda masked: engine.quantize(masked, 0.5),
        "scale": lambda masked: engine.quantize(np.ones((2, 3), np.float32), masked, block_shape=[1, 1]),
        "ranges": lambda masked: engine.quantize_embeddings(np.ones((1, 3), np.float32), recipe="ranges", ranges=masked),
    }.items():
        with pytest.raises(TypeError) as caught:
            call(x)
        assert str(caught.value) == said.format(name) and caught.value.field == name
    codes_of = np.ma.masked_array(np.ones((2, 3), np.uint8), mask=x.mask)
    for call in (lambda: engine.dynamic_quantize(x), lambda: engine.dequantize(codes_of, 0.5), lambda: engine.calibrate([x])):
        with pytest.raises(TypeError, match="x: 2 of 6 elements are masked"):
            call()
    same(engine.quantize(x.filled(0), 0.5).y, np.uint8([[2, 0, 2], [2, 2, 0]]))


def test_swapped_byte_order():
    for dtype in ("float32", "float16", "int32"):
        x = floats((5, 7), dtype)
        same(engine.quantize(x.astype(x.dtype.newbyteorder(">")), 0.5).y, engine.quantize(x, 0.5).y)
    scale = np.float32([0.5, 0.25])
    x = floats((2, 3))
    same(engine.quantize(x, scale.astype(">f4"), axis=0).y, engine.quantize(x, scale, axis=0).y)


def test_claimed_shapes_are_refused_before_they_are_copied():
    """A broadcast array of a terabyte: the error of the call is reported, and no memory is taken for it."""
    huge = np.broadcast_to(np.float32(1), (1 << 20, 1 << 18))
    for wrong in (dict(axis=5), dict(block_shape=[1]), dict(block_size=-1)):
        with pytest.raises(quantd.InvalidArgumentError):
            engine.quantize(huge, [1.0, 2.0], **wrong)
        with pytest.raises(quantd.InvalidArgumentError):
            engine.dynamic_quantize(huge, **wrong)
    with pytest.raises(ValueError, match="out has shape"):
        engine.quantize(huge, 1.0, out=np.empty(3, np.uint8))
    with pytest.raises(MemoryError):
        engine.quantize(np.broadcast_to(np.float32(1), (1 << 30, 1 << 20)), 1.0)
    with pytest.raises(MemoryError):
        engine.quantize(np.broadcast_to(np.float32(1), (1 << 30, 1 << 20)), 1.0, output_type="int4")
    strided = np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (1 << 15, 1 << 15), (0, 0), writeable=False)
    assert engine.quantize(strided[:100], 1.0).y.shape == (100, 1 << 15)


def test_what_is_no_tensor():
    for wrong in (np.array([1, "a"], object), np.zeros(3, "f4,i4"), np.zeros(3, complex), np.zeros(2, "M8[s]"), {1: 2}):
        with pytest.raises((TypeError, ValueError)):
            engine.dequantize(np.zeros(3, np.uint8), wrong)

    class Liar:
        dtype = np.dtype(np.float32)

        def __array__(self, dtype=None, copy=None):
            return np.array([object()])

    with pytest.raises(TypeError):
        engine.quantize(Liar(), 1.0)
    with pytest.raises(ValueError):
        engine.quantize([[1.0], [1.0, 2.0]], 1.0)  # ragged
