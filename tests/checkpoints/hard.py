"""Difficult weights for layouts, as bits: noise, ties, zeros of both signs, denormals, huge elements, ragged shapes.

tests/core/layouts_golden_test.cc makes the same ones: change both together, and make a new golden file (golden.py --update).
"""

from math import prod

import ml_dtypes
import numpy as np

TYPES = {"F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16}
MANTISSA = {"F32": 23, "F16": 10, "BF16": 7}
EXPONENT = {"F32": 8, "F16": 5, "BF16": 8}
KINDS = 12
ROWS = (1, 3, 9, 64, 130, 2, 17, 128)
COLUMNS = (1, 33, 128, 64, 200, 5, 129, 300)
GROUPS = (1, 2, 3, 5)


def mixed(seed, count):
    """SplitMix64: `count` numbers of 64 bits."""
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + np.uint64(0x9E3779B97F4A7C15) * np.arange(1, count + 1, dtype=np.uint64)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def shape_of(index, columns_of):
    """`columns_of`: the number that must divide the columns."""
    rows = ROWS[index % len(ROWS)]
    return (rows, COLUMNS[index * 3 % len(COLUMNS)] if columns_of == 1 else columns_of * GROUPS[index % len(GROUPS)])


def weight(dtype, index, shape):
    """Weight `index` of a type: kind `index % KINDS`, finite."""
    mantissa, exponent = MANTISSA[dtype], EXPONENT[dtype]
    count = prod(shape)
    r = mixed(index * 3 + list(TYPES).index(dtype), count)
    kind, at = index % KINDS, np.arange(count)
    field = lambda shift, below: ((r >> np.uint64(shift)) % np.uint64(below)).astype(np.int64)  # noqa: E731
    center = 2 ** (exponent - 1) - 1 - 6
    sign = (r >> np.uint64(63)).astype(np.int64)
    m = (r & np.uint64(2**mantissa - 1)).astype(np.int64)
    e = center + field(40, 4)
    if kind == 1:  # ties
        e, m = center + field(40, 6), m >> (mantissa - 2) << (mantissa - 2)
    elif kind == 2:
        e, m = 0 * e, 0 * m
    elif kind == 3:  # denormals
        e = 0 * e
    elif kind == 4:  # any finite values
        e = field(40, 2**exponent - 1)
    elif kind == 5:  # a single huge value
        huge = at == count * 5 // 7
        e, m = np.where(huge, 2**exponent - 2, e), np.where(huge, 2**mantissa - 1, m)
    elif kind == 6:  # mostly zeros
        zero = field(50, 3) != 0
        e, m = np.where(zero, 0, e), np.where(zero, 0, m)
    elif kind == 7:
        sign = 0 * sign
    elif kind == 8:
        sign = 0 * sign + 1
    elif kind == 9:  # next to powers of two
        m = 2**mantissa - 1 - field(50, 4)
    elif kind == 10:  # many magnitudes
        e = center + 4 - field(40, 12) // (1 + field(50, 3))
    elif kind == 11:  # whole numbers up to 8, with BFLOAT16's digits
        whole = field(30, 9)
        top = np.floor(np.log2(np.maximum(whole, 1))).astype(np.int64)
        e = np.where(whole == 0, 0, center + 6 + top)
        m = np.where(whole == 0, 0, (whole << mantissa >> top) - 2**mantissa)
    bits = sign << (exponent + mantissa) | e << mantissa | m
    return bits.astype(np.uint32 if dtype == "F32" else np.uint16).view(TYPES[dtype]).reshape(shape)


def blocks(index, count, block_bytes, halves):
    """`count` blocks of GGML with arbitrary bits, except that the FLOAT16 at `halves` are finite."""
    raw = (mixed(1000 + index, count * block_bytes) & np.uint64(255)).astype(np.uint8).reshape(count, block_bytes)
    for half in halves:
        raw[:, half + 1] &= 0xBF
    return raw
