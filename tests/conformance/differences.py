"""Where implementations by others differ from the specification, so that random tests leave out exactly those elements.

README.md shows the differences themselves. A row here says which elements of a random case it covers;
test_outside.py and test_ml_dtypes.py leave those out, and nothing else.
"""

import dataclasses
from typing import Callable, Optional

import numpy as np

from quantd_conformance import oracle_types as ot


@dataclasses.dataclass
class Case:
    """The arguments of a random test, as far as rows need them to find the elements that they cover."""

    implementation: str
    operator: str
    xt: ot.Type
    t: ot.Type
    v: np.ndarray  # x / scale as the server computes it, float32
    granularity: str = "tensor"
    saturate: bool = True
    zero_point: Optional[np.ndarray] = None  # spread over the elements


@dataclasses.dataclass
class Difference:
    """rule: the kit's rule under which README.md lists it; empty if the specification leaves it open."""

    rule: str
    implementation: str
    operator: str
    covers: Callable[[Case], np.ndarray]


def explained(case: Case) -> np.ndarray:
    """The elements of a random case that rows of the table cover."""
    mask = np.zeros(case.v.shape, bool)
    for row in TABLE:
        if (row.implementation, row.operator) == (case.implementation, case.operator):
            mask |= row.covers(case)
    return mask


def _unconvertible(v):
    """Values that no int32 can hold, with room for the zero point."""
    with np.errstate(invalid="ignore"):
        return ~(np.abs(v) < 2.0**31 - 2.0**17)


def _none(case):
    return np.zeros(case.v.shape, bool)


def _runtime_wraps(case):
    if case.t.kind != "int":
        return _none(case)
    if case.xt is ot.FLOAT and case.t.bits > 4 and case.granularity in ("tensor", "axis", "axis first", "blocks last"):
        return _none(case)  # its vectorized loop clamps first
    if case.xt is ot.FLOAT and case.t.bits == 4 and case.granularity == "tensor":
        return _unconvertible(case.v) & (np.arange(case.v.size) >= case.v.size // 2 * 2)  # the odd one at the end
    return _unconvertible(case.v)


def _range(t, low, high, saturate):
    def covers(case):
        if case.t is not t or case.saturate != saturate:
            return _none(case)
        return (np.abs(case.v) >= low) & (np.abs(case.v) < high)

    return covers


TABLE = [
    Difference("quantize-saturates-infinity", "ONNX reference evaluator", "QuantizeLinear",
               lambda c: _unconvertible(c.v) if c.t.kind == "int" else _none(c)),
    Difference("quantize-saturates-past-int32", "ONNX Runtime", "QuantizeLinear", _runtime_wraps),
    Difference("quantize-float8-overflows", "ONNX Runtime", "QuantizeLinear", _range(ot.E4M3FN, 480.0, 496.0, False)),
    Difference("quantize-float8-overflows", "ONNX Runtime", "QuantizeLinear", _range(ot.E5M2, 61440.0, 65536.0, False)),
    Difference("", "ONNX Runtime", "QuantizeLinear", lambda c: np.isnan(c.v) if c.t is ot.E5M2 else _none(c)),
    Difference("dequantize-minifloat-zero-point", "ONNX reference evaluator", "DequantizeLinear",
               lambda c: (c.zero_point != 0) | np.signbit(c.zero_point) if c.xt is ot.E2M1 else _none(c)),
]
