"""The rules that cases test: for each the sentence that defines it, with its source, or what no sentence defines.

Sentences of ONNX are quoted from the operators' documentation (onnx 1.23.2), in the first version that has them.
"""

from dataclasses import dataclass
from typing import Any, Dict, Tuple


@dataclass(frozen=True)
class Rule:
    """sentences: (first version of the operator, the sentence). open: what the sentences leave open; empty if they define everything."""

    name: str
    source: str
    sentences: Tuple[Tuple[int, str], ...]
    open: str = ""

    def sentence(self, version: int = 0) -> str:
        fitting = [text for since, text in self.sentences if since <= version or not version]
        return (fitting or [self.sentences[0][1]])[-1]


RULES: Dict[str, Rule] = {}


def _rule(name: Any, source: Any, *sentences: Any, open: str = "") -> None:
    pairs = tuple(s if isinstance(s, tuple) else (0, s) for s in sentences)
    RULES[name] = Rule(name, source, pairs, open)


Q, D, DQL, CAST = "QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "Cast"
FORMULA = "The quantization formula is y = saturate((x / y_scale) + y_zero_point)."
RANGES_10 = "For saturation, it saturates to [0, 255] if it's uint8, or [-128, 127] if it's int8."
RANGES_21 = (
    "Saturation is done according to: uint16: [0, 65535], int16: [-32768, 32767], uint8: [0, 255], int8: [-128, 127], "
    "uint4: [0, 15], int4: [-8, 7]."
)
RANGES_25 = RANGES_21[:-1] + ", uint2: [0, 3], int2: [-2, 1]."
SATURATES = ((10, RANGES_10), (21, RANGES_21), (25, RANGES_25))
EVEN = ((10, "For (x / y_scale), it's rounding to the nearest even."), (21, "For (x / y_scale), it rounds to the nearest even."))
AXIS = (
    (10, "It's a scalar, which means a per-tensor/layer quantization."),
    (
        13,
        "The scale factor and zero point must have same shape, and can be either a scalar for per-tensor / per layer quantization, "
        "or a 1-D tensor for per-axis quantization.",
    ),
    (21, "Per-axis quantization: The scale must be a 1-D tensor, with the length of the quantization axis."),
)
TYPE_OF_SCALE = (
    "The type of y_scale determines the precision of the division operation between x and y_scale, unless the "
    "precision attribute is specified."
)
BLOCKS = (
    "Blocked quantization: The scale's shape is identical to the input's shape, except for one dimension, in which blocking is performed. "
    "Given x shape (D0, ..., Di, ..., Dn), axis=i, and block size B: y_scale shape is (D0, ..., ceil(Di/B), ..., Dn)."
)
DEQUANTIZES = "The dequantization formula is y = (x - x_zero_point) * x_scale."
UNUSED_ZERO = (
    (
        19,
        "'y_zero_point' is usually not used for quantization to float8e4m3fn, float8e4m3fnuz, float8e5m2, float8e5m2fnuz, but the "
        "quantization formula remains the same for consistency.",
    ),
    (
        23,
        "y_zero_point is usually not used for quantization to float8 and 4bit types, but the quantization formula remains the same for "
        "consistency.",
    ),
)

# ---- QuantizeLinear
_rule("quantize-types", Q, FORMULA)
_rule("quantize-division", Q, FORMULA)
_rule("quantize-ties-to-even", Q, *EVEN)
_rule("quantize-zero-point", Q, FORMULA)
_rule("quantize-default-is-uint8", Q, "Default is uint8 with zero point of 0 if it's not specified.")
_rule(
    "quantize-output-dtype",
    Q,
    "If neither output_dtype nor y_zero_point are supplied, output data type is uint8.",
    (21, "The output data type. If not supplied, the output data type is inferred from y_zero_point data type."),
)
_rule("quantize-saturates", Q, *SATURATES)
_rule("quantize-saturates-past-int32", Q, *SATURATES)
_rule("quantize-saturates-infinity", Q, *SATURATES)
_rule("quantize-negative-scale", Q, FORMULA)
_rule("quantize-denormals", Q, FORMULA)
_rule("quantize-extreme-scales", Q, FORMULA)
_rule("quantize-per-tensor", Q, (10, AXIS[0][1]), (21, "Per-tensor (per-layer) quantization: y_scale is a scalar."))
_rule("quantize-per-axis", Q, *AXIS)
_rule("quantize-blocks", Q, BLOCKS)
_rule("quantize-ragged-blocks", Q, BLOCKS)
_rule("quantize-empty", Q, "N-D quantized output tensor. It has same shape as input x.")
_rule("quantize-float8e8m0-scale", Q, FORMULA)  # by a power of two: the same in any precision
_rule("quantize-precision-of-scale", Q, TYPE_OF_SCALE)
_rule(
    "quantize-precision",
    Q,
    "The precision of the division operation between x and y_scale. If not provided, it will be the same as the type of y_scale.",
)
_rule(
    "quantize-float8-rounds",
    CAST,
    "else: RNE (the table of conversions to float 8; [x] means the value rounded to the target mantissa width)",
)
_rule("quantize-float8-saturates", CAST, "[x] > FLT_MAX: FLT_MAX (saturate is true)")
_rule("quantize-float8-infinity-saturates", CAST, "Inf: FLT_MAX (saturate is true)")
_rule("quantize-float8-overflows", CAST, "[x] > FLT_MAX: NaN for E4M3FN, E4M3FNUZ and E5M2FNUZ, Inf for E5M2 (saturate is false)")
_rule("quantize-float8-infinity-overflows", CAST, "Inf: NaN for E4M3FN, E4M3FNUZ and E5M2FNUZ, Inf for E5M2 (saturate is false)")
_rule("quantize-float8-nan", CAST, "NaN: NaN")
_rule("quantize-float8-zeros", CAST, "-0: -0 for E4M3FN and E5M2, 0 for E4M3FNUZ and E5M2FNUZ")
_rule("quantize-minifloat-rounds", Q, *EVEN)
_rule("quantize-minifloat-saturates", Q, FORMULA)
_rule("quantize-minifloat-infinity", Q, FORMULA)
_rule("quantize-minifloat-zero-point", Q, UNUSED_ZERO[1][1])

# ---- DequantizeLinear
_rule("dequantize-every-code", D, DEQUANTIZES)
_rule("dequantize-zero-point", D, DEQUANTIZES)
_rule(
    "dequantize-minifloat-zero-point",
    D,
    "zero-point is usually not used in the case of float8 and 4-bit types quantization, but the dequantization "
    "formula remains the same for consistency.",
)
_rule("dequantize-int32", D, "In the case of dequantizing int32, there's no zero point (zero point is supposed to be 0).")
_rule(
    "dequantize-per-axis",
    D,
    (
        13,
        "x_scale and x_zero_point must have same shape, and can be either a scalar for per-tensor / per layer quantization, "
        "or a 1-D tensor for per-axis quantization.",
    ),
)
_rule(
    "dequantize-blocks",
    D,
    "x_scale and x_zero_point must have the same shape: a scalar, a 1-D tensor for per-axis quantization, or have a rank "
    "identical to the input for blocked quantization. See QuantizeLinear for details on quantization granularity.",
)
_rule("dequantize-ragged-blocks", D, BLOCKS)
_rule("dequantize-empty", D, "x and y must have the same shape.")
_rule(
    "dequantize-output-dtype",
    D,
    "The output type is determined by the attribute output_dtype. If output_dtype is not supplied then the output type is the "
    "same as x_scale.",
)
_rule("dequantize-special-scales", D, DEQUANTIZES)
_rule("dequantize-float8e8m0-scale", D, DEQUANTIZES)

# ---- DynamicQuantizeLinear
_rule("dynamic-scale", DQL, "y_scale = (maximum(0, max(x)) - minimum(0, min(x))) / (qmax - qmin)")
_rule("dynamic-range-holds-zero", DQL, "data range is adjusted to include 0.")
_rule(
    "dynamic-zero-point",
    DQL,
    "intermediate_zero_point = qmin - min(x)/y_scale; y_zero_point = cast(round(saturate(intermediate_zero_point)))",
)
_rule("dynamic-ties-to-even", DQL, "rounding to nearest ties to even.")
_rule("dynamic-denormals", DQL, "y_scale = (maximum(0, max(x)) - minimum(0, min(x))) / (qmax - qmin)")

# ---- what ONNX leaves open
_rule("open-nan-to-integer", Q, FORMULA, open="which integer a NaN becomes")
_rule("open-nan-to-minifloat", Q, FORMULA, open="what a NaN becomes in a type that has none")
_rule("open-which-nan", CAST, "NaN: NaN", open="which of the NaNs, and with what sign")
_rule(
    "open-float8-infinity-saturates",
    CAST,
    (19, "Inf: FLT_MAX for E4M3FN and E5M2, NaN for E4M3FNUZ and E5M2FNUZ (saturate is true; Cast 19 to 23)"),
    open="whether QuantizeLinear before version 24 follows Cast 19, where an infinity becomes NaN, or Cast 24, where it becomes "
        "FLT_MAX; its own "
    "text names tables that are not in it",
)
_rule("open-float8-negative-zero", Q, *UNUSED_ZERO, open="whether a zero point of 0 is added to -0, which makes it 0, or not at all")
_rule("open-float8-zero-point", Q, *UNUSED_ZERO, open="whether a zero point other than 0 is added, or refused")
_rule("open-precision-of-division", Q, FORMULA, open="in which precision FLOAT16 and BFLOAT16 are divided before version 23")
_rule("open-int32-division", Q, FORMULA, open="in which precision INT32 is divided by FLOAT before version 23, and by INT32 in any version")
_rule("open-int32-scale", Q, TYPE_OF_SCALE, open="what a division in the precision of INT32 is")
_rule("open-scale-zero", Q, FORMULA, open="what a scale of 0, infinity or NaN gives")
_rule("open-scale-of-one-element", Q, *AXIS, open="whether a 1-D scale of one element is per tensor where the axis has another length")
_rule(
    "open-precision-of-product",
    D,
    DEQUANTIZES,
    (23, "The output type also determines the precision of the multiplication operation."),
    open="whether the operands are rounded to the output type before they are multiplied, or only the product",
)
_rule(
    "open-dequantize-int32-zero-point",
    D,
    "In the case of dequantizing int32, there's no zero point (zero point is supposed to be 0).",
    open="what one that is there does, and whether INT32 is rounded to FLOAT before or after it is subtracted",
)
_rule(
    "open-dequantize-float8-zero-point",
    D,
    (
        19,
        "zero-point is usually not used in the case of float8e4m3fn, float8e4m3fnuz, float8e5m2, float8e5m2fnuz "
        "quantization, but the dequantization formula remains the same for consistency.",
    ),
    open="whether one other than 0 is subtracted, or refused",
)
_rule(
    "open-dynamic-zeros", DQL, "y_scale = (maximum(0, max(x)) - minimum(0, min(x))) / (qmax - qmin)", open="what y_scale is where that is 0"
)
_rule(
    "open-dynamic-not-finite",
    DQL,
    "y_scale = (maximum(0, max(x)) - minimum(0, min(x))) / (qmax - qmin)",
    open="what NaN and infinities in x give",
)
_rule(
    "open-dynamic-underflow",
    DQL,
    "y_scale = (maximum(0, max(x)) - minimum(0, min(x))) / (qmax - qmin)",
    open="what a y_scale that underflows to 0 gives",
)

# ---- what ONNX does not have
NUMERICS = "quantd, core/NUMERICS.md"
ONEDNN = "oneDNN Graph, Quantize"
OCP = "OCP Microscaling Formats 1.0"
EMBEDDINGS = "quantd, core/EMBEDDINGS.md"
_rule("onednn-order", ONEDNN, "dst = round(src / scale + zp): the zero point is added before the quotient is rounded, in FLOAT.")
_rule(
    "service-types", NUMERICS, "The division is done in precision, else in the scale's type, else (FLOAT8E8M0 and INT32 scales) in FLOAT."
)
_rule(
    "service-granularity",
    NUMERICS,
    "One scale for the tensor, one an index of axis, ONNX blocks, groups, or block_shape, of which all the others are special cases.",
)
_rule("service-precision", NUMERICS, "Both operands are cast to that type and the quotient is rounded to it.")
_rule("service-scales-of-every-size", NUMERICS, "Scales may be negative or denormal.")
_rule("service-float8e8m0-scales", NUMERICS, "FLOAT8E8M0 is 2^(code - 127); FF is NaN, 00 is 2^-127.")
_rule(
    "service-every-pattern",
    NUMERICS,
    "y = clamp(rint(x / scale) + zero_point): a true division, rounded; then round half to even; then the zero point; then the clamp.",
)
_rule("service-ties", NUMERICS, "A true division, rounded; then round half to even; then the zero point in wide integers; then the clamp.")
_rule("service-every-code", NUMERICS, "y = (x - zero_point) * scale in FLOAT, then one rounding to the output type.")
_rule("service-int32", NUMERICS, "INT32 subtracts in 64 bits first.")
_rule("service-special-scales", NUMERICS, "Any scale is accepted (by Dequantize).")
_rule("service-tensor-scale", NUMERICS, "With tensor_scale the scale is scale * tensor_scale, rounded to FLOAT, first.")
_rule(
    "service-dynamic-range",
    NUMERICS,
    "scale = (mx - mn) / (qmax - qmin), zero_point = rint(clamp(qmin - mn / scale, qmin, qmax)), all in FLOAT and in that order.",
)
_rule("service-scale-type", NUMERICS, "scale_type rounds the scale before it is used; the division stays in FLOAT.")
_rule(
    "service-non-finite",
    NUMERICS,
    "NaN and infinities are refused, naming the first; with non_finite: IGNORE they take no part in the range.",
)
_rule(
    "service-refused",
    NUMERICS,
    "Shapes must fit exactly: nothing is broadcast or cut off. Scales may be negative or denormal; 0, NaN and infinities are refused.",
)
_rule("service-mixed", NUMERICS, "y = clamp(rint(x / scale) + zero_point)")
_rule(
    "mx-scale",
    OCP,
    "The shared scale is the largest power of two that is not above the largest magnitude of the block, divided by the largest "
    "power of two "
    "of the element's format.",
)
_rule("nvfp4", NUMERICS, "ts = max|x| / (448 * 6), bs = E4M3FN(max|block| / 6 / ts), at least 2^-9, y = E2M1(x / (bs * ts)).")
_rule(
    "embeddings-ranges",
    EMBEDDINGS,
    "step = (high - low) / 255, a step of 0 becomes 1; q = floor((x - low) / step), clamped to [0, 255], in FLOAT.",
)
_rule(
    "embeddings-unit",
    EMBEDDINGS,
    "v = (x + 1) / s - 128, s the FLOAT next to 2 / 255; clamped to [-128, 127], truncated towards 0, in double.",
)
_rule(
    "embeddings-direction", EMBEDDINGS, "v = x * 127 / length, the product first; clamped to [-127, 127], truncated towards 0, in double."
)
_rule(
    "embeddings-bits",
    EMBEDDINGS,
    "bit i is x_i > 0, or with GREATER_OR_EQUAL x_i >= 0; eight to a byte; every embedding begins at a byte; unused bits are 0.",
)
