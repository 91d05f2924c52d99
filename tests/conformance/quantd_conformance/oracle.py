"""The numerics specification in plain numpy: what every answer of the server must be.

An independent second implementation: written from the specification, without code of the server, and optimized
for reading. Arithmetic is float32 unless a line says otherwise.
"""

import math
from dataclasses import dataclass
from typing import Any, List, Optional, Sequence

import numpy as np

from .oracle_types import (
    E2M1, E2M3, E3M2, E4M3FN, E5M2, E8M0, FLOAT, INT8, INT32, UINT8, Type, encode_small, from_codes, largest, of, round_to,
    to_float, to_int,
)

f32 = np.float32
EMAX = {E4M3FN: 8, E5M2: 15, E2M1: 2, E2M3: 2, E3M2: 4, INT8: 6}  # OCP MX 1.0; MXINT8 counts in 1/64


class Invalid(Exception):
    """The request is INVALID_ARGUMENT; field names the wrong one."""

    def __init__(self, field: str, text: str) -> None:
        super().__init__(f"{field}: {text}")
        self.field = field


@dataclass
class Error:
    sqnr_db: float
    mean_squared_error: float
    max_absolute_error: float
    saturated_elements: int
    non_finite_elements: int


@dataclass
class Result:
    y: np.ndarray
    error: Optional[Error] = None
    scale: Optional[np.ndarray] = None
    zero_point: Optional[np.ndarray] = None
    tensor_scale: Optional[np.ndarray] = None


# ---------------------------------------------------------------- granularity


def _axis(shape: Any, axis: Any) -> int:
    rank = len(shape)
    axis = 1 if axis is None else axis
    if not -rank <= axis < rank:
        raise Invalid("axis", f"{axis} is not in [{-rank}, {rank - 1}]")
    return axis % rank


def _ceil(a: int, b: int) -> int:
    return -(-a // b)


def block_of(shape: Any, scale_shape: Any, axis: Any, block_size: Any, block_shape: Any) -> List[int]:
    """Every granularity as one block shape, checked against the scale's shape."""
    shape, scale_shape = list(shape), list(scale_shape)
    if block_shape:
        if axis is not None or block_size:
            raise Invalid("block_shape", "together with axis or block_size")
        if len(block_shape) != len(shape):
            raise Invalid("block_shape", f"{len(block_shape)} lengths, x has rank {len(shape)}")
        if any(b != -1 and b < 1 for b in block_shape):
            raise Invalid("block_shape", "lengths are positive or -1")
        block = [max(d, 1) if b == -1 else b for d, b in zip(shape, block_shape)]
        if scale_shape != [1 if b == -1 else _ceil(d, b) for d, b in zip(shape, block_shape)]:
            raise Invalid("scale", "shape does not follow from block_shape")
        return block
    if block_size < 0:
        raise Invalid("block_size", "is negative")
    if block_size:
        a = _axis(shape, axis)
        block = [block_size if d == a else 1 for d in range(len(shape))]
        if scale_shape != [_ceil(d, b) for d, b in zip(shape, block)]:
            raise Invalid("scale", "shape does not follow from block_size")
        return block
    if scale_shape in ([], [1]):
        return [max(d, 1) for d in shape]
    if len(scale_shape) == 1:
        a = _axis(shape, axis)
        if scale_shape[0] != shape[a]:
            raise Invalid("scale", f"{scale_shape[0]} elements, x has {shape[a]} along axis {a}")
        return [1 if d == a else max(n, 1) for d, n in enumerate(shape)]
    if len(scale_shape) != len(shape):
        raise Invalid("scale", f"rank {len(scale_shape)}, x has rank {len(shape)}")
    if any(d % s if s else d for d, s in zip(shape, scale_shape)):
        raise Invalid("scale", "its shape does not divide that of x")
    return [max(d // max(s, 1), 1) for d, s in zip(shape, scale_shape)]


def spread(small: np.ndarray, shape: Any, block: Any) -> np.ndarray:
    """Expands one value per block to one value per element of x."""
    if not shape:
        return small.reshape(())
    if 0 in shape:
        return np.empty(shape, small.dtype)
    grid = small.reshape([_ceil(d, b) for d, b in zip(shape, block)])
    return grid[np.ix_(*[np.arange(d) // b for d, b in zip(shape, block)])]


# ---------------------------------------------------------------- Quantize


def _quotient(x: np.ndarray, s: np.ndarray, precision: Type) -> np.ndarray:
    """x / s in a precision, as float32. Dividing two half-precision values in float32 and rounding once is exact, because
    float32 has more than twice the digits."""
    with np.errstate(all="ignore"):
        return to_float(round_to(to_float(round_to(x, precision)) / to_float(round_to(s, precision)), precision))


def _integers(v: Any, zero: Any, t: Type, nan: Any, qmin: Any = None) -> Any:
    """clamp(rint(v) + zero): y as codes of t, and the elements that the clamp changed. NaN becomes qmin."""
    qmin = t.qmin if qmin is None else qmin
    bound = np.float64(2.0**40)  # larger than every sum that could still be in a range
    wide = np.rint(np.where(nan, 0, np.clip(v.astype(np.float64), -bound, bound))).astype(np.int64) + zero
    moved = ((wide < qmin) | (wide > t.qmax)) & ~nan
    y = np.where(nan, qmin, np.clip(wide, qmin, t.qmax))
    return from_codes((y & ((1 << t.bits) - 1)).astype(np.uint64).astype(f"u{t.dtype.itemsize}"), t), moved


def quantize(
    x: np.ndarray,
    scale: np.ndarray,
    zero_point: Optional[np.ndarray] = None,
    *,
    output_type: Optional[Type] = None,
    axis: Optional[int] = None,
    block_size: int = 0,
    block_shape: Sequence[int] = (),
    saturate: bool = True,
    precision: Optional[Type] = None,
    before_rounding: bool = False,
    report_error: bool = False,
) -> Result:
    t = output_type or (of(zero_point) if zero_point is not None and of(zero_point) is not INT32 else UINT8)
    st = of(scale)
    if zero_point is not None:
        zt = of(zero_point)
        if list(zero_point.shape) != list(scale.shape) and not (zero_point.size == scale.size == 1
                                                                and max(zero_point.ndim, scale.ndim) < 2):
            raise Invalid("zero_point", "not of scale's shape")
        if zt is not t and not (before_rounding and zt in (INT32, INT8, UINT8)):
            raise Invalid("zero_point", f"{zt.name}, the output is {t.name}")
    if before_rounding and t.kind != "int":
        raise Invalid("zero_point_order", "BEFORE_ROUNDING is for integer outputs")
    if before_rounding and precision not in (None, FLOAT):
        raise Invalid("precision", "BEFORE_ROUNDING divides in FLOAT")
    block = block_of(x.shape, scale.shape, axis, block_size, block_shape)

    s = to_float(scale)
    precision = precision or (st if st.kind == "float" else FLOAT)
    if before_rounding:
        precision = FLOAT
    with np.errstate(all="ignore"):
        cast = to_float(round_to(s, precision))
    bad = (cast == 0) | ~np.isfinite(cast)
    if bad.any():
        raise Invalid("scale", f"element {int(np.argmax(bad.reshape(-1)))} is {cast.reshape(-1)[bad.reshape(-1)][0]}")
    if t.kind == "fp8" and zero_point is not None and (zero_point.view(np.uint8) != 0).any():
        raise Invalid("zero_point", "FLOAT8 takes only zeros")

    values = to_float(x)  # INT32 is converted to FLOAT
    nan = np.isnan(values)
    s_each = spread(s, x.shape, block)
    v = _quotient(values, s_each, precision)
    z_each = None if zero_point is None else spread(zero_point, x.shape, block)
    if t.kind == "int":
        if before_rounding and z_each is not None:
            with np.errstate(all="ignore"):
                v = v + to_float(z_each)
            nan = np.isnan(v)
            y, moved = _integers(v, 0, t, nan)
        else:
            y, moved = _integers(v, 0 if z_each is None else to_int(z_each), t, nan)
    else:
        if t.kind == "mini" and z_each is not None:
            with np.errstate(all="ignore"):
                v = v + to_float(z_each)
        y, moved = encode_small(v, t, saturate, np.signbit(values))
    result = Result(y)
    if report_error:
        result.error = _report(x, y, s_each, z_each, moved)
    return result


# ---------------------------------------------------------------- Dequantize


def dequantize(
    x: np.ndarray,
    scale: np.ndarray,
    zero_point: Optional[np.ndarray] = None,
    *,
    output_type: Optional[Type] = None,
    axis: Optional[int] = None,
    block_size: int = 0,
    block_shape: Sequence[int] = (),
    tensor_scale: Optional[np.ndarray] = None,
) -> Result:
    xt, st = of(x), of(scale)
    if output_type is None:
        if st.kind != "float":
            raise Invalid("output_type", f"a {st.name} scale needs one")
        output_type = st
    block = block_of(x.shape, scale.shape, axis, block_size, block_shape)
    if xt.kind == "fp8" and zero_point is not None and (zero_point.view(np.uint8) != 0).any():
        raise Invalid("zero_point", "FLOAT8 takes only zeros")
    with np.errstate(all="ignore"):
        s = to_float(scale)
        if tensor_scale is not None:
            s = s * f32(tensor_scale.reshape(()))
        s = spread(s, x.shape, block)
        if zero_point is None:
            difference = to_float(x)
        else:
            z = spread(zero_point, x.shape, block)
            if xt is INT32:
                difference = (to_int(x) - to_int(z)).astype(f32)
            else:
                difference = to_float(x) - to_float(z)
        return Result(round_to((difference * s).astype(f32), output_type))


# ---------------------------------------------------------------- DynamicQuantize


def _dynamic_block(shape: Any, axis: Any, block_size: Any, block_shape: Any) -> Any:
    """The block shape, and the shape of y_scale."""
    if block_shape:
        if axis is not None or block_size:
            raise Invalid("block_shape", "together with axis or block_size")
        if len(block_shape) != len(shape) or any(b != -1 and b < 1 for b in block_shape):
            raise Invalid("block_shape", "one positive length, or -1, a dimension")
        block = [max(d, 1) if b == -1 else b for d, b in zip(shape, block_shape)]
        return block, [1 if b == -1 else _ceil(d, b) for d, b in zip(shape, block_shape)]
    if block_size < 0:
        raise Invalid("block_size", "is negative")
    if block_size:
        a = _axis(shape, axis)
        block = [block_size if d == a else 1 for d in range(len(shape))]
        return block, [_ceil(d, b) for d, b in zip(shape, block)]
    if axis is None:
        return [max(d, 1) for d in shape], []
    a = _axis(shape, axis)
    return [1 if d == a else max(n, 1) for d, n in enumerate(shape)], [shape[a]]


def _per_block(values: np.ndarray, scale_shape: Any, block: Any, operation: Any, initial: Any) -> np.ndarray:
    """Reduces the elements of every block."""
    shape = values.shape
    if values.size == 0:
        return np.full(scale_shape, initial, f32)
    counts = [_ceil(d, b) for d, b in zip(shape, block)]
    flat = np.full(int(np.prod(counts)), initial, f32)
    index = spread(np.arange(flat.size).reshape(counts), shape, block)
    operation.at(flat, index.reshape(-1), values.reshape(-1))
    return flat.reshape(counts)


def dynamic_quantize(
    x: np.ndarray,
    *,
    output_type: Optional[Type] = None,
    axis: Optional[int] = None,
    block_size: int = 0,
    block_shape: Sequence[int] = (),
    saturate: bool = True,
    scale_type: Optional[Type] = None,
    symmetric: bool = False,
    ignore: bool = False,
    report_error: bool = False,
) -> Result:
    t, st = output_type or UINT8, scale_type or FLOAT
    block, scale_shape = _dynamic_block(x.shape, axis, block_size, block_shape)
    values = to_float(x)
    finite = np.isfinite(values)
    if not ignore and not finite.all():
        raise Invalid("x", f"element {int(np.argmin(finite.reshape(-1)))} is not finite")
    counted = np.where(finite, values, f32(0))
    low = _per_block(counted, scale_shape, block, np.minimum, 0)
    high = _per_block(counted, scale_shape, block, np.maximum, 0)
    size = np.maximum(-low, high)
    zero = size == 0
    qmin = -127 if t is INT8 else t.qmin
    two_level = st is E4M3FN and t is E2M1  # NVFP4
    symmetric = symmetric or t.kind != "int" or st is E8M0
    if st is E8M0 and t not in EMAX:
        raise Invalid("output_type", f"{t.name} is not a microscaling element")

    tensor_scale = None
    with np.errstate(all="ignore"):
        if st is E8M0:
            # floor(log2) exactly: frexp gives m * 2^e with m in [0.5, 1)
            exponent = np.frexp(size)[1] - 1 - EMAX[t]
            scale = from_codes(np.where(zero, 127, np.clip(exponent + 127, 0, 254)).astype(np.uint8), E8M0)
            used = to_float(scale)
        elif two_level:
            whole = f32(size.max(initial=0))
            ts = f32(1) if whole == 0 else whole / f32(448 * 6)
            bs = np.maximum(to_float(encode_small(size / f32(6) / ts, E4M3FN, True, zero)[0]), f32(2.0**-9))
            bs = np.where(zero, f32(1), bs)
            scale = encode_small(bs, E4M3FN, True, zero)[0]
            tensor_scale = np.array(ts, f32)
            used = bs * ts
        else:
            if t.kind != "int":
                raw = size / largest(t)
            elif symmetric:
                raw = size / f32(t.qmax)
            else:
                raw = (high - low) / f32(t.qmax - qmin)
            raw = np.where(zero, f32(1), raw).astype(f32)
            scale = encode_small(raw, st, False, zero)[0] if st is E4M3FN else round_to(raw, st)
            used = to_float(scale)
        bad = (used == 0) | ~np.isfinite(used)
        if bad.any():
            raise Invalid("x", "its range gives a scale of 0 or infinity")

        s_each = spread(used, x.shape, block)
        v = values / s_each
        z_each, zero_point = None, None
        if not symmetric:
            zp = np.rint(np.clip(f32(qmin) - low / used, f32(qmin), f32(t.qmax)))
            zp = np.where(zero, 0, zp).astype(np.int64)
            zero_point = from_codes((zp & ((1 << t.bits) - 1)).astype(f"u{t.dtype.itemsize}"), t)
            z_each = spread(zero_point, x.shape, block)
    if t.kind == "int":
        y, moved = _integers(v, 0 if z_each is None else to_int(z_each), t, np.isnan(values), qmin)
    else:
        y, moved = encode_small(v, t, saturate, np.signbit(values))
    result = Result(y, scale=scale.reshape(scale_shape), tensor_scale=tensor_scale)
    if zero_point is not None:
        result.zero_point = zero_point.reshape(scale_shape)
    if report_error:
        result.error = _report(x, y, s_each, z_each, moved)
    return result


# ---------------------------------------------------------------- the error report


def _report(x: Any, y: Any, s_each: Any, z_each: Any, moved: Any) -> Error:
    """The figures of report_error, in float64; sums are rounded once, so that they are the same everywhere."""
    exact = x.astype(np.float64) if x.dtype == np.int32 else to_float(x).astype(np.float64)
    finite = np.isfinite(exact)
    back = to_float(y).astype(np.float64)
    if z_each is not None:
        zero = to_int(z_each) if of(z_each).kind == "int" else to_float(z_each)
        back = back - zero.astype(np.float64)
    with np.errstate(all="ignore"):
        difference = (exact - back * s_each.astype(np.float64))[finite]
        signal, noise = math.fsum(exact[finite] ** 2), math.fsum(difference**2)
        count = int(finite.sum())
        return Error(
            sqnr_db=float("inf") if noise == 0 else float(10 * np.log10(signal / noise)),
            mean_squared_error=noise / count if count else 0.0,
            max_absolute_error=float(np.max(np.abs(difference), initial=0.0)),
            saturated_elements=int(moved.sum()),
            non_finite_elements=int((~finite).sum()),
        )
