"""Splits embeddings into pieces of a few rows, which depend only on themselves and the ranges."""

import math
import re
from typing import Any, Iterator, List, Optional, Tuple

import numpy as np

from .. import embeddings, results
from ..errors import FieldViolation, InvalidArgumentError, ResourceExhaustedError, StatusCode
from ..foreign import Array
from ..requests import Request, type_of
from ..shared import SharedTensor
from .cut import ENVELOPE
from .limits import LARGE_BYTES, PIECE_BYTES, Limits
from .piece import Piece, Batches, Whole
from .report import Report

_INDEX = re.compile(r"\bx\[(\d+)\]")


class _Rows:
    """Sizes of a request: shape is (rows, values), y that of its answer."""

    def __init__(self, request: Request):
        x = request.operands["x"]
        self.shape = (math.prod(x.shape[:-1]), x.shape[-1])
        self.y = embeddings.output_shape(self.shape, request.message.dimensions, request.message.recipe)
        self.bits = type_of(x).bits
        ranges = request.operands.get("ranges")
        self.ranges = math.prod(ranges.shape) * 4 if ranges is not None else 0

    def bytes(self, rows: int) -> Tuple[int, int]:
        """The bytes of a request with this number of rows, and of its answer."""
        return rows * self.shape[1] * self.bits // 8 + self.ranges + 2 * ENVELOPE, rows * self.y[1] + ENVELOPE


def plan(request: Request, limits: Limits) -> Optional[Batches]:
    """The pieces of a quantize_embeddings; None if it is better sent unchanged. See plan.plan."""
    x = request.operands["x"]
    if (limits.message is None and limits.budget is None) or not 0 <= request.message.dimensions <= (x.shape or (0,))[-1]:
        return None  # the server refuses it
    sizes = _Rows(request)
    sent = list(sizes.bytes(sizes.shape[0]))
    if isinstance(x, SharedTensor):
        sent[0] = sizes.ranges + 2 * ENVELOPE
    if request.out is not None:
        sent[1] = ENVELOPE
    fits = limits.allow(*sent)
    if fits and (request.message.report_error or max(sent) <= LARGE_BYTES):
        return None
    rows = next((found for most in (PIECE_BYTES, LARGE_BYTES, limits.message) if (found := _rows(sizes, limits, most))), 0)
    if rows:
        return _pieces(request, sizes, [slice(a, min(a + rows, sizes.shape[0])) for a in range(0, sizes.shape[0], rows)])
    if fits:
        return None
    raise ResourceExhaustedError(
        StatusCode.RESOURCE_EXHAUSTED,
        f"an embedding of {sizes.shape[1]} values does not fit into a message of {limits.message} bytes with a budget of "
        f"{limits.budget}; start the server with a larger --max_message_bytes",
    )


def _rows(sizes: _Rows, limits: Limits, most: Optional[int]) -> int:
    """The most rows in a message of `most` bytes, or of any size."""
    if most is None or (limits.message is not None and most > limits.message):
        most = limits.message
    good, bad = 0, sizes.shape[0] + 1
    while bad - good > 1:
        middle = (good + bad) // 2
        if limits.allow(*sizes.bytes(middle), most):
            good = middle
        else:
            bad = middle
    return good


def _pieces(request: Request, sizes: _Rows, parts: List[slice]) -> Batches:
    operands = {name: value.array() if isinstance(value, SharedTensor) else value for name, value in request.operands.items()}
    x = operands["x"].reshape(sizes.shape)
    y, report = Whole(sizes.y, request.out), Report()
    reports = request.message.report_error
    message = type(request.message)()
    message.CopyFrom(request.message)
    message.ClearField("output")

    def batch() -> Iterator[Piece]:
        for part in parts:
            copy = type(message)()
            copy.CopyFrom(message)
            yield Piece(
                Request(request.operation, copy, {**operands, "x": x[part]}),
                lambda result, part=part: accept(result, part),
                lambda error, part=part: _whole(error, part.start * sizes.shape[1]),
            )

    def accept(result: Any, part: slice) -> None:
        y.put((part,), result.y)
        if reports:
            report.add(_used(x[part], message), result.error)

    yield batch()
    made = y.finish().reshape((*request.operands["x"].shape[:-1], sizes.y[1]))
    return results.QuantizedEmbeddings(made, report.finish() if reports else None)


def _used(x: Array, message: Any) -> Array:
    """The values in a report: truncated and normalised."""
    used = x[:, : message.dimensions or x.shape[1]].astype(np.float32)
    if not message.normalize:
        return used
    with np.errstate(all="ignore"):
        length = np.sqrt(np.square(used, dtype=np.float64).sum(axis=1, keepdims=True))
        return np.where((length > 0) & np.isfinite(length), used / length, used).astype(np.float32)


def _whole(error: Exception, first: int) -> Exception:
    """The error of a piece whose first value is number `first`, with the index in the whole."""
    if not isinstance(error, InvalidArgumentError):
        return error

    def moved(text: str) -> str:
        return _INDEX.sub(lambda found: f"x[{int(found.group(1)) + first}]", text)

    violations = [FieldViolation(v.field, moved(v.description)) for v in error.field_violations]
    return type(error)(error.code, moved(error.message), violations, error.reason, error.metadata, error.retry_after)
