"""Calls with given scales: pieces may be cut anywhere."""

from typing import Any, Dict, Iterator, List

import numpy as np

from .. import results
from ..requests import Request
from ..types import data_type
from . import blame
from .grid import Box, Grid
from .piece import Piece, Batches, Whole, message_of
from .report import Report


def with_scales(request: Request, grid: Grid, pieces: List[Box], engine: Any, operands: Dict[str, Any]) -> Batches:
    """Quantize or Dequantize with the scales of the request; operands: all of its tensors, as arrays."""
    x, y, report = operands["x"], Whole(grid.shape, request.out), Report()
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
            message = message_of(request, type(request.message), grid, box)
            yield Piece(
                Request(request.operation, message, parts),
                lambda result, box=box: accept(result, box),
                lambda error, blocks=blocks: blame.whole(error, {"scale": blame.place(grid.counts, blocks)}),
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
        axis=request.granularity[0],
        block_size=request.granularity[1],
        block_shape=request.granularity[2],
        input_type=data_type(x.dtype),
        engine=engine,
    )
