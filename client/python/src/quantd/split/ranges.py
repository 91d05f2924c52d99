"""Scales of blocks that are larger than a message: numpy finds their ranges, and the server computes scales from these.

A scale depends only on the smallest and the largest finite value of its block and on zero, which every range contains. So a
DynamicQuantize of a tensor with one row per block, which contains these two numbers, computes exactly the same scales and zero points.
The conversions of x to FLOAT before that (exact, or rounded for int32) keep the order of values, so the smallest converted
value is the smallest value, converted. NVFP4's second scale depends on the range of the whole tensor, which is in a last row.
"""

from typing import List, Optional, Tuple

import numpy as np

from ..foreign import Array
from ..types import DataType, data_type
from .grid import Grid

_ROWS_AT_A_TIME = 1 << 18  # in one conversion to float32


def _reduce(function, values: Array, grid: Grid) -> Array:
    """The smallest, or largest, value of each block, in the shape of grid.counts."""
    for d in reversed(range(values.ndim)):
        if grid.counts[d] == 1:
            values = function.reduce(values, axis=d, keepdims=True)
        elif grid.block[d] > 1:
            values = function.reduceat(values, np.arange(0, grid.shape[d], grid.block[d]), axis=d)
    return values


def _floats(x: Array) -> Array:
    return x if x.dtype == np.float32 or x.dtype == np.int32 else x.astype(np.float32)


def _one_range(x: Array) -> Tuple[float, float]:
    """Smallest and largest value of a tensor; NaN if it contains one."""
    flat = x.reshape(-1) if x.flags.c_contiguous else x.ravel(order="K")
    lows, highs = [np.float32(0)], [np.float32(0)]
    for begin in range(0, flat.size, _ROWS_AT_A_TIME):
        part = _floats(flat[begin : begin + _ROWS_AT_A_TIME])
        lows.append(np.float32(part.min()))
        highs.append(np.float32(part.max()))
    return np.min(lows), np.max(highs)


def of_blocks(x: Array, grid: Grid) -> Tuple[Array, Array]:
    """Smallest and largest value of each block, and zero: two float32 arrays in the shape of grid.counts.

    They are finite if all values are.
    """
    with np.errstate(invalid="ignore"):
        if grid.scales == 1:
            low, high = (np.full(grid.counts, value, np.float32) for value in _one_range(x))
        else:
            floats = _floats(x)
            low = _reduce(np.minimum, floats, grid).astype(np.float32)
            high = _reduce(np.maximum, floats, grid).astype(np.float32)
        return np.minimum(low, np.float32(0)), np.maximum(high, np.float32(0))


def of_finite(x: Array, grid: Grid) -> Tuple[Array, Array]:
    """The same for the finite values only."""
    floats = _floats(x)
    return of_blocks(np.where(np.isfinite(floats), floats, np.float32(0)), grid)


def first_non_finite(x: Array) -> Optional[int]:
    """The row-major index of the first NaN or infinity; None if there is none."""
    if data_type(x.dtype).is_integer:
        return None
    flat = np.ascontiguousarray(x).reshape(-1)
    for begin in range(0, flat.size, _ROWS_AT_A_TIME):
        bad = ~np.isfinite(flat[begin : begin + _ROWS_AT_A_TIME])
        if bad.any():
            return begin + int(bad.argmax())
    return None


def rows(low: Array, high: Array, two_level: bool, most_bytes: int) -> List[Tuple[slice, Array]]:
    """Tensors of ranges for DynamicQuantize with axis=0, and the blocks of each; with two_level one more row each."""
    every = np.stack([low.reshape(-1), high.reshape(-1)], axis=1)
    last = np.array([[low.min(), high.max()]] if two_level else np.empty((0, 2)), np.float32)
    most = max(most_bytes // 32, 1)  # a row has at most 8 bytes, and 2 + 4 + 1 in the answer
    return [
        (slice(begin, min(begin + most, len(every))), np.concatenate([every[begin : begin + most], last]))
        for begin in range(0, len(every), most)
    ]


def as_float(scale: Array, tensor_scale: Optional[Array]) -> Array:
    """Scales as DynamicQuantize divides by them: FLOAT, whatever their type, times NVFP4's second scale, rounded to FLOAT."""
    floats = scale.astype(np.float32)
    if data_type(scale.dtype) is DataType.FLOAT8E8M0:  # a conversion may turn its smallest value, 2^-127, into 0
        codes = scale.view(np.uint8).astype(np.float64)
        floats = np.exp2(codes - 127).astype(np.float32)
    return floats if tensor_scale is None else floats * np.float32(tensor_scale)
