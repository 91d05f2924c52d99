"""Which elements share a scale: every granularity is blocks of a fixed length along each dimension.

One scale for the tensor is one block; one scale per index along an axis has length 1 on the axis and the whole length elsewhere. A
piece is a box of x that along each dimension contains whole blocks or is inside of one; so its scales are a box of the grid of scales,
and its request has a block_shape with the same meaning for fewer elements.
"""

import math
from typing import NamedTuple, Optional, Sequence, Tuple

from ..errors import InvalidArgumentError, invalid

Shape = Tuple[int, ...]
Box = Tuple[slice, ...]


def ceil_divide(a: int, b: int) -> int:
    return -(-a // b)


class Grid(NamedTuple):
    """shape: that of x. block: its length along each dimension. counts: blocks along each. scale_shape: that of the scale tensor."""

    shape: Shape
    block: Shape
    counts: Shape
    scale_shape: Shape

    @property
    def scales(self) -> int:
        return math.prod(self.counts)

    def blocks_of(self, box: Box) -> Box:
        """The blocks that a box touches, as a box of the grid."""
        return tuple(
            slice(0, count) if count <= 1 else slice(part.start // block, ceil_divide(part.stop, block))
            for part, block, count in zip(box, self.block, self.counts)
        )

    def piece_block_shape(self, box: Box) -> Shape:
        """The block_shape of a request that contains only the box."""
        return tuple(-1 if part.stop - part.start <= block else block for part, block in zip(box, self.block))


def _both(block_shape: Sequence[int], other: str) -> InvalidArgumentError:
    return invalid("block_shape", f"block_shape is {list(block_shape)} and {other}, only one of them can be given")


def _axis(axis: Optional[int], rank: int) -> int:
    value = 1 if axis is None else axis
    if not -rank <= value < rank:
        raise invalid("axis", f"axis is {value}, x has {rank} dimensions: {-rank} to {rank - 1} are possible")
    return value % rank


def _grid(shape: Shape, block: Sequence[int]) -> Grid:
    block = tuple(min(max(b, 1), max(length, 1)) for b, length in zip(block, shape))
    counts = tuple(ceil_divide(length, b) for length, b in zip(shape, block))
    return Grid(shape, block, counts, counts)


def _one(shape: Shape) -> Grid:
    return Grid(shape, tuple(max(length, 1) for length in shape), (1,) * len(shape), ())


def _along(shape: Shape, axis: Optional[int]) -> Grid:
    d = _axis(axis, len(shape))
    grid = _grid(shape, [1 if i == d else length for i, length in enumerate(shape)])
    counts = tuple(shape[d] if i == d else 1 for i in range(len(shape)))
    return grid._replace(counts=counts, scale_shape=(shape[d],))


def _blocked(shape: Shape, axis: Optional[int], block_size: int, block_shape: Optional[Sequence[int]]) -> Grid:
    if block_size:
        if block_size < 0:
            raise invalid("block_size", f"block_size is {block_size}, blocks have 1 element or more")
        if block_shape:
            raise _both(block_shape, f"block_size is {block_size}")
        d = _axis(axis, len(shape))
        return _grid(shape, [block_size if i == d else 1 for i in range(len(shape))])
    if axis is not None:
        raise _both(block_shape, f"axis is {axis}")
    if len(block_shape) != len(shape):
        raise invalid("block_shape", f"block_shape has {len(block_shape)} lengths, x has {len(shape)} dimensions")
    for i, length in enumerate(block_shape):
        if length < 1 and length != -1:
            rule = f"a length is positive, or -1 for all {shape[i]} of dimension {i}"
            raise invalid("block_shape", f"block_shape[{i}] is {length}, {rule}")
    return _grid(shape, [full if length == -1 else length for length, full in zip(block_shape, shape)])


def dynamic(shape: Shape, axis: Optional[int], block_size: int, block_shape: Optional[Sequence[int]]) -> Grid:
    """The grid of a request that computes its scales."""
    if block_size or block_shape:
        return _blocked(shape, axis, block_size, block_shape)
    return _one(shape) if axis is None else _along(shape, axis)


def given(
    shape: Shape, scale: Shape, axis: Optional[int], block_size: int, block_shape: Optional[Sequence[int]]
) -> Grid:
    """The grid of a request with given scales of shape `scale`."""
    if block_size or block_shape:
        grid = _blocked(shape, axis, block_size, block_shape)
    elif len(scale) == 1 and scale[0] != 1:
        grid = _along(shape, axis)
        if grid.scale_shape != scale:
            d = _axis(axis, len(shape))
            raise invalid("scale", f"scale has {scale[0]} elements, x has {shape[d]} along axis {d}")
    elif len(scale) >= 2 and len(scale) == len(shape):
        for d, (length, groups) in enumerate(zip(shape, scale)):
            if groups != length and (groups < 1 or length % groups):
                raise invalid("scale", f"scale has length {groups} in dimension {d}, which does not divide the {length} of x")
        grid = _grid(shape, [length // groups if groups else 1 for length, groups in zip(shape, scale)])
    elif len(scale) >= 2:
        raise invalid(
            "scale",
            f"scale has {len(scale)} dimensions (shape {list(scale)}), x has {len(shape)} (shape {list(shape)}): "
            "it takes none, one, or as many as x",
        )
    else:
        grid = _one(shape)
    one = not grid.scale_shape and math.prod(scale) == 1 and len(scale) <= 1
    if not one and grid.scale_shape != scale:
        raise invalid("scale", f"scale has shape {list(scale)}, x {list(shape)} needs {list(grid.scale_shape)}")
    return grid._replace(scale_shape=scale)
