"""Calls whose tensor is larger than the server's messages, in several messages.

There is one rule: x is cut along its first dimension, into ranges of rows. That gives the bytes of one call wherever every row has its
scale: the scale is given, or belongs to whole rows. Otherwise (one scale to be found for all rows, a report on the whole, a row that is
larger than a message) the call is an error that names quantd.local(), which has no limit.
"""

import math
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional

import numpy as np

from . import results
from .errors import QuantdError, ResourceExhaustedError, StatusCode, invalid
from .foreign import Array
from .requests import Request, kept, type_of
from .shared import SharedTensor
from .types import DataType

# Measured in comparison with one message (tests/bench/run.sh client): for 64 MiB, pieces of 1 MiB, eight in flight, take 0.6 to 0.7 of
# the time, because one is sent while another is computed and received, and all use the same memory again; for 16 MiB they take as long.
PIECE_BYTES = 1 << 20
LARGE_BYTES = 12 << 20
IN_FLIGHT = 8
# A request with more elements must be compared with the server's limits before it is sent.
FEW_ELEMENTS = 1 << 14
_ENVELOPE = 1024  # bytes of a message that are no elements


class Limits(NamedTuple):
    """The most bytes of a message, and of a request with its answer; None: unknown, so it is not checked."""

    message: Optional[int]
    budget: Optional[int] = None

    def allow(self, request: int, answer: int) -> bool:
        fits = self.message is None or max(request, answer) <= self.message
        return fits and (self.budget is None or request + answer <= self.budget)


def limits_from(info: results.ServerInfo) -> Limits:
    """The limits that a server reports; 0 means none."""
    return Limits(info.max_message_bytes or None, info.memory_budget_bytes or None)


def without_limits(error: QuantdError) -> Limits:
    """The limits of a server without GetServerInfo; raises all other errors."""
    if error.code is not StatusCode.UNIMPLEMENTED:
        raise error
    return Limits(None)


class Piece(NamedTuple):
    """The request of some rows, and what takes its result."""

    request: Request
    begin: int  # the first row
    accept: Callable[[Any], None]

    def explain(self, error: QuantdError) -> QuantdError:
        """The piece's error: an index in its text is one in the piece."""
        if error.code is StatusCode.INVALID_ARGUMENT and self.begin:
            error.message += f" (in the piece of x that begins with row {self.begin})"
            error.args = (f"{error.code.name}: {error.message}",)
        return error


class Plan(NamedTuple):
    """The pieces, which may run in any order, and then the result of the whole."""

    pieces: Iterator[Piece]
    finish: Callable[[], Any]


class _Cut(NamedTuple):
    """How the rows of x go with those of its scales."""

    per_scale: int = 0  # rows of x to a row of the scales; 0: the scales belong to all rows
    why_not: str = ""  # why x cannot be cut


def plan(request: Request, limits: Limits, engine: Any) -> Optional[Plan]:
    """The pieces of a request; None if it is sent as it is: if it fits into a message, or has a tensor in shared memory.

    A large tensor is sent in pieces even if it fits, because that is faster. Raises InvalidArgumentError, like the server, for scales
    that do not fit x, and ResourceExhaustedError for a request that neither fits nor can be cut.
    """
    x = request.operands["x"]
    if request.out is not None or any(isinstance(value, SharedTensor) for value in request.operands.values()):
        return None
    sent = _ENVELOPE + sum(_bytes(value) for value in request.operands.values())
    answered = _ENVELOPE + _answer_bits(request) * x.size // 8
    fits = limits.allow(sent, answered)
    if (fits and max(sent, answered) <= LARGE_BYTES) or limits == Limits(None):
        return None
    cut = _cut(request)
    unit = max(cut.per_scale, 1)
    each = 0
    if not cut.why_not:
        each = _rows_of_piece(request, cut, unit, limits)
        if not each:
            cut = _Cut(why_not="the rows of a scale do not fit into a message" if unit > 1 else "a row of it does not fit into a message")
    if cut.why_not and fits:
        return None
    if cut.why_not:
        raise ResourceExhaustedError(
            StatusCode.RESOURCE_EXHAUSTED,
            f"x of shape {list(x.shape)} has {x.nbytes} bytes, the server's messages {limits.message} (--max_message_bytes), and it cannot "
            f"be cut: {cut.why_not}; quantd.local() computes it in this process, without a limit",
        )
    return _pieces(request, cut, each, engine)


def _bytes(value: Array) -> int:
    return type_of(value).byte_size(value.size)


def _answer_bits(request: Request) -> int:
    """The bits of an element of y, with its scale and zero point."""
    if request.operation == "quantize_embeddings":
        return 8
    if request.operation == "dequantize":
        return DataType(request.message.output_type or type_of(request.operands["scale"])).bits
    zero_point = request.operands.get("zero_point")
    y = DataType(request.message.output_type or (DataType.UINT8 if zero_point is None else type_of(zero_point))).bits
    if request.operation == "quantize":
        return y
    x, (axis, block_size, block_shape) = request.operands["x"], request.granularity
    block = x.size  # the elements of a scale
    if block_shape:
        block = math.prod(min(b, n) if b > 0 else n for b, n in zip(block_shape, x.shape))
    elif block_size > 0:
        block = block_size
    elif axis is not None and -x.ndim <= axis < x.ndim:
        block = x.size // max(x.shape[axis], 1)
    return y + -(-(32 + y) // max(block, 1))


def _cut(request: Request) -> _Cut:
    shape, (axis, block_size, block_shape) = request.operands["x"].shape, request.granularity
    dynamic, scale = request.operation == "dynamic_quantize", request.operands.get("scale")
    if not shape or 0 in shape:
        return _Cut(why_not="it has no rows")
    if request.operation != "dequantize" and request.message.report_error:
        return _Cut(why_not="report_error is of one message")
    if request.operation == "quantize_embeddings":
        return _Cut() if len(shape) > 1 else _Cut(why_not="it is one embedding")
    if dynamic and request.message.scale_type == DataType.FLOAT8E4M3FN:
        return _Cut(why_not="NVFP4's second scale belongs to the whole")
    rows, per_scale = shape[0], 0
    if block_shape:
        if len(block_shape) != len(shape):
            raise invalid("block_shape", f"block_shape has {len(block_shape)} lengths, x has {len(shape)} dimensions")
        per_scale = block_shape[0] if 0 < block_shape[0] < rows else 0
    elif block_size > 0 or (axis is not None if dynamic else scale.ndim == 1 and scale.size != 1):
        along = 1 if axis is None else axis
        if not -len(shape) <= along < len(shape):
            raise invalid("axis", f"axis is {along}, x has {len(shape)} dimensions")
        first = along % len(shape) == 0
        per_scale = (block_size or 1) if first else int(block_size > 0)
        per_scale = 0 if block_size and per_scale >= rows else per_scale
    elif not dynamic and scale.ndim > 1:  # blocks that follow from the shapes
        if scale.shape[0] < 1 or rows % scale.shape[0]:
            raise invalid("scale", f"scale has length {scale.shape[0]} in dimension 0, which does not divide the {rows} of x")
        per_scale = rows // scale.shape[0] if scale.shape[0] > 1 else 0
    if dynamic and not per_scale:
        return _Cut(why_not="a scale belongs to all of its rows")
    if scale is not None and per_scale and scale.shape[:1] != (-(-rows // per_scale),):
        raise invalid("scale", f"scale has shape {list(scale.shape)}, the {rows} rows of x need {-(-rows // per_scale)} in dimension 0")
    zero_point = request.operands.get("zero_point")
    if zero_point is not None and zero_point.shape != scale.shape and {zero_point.shape, scale.shape} != {(), (1,)}:
        raise invalid("zero_point", f"zero_point has shape {list(zero_point.shape)}, scale has {list(scale.shape)}")
    return _Cut(per_scale)


def _rows_of_piece(request: Request, cut: _Cut, unit: int, limits: Limits) -> int:
    """As many rows as make a piece of about PIECE_BYTES, a multiple of `unit`; 0: not even `unit` rows fit into a message."""
    x = request.operands["x"]
    rows, whole = len(x), _ENVELOPE
    request_bytes = _bytes(x)
    for name, value in request.operands.items():
        if name in ("scale", "zero_point") and cut.per_scale:
            request_bytes += _bytes(value)
        elif name != "x":
            whole += _bytes(value)
    answer_bytes = _answer_bits(request) * x.size // 8

    def fits(count: int) -> bool:
        return limits.allow(whole + -(-request_bytes * count // rows), _ENVELOPE + -(-answer_bytes * count // rows))

    if not fits(unit):
        return 0
    units, too_many = 1, max(PIECE_BYTES * rows // max(request_bytes, answer_bytes, 1) // unit, 1) + 1
    while too_many - units > 1:
        middle = (units + too_many) // 2
        units, too_many = (middle, too_many) if fits(middle * unit) else (units, middle)
    return units * unit


def _pieces(request: Request, cut: _Cut, each: int, engine: Any) -> Plan:
    operands, per_scale = request.operands, cut.per_scale
    x, rows = operands["x"], len(operands["x"])
    y: List[Array] = []
    found: Dict[str, Dict[int, Array]] = {"scale": {}, "zero_point": {}}  # by their first rows

    def accept(result: Any, begin: int) -> None:
        if not y:
            y.append(np.empty((rows, *result.y.shape[1:]), result.y.dtype))
        if result.y.dtype != y[0].dtype or result.y.shape[1:] != y[0].shape[1:]:
            raise ValueError(f"a piece of y is {result.y.dtype} of shape {list(result.y.shape)}, another {y[0].dtype} of {list(y[0].shape)}")
        y[0][begin : begin + len(result.y)] = result.y
        if request.operation == "dynamic_quantize":
            for name, parts in found.items():
                if getattr(result, name) is not None:
                    parts[begin] = getattr(result, name)

    def pieces() -> Iterator[Piece]:
        for begin in range(0, rows, each):
            end = min(begin + each, rows)
            parts = {name: value for name, value in operands.items()}
            parts["x"] = x[begin:end]
            for name in ("scale", "zero_point"):
                if name in operands and per_scale:
                    parts[name] = operands[name][begin // per_scale : -(-end // per_scale)]
            message = type(request.message)()
            message.CopyFrom(request.message)
            _shorten_blocks(message, end - begin, x.ndim)
            yield Piece(Request(request.operation, message, parts), begin, lambda result, begin=begin: accept(result, begin))

    def joined(name: str) -> Optional[Array]:
        parts = [found[name][begin] for begin in sorted(found[name])]
        if not parts:
            return None
        whole = np.concatenate(parts)
        if len(whole) != -(-rows // per_scale):
            raise ValueError(f"{name} has {len(whole)} rows in all, not {-(-rows // per_scale)}")
        return whole

    def finish() -> Any:
        if request.operation == "quantize_embeddings":
            return results.QuantizedEmbeddings(y[0], None)
        if request.operation == "dequantize":
            return results.Dequantized(y[0])
        dynamic = request.operation == "dynamic_quantize"
        if dynamic:
            scale, zero_point = joined("scale"), joined("zero_point")
        else:
            scale, zero_point = (kept(operands[name]) if name in operands else None for name in ("scale", "zero_point"))
        kind = results.DynamicQuantized if dynamic else results.Quantized
        return results.quantized(kind, y[0], scale, zero_point, None, None, request.granularity, type_of(x), engine)

    return Plan(pieces(), finish)


def _shorten_blocks(message: Any, rows: int, rank: int) -> None:
    """A block that is longer than the piece's first dimension becomes as long as that."""
    if not hasattr(message, "block_size"):
        return
    if message.block_shape and message.block_shape[0] >= rows:
        message.block_shape[0] = -1
    axis = message.axis if message.HasField("axis") else 1
    if message.block_size > rows and axis in (0, -rank):
        message.block_size = rows
