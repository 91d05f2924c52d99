"""Where implementations that the project did not write differ from the numerics specification, and so from the server.

One table: each row has a name, an input that shows the difference, what they answer and what the specification asks for.
test_differences.py shows that every row still holds, on both sides; the random tests leave out what a row's `covers`
says, and nothing else. `python differences.py` prints the table that README.md carries.
"""

import dataclasses
from importlib import metadata
from typing import Any, Callable, Optional

import numpy as np

import oracle
import oracle_types as ot

PACKAGES = {"ONNX reference evaluator": "onnx", "ONNX Runtime": "onnxruntime", "ml_dtypes": "ml_dtypes"}


@dataclasses.dataclass
class Case:
    """What a random test asks: enough for a row to say which elements it covers."""

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
    name: str
    implementation: str
    operator: str
    x: np.ndarray
    scale: Optional[np.ndarray]
    theirs: Any
    ours: Any
    why: str
    zero_point: Optional[np.ndarray] = None
    output: ot.Type = ot.UINT8
    attributes: dict = dataclasses.field(default_factory=dict)  # of the node
    arguments: dict = dataclasses.field(default_factory=dict)  # of the oracle and the client
    covers: Callable[[Case], np.ndarray] = lambda case: np.zeros(case.v.shape, bool)

    @property
    def version(self) -> str:
        return metadata.version(PACKAGES[self.implementation])


def explained(case: Case) -> np.ndarray:
    """The elements of a random case that rows of the table cover."""
    mask = np.zeros(case.v.shape, bool)
    for row in TABLE:
        if (row.implementation, row.operator) == (case.implementation, case.operator):
            mask |= row.covers(case)
    return mask


def _unconvertible(v):
    """What no int32 holds, with room for the zero point."""
    with np.errstate(invalid="ignore"):
        return ~(np.abs(v) < 2.0**31 - 2.0**17)


def _f(*values):
    return np.array(values, np.float32)


def _codes(t, *values):
    return ot.from_codes(np.array(values), t)


def _none(case):
    return np.zeros(case.v.shape, bool)


def _runtime_wraps(case):
    vectorized = case.xt is ot.FLOAT and (
        case.granularity == "tensor" if case.t.bits == 4 else
        case.granularity in ("tensor", "axis", "axis first", "blocks last") and case.t.bits > 4)
    return _unconvertible(case.v) if case.t.kind == "int" and not vectorized else _none(case)


def _range(t, low, high, saturate):
    def covers(case):
        if case.t is not t or case.saturate != saturate:
            return _none(case)
        return (np.abs(case.v) >= low) & (np.abs(case.v) < high)

    return covers


TABLE = [
    Difference(
        "reference-wraps", "ONNX reference evaluator", "QuantizeLinear",
        x=_f(np.inf, 3e9, -3e9, np.nan), scale=_f(1)[0:1], zero_point=_codes(ot.UINT8, 0),
        theirs=[0, 0, 0, 0], ours=[255, 255, 0, 0],
        why="converts to int32 before the clamp; what no int32 holds becomes INT_MIN",
        covers=lambda c: _unconvertible(c.v) if c.t.kind == "int" else _none(c),
    ),
    Difference(
        "reference-wraps-around-the-zero-point", "ONNX reference evaluator", "QuantizeLinear",
        x=_f(-np.inf, np.nan), scale=_f(1)[0:1], zero_point=_codes(ot.INT8, 0xFF), output=ot.INT8,
        theirs=[127, 127], ours=[0x80, 0x80],
        why="INT_MIN plus a negative zero point wraps to a large positive number",
    ),
    Difference(
        "reference-promotes-int32", "ONNX reference evaluator", "QuantizeLinear",
        x=np.array([16777217], np.int32), scale=_f(2.0**18 * 2 / 3)[0:1], zero_point=None, output=ot.UINT16,
        theirs=None, ours=None,
        why="without `precision`, INT32 by FLOAT is divided in float64 (numpy's promotion); the specification casts both to FLOAT",
    ),
    Difference(
        "runtime-wraps", "ONNX Runtime", "QuantizeLinear",
        x=_f(np.inf, 3e9, -np.inf, np.nan).reshape(2, 2), scale=_f(1, 1).reshape(1, 2), zero_point=_codes(ot.UINT8, 0, 0).reshape(1, 2),
        attributes=dict(axis=0, block_size=2), arguments=dict(axis=0, block_size=2),
        theirs=[0, 0, 0, 0], ours=[255, 255, 0, 0],
        why="its scalar loop (blocks off the last axis, 4-bit per axis, 2-bit, FLOAT16) converts to int32 before the clamp",
        covers=_runtime_wraps,
    ),
    Difference(
        "runtime-e4m3fn-overflow", "ONNX Runtime", "QuantizeLinear",
        x=_f(464.5, 495, 496, -470), scale=_f(1)[0:1], zero_point=_codes(ot.E4M3FN, 0), output=ot.E4M3FN,
        attributes=dict(saturate=0), arguments=dict(saturate=False),
        theirs=[0x7E, 0x7E, 0x7F, 0xFE], ours=[0x7F, 0x7F, 0x7F, 0xFF],
        why="without saturate, values in (464, 496) become 448 instead of NaN",
        covers=_range(ot.E4M3FN, 464.0, 496.0, False),
    ),
    Difference(
        "runtime-e5m2-overflow", "ONNX Runtime", "QuantizeLinear",
        x=_f(61440, 65000, -61440, 65536), scale=_f(1)[0:1], zero_point=_codes(ot.E5M2, 0), output=ot.E5M2,
        attributes=dict(saturate=0), arguments=dict(saturate=False),
        theirs=None, ours=[0x7C, 0x7C, 0xFC, 0x7C],
        why="without saturate, values in [61440, 65536) become NaN instead of infinity",
        covers=_range(ot.E5M2, 61440.0, 65536.0, False),
    ),
    Difference(
        "runtime-e5m2-nan", "ONNX Runtime", "QuantizeLinear",
        x=_f(np.nan, -np.nan), scale=_f(1)[0:1], zero_point=_codes(ot.E5M2, 0), output=ot.E5M2,
        theirs=[0x7F, 0xFF], ours=[0x7E, 0xFE],
        why="another of the NaN patterns; 7E is that of ml_dtypes",
        covers=lambda c: np.isnan(c.v) if c.t is ot.E5M2 else _none(c),
    ),
    Difference(
        "reference-float4-zero-point", "ONNX reference evaluator", "DequantizeLinear",
        x=_codes(ot.E2M1, 1, 7), scale=_f(2)[0], zero_point=_codes(ot.E2M1, 2)[0], output=ot.FLOAT,
        attributes={}, theirs=[1.0, 12.0], ours=[-1.0, 10.0],
        why="leaves a FLOAT4E2M1 zero point out; the operator's formula subtracts it",
        covers=lambda c: (c.zero_point != 0) | np.signbit(c.zero_point) if c.xt is ot.E2M1 else _none(c),
    ),
]
