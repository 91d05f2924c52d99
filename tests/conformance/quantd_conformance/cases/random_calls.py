"""Requests with random rank, shape, granularity, types and options, valid and invalid ones."""

from typing import Any, Dict, Iterator, Tuple

import numpy as np

from .. import oracle
from .. import oracle_types as ot
from ..case import Case
from ..values import KINDS, SEED, any_codes, data, inputs, rng, scales, zero_points
from .service import SCALES, XS, made

ARCHIVED = 150  # per operation
SMALL_TENSOR, LARGE_TENSOR = 120, 4000


def pick(r: Any, choices: Any) -> Any:
    return choices[int(r.integers(len(choices)))]


def a_shape(r: Any, most: int = LARGE_TENSOR) -> Tuple[int, ...]:
    rank = int(r.choice([0, 1, 1, 2, 2, 2, 3, 3, 4, 5]))
    shape = tuple(int(d) for d in r.integers(1, max(2, int(most ** (1 / max(rank, 1)))), rank))
    if rank and r.random() < 0.2:  # lengths of 1 are merged; some tensors are long in one dimension
        shape = tuple(1 if r.random() < 0.5 else d for d in shape)
    if rank and r.random() < 0.03:
        shape = shape[:-1] + (0,)
    return shape


def a_granularity(r: Any, shape: Any) -> Tuple[Dict[str, Any], Tuple[int, ...]]:
    """Arguments, and the scale's shape that they require."""
    rank = len(shape)
    kind = pick(r, ["tensor", "one", "axis", "block_size", "block_shape", "groups"] if rank else ["tensor", "one"])
    axis = int(r.integers(-rank, rank)) if rank else 0
    if kind == "tensor":
        return {}, ()
    if kind == "one":
        return {}, (1,)
    if kind == "axis":
        return {"axis": axis}, (shape[axis],)
    if kind == "block_size":
        b = int(r.integers(1, shape[axis] + 3))
        scale = list(shape)
        scale[axis] = -(-shape[axis] // b)
        return {"axis": axis, "block_size": b}, tuple(scale)
    if kind == "block_shape":
        block = [int(r.integers(1, d + 3)) if r.random() < 0.8 else -1 for d in shape]
        return {"block_shape": block}, tuple(1 if b == -1 else -(-d // b) for d, b in zip(shape, block))
    if rank < 2 or 0 in shape:
        return {}, ()
    return {}, tuple(pick(r, [k for k in range(1, d + 1) if d % k == 0]) for d in shape)


def spoiled(r: Any, options: Any, scale_shape: Any, rank: Any) -> Any:
    """Sometimes makes a request invalid (or valid in another way)."""
    options, scale_shape = dict(options), list(scale_shape)
    what = pick(r, ["axis", "block_size", "block_shape", "longer", "rank", "flat"])
    if what == "axis":
        options["axis"] = int(r.integers(-rank - 2, rank + 2))
    elif what == "block_size":
        options["block_size"] = int(r.integers(-2, 9))
    elif what == "block_shape":
        options["block_shape"] = [int(b) for b in r.integers(-2, 6, max(1, rank + int(r.integers(-1, 2))))]
    elif what == "longer" and scale_shape:
        scale_shape[int(r.integers(len(scale_shape)))] += 1
    elif what == "rank":
        scale_shape.insert(0, 1)
    elif what == "flat":
        scale_shape = [int(np.prod(scale_shape))]
    return options, tuple(scale_shape)


def a_request(r: Any, most: int = LARGE_TENSOR) -> Any:
    shape = a_shape(r, most)
    options, scale_shape = a_granularity(r, shape)
    if r.random() < 0.12:
        options, scale_shape = spoiled(r, options, scale_shape, len(shape))
    return shape, options, scale_shape


def _block(shape: Any, scale_shape: Any, options: Any) -> Any:
    try:
        return oracle.block_of(shape, scale_shape, options.get("axis"), options.get("block_size", 0), options.get("block_shape"))
    except oracle.Invalid:
        return None


def quantize(i: int, most: int = LARGE_TENSOR, seed: int = SEED) -> Case:
    r = rng("random quantize", i, seed=seed)
    shape, options, scale_shape = a_request(r, most)
    xt, st, t = pick(r, XS), pick(r, SCALES), pick(r, ot.OUTPUTS)
    scale = scales(r, scale_shape, st)
    if scale.size and r.random() < 0.03 and st.kind == "float":
        scale.reshape(-1)[int(r.integers(scale.size))] = pick(r, [0.0, np.nan, np.inf])
    zero = zero_points(r, scale_shape, t) if r.random() < 0.7 else None
    if r.random() < 0.2:
        options["precision"] = pick(r, ot.FLOATS)
    if t.kind == "int" and r.random() < 0.2:
        options["zero_point_order"] = "BEFORE_ROUNDING"
        if zero is not None and r.random() < 0.5:
            zero = r.integers(-300, 300, scale_shape).astype(np.int32)
    options["saturate"] = bool(r.random() < 0.6)
    options["report_error"] = bool(r.random() < 0.5)
    block = _block(shape, scale_shape, options)
    s_each = oracle.spread(scale, shape, block) if block is not None else scales(r, shape, ot.FLOAT)
    x = inputs(r, shape, xt, s_each, t)
    return made("mixed", "quantize", "service-mixed", "quantize", (i,), x, scale, zero, output_type=t, **options)


def dequantize(i: int, most: int = LARGE_TENSOR, seed: int = SEED) -> Case:
    r = rng("random dequantize", i, seed=seed)
    shape, options, scale_shape = a_request(r, most)
    t, st = pick(r, ot.OUTPUTS + (ot.INT32,)), pick(r, SCALES)
    zero = zero_points(r, scale_shape, t) if r.random() < 0.7 else None
    if t.kind == "int" and zero is not None and r.random() < 0.3:
        zero = r.integers(-(2**20), 2**20, scale_shape).astype(np.int32)
    if r.random() < 0.9:
        options["output_type"] = pick(r, ot.FLOATS)
    if r.random() < 0.2:
        options["tensor_scale"] = np.array(r.uniform(0, 3), np.float32)
    x, scale = any_codes(r, shape, t), scales(r, scale_shape, st)
    return made("mixed", "dequantize", "service-mixed", "dequantize", (i,), x, scale, zero, **options)


def dynamic_quantize(i: int, most: int = LARGE_TENSOR, seed: int = SEED) -> Case:
    r = rng("random dynamic", i, seed=seed)
    shape, options, _ = a_request(r, most)
    xt, t, st = pick(r, ot.FLOATS), pick(r, ot.OUTPUTS), pick(r, ot.FLOATS * 2 + (ot.E8M0, ot.E4M3FN))
    x = data(r, shape, xt, pick(r, KINDS))
    if r.random() < 0.3:
        flat = x.reshape(-1)
        flat[r.random(flat.size) < 0.05] = pick(r, [np.nan, np.inf, -np.inf])
    options.update(
        output_type=t,
        scale_type=st,
        symmetry="SYMMETRIC" if r.random() < 0.4 else None,
        non_finite="IGNORE" if r.random() < 0.7 else None,
        saturate=bool(r.random() < 0.6),
        report_error=bool(r.random() < 0.5),
    )
    return made("mixed", "dynamic_quantize", "service-mixed", "dynamic_quantize", (i,), x, **options)


MADE = {"quantize": quantize, "dequantize": dequantize, "dynamic_quantize": dynamic_quantize}


def cases() -> Iterator[Case]:
    for one in MADE.values():
        for i in range(ARCHIVED):
            yield one(i, SMALL_TENSOR)
