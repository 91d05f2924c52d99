"""Quantize against the oracle: every type of x, scale and y, every granularity, precision and zero-point order."""

import pytest

from compare import name
from judge import check
from quantd_conformance import oracle_types as ot
from quantd_conformance.cases import service
from quantd_conformance.granularity import LARGE

SOURCE = "numerics oracle, Quantize"


EACH_OUTPUT = pytest.mark.parametrize("t", ot.OUTPUTS, ids=name)


@EACH_OUTPUT
@pytest.mark.parametrize("xt", service.XS, ids=name)
def test_types(client, xt, t):
    check(client, service.quantize_types(xt, t, LARGE), SOURCE)


@pytest.mark.parametrize("g", LARGE, ids=name)
@EACH_OUTPUT
def test_granularities(client, t, g):
    check(client, service.quantize_granularities(t, g), SOURCE)


@EACH_OUTPUT
@pytest.mark.parametrize("precision", ot.FLOATS, ids=name)
def test_precision(client, precision, t):
    check(client, service.quantize_precision(precision, t, LARGE), SOURCE)


@pytest.mark.parametrize("t", ot.INTEGERS, ids=name)
@pytest.mark.parametrize("zt", (None, ot.INT32, ot.INT8, ot.UINT8), ids=lambda t: t.name if t else "no zero point")
def test_before_rounding(client, zt, t):
    check(client, service.before_rounding(t, zt, LARGE), SOURCE)


@EACH_OUTPUT
def test_scales_of_every_size(client, t):
    check(client, service.quantize_scales_of_every_size(t, 31), SOURCE)


@EACH_OUTPUT
def test_every_e8m0_scale(client, t):
    check(client, service.quantize_every_e8m0_scale(t, 21), SOURCE)


@EACH_OUTPUT
@pytest.mark.parametrize("xt", (ot.FLOAT16, ot.BFLOAT16), ids=name)
def test_every_pattern(client, xt, t):
    check(client, service.quantize_every_pattern(xt, t), SOURCE)


@EACH_OUTPUT
def test_every_tie(client, t):
    check(client, service.quantize_every_tie(t), SOURCE)
