"""Random tensors that hit what matters: ties, edges of ranges, denormals, specials, beside plain numbers. Seeded."""

import os
import zlib

import numpy as np

import oracle_types as ot

SEED = int(os.environ.get("QUANTD_SEED", "20240229"))


def rng(*what) -> np.random.Generator:
    """A generator for one test case: the run's seed, and the case's own name."""
    return np.random.default_rng([SEED, zlib.crc32(repr(what).encode())])


def of_type(values: np.ndarray, t: ot.Type) -> np.ndarray:
    """float32 values as x of a type."""
    if t is ot.INT32:
        return np.clip(np.nan_to_num(values.astype(np.float64)), -(2**31), 2**31 - 1).astype(np.int32)
    with np.errstate(over="ignore"):
        return ot.round_to(values.astype(np.float32), t)


def reach(t: ot.Type) -> float:
    """How far x / scale must go to leave the range of an output type."""
    return 1.4 * (max(-t.qmin, t.qmax) if t.kind == "int" else float(ot.largest(t)))


def quotients(r: np.random.Generator, shape, t: ot.Type, specials: bool) -> np.ndarray:
    """Values of x / scale for an output type: uniform over its range, small ones, exact halves, and specials."""
    size = int(np.prod(shape))
    far = reach(t)
    v = r.uniform(-far, far, size)
    kind = r.integers(0, 8, size)
    v = np.where(kind == 0, np.floor(v) + 0.5, v)
    v = np.where(kind == 1, r.standard_normal(size) * 2, v)
    v = np.where(kind == 2, np.exp2(r.uniform(-20, np.log2(far), size)) * r.choice([-1, 1], size), v)
    v = np.where(kind == 3, np.round(v * 8) / 8, v)
    if specials:
        some = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-45, 3e38, -3e38, 1e10, -1e10, 2.0**31, -(2.0**31)]
        v = np.where(r.random(size) < 0.05, r.choice(some, size), v)
    return v.astype(np.float32).reshape(shape)


def scales(r: np.random.Generator, shape, t: ot.Type, negative: bool = True) -> np.ndarray:
    """Legal scales of a type."""
    size = int(np.prod(shape))
    if t is ot.E8M0:
        return ot.from_codes(r.integers(110, 140, size).astype(np.uint8), t).reshape(shape)
    if t is ot.INT32:
        return (r.integers(1, 50, size) * (r.choice([-1, 1], size) if negative else 1)).astype(np.int32).reshape(shape)
    v = np.exp2(r.uniform(-6, 6, size))
    v = np.where(r.random(size) < 0.3, np.exp2(np.round(np.log2(v))), v)  # powers of two make exact ties
    if negative:
        v = v * np.where(r.random(size) < 0.15, -1, 1)
    return of_type(v.astype(np.float32), t).reshape(shape)


def inputs(r, shape, xt: ot.Type, s_each: np.ndarray, t: ot.Type, specials: bool = True) -> np.ndarray:
    """x whose quotients by s_each (one an element) are interesting for the output type."""
    with np.errstate(all="ignore"):
        return of_type(quotients(r, shape, t, specials) * ot.to_float(s_each), xt)


def any_codes(r, shape, t: ot.Type) -> np.ndarray:
    """A tensor of uniformly random bits."""
    width = 8 * t.dtype.itemsize
    bits = r.integers(0, 1 << min(t.bits, width), shape, dtype=np.uint64)
    return ot.from_codes(np.asarray(bits, f"u{t.dtype.itemsize}"), t)


def zero_points(r, shape, t: ot.Type) -> np.ndarray:
    """Zero points of an output type: any integer, any FLOAT6 and FLOAT4, zeros for FLOAT8."""
    if t.kind == "fp8":
        return ot.from_codes(np.zeros(shape, np.uint8), t)
    return any_codes(r, shape, t)
