"""From a request that is too large for one message to pieces whose answers, put together, are the same bytes as one answer.

Why they are: an element of y depends on its x, on its block's scale and zero point, and on nothing else. A piece holds whole
blocks along a dimension or lies within one, and is sent with exactly the scales of its blocks, so every element meets the same
numbers and the same arithmetic. What is left are the scales that a request finds itself:

    given scales (quantize, dequantize)            cut anywhere
    blocks that fit into a message                 cut between blocks; a piece finds its own scales, in whole blocks
    blocks that do not, and NVFP4's second scale   ranges.py finds the scales; then cut anywhere, as Quantize with these

DynamicQuantize divides in FLOAT whatever the type of its scales, and so does Quantize when they are sent as FLOAT, which every
type of scale fits into. It differs from DynamicQuantize in the smallest INT8 alone, which report.py puts right. What is packed in
4 or 2 bits is packed anew in each piece: arrays have an element an item.
"""

from typing import Any, Callable, Iterator, List, NamedTuple, Optional

import numpy as np

from .. import messages, results
from ..errors import QuantdError, ResourceExhaustedError, StatusCode
from ..requests import Request, type_of
from ..shared import SharedTensor
from ..types import DataType, data_type
from . import blame, ranges
from . import grid as grids
from .cut import Cost, boxes
from .grid import Box, Grid
from .report import Report, raise_smallest_int8

# Measured beside one message of 64 MiB (tests/bench/python_client.py): pieces of 1 MiB, some in flight, take half the time,
# because one is sent while another is computed and received; as calls of their own they are as fast as on one stream.
PIECE_BYTES = 1 << 20
IN_FLIGHT = 8
# Below this many elements no request is worth asking the server for its limit first.
_FEW_ELEMENTS = 1 << 14


class Limits(NamedTuple):
    """Bytes that a message, and a request with its answer, may have; None: not known, and so not looked at."""

    message: Optional[int]
    budget: Optional[int] = None

    def allow(self, request: int, answer: int, most: Optional[int] = None) -> bool:
        most = self.message if most is None else most
        return (most is None or max(request, answer) <= most) and (self.budget is None or request + answer <= self.budget)


def limits_from(info: results.ServerInfo) -> Limits:
    """The limits that a server names; 0 is none."""
    return Limits(info.max_message_bytes or None, info.memory_budget_bytes or None)


def without_limits(error: QuantdError) -> Limits:
    """The limits of a server that has no GetServerInfo; raises any other error than that."""
    if error.code is not StatusCode.UNIMPLEMENTED:
        raise error
    return Limits(None)


def limits_of(info: Callable[[], results.ServerInfo]) -> Limits:
    """The limits of the server that `info` asks."""
    try:
        return limits_from(info())
    except QuantdError as error:
        return without_limits(error)


class Piece(NamedTuple):
    """A request, what to do with its result, and how to say its error in terms of the whole."""

    request: Request
    accept: Callable[[Any], None]
    explain: Callable[[Exception], Exception]


# Yields batches of pieces, to be run in any order and all before the next one is asked for; returns the result.
Steps = Iterator[Iterator[Piece]]


def may_be_large(request: Request) -> bool:
    """Whether a request must be compared with the server's limits before it is sent."""
    x = request.operands["x"]
    return int(np.prod(x.shape, dtype=np.float64)) > _FEW_ELEMENTS


def _array(value: Any) -> Any:
    return value.array() if isinstance(value, SharedTensor) else value


def _sent_bits(value: Any) -> int:
    return 0 if value is None or isinstance(value, SharedTensor) else type_of(value).bits


def _output_bits(request: Request) -> int:
    if request.operation == "dequantize":
        wanted = request.message.output_type or type_of(request.operands["scale"])
        return DataType(wanted).bits
    zero_point = request.operands.get("zero_point")
    named = request.message.output_type or (type_of(zero_point) if zero_point is not None else DataType.UINT8)
    return DataType(named).bits


def plan(request: Request, limits: Limits, engine: Any) -> Optional[Steps]:
    """The pieces of a request; None when it fits into one message, or is so wrong that the server shall say it.

    Raises InvalidArgumentError, as the server would, for a granularity that does not fit x, and ResourceExhaustedError when a
    block and its scale do not fit into a message.
    """
    if limits == Limits(None):
        return None
    operands = request.operands
    dynamic = request.operation == "dynamic_quantize"
    x_bits, y_bits = _sent_bits(operands["x"]), 0 if request.out is not None else _output_bits(request)
    shape = tuple(operands["x"].shape)
    elements = int(np.prod(shape, dtype=object)) if shape else 1
    others = sum(
        type_of(value).byte_size(int(np.prod(value.shape, dtype=object)))
        for name, value in operands.items()
        if name != "x" and not isinstance(value, SharedTensor)
    )
    if not dynamic and limits.allow((elements * x_bits + 7) // 8 + others + 600, (elements * y_bits + 7) // 8 + 600):
        return None
    if dynamic:
        grid = grids.dynamic(shape, **request.granularity)
        found = _found_bits(request)
        if limits.allow(*Cost(x_bits, 0, y_bits, found).sizes(grid, grid.shape)) and grid.scales <= max(elements, 1):
            return None
        return _dynamic(request, grid, limits, engine)
    scale, zero_point = operands["scale"], operands.get("zero_point")
    grid = grids.given(shape, tuple(scale.shape), **request.granularity)
    if zero_point is not None and tuple(zero_point.shape) != tuple(scale.shape):
        if {tuple(zero_point.shape), tuple(scale.shape)} != {(), (1,)}:
            raise grids.invalid(
                "zero_point", f"zero_point has shape {list(zero_point.shape)}, scale has {list(scale.shape)}"
            )
    return _given(request, grid, limits, engine)


def _found_bits(request: Request) -> int:
    """Bits of a scale and a zero point that DynamicQuantize may answer with."""
    return DataType(request.message.scale_type or DataType.FLOAT).bits + _output_bits(request)


def _cut(grid: Grid, between_blocks: bool, cost: Cost, limits: Limits) -> Optional[List[Box]]:
    for most in (min(limits.message or PIECE_BYTES, PIECE_BYTES), limits.message):
        found = boxes(grid, between_blocks, lambda size: limits.allow(*cost.sizes(grid, size), most))
        if found is not None:
            return found
    return None


def _too_large(grid: Grid, limits: Limits) -> ResourceExhaustedError:
    return ResourceExhaustedError(
        StatusCode.RESOURCE_EXHAUSTED,
        f"a block of x {list(grid.shape)} and its scale do not fit into a message of {limits.message} bytes "
        f"with a budget of {limits.budget}; start the server with a larger --max_message_bytes",
    )


class _Whole:
    """A tensor that grows of pieces; made when the first comes, of its type."""

    def __init__(self, shape: Any, out: Optional[SharedTensor] = None):
        self._shape, self._out = tuple(shape), out
        self.array: Optional[np.ndarray] = None

    def put(self, box: Box, piece: np.ndarray) -> None:
        if self.array is None:
            self.array = self._memory(piece.dtype)
        target = self.array[box] if box else self.array
        if piece.dtype != self.array.dtype or piece.size != target.size:
            raise ValueError(
                f"a piece is {piece.size} elements of {piece.dtype}, expected {target.size} of {self.array.dtype}"
            )
        target[...] = piece.reshape(target.shape)

    def _memory(self, dtype: np.dtype) -> np.ndarray:
        if self._out is not None:
            kind = data_type(dtype)
            needed = kind.byte_size(int(np.prod(self._shape)))
            if needed > self._out.byte_size:
                raise grids.invalid("output", f"output has room for {self._out.byte_size} bytes, y takes {needed}")
            if kind.bits >= 8:
                return self._out._view(kind, self._shape)
        return np.empty(self._shape, dtype)

    def finish(self) -> np.ndarray:
        """The whole tensor; where it must be packed, `out` has it now as well."""
        kind = data_type(self.array.dtype)
        if self._out is not None and kind.bits < 8:
            self._out._put(self.array)
        return self.array


def _message(request: Request, message_class: Any, grid: Grid, box: Box) -> Any:
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


def _given(request: Request, grid: Grid, limits: Limits, engine: Any) -> Steps:
    """Quantize or Dequantize with the scales of the request."""
    operands = {name: _array(value) for name, value in request.operands.items()}
    scale, zero_point = operands["scale"], operands.get("zero_point")
    block_bits = sum(type_of(value).bits for value in (scale, zero_point) if value is not None)
    cost = Cost(type_of(operands["x"]).bits, block_bits, _output_bits(request))
    pieces = _cut(grid, False, cost, limits)
    if pieces is None:
        raise _too_large(grid, limits)
    return _with_scales(request, grid, pieces, engine, operands)


def _with_scales(request: Request, grid: Grid, pieces: List[Box], engine: Any, operands: dict) -> Steps:
    x, y, report = operands["x"], _Whole(grid.shape, request.out), Report()
    reports = request.operation != "dequantize" and request.message.report_error
    per_block = {
        name: operands[name].reshape(grid.counts)
        for name in ("scale", "zero_point")
        if operands.get(name) is not None and grid.scales != 1
    }

    def batch() -> Iterator[Piece]:
        for box in pieces:
            blocks = grid.blocks_of(box)
            parts = {name: value for name, value in operands.items() if value is not None}
            parts.update({name: value[blocks] for name, value in per_block.items()}, x=x[box])
            message = _message(request, type(request.message), grid, box)
            yield Piece(
                Request(request.operation, message, parts),
                lambda result, box=box: accept(result, box),
                lambda error, box=box, blocks=blocks: blame.whole(
                    error, {"x": blame.place(grid.shape, box), "scale": blame.place(grid.counts, blocks)}
                ),
            )

    def accept(result: Any, box: Box) -> None:
        y.put(box, result.y)
        if reports:
            report.add(x[box], result.error)

    yield batch()
    if request.operation == "dequantize":
        return results.Dequantized(y.finish())
    return results.Quantized(
        y.finish(),
        error=report.finish() if reports else None,
        scale=np.array(operands["scale"]),
        zero_point=None if operands.get("zero_point") is None else np.array(operands["zero_point"]),
        input_type=data_type(x.dtype),
        engine=engine,
        **request.granularity,
    )


def _two_level(request: Request) -> bool:
    """NVFP4, whose second scale depends on the whole tensor."""
    message = request.message
    return message.scale_type == DataType.FLOAT8E4M3FN and message.output_type == DataType.FLOAT4E2M1


def _dynamic(request: Request, grid: Grid, limits: Limits, engine: Any) -> Steps:
    x_bits, y_bits = type_of(request.operands["x"]).bits, _output_bits(request)
    if not _two_level(request):
        pieces = _cut(grid, True, Cost(x_bits, 0, y_bits, _found_bits(request)), limits)
        if pieces is not None:
            return _alone(request, grid, pieces, engine)
    pieces = _cut(grid, False, Cost(x_bits, 32 + y_bits, y_bits), limits)
    if pieces is None or not limits.allow(1024, 1024):
        raise _too_large(grid, limits)
    return _ranges_first(request, grid, pieces, limits, engine)


def _explain_x(request: Request, grid: Grid, x: np.ndarray, box: Box, error: Exception) -> Exception:
    rejects = "[" in str(error) and "finite" in str(error)
    places = {"x": blame.place(grid.shape, box), "y_scale": blame.place(grid.counts, grid.blocks_of(box))}
    return blame.whole(error, places, ranges.first_non_finite(x) if rejects else None)


def _alone(request: Request, grid: Grid, pieces: List[Box], engine: Any) -> Steps:
    """Pieces that find their own scales."""
    x, report = _array(request.operands["x"]), Report()
    y, scale, zero_point = _Whole(grid.shape, request.out), _Whole(grid.counts), _Whole(grid.counts)
    reports = request.message.report_error

    def accept(result: results.DynamicQuantized, box: Box) -> None:
        blocks = grid.blocks_of(box)
        y.put(box, result.y)
        scale.put(blocks, result.scale)
        if result.zero_point is not None:
            zero_point.put(blocks, result.zero_point)
        if reports:
            report.add(x[box], result.error)

    def batch() -> Iterator[Piece]:
        for box in pieces:
            yield Piece(
                Request("dynamic_quantize", _message(request, type(request.message), grid, box), {"x": x[box]}),
                lambda result, box=box: accept(result, box),
                lambda error, box=box: _explain_x(request, grid, x, box, error),
            )

    yield batch()
    return _found(request, grid, y, scale, zero_point, None, report.finish() if reports else None, x, engine)


def _found(request, grid, y, scale, zero_point, tensor_scale, error, x, engine) -> results.DynamicQuantized:
    return results.DynamicQuantized(
        y.finish(),
        scale.array.reshape(grid.scale_shape),
        zero_point=None if zero_point.array is None else zero_point.array.reshape(grid.scale_shape),
        tensor_scale=tensor_scale,
        error=error,
        input_type=data_type(x.dtype),
        engine=engine,
        **request.granularity,
    )


def _ranges_first(request: Request, grid: Grid, pieces: List[Box], limits: Limits, engine: Any) -> Steps:
    """Scales of ranges that are found here, then pieces with known scales."""
    x = _array(request.operands["x"])
    if request.message.non_finite != 2:
        first = ranges.first_non_finite(x)
        if first is not None:
            raise grids.invalid(
                "x",
                f"x[{first}] is {float(x.reshape(-1)[first])}, DynamicQuantize takes finite values unless non_finite is IGNORE",
            )
    low, high = ranges.of_blocks(x, grid)
    two_level = _two_level(request)
    flat = (grid.scales,)
    scale, zero_point, tensor_scales = _Whole(flat), _Whole(flat), []

    def range_batch() -> Iterator[Piece]:
        most = min(limits.message or PIECE_BYTES, PIECE_BYTES, (limits.budget or PIECE_BYTES * 4) // 4)
        for which, rows in ranges.rows(low, high, two_level, most):
            message = type(request.message)()
            message.CopyFrom(request.message)
            for name in ("axis", "block_size", "block_shape", "output", "report_error"):
                message.ClearField(name)
            message.axis = 0
            yield Piece(
                Request("dynamic_quantize", message, {"x": rows}),
                lambda result, which=which: take(result, which),
                lambda error, which=which: blame.whole(error, {"y_scale": lambda index: index + which.start}),
            )

    def take(result: results.DynamicQuantized, which: slice) -> None:
        kept = which.stop - which.start
        scale.put((which,), result.scale.reshape(-1)[:kept])
        if result.zero_point is not None:
            zero_point.put((which,), result.zero_point.reshape(-1)[:kept])
        if two_level:
            if result.tensor_scale is None:
                raise ValueError("y_tensor_scale is missing")
            tensor_scales.append(result.tensor_scale)

    yield range_batch()
    tensor_scale = tensor_scales[0] if two_level else None
    known = {
        "scale": ranges.as_float(scale.array, tensor_scale).reshape(grid.counts),
        "zero_point": None if zero_point.array is None else zero_point.array.reshape(grid.counts),
    }
    y, report, reports = _Whole(grid.shape, request.out), Report(), request.message.report_error

    def batch() -> Iterator[Piece]:
        for box in pieces:
            blocks = grid.blocks_of(box)
            shape = () if grid.scales == 1 else None
            parts = {name: value[blocks] for name, value in known.items() if value is not None}
            parts = {name: value if shape is None else value.reshape(shape) for name, value in parts.items()}
            yield Piece(
                Request("quantize", _message(request, messages.QuantizeRequest, grid, box), {"x": x[box], **parts}),
                lambda result, box=box, blocks=blocks: accept(result, box, blocks),
                lambda error, box=box: blame.whole(error, {"x": blame.place(grid.shape, box)}),
            )

    def accept(result: results.Quantized, box: Box, blocks: Box) -> None:
        error = result.error
        if result.y.dtype == np.int8:
            spread = [_spread(value, grid, box, blocks) for value in known.values()]
            error = raise_smallest_int8(x[box], result.y, *spread, error)
        y.put(box, result.y)
        if reports:
            report.add(x[box], error)

    yield batch()
    return _found(request, grid, y, scale, zero_point, tensor_scale, report.finish() if reports else None, x, engine)


def _spread(value: Optional[np.ndarray], grid: Grid, box: Box, blocks: Box) -> Optional[np.ndarray]:
    """A block's value for each element of a box, or in a form that broadcasts to that."""
    if value is None:
        return None
    part = value[blocks]
    for d, (inside, block, count) in enumerate(zip(box, grid.block, grid.counts)):
        if count > 1:
            part = np.take(part, np.arange(inside.start, inside.stop) // block - inside.start // block, axis=d)
    return part
