"""What a service must refuse. (Our own suites test that it names the field, and how: tests/conformance/test_local.py.)"""

from typing import Any, Dict, Iterator, Tuple

import numpy as np

from .. import oracle_types as ot
from ..case import Case
from .service import F32, words

X = np.ones((4, 6), F32)
U8 = np.zeros((4, 6), np.uint8)
ONE = np.array(1, F32)

BAD: Dict[str, Tuple[str, Tuple[Any, ...], Dict[str, Any]]] = {
    "scale_length": ("quantize", (X, np.ones(3, F32)), {}),
    "scale_rank": ("quantize", (X, np.ones((1, 2, 3), F32)), {}),
    "scale_groups": ("quantize", (X, np.ones((3, 6), F32)), {}),
    "scale_is_0": ("quantize", (X, np.array([1, 0, 1, 1], F32)), dict(axis=0)),
    "scale_is_nan": ("quantize", (X, np.array(np.nan, F32)), {}),
    "scale_is_infinite": ("quantize", (X, np.array(np.inf, F32)), {}),
    "scale_is_0_in_float16": ("quantize", (X, np.array(1e-12, F32)), dict(precision=ot.FLOAT16)),
    "scale_is_infinite_in_float16": ("quantize", (X, np.array(1e9, F32)), dict(precision=ot.FLOAT16)),
    "scale_of_no_elements": ("quantize", (X, np.ones(0, F32)), {}),
    "axis": ("quantize", (X, np.ones(6, F32)), dict(axis=2)),
    "axis_below": ("dequantize", (U8, np.ones(6, F32)), dict(axis=-3)),
    "axis_default": ("quantize", (np.ones(6, F32), np.ones(6, F32)), {}),
    "axis_dynamic": ("dynamic_quantize", (X,), dict(axis=-3)),
    "block_size": ("quantize", (X, ONE), dict(block_size=-1)),
    "block_size_dynamic": ("dynamic_quantize", (X,), dict(block_size=-1)),
    "block_size_and_scale": ("quantize", (X, np.ones((4, 2), F32)), dict(block_size=2)),
    "block_size_and_a_longer_scale": ("dequantize", (U8, np.ones((4, 4), F32)), dict(block_size=2)),
    "block_shape_length": ("dynamic_quantize", (X,), dict(block_shape=[1])),
    "block_shape_of_quantize": ("quantize", (X, np.ones((2, 2), F32)), dict(block_shape=[2])),
    "block_shape_and_scale": ("quantize", (X, np.ones((2, 2), F32)), dict(block_shape=[2, 2])),
    "block_shape_0": ("dynamic_quantize", (X,), dict(block_shape=[0, 1])),
    "block_shape_0_of_quantize": ("quantize", (X, np.ones((4, 6), F32)), dict(block_shape=[0, 1])),
    "block_shape_minus_2": ("dynamic_quantize", (X,), dict(block_shape=[1, -2])),
    "block_shape_and_axis": ("dynamic_quantize", (X,), dict(block_shape=[1, 1], axis=0)),
    "block_shape_and_axis_of_quantize": ("quantize", (X, X), dict(block_shape=[1, 1], axis=0)),
    "block_shape_and_block_size": ("dynamic_quantize", (X,), dict(block_shape=[1, 1], block_size=2)),
    "zero_point_shape": ("quantize", (X, ONE, np.zeros(2, np.uint8)), {}),
    "zero_point_type": ("quantize", (X, ONE, np.array(0, np.int8)), dict(output_type=ot.UINT8)),
    "zero_point_of_float8": ("quantize", (X, ONE, ot.from_codes(np.array(3), ot.E5M2)), {}),
    "zero_point_of_float8_back": ("dequantize", (ot.from_codes(U8, ot.E5M2), ONE, ot.from_codes(np.array(3), ot.E5M2)), {}),
    "output_type_is_missing": ("dequantize", (U8, ot.from_codes(np.array(127), ot.E8M0)), {}),
    "before_rounding_to_float8": ("quantize", (X, ONE), dict(output_type=ot.E5M2, zero_point_order="BEFORE_ROUNDING")),
    "before_rounding_in_float16": (
        "quantize",
        (X, ONE),
        dict(output_type=ot.INT8, precision=ot.FLOAT16, zero_point_order="BEFORE_ROUNDING"),
    ),
    "before_rounding_zero_point": (
        "quantize",
        (X, ONE, np.array(0, np.uint16)),
        dict(output_type=ot.INT8, zero_point_order="BEFORE_ROUNDING"),
    ),
    "mx_of_uint4": ("dynamic_quantize", (X,), dict(scale_type=ot.E8M0, output_type=ot.UINT4)),
    "nan_in_x": ("dynamic_quantize", (F32([1, 2, np.nan]),), {}),
    "infinity_in_x": ("dynamic_quantize", (F32([[1, 2], [np.inf, 0]]),), dict(axis=0)),
    "scale_underflows": ("dynamic_quantize", (F32([1e-45]),), {}),
    "scale_overflows": ("dynamic_quantize", (F32([3e38, -3e38]),), dict(scale_type=ot.FLOAT16)),
    "embedding_not_finite": ("quantize_embeddings", (F32([[1, np.nan]]),), dict(recipe="UNIT")),
    "embedding_infinite": ("quantize_embeddings", (F32([[1, np.inf]]),), dict(recipe="BITS")),
}


def cases() -> Iterator[Case]:
    for name, (operation, arguments, options) in BAD.items():
        given = dict(zip(("x", "scale", "zero_point"), arguments))
        yield Case(name, "service-refused", operation, given, words(**options), family="refused", group="arguments")
