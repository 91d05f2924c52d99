"""Where implementations that the project did not write differ from the numerics specification, and so from the server.

One table: each row has a name, an input that shows the difference, what they answer and what the specification asks for.
test_differences.py shows that every row still holds, on both sides; the random tests leave out what a row's `covers`
says, and nothing else. `python differences.py` writes the table into README.md.
"""

import dataclasses
from importlib import metadata
from pathlib import Path
from typing import Any, Callable, Optional

import numpy as np

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
    opset: int = 25
    part: int = 0  # which output of the operator: 0 is y, 1 y_scale
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
    Difference(
        "reference-wraps", "ONNX reference evaluator", "QuantizeLinear",
        x=_f(np.inf, 3e9, -3e9, np.nan), scale=_f(1)[0], zero_point=_codes(ot.UINT8, 0)[0],
        theirs=[0, 0, 0, 0], ours=[255, 255, 0, 0],
        why="converts to int32 before the clamp; what no int32 holds becomes INT_MIN",
        covers=lambda c: _unconvertible(c.v) if c.t.kind == "int" else _none(c),
    ),
    Difference(
        "reference-wraps-around-the-zero-point", "ONNX reference evaluator", "QuantizeLinear",
        x=_f(-np.inf, np.nan), scale=_f(1)[0], zero_point=_codes(ot.INT8, 0xFF)[0], output=ot.INT8,
        theirs=[127, 127], ours=[-128, -128],
        why="INT_MIN plus a negative zero point wraps to a large positive number",
    ),
    Difference(
        "reference-promotes-int32", "ONNX reference evaluator", "QuantizeLinear",
        x=np.array([16777217], np.int32), scale=_f(2.0**25)[0], zero_point=None, output=ot.UINT8,
        theirs=[1], ours=[0],
        why="without `precision`, INT32 by FLOAT is divided in float64 (numpy's promotion); the specification casts both to FLOAT",
    ),
    Difference(
        "reference-promotes-mixed-floats", "ONNX reference evaluator", "QuantizeLinear",
        x=_f(0.50001), scale=np.array(1, np.float16), zero_point=None, output=ot.UINT8,
        theirs=[1], ours=[0],
        why="without `precision`, FLOAT by FLOAT16 is divided in FLOAT (numpy's promotion); the specification divides in the scale's type",
    ),
    Difference(
        "runtime-wraps", "ONNX Runtime", "QuantizeLinear",
        x=_f(np.inf, 3e9, -np.inf, np.nan).reshape(2, 2), scale=_f(1, 1).reshape(1, 2), zero_point=_codes(ot.UINT8, 0, 0).reshape(1, 2),
        attributes=dict(axis=0, block_size=2), arguments=dict(axis=0, block_size=2),
        theirs=[0, 0, 0, 0], ours=[255, 255, 0, 0],
        why="its scalar loop (blocks off the last axis, 4-bit but for whole bytes per tensor, 2-bit, FLOAT16) converts to int32 before the clamp",
        covers=_runtime_wraps,
    ),
    Difference(
        "runtime-float16-quotient", "ONNX Runtime", "QuantizeLinear",
        x=np.array([2.25], np.float16), scale=np.array(0.3, np.float16), zero_point=_codes(ot.UINT8, 0)[0],
        theirs=[7], ours=[8],
        why="does not round a FLOAT16 quotient (7.4988, 7.5 in FLOAT16) to FLOAT16; `precision` FLOAT asks the server for the same",
    ),
    Difference(
        "runtime-e4m3fn-overflow", "ONNX Runtime", "QuantizeLinear",
        x=_f(480, 495, -490), scale=_f(1)[0], zero_point=_codes(ot.E4M3FN, 0)[0], output=ot.E4M3FN,
        attributes=dict(saturate=0), arguments=dict(saturate=False),
        theirs=["7E", "7E", "FE"], ours=["7F", "7F", "FF"],
        why="without saturate, values in [480, 496) become 448 instead of NaN (those in (464, 480) become NaN)",
        covers=_range(ot.E4M3FN, 480.0, 496.0, False),
    ),
    Difference(
        "runtime-e5m2-overflow", "ONNX Runtime", "QuantizeLinear",
        x=_f(61440, 65000, -61440), scale=_f(1)[0], zero_point=_codes(ot.E5M2, 0)[0], output=ot.E5M2,
        attributes=dict(saturate=0), arguments=dict(saturate=False),
        theirs=["7F", "7F", "FF"], ours=["7C", "7C", "FC"],
        why="without saturate, values in [61440, 65536) become NaN instead of infinity",
        covers=_range(ot.E5M2, 61440.0, 65536.0, False),
    ),
    Difference(
        "runtime-e5m2-nan", "ONNX Runtime", "QuantizeLinear",
        x=_f(np.nan, -np.nan), scale=_f(1)[0], zero_point=_codes(ot.E5M2, 0)[0], output=ot.E5M2,
        theirs=["7F", "FF"], ours=["7E", "FE"],
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
    Difference(
        "reference-int32-in-two-steps", "ONNX reference evaluator", "DequantizeLinear",
        x=np.array([2**24 + 1], np.int32), scale=_f(1)[0], zero_point=np.array(1, np.int32), output=ot.FLOAT,
        theirs=[2.0**24 - 1], ours=[2.0**24],
        why="rounds an INT32 to FLOAT before it subtracts the zero point; the specification subtracts in integers first",
    ),
    Difference(
        "runtime-int32-wraps", "ONNX Runtime", "DequantizeLinear",
        x=np.array([2**31 - 1], np.int32), scale=_f(1)[0], zero_point=np.array(-1, np.int32), output=ot.FLOAT,
        theirs=[-(2.0**31)], ours=[2.0**31],
        why="subtracts the zero point in 32 bits, which wraps; the specification subtracts in 64",
    ),
    Difference(
        "reference-zeros", "ONNX reference evaluator", "DynamicQuantizeLinear", part=1, opset=11, output=ot.FLOAT,
        x=_f(0, 0), scale=None, theirs=[float(np.float32(1) / np.float32(255))], ours=[1.0],
        why="y_scale of an all-zero x is 1/255; ONNX Runtime and the specification make it 1",
    ),
    Difference(
        "reference-dynamic-nan", "ONNX reference evaluator", "DynamicQuantizeLinear", part=1, opset=11, output=ot.FLOAT,
        x=_f(1, np.nan), scale=None, theirs=[float("nan")], ours="INVALID_ARGUMENT",
        why="answers a NaN scale; quantd refuses, or leaves NaN out of the range with non_finite IGNORE",
    ),
    Difference(
        "runtime-dynamic-infinity", "ONNX Runtime", "DynamicQuantizeLinear", part=1, opset=11, output=ot.FLOAT,
        x=_f(1, np.inf), scale=None, theirs=[float("inf")], ours="INVALID_ARGUMENT",
        why="answers an infinite scale, and y is all zero; quantd refuses, or leaves infinities out with non_finite IGNORE",
    ),
    Difference(
        "runtime-scale-underflow", "ONNX Runtime", "DynamicQuantizeLinear", part=1, opset=11, output=ot.FLOAT,
        x=_f(1e-45), scale=None, theirs=[0.0], ours="INVALID_ARGUMENT",
        why="answers a scale of 0, from which nothing can be restored",
    ),
    Difference(
        "runtime-zero-scale", "ONNX Runtime", "QuantizeLinear", x=_f(1, -1, 0), scale=_f(0)[0], output=ot.UINT8, opset=21,
        theirs=[255, 0, 0], ours="INVALID_ARGUMENT", why="divides by a scale of 0; quantd refuses it and names the index",
    ),
]

# torchao is large and not always there: its rows are words, and each names the test of test_torchao.py that holds it.
# (operation, input, theirs, ours, why, test)
TORCHAO_VERSION = "0.18.0"
TORCHAO = [
    ("MX to_mx", "a block of zeros", "scale code 00", "scale code 7F",
     "takes the smallest scale; the specification takes 1", "test_microscaling_of_zeros_and_denormals_differs"),
    ("nvfp4_quantize", "x FLOAT {6.732655, 1.4026365, 0 ...}", "6, 1.5", "6, 1",
     "multiplies by a reciprocal of the scale, which moves 1.25 off the tie; the specification divides",
     "test_nvfp4_next_to_a_tie_differs"),
    ("nvfp4_quantize", "x FLOAT {1000, 0 ..., 0.01, 0 ...}", "block scales 448, 2^-6", "block scales 448, 2^-8",
     "its least block scale is E4M3FN's least normal number; the specification's is the least of all, 2^-9",
     "test_nvfp4_of_small_blocks_differs"),
]


def shown(answer) -> str:
    """Values of FLOAT answers, integers of integer ones, codes of small floats."""
    if isinstance(answer, str):
        return answer
    return ", ".join(v if isinstance(v, str) else _number(v) for v in answer)


def _number(v) -> str:
    return "-nan" if v != v and np.signbit(v) else f"{v:.9g}"


def flat(y: np.ndarray) -> list:
    """An answer as the table writes it: integers and values, codes in hexadecimal for what has no other name."""
    t = ot.of(y)
    if t.kind == "int":
        return ot.to_int(y).reshape(-1).tolist()
    if t.kind == "float":
        return ot.to_float(y).astype(np.float64).reshape(-1).tolist()
    return [f"{c:02X}" for c in ot.codes(y).reshape(-1)]


def _operand(name: str, array: Optional[np.ndarray]) -> str:
    if array is None:
        return ""
    values = shown(flat(array))
    shape = f" {list(array.shape)}" if array.ndim > 1 else ""
    return f"{name} {ot.of(array).name}{shape} {{{values}}}"


def markdown() -> str:
    """The table, one line a row."""
    lines = ["| implementation | operator, opset | input | theirs | ours | why |", "|---|---|---|---|---|---|"]
    for row in TABLE:
        operands = [_operand("x", row.x), _operand("scale", row.scale), _operand("zero point", row.zero_point)]
        if row.operator == "QuantizeLinear":
            operands.append(f"to {row.output.name}")
        operands += [f"{k} {v}" for k, v in row.attributes.items()]
        lines.append(
            f"| {row.implementation} {row.version} | {row.operator} {row.opset}{', y_scale' if row.part else ''} | "
            f"{', '.join(o for o in operands if o)} | {shown(row.theirs)} | {shown(row.ours)} | {row.why} |")
    for operation, given, theirs, ours, why, _ in TORCHAO:
        lines.append(f"| torchao {TORCHAO_VERSION} | {operation} | {given} | {theirs} | {ours} | {why} |")
    return "\n".join(lines) + "\n"


def readme_with_table(text: str) -> str:
    """README.md with the table of this file between its two marks."""
    head, rest = text.split("<!-- differences -->\n", 1)
    tail = rest.split("<!-- end of differences -->", 1)[1]
    return f"{head}<!-- differences -->\n{markdown()}<!-- end of differences -->{tail}"


if __name__ == "__main__":
    readme = Path(__file__).resolve().parent / "README.md"
    readme.write_text(readme_with_table(readme.read_text()))
