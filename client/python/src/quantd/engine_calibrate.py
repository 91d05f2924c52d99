"""What Engine.calibrate does: a native calibration that is fed one array after the other."""

import time
from typing import Any, Callable, Dict, Optional

import numpy as np

from . import calibration
from .foreign import Array
from .types import DataType


def _codes(values: Array, kind: DataType) -> Array:
    """Integers as those of a type, which narrower than a byte are sign-extended in one."""
    if kind.bits > 8:
        return values.astype(kind.dtype)
    return values.astype(np.int8 if kind.is_signed else np.uint8).view(kind.dtype)


def calibrate(
    native: Any,
    convert: Callable,
    fail: Callable,
    xs: Any,
    states: Any,
    named: Dict[str, Any],
    axis: Optional[int],
    return_state: bool,
    timeout: Optional[float],
    threads: int,
) -> calibration.Calibrated:
    """Adds states and arrays, and makes the result. native: the module; convert, fail: what its classes take."""
    known, arrays = calibration.state_bytes(states), calibration.arrays(xs)
    end = None if timeout is None else time.monotonic() + timeout

    def left() -> Optional[float]:
        return None if end is None else max(end - time.monotonic(), 0.0)

    counts = native.Calibration(
        convert, fail, named["method"], named["output_type"], named["symmetry"], axis, named["percentile"], named["non_finite"] == 2
    )
    for state in known:
        counts.merge(state, left())
    for x in arrays:
        counts.add(x, left(), threads)
    scale, zero_point, found, elements, non_finite_elements = counts.result(left(), threads)
    output_type = DataType(named["output_type"] or DataType.UINT8)
    return calibration.Calibrated(
        scale=scale,
        zero_point=None if zero_point is None else _codes(zero_point, output_type),
        range=found,
        elements=elements,
        non_finite_elements=non_finite_elements,
        state=counts.state() if return_state else None,
        method=calibration.name_of(named["method"]),
        output_type=output_type,
        axis=axis,
    )
