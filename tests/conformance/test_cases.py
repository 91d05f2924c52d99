"""The three operations against the oracle: larger versions of the kit's cases, of every type, granularity, precision, order and scale type."""

import itertools

import numpy as np
import pytest

import quantd
from compare import name
from judge import check
from quantd_conformance import oracle_types as ot
from quantd_conformance.cases import dynamic, service
from quantd_conformance.granularity import LARGE

HALVES = (ot.FLOAT16, ot.BFLOAT16)
ZERO_POINTS = (None, ot.INT32, ot.INT8, ot.UINT8)
# A function that makes cases, and its arguments: one test for each combination.
ROWS = [
    (service.quantize_types, service.XS, ot.OUTPUTS, [LARGE]),
    (service.quantize_granularities, ot.OUTPUTS, LARGE),
    (service.quantize_precision, ot.FLOATS, ot.OUTPUTS, [LARGE]),
    (service.before_rounding, ot.INTEGERS, ZERO_POINTS, [LARGE]),
    (service.quantize_scales_of_every_size, ot.OUTPUTS, [31]),
    (service.quantize_every_e8m0_scale, ot.OUTPUTS, [21]),
    (service.quantize_every_pattern, HALVES, ot.OUTPUTS),
    (service.quantize_every_tie, ot.OUTPUTS),
    (service.dequantize_every_code, ot.FLOATS, service.INPUTS, [5000]),
    (service.dequantize_granularities, service.INPUTS, LARGE),
    (service.dequantize_int32_zero_points, ot.INTEGERS, [LARGE]),
    (service.dequantize_int32,),
    (service.dequantize_special_scales, service.INPUTS, [41]),
    (service.dequantize_every_e8m0_scale, service.INPUTS, [9]),
    (service.dequantize_tensor_scale, service.TENSOR_SCALED[1], service.TENSOR_SCALED[0], [(33, 101)]),
    (dynamic.granularities, ot.OUTPUTS, dynamic.with_ranges(LARGE)),
    (dynamic.scale_types, ot.OUTPUTS, ot.FLOATS, [LARGE]),
    (dynamic.non_finite, ot.OUTPUTS, [LARGE]),
    (dynamic.microscaling, ot.FLOATS, dynamic.MX_TYPES, [dynamic.LARGE_SHAPES]),
    (dynamic.nvfp4, ot.FLOATS, [dynamic.LARGE_SHAPES]),
    (dynamic.scales_that_do_not_fit,),
    (dynamic.large, ot.OUTPUTS),
]
TESTS = [(make, arguments) for make, *each in ROWS for arguments in itertools.product(*each)]


def named(make, arguments):
    return "-".join([make.__name__, *(name(a) for a in arguments if not isinstance(a, (list, tuple)))])


@pytest.mark.parametrize("make,arguments", TESTS, ids=itertools.starmap(named, TESTS))
def test_cases(client, make, arguments):
    check(client, make(*arguments), f"numerics oracle, {make.__module__.rpartition('.')[2]}")


def test_the_first_bad_index_is_named(client):
    x = np.zeros((40, 1000), np.float32)
    x[31, 5], x[39, 999] = np.nan, np.inf
    with pytest.raises(quantd.InvalidArgumentError, match="31005|31, 5"):
        client.dynamic_quantize(x)
