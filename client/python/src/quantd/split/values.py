"""Splits arrays for calibrate, which only uses their values and the indices along an axis."""

import math
from typing import Iterator, Optional


from ..errors import ResourceExhaustedError, StatusCode
from ..foreign import Array
from ..types import data_type
from .cut import ENVELOPE, boxes
from .grid import Grid
from .limits import LARGE_BYTES, PIECE_BYTES, Limits


def values(x: Array, axis: Optional[int], limits: Limits) -> Iterator[Array]:
    """Parts of x of about PIECE_BYTES, each with the whole axis, or larger if necessary; x itself if it is small."""
    if axis is None and x.flags.c_contiguous and x.nbytes > PIECE_BYTES:
        x = x.reshape(-1)
    bits, block = data_type(x.dtype).bits, [1] * x.ndim
    if axis is not None and -x.ndim <= axis < x.ndim:  # the server refuses any other axis
        block[axis] = max(x.shape[axis], 1)
    grid = Grid(x.shape, tuple(block), (), ())
    for wanted in (PIECE_BYTES, LARGE_BYTES, limits.message or LARGE_BYTES):
        most = wanted if limits.message is None else min(wanted, limits.message)
        found = boxes(grid, True, lambda size: limits.allow(math.prod(size) * bits // 8 + ENVELOPE + 10 * x.ndim, 0, most))
        if found is not None:
            for box in found:
                yield x[box]
            return
    raise ResourceExhaustedError(
        StatusCode.RESOURCE_EXHAUSTED,
        f"the {math.prod(block)} values along the axis of x {list(x.shape)} do not fit into a message of {limits.message} bytes; "
        "start the server with a larger --max_message_bytes",
    )
