"""What the tests share: arrays of every type, and comparison of every bit."""

import ml_dtypes
import numpy as np

from quantd import DataType

FLOATS = ("float32", "float16", "bfloat16", "int32")
OUTPUTS = tuple(
    t for t in DataType if t not in (DataType.FLOAT, DataType.FLOAT16, DataType.BFLOAT16, DataType.INT32, DataType.FLOAT8E8M0)
)
DTYPES = {name: np.dtype(getattr(ml_dtypes, name, name)) for name in FLOATS}


def floats(shape, dtype="float32", seed=0):
    values = np.random.default_rng(seed).standard_normal(shape) * 10
    return np.asarray(values).astype(DTYPES[dtype])


def codes(shape, kind, seed=0):
    """Any codes of a quantized type."""
    count = int(np.prod(shape, dtype=np.int64))
    raw = np.random.default_rng(seed).integers(0, 256, kind.dtype.itemsize * count, dtype=np.uint8)
    array = raw.view(kind.dtype)
    if kind.bits < 8:
        if kind.is_integer and kind.is_signed:
            array = (((raw.astype(np.int8) << (8 - kind.bits)) >> (8 - kind.bits)).view(np.uint8)).view(kind.dtype)
        else:
            array = (raw & ((1 << kind.bits) - 1)).view(kind.dtype)
    return array.reshape(shape)


def bits(array):
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).tobytes()


def same(ours, expected):
    assert ours.dtype == expected.dtype and ours.shape == expected.shape, (ours.dtype, ours.shape, expected.dtype, expected.shape)
    assert bits(ours) == bits(expected)
