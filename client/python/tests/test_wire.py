"""Our own encoding: the same meaning as in the generated code, one copy on the way out and none back, and every invalid answer is
refused."""

import os
import subprocess
import sys

import numpy as np
import pytest

from quantd import DataType, messages, requests, wire
from quantd.types import pack, to_message

KINDS = list(DataType)
SHAPES = [(), (0,), (3,), (5, 7), (4, 5000), (1, 40001)]


def array_of(kind, shape, seed=1):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 2 if kind.bits < 8 else 100, shape).astype(np.uint8).astype(kind.dtype)


def answer(kind, shape, **extra):
    return messages.DynamicQuantizeResponse(
        y=to_message(messages.Tensor, array_of(kind, shape)),
        y_scale=to_message(messages.Tensor, array_of(DataType.FLOAT, (2,), 2)), **extra)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", KINDS, ids=lambda t: t.name)
def test_requests_are_what_the_generated_code_makes_of_them(kind, shape):
    x, scale = array_of(kind, shape), array_of(DataType.FLOAT, shape[:1])
    request = requests.make("dequantize", x, scale, axis=0, block_size=3, output_type="float16")
    expected = messages.DequantizeRequest(
        x=to_message(messages.Tensor, x), scale=to_message(messages.Tensor, scale), axis=0, block_size=3, output_type=10)
    assert messages.DequantizeRequest.FromString(request.encode()) == expected
    spare = bytes(len(request.encode()))
    assert request.encode(spare) == request.encode(b"another size") == request.encode() and request.encode(spare) is spare
    item = messages.StreamRequest.FromString(request.encode_item(300))
    assert (item.id, item.dequantize) == (300, expected)
    assert request.encode().count(pack(x)) == 1 or x.nbytes < 16  # raw_data occurs once


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", KINDS, ids=lambda t: t.name)
def test_answers_are_read_as_the_generated_code_reads_them(kind, shape):
    message = answer(kind, shape, quantization_error={"sqnr_db": 3})
    found = wire.read(messages.DynamicQuantizeResponse, message.SerializeToString())
    y, scale = wire.array(found, "y"), wire.array(found, "y_scale")
    assert y.dtype == kind.dtype and y.shape == shape and pack(y) == message.y.raw_data
    assert pack(scale) == message.y_scale.raw_data and wire.array(found, "y_zero_point") is None
    assert found[0].quantization_error.sqnr_db == 3
    for array in (y, scale):
        assert array.flags.writeable and array.flags.aligned and array.flags.c_contiguous
        array[...] = array


def test_large_answers_are_the_memory_that_was_received():
    for odd in range(4):  # wherever the tensor begins in its message
        message = answer(DataType.FLOAT, (40000,))
        data = b"\xfa\x7f" + bytes([odd]) + b"?" * odd + message.SerializeToString()  # an unknown field first
        begin = wire.memory_of(data).ctypes.data
        y = wire.array(wire.read(messages.DynamicQuantizeResponse, data), "y")
        assert begin <= y.ctypes.data < begin + len(data), "copied"
        assert y.tobytes() == message.y.raw_data
        del data
        y += 1  # the array keeps the memory
        np.testing.assert_array_equal(y, array_of(DataType.FLOAT, (40000,)) + 1)


def parsed(data):
    """The generated code's reading of an answer; None if it is invalid."""
    try:
        message = messages.QuantizeResponse.FromString(data)
    except Exception:
        return None
    return message.y.data_type, tuple(message.y.shape), message.y.raw_data, message.HasField("quantization_error")


def ours(data):
    try:
        found = wire.read(messages.QuantizeResponse, bytes(bytearray(data)))
        y = wire.array(found, "y")
    except Exception:
        return None
    if y is None:
        return 0, (), b"", found[0].HasField("quantization_error")
    return int(DataType[{t.dtype: t.name for t in DataType}[y.dtype]]), y.shape, pack(y), found[0].HasField("quantization_error")


def test_protobuf_has_the_last_word():
    raw = b"\x1a" + wire.varint(20000) + bytes(range(200)) * 100
    kind, shape = b"\x08\x02", b"\x12\x03" + wire.varint(20000)
    tensors = {
        "plain": kind + shape + raw,
        "raw first": raw + kind + shape,
        "unpacked shape": kind + b"\x10" + wire.varint(20000) + raw,
        "raw twice": kind + shape + raw + raw,
        "another form after it": kind + shape + raw + b"\x22\x00",
        "another form before it": kind + shape + b"\x22\x00" + raw,
        "type twice": b"\x08\x03" + kind + shape + raw,
        "shape in two parts": kind + b"\x12\x02" + wire.varint(20000)[:0] + b"\xe8\x07" + b"\x12\x01\x14" + raw,
        "an unknown field": kind + shape + raw + b"\xfa\x7f\x03abc",
        "a group": kind + shape + raw + b"\x3b\x3c",
        "field 0": kind + shape + raw + b"\x02\x00",
        "no type": shape + raw,
        "raw_data as a varint": kind + shape + b"\x18\x05" + raw,
        "long varint": b"\x08\x82\x80\x80\x80\x80\x80\x80\x80\x80\x00" + shape + raw,
        "too long a varint": b"\x08" + b"\x80" * 12 + b"\x00" + shape + raw,
    }
    seen = 0
    for name, tensor in tensors.items():
        y = b"\x0a" + wire.varint(len(tensor)) + tensor
        for message in (y, b"\x12\x00" + y, y + b"\x12\x00", y + y, y + b"\x0a\x02" + kind, b"\xfa\x7f\x03abc" + y, y[:-1], y + b"\x0a"):
            expected = parsed(message)
            if expected is not None and (expected[0] not in list(DataType) or np.prod(expected[1]) != len(expected[2])):
                expected = None  # an answer whose contents do not fit
            assert ours(message) == expected, name
            seen += expected is not None
    assert seen > 20


def test_truncated_and_random_answers_are_refused_not_believed():
    data = answer(DataType.UINT8, (20000,)).SerializeToString()
    rng = np.random.default_rng(5)
    for cut in [*range(0, 60), *range(len(data) - 60, len(data))]:
        with pytest.raises(Exception):
            found = wire.read(messages.DynamicQuantizeResponse, bytes(bytearray(data[:cut])))
            assert wire.array(found, "y_scale") is not None and wire.array(found, "y") is not None
    for _ in range(300):
        broken = bytearray(data)
        for place in rng.integers(0, 40, 3):
            broken[place] = rng.integers(0, 256)
        ours(bytes(broken))
    for _ in range(200):
        ours(rng.integers(0, 256, 20000).astype(np.uint8).tobytes())
    ours(b"\x08\x01" * 5_000_000)  # C code must read the millions of fields, or this takes minutes


def test_pure_python_protobuf(tmp_path):
    if os.environ.get("PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION") == "python":
        return
    environment = {**os.environ, "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, "-k", "FLOAT or last_word or layout"],
        env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]
