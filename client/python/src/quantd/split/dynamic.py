"""DynamicQuantize: pieces that compute their own scales, or first the scales and then the pieces."""

import dataclasses
import re
from typing import Any, Callable, Iterator, List, Optional

import numpy as np

from .. import messages, results
from ..errors import InvalidArgumentError, invalid
from ..foreign import Array
from ..requests import Request
from ..types import DataType, data_type
from . import blame, ranges
from .grid import Box, Grid
from .limits import PIECE_BYTES, Limits
from .piece import Piece, Batches, Whole, message_of
from .report import Report

_IGNORE = 2  # NON_FINITE_IGNORE
_OF_AN_ELEMENT = re.compile(r"x\[\d+\] is ")


def is_two_level(request: Request) -> bool:
    """Whether it is NVFP4, whose second scale depends on the whole tensor."""
    message = request.message
    if request.operation != "dynamic_quantize":
        return False
    return message.scale_type == DataType.FLOAT8E4M3FN and message.output_type == DataType.FLOAT4E2M1


def _not_finite(x: Array) -> Optional[Exception]:
    """The server's error for the first NaN or infinity, which is not always the one that it found first; None if there is none."""
    first = ranges.first_non_finite(x)
    if first is None:
        return None
    value = float(x[np.unravel_index(first, x.shape)])
    rule = "DynamicQuantize takes finite values unless non_finite is IGNORE"
    return invalid("x", f"x[{first}] is {value}, {rule}")


def _explained(x: Array, error: Exception, place: Callable[[int], int]) -> Exception:
    """A piece's error, converted to that of the whole. Errors in the options occur in every piece, and before errors in its x."""
    if isinstance(error, InvalidArgumentError) and _OF_AN_ELEMENT.match(error.message):
        found = _not_finite(x)
        if found is not None:
            return found
    return blame.whole(error, {"y_scale": place})


def alone(request: Request, x: Array, grid: Grid, pieces: List[Box], engine: Any) -> Batches:
    """Pieces that compute their own scales."""
    report = Report()
    y, scale, zero_point = Whole(grid.shape, request.out), Whole(grid.counts), Whole(grid.counts)
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
                Request("dynamic_quantize", message_of(request, type(request.message), grid, box), {"x": x[box]}),
                lambda result, box=box: accept(result, box),
                lambda error, box=box: _explained(x, error, blame.place(grid.counts, grid.blocks_of(box))),
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
        axis=request.granularity[0],
        block_size=request.granularity[1],
        block_shape=request.granularity[2],
        input_type=data_type(x.dtype),
        engine=engine,
    )


def ranges_first(
    request: Request, x: Array, grid: Grid, pieces: List[Box], limits: Limits, engine: Any
) -> Batches:
    """Finds ranges here, gets their scales, and then sends pieces with given scales."""

    low, high = ranges.of_blocks(x, grid)
    finite = bool(np.isfinite(low).all() and np.isfinite(high).all())
    if not finite and request.message.non_finite == _IGNORE:
        low, high = ranges.of_finite(x, grid)
    two_level = is_two_level(request)
    flat = (grid.scales,)
    scale, zero_point, tensor_scales = Whole(flat), Whole(flat), []

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
                lambda error, which=which: _explained(x, error, lambda index: index + which.start),
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
    if not finite and request.message.non_finite != _IGNORE:  # a quantd server has already refused it
        raise _not_finite(x)
    tensor_scale = tensor_scales[0] if two_level else None
    known = {
        "scale": ranges.as_float(scale.array, tensor_scale).reshape(grid.counts),
        "zero_point": None if zero_point.array is None else zero_point.array.reshape(grid.counts),
    }
    y, report, reports = Whole(grid.shape, request.out), Report(), request.message.report_error

    def batch() -> Iterator[Piece]:
        for box in pieces:
            blocks = grid.blocks_of(box)
            shape = () if grid.scales == 1 else None
            parts = {name: value[blocks] for name, value in known.items() if value is not None}
            parts = {name: value if shape is None else value.reshape(shape) for name, value in parts.items()}
            yield Piece(
                Request("quantize", message_of(request, messages.QuantizeRequest, grid, box), {"x": x[box], **parts}),
                lambda result, box=box: accept(result, box),
                lambda error: error,  # its scales come from the server
            )

    def accept(result: results.Quantized[Any], box: Box) -> None:
        error = result.error
        if result.y.dtype == np.int8:
            error = _raise_smallest_int8(x[box], result.y, box, grid, known["scale"], known["zero_point"], error, report)
        y.put(box, result.y)
        if reports:
            report.add(x[box], error)

    yield batch()
    return _found(request, grid, y, scale, zero_point, tensor_scale, report.finish() if reports else None, x, engine)


def _raise_smallest_int8(
    x: Array,
    y: Array,
    box: Box,
    grid: Grid,
    scale: Array,
    zero_point: Optional[Array],
    error: Optional[results.QuantizationError],
    report: Report,
) -> Optional[results.QuantizationError]:
    """Turns every -128 in a piece's y into -127, as in DynamicQuantize, and updates the report accordingly.
    Returns the piece's own report, whose largest error may have been that of a -128.

    INT8 is [-128, 127] in Quantize, which is used for pieces with given scales, and [-127, 127] in DynamicQuantize. They
    differ only where the value before the clamp is below -127.
    """
    where = np.nonzero(y == -128)
    if not where[0].size:
        return error
    y[where] = -127
    blocks = tuple((index + part.start) // length for index, part, length in zip(where, box, grid.block))
    # An int32 is rounded to FLOAT for the division, but its error is computed from the integer.
    values, exact, scales = x[where].astype(np.float32), x[where].astype(np.float64), scale[blocks]
    zeros = np.zeros_like(scales) if zero_point is None else zero_point[blocks].astype(np.float32)
    # Values below both ranges are counted already.
    newly = int(np.count_nonzero(np.rint(values / scales) + zeros == -128))
    finite = np.isfinite(values)
    exact, scales, zeros = (part[finite].astype(np.float64) for part in (exact, scales, zeros))
    before, after = exact - (-128 - zeros) * scales, exact - (-127 - zeros) * scales
    if error is not None:
        of = np.ix_(*(np.arange(part.start, part.stop) // length for part, length in zip(box, grid.block)))
        codes = y.astype(np.float64) - (0.0 if zero_point is None else zero_point[of].astype(np.float64))
        wide = x.astype(np.float64)
        errors = np.abs(wide - codes * scale[of].astype(np.float64))[np.isfinite(wide)]
        error = dataclasses.replace(error, max_absolute_error=float(errors.max(initial=0.0)))
    report.correct(float(np.dot(after, after) - np.dot(before, before)), newly)
    return error
