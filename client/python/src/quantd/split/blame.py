"""Errors of pieces, converted to errors of the whole: the server names an index in the piece."""

import re
from typing import Callable, Dict

import numpy as np

from ..errors import FieldViolation, InvalidArgumentError
from .grid import Box, Shape

_INDEX = re.compile(r"\b(scale|y_scale)\[(\d+)\]")
Places = Dict[str, Callable[[int], int]]


def place(shape: Shape, box: Box) -> Callable[[int], int]:
    """Converts a row-major index in a box to that in the whole."""
    size = tuple(part.stop - part.start for part in box)

    def whole(index: int) -> int:
        if not size or index >= int(np.prod(size)):
            return index
        within = np.unravel_index(index, size)
        return int(np.ravel_multi_index([part.start + int(i) for part, i in zip(box, within)], shape))

    return whole


def whole(error: Exception, places: Places) -> Exception:
    """The error with the indices of the whole."""
    if not isinstance(error, InvalidArgumentError):
        return error

    def moved(found: "re.Match") -> str:
        name, index = found.group(1), int(found.group(2))
        return f"{name}[{places[name](index)}]" if name in places else found.group()

    violations = [FieldViolation(v.field, _INDEX.sub(moved, v.description)) for v in error.field_violations]
    return type(error)(
        error.code, _INDEX.sub(moved, error.message), violations, error.reason, error.metadata, error.retry_after
    )
