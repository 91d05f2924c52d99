"""DynamicQuantize beyond ONNX: every output type, granularity, symmetry and scale type; microscaling and NVFP4."""

import itertools
from typing import Any, Dict, Iterator

import numpy as np

from .. import oracle_types as ot
from ..case import Case
from ..granularity import SMALL, Granularity
from ..values import KINDS, data, of_type, rng
from .service import F32, Grains, made, named


def with_ranges(grains: Grains) -> Grains:
    """The granularities of DynamicQuantize, which has no scale whose shape could define them."""
    return [g for g in grains if not g.name.startswith("groups")]


def arguments(g: Granularity) -> Dict[str, Any]:
    options = g.arguments
    if g.name.startswith(("tensor", "scalar", "empty")):
        return {}
    return options if "block_size" in options or "block_shape" in options else {"axis": options.get("axis", 1)}


def dynamic(
    group: str,
    rule: str,
    what: Any,
    x: Any,
    *,
    symmetric: bool = False,
    ignore: bool = False,
    family: str = "dynamic_quantize",
    **options: Any,
) -> Case:
    words = {"symmetry": "SYMMETRIC" if symmetric else None, "non_finite": "IGNORE" if ignore else None}
    return made(
        family,
        group,
        rule,
        "dynamic_quantize",
        (*what, "symmetric" if symmetric else "", "ignore" if ignore else ""),
        x,
        **words,
        **options,
    )


def granularities(t: ot.Type, g: Granularity) -> Iterator[Case]:
    for xt, kind in itertools.product(ot.FLOATS, KINDS if g.name in ("tensor", "axis 1", "tiles 3-D") else KINDS[::5]):
        r = rng("dynamic", g.name, t.name, xt.name, kind)
        for symmetric in (False, True):
            yield dynamic(
                "granularities",
                "service-dynamic-range",
                (g, xt, t, kind),
                data(r, g.shape, xt, kind),
                output_type=t,
                symmetric=symmetric,
                report_error=True,
                **arguments(g),
            )


def scale_types(t: ot.Type, st: ot.Type, grains: Grains = SMALL) -> Iterator[Case]:
    for g, xt in itertools.product(named(grains, "tensor", "axis 0", "blocks last odd", "tiles"), ot.FLOATS):
        r = rng("scale type", g.name, t.name, st.name, xt.name)
        for symmetric, kind in itertools.product((False, True), ("plain", "positive")):
            yield dynamic(
                "scale_types",
                "service-scale-type",
                (g, xt, st, t, kind),
                data(r, g.shape, xt, kind),
                output_type=t,
                scale_type=st,
                symmetric=symmetric,
                **arguments(g),
            )


def non_finite(t: ot.Type, grains: Grains = SMALL) -> Iterator[Case]:
    for xt, (g, symmetric) in itertools.product(ot.FLOATS, itertools.product(with_ranges(grains)[:9], (False, True))):
        r = rng("non-finite", g.name, t.name, xt.name, symmetric)
        x = data(r, g.shape, xt, "plain")
        flat = x.reshape(-1)
        for value in (np.nan, -np.nan, np.inf, -np.inf):
            flat[r.random(flat.size) < (0.03 if flat.size > 200 else 0.08)] = value
        for saturate in (None, False) if t.kind == "fp8" else (None,):
            yield dynamic(
                "non_finite",
                "service-non-finite",
                (g, xt, t, "unsaturated" if saturate is False else ""),
                x,
                output_type=t,
                symmetric=symmetric,
                ignore=True,
                saturate=saturate,
                report_error=True,
                **arguments(g),
            )
        yield dynamic("non_finite", "service-non-finite", (g, xt, t, "reject"), x, output_type=t, symmetric=symmetric, **arguments(g))


MX_TYPES = (ot.E4M3FN, ot.E5M2, *ot.MINI, ot.INT8)
LARGE_SHAPES = (((8, 256), 1), ((8, 101), -1), ((70, 9), 0), ((3, 40, 5), 1))
SMALL_SHAPES = (((2, 64), 1), ((2, 41), -1), ((35, 3), 0), ((2, 34, 2), 1))


def microscaling(xt: ot.Type, t: ot.Type, shapes: Any = SMALL_SHAPES) -> Iterator[Case]:
    for shape, axis in shapes:
        for kind in ("plain", "wide", "sparse", "zero"):
            r = rng("mx", xt.name, t.name, shape, kind)
            x = data(r, shape, xt, kind)
            with np.errstate(over="ignore"):
                tiny = of_type(ot.to_float(x) * F32(2.0**-125), xt)
                huge = of_type(np.clip(ot.to_float(x) * F32(2.0**118), -3e38, 3e38), xt)
            for what, values in (("", x), ("tiny", tiny), ("huge", huge)):
                yield dynamic(
                    f"mx_{t.name.lower()}",
                    "mx-scale",
                    (xt, t, *shape, kind, what),
                    values,
                    family="mx",
                    output_type=t,
                    scale_type=ot.E8M0,
                    axis=axis,
                    block_size=32,
                    report_error=not what,
                )


def microscaling_edges(t: ot.Type) -> Iterator[Case]:
    """Blocks whose largest value is at, below and above powers of two; blocks of zeros, of denormals, and of the largest number."""
    r = rng("mx edges", t.name)
    rows = []
    for exponent in (-149, -133, -127, -126, -60, -1, 0, 1, 8, 60, 126, 127):
        top = np.ldexp(1.0, exponent)
        for edge in (top, np.nextafter(F32(top), F32(0)), np.nextafter(F32(top), F32(np.inf)), F32(1.9999999) * F32(top)):
            row = (r.uniform(-1, 1, 32) * float(edge)).astype(F32)
            row[3] = -edge
            rows.append(row)
    x = np.stack(rows)
    yield dynamic(
        f"mx_{t.name.lower()}",
        "mx-scale",
        (t, "edges"),
        x[np.isfinite(x).all(axis=1)],
        family="mx",
        output_type=t,
        scale_type=ot.E8M0,
        axis=1,
        block_size=32,
    )


def nvfp4(xt: ot.Type, shapes: Any = SMALL_SHAPES) -> Iterator[Case]:
    for shape, axis in shapes:
        for kind in KINDS:
            r = rng("nvfp4", xt.name, shape, kind)
            yield dynamic(
                "nvfp4",
                "nvfp4",
                (xt, *shape, kind),
                data(r, shape, xt, kind),
                family="nvfp4",
                output_type=ot.E2M1,
                scale_type=ot.E4M3FN,
                axis=axis,
                block_size=16,
                report_error=True,
            )


def nvfp4_edges() -> Iterator[Case]:
    """Blocks far below the largest one, whose scales are denormal or minimal; quotients on ties."""
    x = np.zeros((12, 16), F32)
    x[:, 0] = np.ldexp(1.0, -np.arange(12)).astype(F32) * F32(1000)
    x[:, 1:8] = x[:, :1] / F32(6) * np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5], F32)
    x[0, 9], x[0, 10] = F32(6.732655), F32(1.4026365)
    for i, factor in enumerate((1, 1e-3, 1e-30, 3e34)):
        yield dynamic(
            "nvfp4",
            "nvfp4",
            ("edges", i),
            x * F32(factor),
            family="nvfp4",
            output_type=ot.E2M1,
            scale_type=ot.E4M3FN,
            axis=1,
            block_size=16,
        )


def scales_that_do_not_fit() -> Iterator[Case]:
    for i, (x, options) in enumerate(
        (
            ([1e-45], {}),
            ([3.4e38, -3.4e38], {}),
            ([1e-3], {"scale_type": ot.FLOAT16, "output_type": ot.INT16, "symmetric": True}),
            ([3e38], {"scale_type": ot.FLOAT16}),
        )
    ):
        yield dynamic("scales", "service-scale-type", (i,), np.array(x, F32), **options)


def large(t: ot.Type) -> Iterator[Case]:
    """For our suites only: large enough for several tasks of a threaded kernel."""
    x = data(rng("large", t.name), (701, 1031), ot.FLOAT, "wide")
    for options in ({"report_error": True}, {"axis": 0}, {"axis": 1}):
        yield dynamic("large", "service-dynamic-range", (t, *options), x, output_type=t, **options)


def cases() -> Iterator[Case]:
    for t, g in itertools.product(ot.OUTPUTS, with_ranges(SMALL)):
        yield from granularities(t, g)
    for t, st in itertools.product(ot.OUTPUTS, ot.FLOATS):
        yield from scale_types(t, st)
    for t in ot.OUTPUTS:
        yield from non_finite(t)
    for t in MX_TYPES:
        for xt in ot.FLOATS:
            yield from microscaling(xt, t)
        yield from microscaling_edges(t)
    for xt in ot.FLOATS:
        yield from nvfp4(xt)
    yield from nvfp4_edges()
    yield from scales_that_do_not_fit()
