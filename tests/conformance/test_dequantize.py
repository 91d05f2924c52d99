"""Dequantize against the oracle: every code of every type, every zero point, scale, output and granularity."""

import pytest

from compare import name
from judge import check
from quantd_conformance import oracle_types as ot
from quantd_conformance.cases import service
from quantd_conformance.granularity import LARGE

SOURCE = "numerics oracle, Dequantize"


EACH_INPUT = pytest.mark.parametrize("t", service.INPUTS, ids=name)


@EACH_INPUT
@pytest.mark.parametrize("output", ot.FLOATS, ids=name)
def test_every_code(client, output, t):
    check(client, service.dequantize_every_code(output, t, 5000), SOURCE)


@EACH_INPUT
@pytest.mark.parametrize("g", LARGE, ids=name)
def test_granularities(client, g, t):
    check(client, service.dequantize_granularities(t, g), SOURCE)


@pytest.mark.parametrize("t", ot.INTEGERS, ids=name)
def test_int32_zero_points(client, t):
    check(client, service.dequantize_int32_zero_points(t, LARGE), SOURCE)


def test_int32_is_subtracted_exactly(client):
    check(client, service.dequantize_int32(), SOURCE)


@EACH_INPUT
def test_scales_follow_ieee_754(client, t):
    check(client, service.dequantize_special_scales(t, 41), SOURCE)


@EACH_INPUT
def test_every_e8m0_scale(client, t):
    check(client, service.dequantize_every_e8m0_scale(t, 9), SOURCE)


@pytest.mark.parametrize("t", service.TENSOR_SCALED[0], ids=name)
@pytest.mark.parametrize("st", service.TENSOR_SCALED[1], ids=name)
def test_tensor_scale(client, st, t):
    check(client, service.dequantize_tensor_scale(st, t, (33, 101)), SOURCE)
