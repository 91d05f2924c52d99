"""Pieces of a call: what is sent, where its answer goes, and the whole that grows of them."""

import math
from typing import Any, Callable, Generator, Iterator, NamedTuple, Optional

import numpy as np

from ..errors import invalid
from ..foreign import Array
from ..requests import Request
from ..shared import SharedTensor
from ..types import data_type
from .grid import Box, Grid


class Piece(NamedTuple):
    """A request, what to do with its result, and how to say its error in terms of the whole."""

    request: Request
    accept: Callable[[Any], None]
    explain: Callable[[Exception], Exception]


# Yields batches of pieces, to be run in any order and all before the next one is asked for; returns the result.
Batches = Generator[Iterator[Piece], None, Any]


class Whole:
    """A tensor that grows of pieces; made when the first comes, of its type."""

    def __init__(self, shape: Any, out: Optional[SharedTensor] = None):
        self._shape, self._out = tuple(shape), out
        self.array: Optional[Array] = None

    def put(self, box: Box, piece: Array) -> None:
        if self.array is None:
            self.array = self._memory(piece.dtype)
        target = self.array[box] if box else self.array
        if piece.dtype != self.array.dtype or piece.size != target.size:
            raise ValueError(
                f"a piece is {piece.size} elements of {piece.dtype}, expected {target.size} of {self.array.dtype}"
            )
        target[...] = piece.reshape(target.shape)

    def _memory(self, dtype: np.dtype) -> Array:
        if self._out is not None:
            kind = data_type(dtype)
            needed = kind.byte_size(math.prod(self._shape))
            if needed > self._out.byte_size:
                raise invalid("output", f"output has room for {self._out.byte_size} bytes, y takes {needed}")
            if kind.bits >= 8:
                return self._out._view(kind, self._shape)
        return np.empty(self._shape, dtype)

    def finish(self) -> Array:
        """The whole tensor; where it must be packed, `out` has it now as well."""
        kind = data_type(self.array.dtype)
        if self._out is not None and kind.bits < 8:
            self._out._put(self.array)
        return self.array


def message_of(request: Request, message_class: Any, grid: Grid, box: Box) -> Any:
    """The message of a piece: the request's without its tensors, with the granularity in terms of the box."""
    message = message_class()
    if message_class is type(request.message):
        message.CopyFrom(request.message)
        for name in ("axis", "block_size", "block_shape", "output"):
            message.ClearField(name)
    else:  # Quantize with the scales that DynamicQuantize would find
        message.output_type = request.message.output_type
        message.report_error = request.message.report_error
        if request.message.HasField("saturate"):
            message.saturate = request.message.saturate
    if grid.scales != 1:
        message.block_shape.extend(grid.piece_block_shape(box))
    return message
