"""Splits a request that is too large for one message into pieces whose combined answers have the same bytes as one answer.

Why the bytes are the same: an element of y depends only on its x and on its block's scale and zero point. A piece contains whole
blocks along a dimension or is inside of one, and is sent with exactly the scales of its blocks, so every element is computed from the
same numbers with the same arithmetic. What remains are the scales that a request computes itself:

    given scales (quantize, dequantize)            cut anywhere
    blocks that fit into a message                 cut between blocks; a piece computes its own scales, for whole blocks
    blocks that do not, and NVFP4's second scale   ranges.py finds the scales; then cut anywhere, as Quantize with these

DynamicQuantize divides in FLOAT whatever the type of its scales, and so does Quantize if they are sent as FLOAT, which represents
every type of scale. It differs from DynamicQuantize only in the smallest INT8, which report.py corrects. Elements of
4 or 2 bits are packed again in each piece, because arrays have one item per element.
"""

import math
from typing import Any, List, Optional

from ..errors import ResourceExhaustedError, StatusCode, invalid
from ..requests import Request, type_of
from ..shared import SharedTensor
from ..types import DataType
from . import dynamic, rows
from . import grid as grids
from .cut import ENVELOPE, Cost, boxes
from .given import with_scales
from .grid import Box, Grid
from .limits import LARGE_BYTES, PIECE_BYTES, Limits
from .piece import Batches

# A request with more elements must be compared with the server's limits before it is sent.
FEW_ELEMENTS = 1 << 14


def _array(value: Any) -> Any:
    return value.array() if isinstance(value, SharedTensor) else value


def _sent_bits(value: Any) -> int:
    """Bits of an element in the message: 0 for a tensor in shared memory."""
    return 0 if value is None or isinstance(value, SharedTensor) else type_of(value).bits


def _output_bits(request: Request) -> int:
    if request.operation == "dequantize":
        wanted = request.message.output_type or type_of(request.operands["scale"])
        return DataType(wanted).bits
    zero_point = request.operands.get("zero_point")
    named = request.message.output_type or (type_of(zero_point) if zero_point is not None else DataType.UINT8)
    return DataType(named).bits


def _found_bits(request: Request) -> int:
    """The most bits of a scale and a zero point in DynamicQuantize's answer."""
    return DataType(request.message.scale_type or DataType.FLOAT).bits + _output_bits(request)


def plan(request: Request, limits: Limits, engine: Any) -> Optional[Batches]:
    """The pieces of a request; None if it is better sent unchanged.

    That is a request that fits into a message. Large tensors are nevertheless sent in pieces, which is faster, if nothing is lost: neither
    the last bits of an error report, nor the time of a second reading of the tensor for NVFP4.

    Raises InvalidArgumentError, like the server, for a granularity that does not fit x, and ResourceExhaustedError if a
    block and its scale do not fit into a message.
    """
    if request.operation == "quantize_embeddings":
        return rows.plan(request, limits)
    if limits.message is None and limits.budget is None:
        return None
    grid, cost = _grid(request), _cost(request)
    sizes = cost.sizes(grid, grid.shape)
    fits = limits.allow(*sizes)
    for_speed = request.operation == "dequantize" or not (request.message.report_error or dynamic.is_two_level(request))
    if fits and (not for_speed or max(sizes) <= LARGE_BYTES):
        return None
    try:
        return _pieces(request, grid, limits, engine)
    except ResourceExhaustedError:
        if fits:
            return None
        raise


def _grid(request: Request) -> Grid:
    operands = request.operands
    shape = tuple(operands["x"].shape)
    if request.operation == "dynamic_quantize":
        return grids.dynamic(shape, *request.granularity)
    scale, zero_point = tuple(operands["scale"].shape), operands.get("zero_point")
    grid = grids.given(shape, scale, *request.granularity)
    zeros = scale if zero_point is None else tuple(zero_point.shape)
    if zeros != scale and {zeros, scale} != {(), (1,)}:
        raise invalid("zero_point", f"zero_point has shape {list(zeros)}, scale has {list(scale)}")
    return grid


def _cost(request: Request) -> Cost:
    """The cost of the unchanged request."""
    answer = 0 if request.out is not None else _output_bits(request)
    x = _sent_bits(request.operands["x"])
    if request.operation == "dynamic_quantize":
        return Cost(x, 0, answer, _found_bits(request))
    return Cost(x, sum(_sent_bits(request.operands.get(name)) for name in ("scale", "zero_point")), answer)


def _pieces(request: Request, grid: Grid, limits: Limits, engine: Any) -> Batches:
    operands = {name: _array(value) for name, value in request.operands.items()}
    x, x_bits, y_bits = operands["x"], type_of(operands["x"]).bits, _output_bits(request)
    if request.operation != "dynamic_quantize":
        block_bits = sum(type_of(operands[name]).bits for name in ("scale", "zero_point") if name in operands)
        return with_scales(request, grid, _cut(grid, False, Cost(x_bits, block_bits, y_bits), limits), engine, operands)
    if not dynamic.is_two_level(request):
        try:
            pieces = _cut(grid, True, Cost(x_bits, 0, y_bits, _found_bits(request)), limits)
            return dynamic.alone(request, x, grid, pieces, engine)
        except ResourceExhaustedError:
            pass  # blocks that are larger than a message, or than the size of pieces
    pieces = _cut(grid, False, Cost(x_bits, 32 + y_bits, y_bits), limits)
    return dynamic.ranges_first(request, x, grid, pieces, limits, engine)


def _cut(grid: Grid, between_blocks: bool, cost: Cost, limits: Limits) -> List[Box]:
    """Boxes of about PIECE_BYTES, or larger if necessary."""
    sizes = [PIECE_BYTES, LARGE_BYTES] if between_blocks else [PIECE_BYTES, LARGE_BYTES, limits.message or LARGE_BYTES]
    for wanted in sizes:
        most = wanted if limits.message is None else min(wanted, limits.message)
        found = boxes(grid, between_blocks, lambda size: limits.allow(*cost.sizes(grid, size), most))
        if found is not None:
            return found
    raise ResourceExhaustedError(
        StatusCode.RESOURCE_EXHAUSTED,
        f"a block of x {list(grid.shape)} and its scale do not fit into a message of {limits.message} bytes "
        f"with a budget of {limits.budget}; start the server with a larger --max_message_bytes",
    )
