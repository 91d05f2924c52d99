"""The types that each version of ONNX's operators supports."""

from typing import List

from . import oracle_types as ot

OPSETS = (10, 13, 19, 21, 23, 24, 25, 28)

# The opset that introduced a type, of y for QuantizeLinear and of x for DequantizeLinear.
SINCE = {
    ot.UINT8: 10,
    ot.INT8: 10,
    ot.INT32: 10,
    **dict.fromkeys(ot.FP8, 19),
    ot.INT16: 21,
    ot.UINT16: 21,
    ot.INT4: 21,
    ot.UINT4: 21,
    ot.E2M1: 23,
    ot.INT2: 25,
    ot.UINT2: 25,
    ot.E2M3: 28,
    ot.E3M2: 28,
}
SINCE_FLOAT = {ot.FLOAT: 10, ot.INT32: 10, ot.FLOAT16: 19, ot.BFLOAT16: 19, ot.E8M0: 24}
SINCE_PRECISION = 23  # x and scale may have different types; attributes precision and DequantizeLinear's output_dtype
SINCE_BLOCKS = 21  # and output_dtype


def outputs(opset: int) -> List[ot.Type]:
    """Types of y."""
    return [t for t in ot.OUTPUTS if SINCE[t] <= opset]


def xs(opset: int) -> List[ot.Type]:
    return [t for t in (*ot.FLOATS, ot.INT32) if SINCE_FLOAT[t] <= opset]


def scales_of(opset: int, xt: ot.Type) -> List[ot.Type]:
    """The types of scale that QuantizeLinear accepts for a type of x."""
    if opset < 19:
        return [ot.FLOAT]
    if opset < SINCE_PRECISION:
        return [xt]
    return [t for t in (*ot.FLOATS, ot.INT32, ot.E8M0) if SINCE_FLOAT[t] <= opset]
