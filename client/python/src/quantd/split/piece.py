"""Pieces of a call: their requests, the places of their answers, and the whole that is assembled from them."""

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
    """A request, the handler of its result, and the conversion of its error to that of the whole."""

    request: Request
    accept: Callable[[Any], None]
    explain: Callable[[Exception], Exception]


# Yields batches of pieces. The pieces of a batch may run in any order, and all of them end before the next batch; returns the result.
Batches = Generator[Iterator[Piece], None, Any]


class Whole:
    """A tensor that is assembled from pieces; allocated when the first one comes, with its type."""

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
        """The whole tensor; if it must be packed, this also writes it to `out`."""
        kind = data_type(self.array.dtype)
        if self._out is not None and kind.bits < 8:
            self._out._put(self.array)
        return self.array


def message_of(request: Request, message_class: Any, grid: Grid, box: Box) -> Any:
    """The message of a piece: that of the request without its tensors, and with the granularity of the box."""
    message = message_class()
    if message_class is type(request.message):
        message.CopyFrom(request.message)
        for name in ("axis", "block_size", "block_shape", "output"):
            message.ClearField(name)
    else:  # Quantize with the scales that DynamicQuantize would compute
        message.output_type = request.message.output_type
        message.report_error = request.message.report_error
        if request.message.HasField("saturate"):
            message.saturate = request.message.saturate
    if grid.scales != 1:
        message.block_shape.extend(grid.piece_block_shape(box))
    return message
