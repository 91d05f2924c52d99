"""out=: the result in the caller's memory, or a text that says why that is not possible."""

import numpy as np
import pytest

from support import OUTPUTS, floats, same
from quantd import local

engine = local(threads=2)
X = floats((33, 65))


@pytest.mark.parametrize("kind", OUTPUTS, ids=lambda kind: kind.name)
def test_every_type(kind):
    expected = engine.quantize(X, 0.5, output_type=kind).y
    out = np.empty(X.shape, kind.dtype)
    answer = engine.quantize(X, 0.5, output_type=kind, out=out)
    assert answer.y is out
    same(out, expected)
    dynamic = np.empty(X.shape, kind.dtype)
    assert engine.dynamic_quantize(X, output_type=kind, out=dynamic).y is dynamic
    same(dynamic, engine.dynamic_quantize(X, output_type=kind).y)
    back = np.empty(X.shape, np.float16)
    assert engine.dequantize(out, 0.5, output_type="float16", out=back).y is back
    same(back, engine.dequantize(out, 0.5, output_type="float16").y)


@pytest.mark.parametrize("kind", ["int8", "int4", "int16"])
def test_memory_of_any_strides(kind):
    expected = engine.quantize(X, 0.5, output_type=kind).y
    for place in (
        np.zeros((65, 33), expected.dtype).T,
        np.zeros((33, 130), expected.dtype)[:, ::2],
        np.zeros((33, 65), expected.dtype)[::-1],
        np.ndarray((33, 65), expected.dtype, np.zeros(2 * 33 * 65 + 1, np.uint8), 1),
    ):
        assert engine.quantize(X, 0.5, output_type=kind, out=place).y is place
        same(place, expected)
    around = np.full((33, 130), 5, expected.dtype)
    engine.quantize(X, 0.5, output_type=kind, out=around[:, ::2])
    assert (around[:, 1::2] == 5).all()


def test_nothing_is_written_beside_it():
    for count in (1, 3, 1000, 100001):
        memory = np.full(count + 64, 77, np.uint8)
        engine.quantize(np.zeros(count, np.float32), 1.0, out=memory[32 : count + 32])
        assert (memory[:32] == 77).all() and (memory[count + 32 :] == 77).all() and (memory[32 : count + 32] == 0).all()


def test_what_can_not_take_y():
    read_only = np.empty(X.shape, np.uint8)
    read_only.flags.writeable = False
    for out, text in (
        (np.empty((33, 64), np.uint8), r"out has shape \[33, 64\], y has shape \[33, 65\]"),
        (np.empty(33 * 65, np.uint8), r"out has shape \[2145\], y has shape \[33, 65\]"),
        (np.empty(X.shape, np.int8), "out is int8, y is uint8"),
        (np.empty(X.shape, object), "out is object, y is uint8"),
        (np.empty(X.shape, bool), "out is bool, y is uint8"),
        (read_only, "out is read-only"),
        (np.broadcast_to(np.uint8(0), X.shape), "out is read-only"),
    ):
        before = out.tobytes() if out.dtype != object else None
        with pytest.raises(ValueError, match=text):
            engine.quantize(X, 0.5, out=out)
        assert before is None or out.tobytes() == before
    with pytest.raises(ValueError, match="out is float32, y is float16"):
        engine.dequantize(np.zeros(3, np.uint8), 0.5, output_type="float16", out=np.empty(3, np.float32))
    with pytest.raises(ValueError, match=r"out is >f4, y is float32"):
        engine.dequantize(np.zeros(3, np.uint8), 0.5, out=np.empty(3, ">f4"))
    for out in ([0] * 3, bytearray(3), "out", memoryview(bytearray(3))):
        with pytest.raises(TypeError, match="out is .*, must be a numpy array"):
            engine.quantize(np.zeros(3, np.float32), 0.5, out=out)


def test_overlaps():
    memory = np.zeros(400, np.uint8)
    x = memory[:200].view(np.float32)
    for first in (0, 1, 150, 199):
        with pytest.raises(ValueError, match=r"out, the 50 bytes at 0x[0-9a-f]+, overlaps x, the 200 bytes at 0x[0-9a-f]+"):
            engine.quantize(x, 0.5, out=memory[first : first + 50])
        with pytest.raises(ValueError, match="overlaps x"):
            engine.dynamic_quantize(x, out=memory[first : first + 50])
    assert engine.quantize(x, 0.5, out=memory[200:250]).y.shape == (50,)
    backwards = x[::-1]
    with pytest.raises(ValueError, match="overlaps x"):
        engine.quantize(backwards, 0.5, out=memory[:50])
    scale = memory[300:340].view(np.float32)
    scale[:] = 0.5
    codes = np.zeros((3, 10), np.uint8)
    for out in (memory[220:340].view(np.float32).reshape(3, 10), memory[280:400].view(np.float32).reshape(3, 10)):
        with pytest.raises(ValueError, match="overlaps scale"):
            engine.dequantize(codes, scale, out=out)
    with pytest.raises(ValueError, match="overlaps zero_point"):
        engine.dequantize(codes, np.ones(10, np.float32), memory[100:110], out=memory[:120].view(np.float32).reshape(3, 10))
    with pytest.raises(ValueError, match="overlaps tensor_scale"):
        engine.dequantize(codes, 1.0, tensor_scale=scale[:1].reshape(()), out=memory[220:340].view(np.float32).reshape(3, 10))
    empty = memory[:0]
    assert engine.quantize(empty.view(np.float32), 1.0, out=empty).y is empty
