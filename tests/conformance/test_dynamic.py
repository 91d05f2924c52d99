"""DynamicQuantize against the oracle: every output type, granularity, symmetry and scale type; MX and NVFP4."""

import numpy as np
import pytest

import quantd
from compare import name
from judge import check
from quantd_conformance import oracle_types as ot
from quantd_conformance.cases import dynamic
from quantd_conformance.granularity import LARGE

SOURCE = "numerics oracle, DynamicQuantize"
GRAINS = dynamic.with_ranges(LARGE)


EACH_OUTPUT = pytest.mark.parametrize("t", ot.OUTPUTS, ids=name)
EACH_FLOAT = pytest.mark.parametrize("xt", ot.FLOATS, ids=name)


@EACH_OUTPUT
@pytest.mark.parametrize("g", GRAINS, ids=name)
def test_granularities(client, g, t):
    check(client, dynamic.granularities(t, g), SOURCE)


@EACH_OUTPUT
@pytest.mark.parametrize("st", ot.FLOATS, ids=name)
def test_scale_types(client, st, t):
    check(client, dynamic.scale_types(t, st, LARGE), SOURCE)


@EACH_OUTPUT
def test_non_finite(client, t):
    check(client, dynamic.non_finite(t, LARGE), SOURCE)


def test_the_first_bad_index_is_named(client):
    x = np.zeros((40, 1000), np.float32)
    x[31, 5], x[39, 999] = np.nan, np.inf
    with pytest.raises(quantd.InvalidArgumentError, match="31005|31, 5"):
        client.dynamic_quantize(x)


@pytest.mark.parametrize("t", dynamic.MX_TYPES, ids=name)
@EACH_FLOAT
def test_microscaling(client, xt, t):
    check(client, dynamic.microscaling(xt, t, dynamic.LARGE_SHAPES), SOURCE)


@EACH_FLOAT
def test_nvfp4(client, xt):
    check(client, dynamic.nvfp4(xt, dynamic.LARGE_SHAPES), SOURCE)


def test_scales_that_do_not_fit_are_refused(client):
    check(client, dynamic.scales_that_do_not_fit(), SOURCE)


@EACH_OUTPUT
def test_large(client, t):
    check(client, dynamic.large(t), SOURCE)
