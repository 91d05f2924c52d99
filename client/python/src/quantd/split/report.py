"""Combines the error reports of pieces.

Counts and the largest error are exact. A mean is converted back to its sum, to the last bits of a double. The
signal's energy is summed here, because the report of a piece without error does not contain it. Sums of pieces are rounded once, so
that they do not depend on the order of answers.
"""

import math
from typing import Iterator, List, Optional

import numpy as np

from ..foreign import Array
from ..results import QuantizationError

_STEP = 1 << 18


def _finite_doubles(x: Array) -> Iterator[Array]:
    flat = np.ascontiguousarray(x).reshape(-1)
    for begin in range(0, flat.size, _STEP):
        part = flat[begin : begin + _STEP]
        values = part.astype(np.float64)
        yield values[np.isfinite(values)]


class Report:
    """Sums of the pieces of one call."""

    def __init__(self) -> None:
        self._signals: List[float] = []
        self._noises: List[float] = []
        self._largest = 0.0
        self._finite = self._saturated = self._non_finite = 0

    def add(self, x: Array, error: Optional[QuantizationError]) -> None:
        """Adds the report of the piece x."""
        if error is None:
            raise ValueError("quantization_error is missing")
        finite, signal = 0, 0.0
        for values in _finite_doubles(x):
            finite += values.size
            signal += float(np.dot(values, values))
        self._signals.append(signal)
        self._noises.append(error.mean_squared_error * finite)
        self._largest = _largest(self._largest, error.max_absolute_error)
        self._finite += finite
        self._saturated += error.saturated_elements
        self._non_finite += error.non_finite_elements

    def correct(self, noise: float, saturated: int) -> None:
        """Adds the effect of changed elements of y: more noise, and more saturated elements."""
        self._noises.append(noise)
        self._saturated += saturated

    def finish(self) -> QuantizationError:
        """The report of the whole."""
        signal, noise = math.fsum(self._signals), math.fsum(self._noises)
        if noise == 0:
            sqnr = math.inf
        elif math.isnan(noise) or math.isnan(signal):
            sqnr = math.nan
        elif math.isinf(noise) or signal == 0:
            sqnr = -math.inf
        else:
            sqnr = 10 * math.log10(signal / noise)
        return QuantizationError(
            sqnr_db=sqnr,
            mean_squared_error=noise / self._finite if self._finite else 0.0,
            max_absolute_error=self._largest,
            saturated_elements=self._saturated,
            non_finite_elements=self._non_finite,
        )


def _largest(a: float, b: float) -> float:
    return math.nan if math.isnan(a) or math.isnan(b) else max(a, b)
