"""DynamicQuantize against the oracle: every output type, granularity, symmetry and scale type; MX and NVFP4."""

import itertools

import numpy as np
import pytest

import ask
import oracle_types as ot
from cases import GRANULARITIES
from compare import count, same
from generate import of_type, rng
from test_quantize import errors_match

GRAINS = [g for g in GRANULARITIES if not g.name.startswith("groups")]


def name(p):
    return getattr(p, "name", None) or str(p)


def arguments(g):
    """A granularity's arguments for DynamicQuantize, which has no scale to say them by its shape."""
    options = g.arguments
    if g.name.startswith(("tensor", "scalar", "empty")):
        return {}
    return options if "block_size" in options or "block_shape" in options else {"axis": options.get("axis", 1)}


def check(client, x, **options):
    ours, expected = ask.both("dynamic_quantize", client, x, **options)
    count("numerics oracle, DynamicQuantize", x.size)
    if expected is None:
        return
    what = f"x {ot.of(x).name} {x.shape}, {({k: name(v) for k, v in options.items()})}"
    same(ours.scale, expected.scale, "scale: " + what)
    for part in ("zero_point", "tensor_scale"):
        a, b = getattr(ours, part), getattr(expected, part)
        assert (a is None) == (b is None), f"{part} is {a}, expected {b}: {what}"
        if b is not None:
            same(a, b, f"{part}: {what}")
    same(ours.y, expected.y, "y: " + what, x)
    if options.get("report_error"):
        errors_match(ours.error, expected.error)


def data(r, shape, xt, kind):
    """Tensors with ranges of many kinds, row by row."""
    size = int(np.prod(shape))
    v = r.standard_normal(size) * np.exp2(r.integers(-10, 10))
    v = {"plain": v, "positive": np.abs(v) + 1, "negative": -np.abs(v) - 1, "constant": np.full(size, v[:1].sum()),
         "zero": np.where(r.random(size) < 0.5, 0.0, -0.0), "sparse": np.where(r.random(size) < 0.9, 0, v),
         "wide": v * np.exp2(r.integers(-12, 12, size))}[kind]
    return of_type(v.astype(np.float32), xt).reshape(shape)


KINDS = ("plain", "positive", "negative", "constant", "zero", "sparse", "wide")


@pytest.mark.parametrize("t", ot.OUTPUTS, ids=name)
@pytest.mark.parametrize("g", GRAINS, ids=name)
def test_granularities(client, g, t):
    for xt, kind in itertools.product(ot.FLOATS, KINDS if g.name in ("tensor", "axis 1", "tiles 3-D") else KINDS[::5]):
        r = rng("dynamic", g.name, t.name, xt.name, kind)
        for symmetric in (False, True):
            check(client, data(r, g.shape, xt, kind), output_type=t, symmetric=symmetric, report_error=True, **arguments(g))


@pytest.mark.parametrize("t", ot.OUTPUTS, ids=name)
@pytest.mark.parametrize("st", ot.FLOATS, ids=name)
def test_scale_types(client, st, t):
    for g, xt in itertools.product([g for g in GRAINS if g.name in ("tensor", "axis 0", "blocks last odd", "tiles")], ot.FLOATS):
        r = rng("scale type", g.name, t.name, st.name, xt.name)
        for symmetric, kind in itertools.product((False, True), ("plain", "positive")):
            check(client, data(r, g.shape, xt, kind), output_type=t, scale_type=st, symmetric=symmetric, **arguments(g))


@pytest.mark.parametrize("t", ot.OUTPUTS, ids=name)
def test_non_finite(client, t):
    for xt, (g, symmetric) in itertools.product(ot.FLOATS, itertools.product(GRAINS[:9], (False, True))):
        r = rng("non-finite", g.name, t.name, xt.name, symmetric)
        x = data(r, g.shape, xt, "plain").copy()
        flat = x.reshape(-1)
        for value in (np.nan, -np.nan, np.inf, -np.inf):
            flat[r.random(flat.size) < 0.03] = value
        for saturate in (True, False) if t.kind == "fp8" else (True,):
            check(client, x, output_type=t, symmetric=symmetric, ignore=True, saturate=saturate, report_error=True, **arguments(g))
        check(client, x, output_type=t, symmetric=symmetric, **arguments(g))


def test_the_first_bad_index_is_named(client):
    import quantd

    x = np.zeros((40, 1000), np.float32)
    x[31, 5], x[39, 999] = np.nan, np.inf
    with pytest.raises(quantd.InvalidArgumentError, match="31005|31, 5"):
        client.dynamic_quantize(x)


@pytest.mark.parametrize("t", (ot.E4M3FN, ot.E5M2, *ot.MINI, ot.INT8), ids=name)
@pytest.mark.parametrize("xt", ot.FLOATS, ids=name)
def test_microscaling(client, xt, t):
    for shape, axis in (((8, 256), 1), ((8, 101), -1), ((70, 9), 0), ((3, 40, 5), 1)):
        for kind in ("plain", "wide", "sparse", "zero"):
            r = rng("mx", xt.name, t.name, shape, kind)
            x = data(r, shape, xt, kind)
            check(client, x, output_type=t, scale_type=ot.E8M0, axis=axis, block_size=32, report_error=True)
            with np.errstate(over="ignore"):
                tiny = of_type(ot.to_float(x) * np.float32(2.0**-125), xt)
                huge = of_type(np.clip(ot.to_float(x) * np.float32(2.0**118), -3e38, 3e38), xt)
            for extreme in (tiny, huge):
                check(client, extreme, output_type=t, scale_type=ot.E8M0, axis=axis, block_size=32)


@pytest.mark.parametrize("xt", ot.FLOATS, ids=name)
def test_nvfp4(client, xt):
    for shape, axis in (((8, 256), 1), ((8, 101), -1), ((70, 9), 0), ((3, 40, 5), 1)):
        for kind in KINDS:
            r = rng("nvfp4", xt.name, shape, kind)
            check(client, data(r, shape, xt, kind), output_type=ot.E2M1, scale_type=ot.E4M3FN, axis=axis, block_size=16,
                  report_error=True)


def test_scales_that_do_not_fit_are_refused(client):
    for x, options in ((np.float32([1e-45]), {}), (np.float32([3.4e38, -3.4e38]), {}),
                       (np.float32([1e-3]), {"scale_type": ot.FLOAT16, "output_type": ot.INT16, "symmetric": True}),
                       (np.float32([3e38]), {"scale_type": ot.FLOAT16})):
        check(client, x, **options)


@pytest.mark.parametrize("t", ot.OUTPUTS, ids=name)
def test_large(client, t):
    x = data(rng("large", t.name), (701, 1031), ot.FLOAT, "wide")
    check(client, x, output_type=t, report_error=True)
    check(client, x, output_type=t, axis=0)
    check(client, x, output_type=t, axis=1)
