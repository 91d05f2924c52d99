"""Where to cut a tensor: into the largest boxes whose request and answer fit, along the outermost dimension that must be cut."""

import itertools
import math
from typing import Callable, List, NamedTuple, Optional

from .grid import Box, Grid, Shape, ceil_divide

ENVELOPE = 512  # bytes of a message that are neither elements nor scales, with room to spare
_MOST_DIMENSIONS = 32


class Cost(NamedTuple):
    """The bits of an element, and of a block, in a request and in its answer."""

    request_element: int = 0
    request_block: int = 0
    answer_element: int = 0
    answer_block: int = 0

    def sizes(self, grid: Grid, size: Shape) -> "tuple[int, int]":
        """The bytes of a request and of its answer for a box of that size."""
        elements = math.prod(size)
        blocks = math.prod(ceil_divide(n, b) for n, b, count in zip(size, grid.block, grid.counts) if count != 1)
        # A box may begin inside of a block, and then touches one block more.
        envelope = ENVELOPE + 8 * 4 * len(size)
        return (
            (elements * self.request_element + blocks * self.request_block) // 8 + envelope,
            (elements * self.answer_element + blocks * self.answer_block) // 8 + envelope,
        )


def boxes(grid: Grid, between_blocks: bool, fits: Callable[[Shape], bool]) -> Optional[List[Box]]:
    """The pieces of a tensor, in the order of their first elements; None if even the smallest possible one does not fit.

    between_blocks: pieces compute their own scales, so they contain whole blocks. Otherwise they may also be inside of one block.
    If fits is false for a size, it must be false for all larger ones.
    """
    shape = grid.shape
    if fits(shape):
        return [tuple(slice(0, length) for length in shape)]
    if 0 in shape or len(shape) > _MOST_DIMENSIONS:
        return None
    extent = list(grid.block) if between_blocks else [1] * len(shape)
    if not fits(tuple(extent)):
        return None
    for d in reversed(range(len(shape))):
        step = extent[d]
        good, bad = 1, ceil_divide(shape[d], step) + 1
        while bad - good > 1:
            middle = (good + bad) // 2
            extent[d] = min(middle * step, shape[d])
            if fits(tuple(extent)):
                good = middle
            else:
                bad = middle
        extent[d] = min(good * step, shape[d])
        if extent[d] == shape[d]:
            continue
        if extent[d] > grid.block[d]:
            extent[d] -= extent[d] % grid.block[d]
        break
    return list(itertools.product(*(_slices(shape[d], extent[d], grid.block[d]) for d in range(len(shape)))))


def _slices(length: int, extent: int, block: int) -> List[slice]:
    """Splits a dimension into parts of `extent`: whole blocks, or parts of one block."""
    parts, begin = [], 0
    while begin < length:
        end = min(begin + extent, length)
        if extent < length and extent % block:
            end = min(end, (begin // block + 1) * block)
        parts.append(slice(begin, end))
        begin = end
    return parts
