"""Requests of random everything: rank, shape, granularity, types, options, right ones and wrong ones, against the oracle.

What the specification refuses must be refused, what it takes must be answered bit for bit. A failure names its case;
QUANTD_SEED repeats the run.
"""

import numpy as np
import pytest

import ask
import oracle
import oracle_types as ot
import test_dequantize
import test_dynamic
import test_quantize
from generate import any_codes, inputs, rng, scales, zero_points

XS = ot.FLOATS + (ot.INT32,)
SCALES = ot.FLOATS + (ot.INT32, ot.E8M0)


def pick(r, choices):
    return choices[int(r.integers(len(choices)))]


def a_shape(r):
    rank = int(r.choice([0, 1, 1, 2, 2, 2, 3, 3, 4, 5]))
    shape = tuple(int(d) for d in r.integers(1, max(2, int(4000 ** (1 / max(rank, 1)))), rank))
    if rank and r.random() < 0.2:  # lengths of 1 merge away; some tensors are long in one dimension
        shape = tuple(1 if r.random() < 0.5 else d for d in shape)
    if rank and r.random() < 0.03:
        shape = shape[:-1] + (0,)
    return shape


def a_granularity(r, shape):
    """Arguments, and the scale's shape that they ask for."""
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


def spoiled(r, options, scale_shape, rank):
    """Now and then, a request that has something wrong with it (or turns out to be right in another way)."""
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


def a_request(r):
    shape = a_shape(r)
    options, scale_shape = a_granularity(r, shape)
    if r.random() < 0.12:
        options, scale_shape = spoiled(r, options, scale_shape, len(shape))
    return shape, options, scale_shape


def block_or_none(shape, scale_shape, options):
    try:
        return oracle.block_of(shape, scale_shape, options.get("axis"), options.get("block_size", 0), options.get("block_shape"))
    except oracle.Invalid:
        return None


CHUNKS = pytest.mark.parametrize("chunk", range(10))
EACH = 100


@CHUNKS
def test_quantize_requests(client, chunk):
    for i in range(chunk * EACH, (chunk + 1) * EACH):
        r = rng("random quantize", i)
        shape, options, scale_shape = a_request(r)
        xt, st, t = pick(r, XS), pick(r, SCALES), pick(r, ot.OUTPUTS)
        scale = scales(r, scale_shape, st)
        if scale.size and r.random() < 0.03 and st.kind == "float":
            scale.reshape(-1)[int(r.integers(scale.size))] = pick(r, [0.0, np.nan, np.inf])
        zero = zero_points(r, scale_shape, t) if r.random() < 0.7 else None
        if r.random() < 0.2:
            options["precision"] = pick(r, ot.FLOATS)
        if t.kind == "int" and r.random() < 0.2:
            options["before_rounding"] = True
            if zero is not None and r.random() < 0.5:
                zero = r.integers(-300, 300, scale_shape).astype(np.int32)
        options["saturate"] = bool(r.random() < 0.6)
        options["report_error"] = bool(r.random() < 0.5)
        block = block_or_none(shape, scale_shape, options)
        s_each = oracle.spread(scale, shape, block) if block is not None else scales(r, shape, ot.FLOAT)
        x = inputs(r, shape, xt, s_each, t)
        try:
            if block is None:
                refused("quantize", client, x, scale, zero, output_type=t, **options)
            else:
                test_quantize.check(client, x, scale, zero, output_type=t, **options)
        except AssertionError as error:
            raise AssertionError(f"case {i}, x {xt.name} {shape}, scale {st.name} {scale_shape}: {error}") from error


@CHUNKS
def test_dequantize_requests(client, chunk):
    for i in range(chunk * EACH, (chunk + 1) * EACH):
        r = rng("random dequantize", i)
        shape, options, scale_shape = a_request(r)
        t, st = pick(r, ot.OUTPUTS + (ot.INT32,)), pick(r, SCALES)
        zero = zero_points(r, scale_shape, t) if r.random() < 0.7 else None
        if t.kind == "int" and zero is not None and r.random() < 0.3:
            zero = r.integers(-(2**20), 2**20, scale_shape).astype(np.int32)
        if r.random() < 0.9:
            options["output_type"] = pick(r, ot.FLOATS)
        if r.random() < 0.2:
            options["tensor_scale"] = np.array(r.uniform(0, 3), np.float32)
        x, scale = any_codes(r, shape, t), scales(r, scale_shape, st)
        try:
            test_dequantize.check(client, x, scale, zero, **options)
        except AssertionError as error:
            raise AssertionError(f"case {i}, x {t.name} {shape}, scale {st.name} {scale_shape}: {error}") from error


@CHUNKS
def test_dynamic_quantize_requests(client, chunk):
    for i in range(chunk * EACH, (chunk + 1) * EACH):
        r = rng("random dynamic", i)
        shape, options, _ = a_request(r)
        xt, t, st = pick(r, ot.FLOATS), pick(r, ot.OUTPUTS), pick(r, ot.FLOATS * 2 + (ot.E8M0, ot.E4M3FN))
        x = test_dynamic.data(r, shape, xt, pick(r, test_dynamic.KINDS)).copy()
        if r.random() < 0.3:
            flat = x.reshape(-1)
            flat[r.random(flat.size) < 0.05] = pick(r, [np.nan, np.inf, -np.inf])
        options.update(output_type=t, scale_type=st, symmetric=bool(r.random() < 0.4), ignore=bool(r.random() < 0.7),
                       saturate=bool(r.random() < 0.6), report_error=bool(r.random() < 0.5))
        try:
            test_dynamic.check(client, x, **options)
        except AssertionError as error:
            raise AssertionError(f"case {i}, x {xt.name} {shape}: {error}") from error


def refused(operation, client, *arguments, **options):
    assert ask.both(operation, client, *arguments, **options) == (None, None)
