"""Numbers for tensors that test special cases: ties, edges of ranges, denormals, special values; and ordinary ones.

A case must be the same on every machine and with every release of numpy, because the archive of cases is reproduced byte
for byte. So the random bits are from PCG64, which numpy keeps stable (NEP 19), and everything else uses operations that
IEEE 754 defines: no exp, log or pow.
"""

import math
import zlib
from typing import Any, Sequence

import numpy as np

from . import oracle_types as ot

SEED = 20240229


class Random:
    """The part of numpy's Generator that the cases need, with bits that never change."""

    def __init__(self, *key: Any) -> None:
        self._bits = np.random.PCG64(np.random.SeedSequence(list(key)))

    def random(self, size: Any = None) -> Any:
        """Uniform in [0, 1), with 53 bits."""
        count = 1 if size is None else _count(size)
        raw = np.asarray(self._bits.random_raw(count), np.uint64)
        found = (raw >> np.uint64(11)).astype(np.float64) * 2.0**-53
        return float(found[0]) if size is None else found.reshape(size)

    def uniform(self, low: Any, high: Any, size: Any = None) -> Any:
        return low + self.random(size) * (high - low)

    def integers(self, low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64) -> Any:
        """In [low, high), or in [0, low). The bias of the multiplication is below 2^-20 for the ranges used here."""
        low, high = (0, low) if high is None else (low, high)
        low, high = np.asarray(low), np.asarray(high)
        span = (high - low).astype(np.float64)
        found = np.floor(self.random(size) * span)
        found = np.minimum(found, span - 1).astype(np.int64) + low
        return int(found) if size is None else found.astype(dtype)

    def choice(self, choices: Any, size: Any = None) -> Any:
        choices = np.asarray(choices)
        return choices[self.integers(len(choices), size=size)]

    def standard_normal(self, size: Any = None) -> Any:
        """The sum of twelve uniform numbers, minus six: approximately normal."""
        count = 1 if size is None else _count(size)
        found = np.full(count, -6.0)
        for uniform in self.random((12, count)):  # in this order, independent of numpy's sum
            found = found + uniform
        return float(found[0]) if size is None else found.reshape(size)

    def magnitudes(self, low: int, high: int, size: Any) -> Any:
        """2^low to 2^high, approximately uniform over the octaves."""
        return np.ldexp(1 + self.random(size), self.integers(low, high, size))


def _count(size: Any) -> int:
    return math.prod(size) if isinstance(size, (tuple, list)) else int(size)


def rng(*what: Any, seed: int = SEED) -> Random:
    """The numbers of one case: from a seed and the case's own name."""
    return Random(seed, zlib.crc32(repr(what).encode()))


def of_type(values: np.ndarray, t: ot.Type) -> np.ndarray:
    """float32 values converted to a type of x."""
    if t is ot.INT32:
        return np.clip(np.nan_to_num(values.astype(np.float64)), -(2**31), 2**31 - 1).astype(np.int32)
    with np.errstate(over="ignore"):
        return ot.round_to(values.astype(np.float32), t)


def reach(t: ot.Type) -> float:
    """The magnitude that x / scale must reach to leave the range of an output type."""
    return 1.4 * (max(-t.qmin, t.qmax) if t.kind == "int" else float(ot.largest(t)))


SPECIALS = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-45, 3e38, -3e38, 1e10, -1e10, 2.0**31, -(2.0**31)]


def quotients(r: Random, shape: Any, t: ot.Type, specials: bool) -> np.ndarray:
    """Values of x / scale for an output type: uniform over its range, small ones, exact halves, and special values."""
    size = math.prod(shape)
    far = reach(t)
    v = r.uniform(-far, far, size)
    kind = r.integers(0, 8, size)
    v = np.where(kind == 0, np.floor(v) + 0.5, v)
    v = np.where(kind == 1, r.standard_normal(size) * 2, v)
    v = np.where(kind == 2, r.magnitudes(-20, math.frexp(far)[1], size) * r.choice([-1, 1], size), v)
    v = np.where(kind == 3, np.rint(v * 8) / 8, v)
    if specials:
        v = np.where(r.random(size) < 0.05, r.choice(SPECIALS, size), v)
    return v.astype(np.float32).reshape(shape)


def scales(r: Random, shape: Any, t: ot.Type, negative: bool = True) -> np.ndarray:
    """Valid scales of a type."""
    size = math.prod(shape)
    if t is ot.E8M0:
        return ot.from_codes(r.integers(110, 140, size).astype(np.uint8), t).reshape(shape)
    if t is ot.INT32:
        return (r.integers(1, 50, size) * (r.choice([-1, 1], size) if negative else 1)).astype(np.int32).reshape(shape)
    v = r.magnitudes(-6, 6, size)
    v = np.where(r.random(size) < 0.3, np.ldexp(1.0, np.frexp(v)[1]), v)  # powers of two make exact ties
    if negative:
        v = v * np.where(r.random(size) < 0.15, -1, 1)
    return of_type(v.astype(np.float32), t).reshape(shape)


def inputs(r: Random, shape: Any, xt: ot.Type, s_each: np.ndarray, t: ot.Type, specials: bool = True) -> np.ndarray:
    """x whose quotients by s_each (one per element) are interesting for the output type."""
    with np.errstate(all="ignore"):
        return of_type(quotients(r, shape, t, specials) * ot.to_float(s_each), xt)


def any_codes(r: Random, shape: Any, t: ot.Type) -> np.ndarray:
    """A tensor of random bits."""
    bits = r.integers(0, 1 << min(t.bits, 8 * t.dtype.itemsize), shape)
    return ot.from_codes(np.asarray(bits).astype(f"u{t.dtype.itemsize}"), t)


def zero_points(r: Random, shape: Any, t: ot.Type) -> np.ndarray:
    """Zero points of an output type: any integer, any FLOAT6 and FLOAT4, zeros for FLOAT8."""
    if t.kind == "fp8":
        return ot.from_codes(np.zeros(shape, np.uint8), t)
    return any_codes(r, shape, t)


KINDS = ("plain", "positive", "negative", "constant", "zero", "sparse", "wide")


def data(r: Random, shape: Sequence[int], xt: ot.Type, kind: str) -> np.ndarray:
    """Finite tensors with various ranges, for DynamicQuantize."""
    size = math.prod(shape)
    v = r.standard_normal(size) * 2.0 ** int(r.integers(-10, 10))
    made = {
        "plain": v,
        "positive": np.abs(v) + 1,
        "negative": -np.abs(v) - 1,
        "constant": np.full(size, v[:1].sum()),
        "zero": np.where(r.random(size) < 0.5, 0.0, -0.0),
        "sparse": np.where(r.random(size) < 0.9, 0, v),
        "wide": np.ldexp(v, r.integers(-12, 12, size)),
    }
    return of_type(made[kind].astype(np.float32), xt).reshape(shape)


def ties(t: ot.Type) -> np.ndarray:
    """FLOATs: each midpoint of two neighbours of the output's grid, the one after the largest, and the FLOATs on both sides of each."""
    grid = np.unique(ot.to_float(every_code(t)))
    grid = grid[np.isfinite(grid)].astype(np.float64)
    middle = ((grid[1:] + grid[:-1]) / 2).astype(np.float32)
    middle = np.concatenate([middle, middle[-1:] + (middle[-1:] - grid[-2:-1].astype(np.float32)) * 2])
    return np.concatenate([middle, np.nextafter(middle, np.float32(np.inf)), np.nextafter(middle, np.float32(-np.inf))])


def every_code(t: ot.Type) -> np.ndarray:
    return ot.from_codes(np.arange(1 << t.bits), t)
