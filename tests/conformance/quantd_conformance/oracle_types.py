"""The numeric types of the specification, from their definitions: decode every code, encode a float32.

Written from the numerics specification alone: it shares no code with the server, and uses ml_dtypes only for the
dtype of the arrays that it returns. Small floats are tables of values; encoding searches the table, with ties to
the even code. float64 is used only where the comparison is exact (a float32 with a midpoint of two table values).
"""

from dataclasses import dataclass

import ml_dtypes
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Type:
    name: str
    number: int
    bits: int
    dtype: np.dtype
    kind: str  # "int", "float" (computes: FLOAT, FLOAT16, BFLOAT16), "fp8", "mini" (FLOAT6, FLOAT4) or "e8m0"
    qmin: int = 0
    qmax: int = 0


def _type(name: Any, number: Any, bits: Any, dtype: Any, kind: str, qmin: int = 0, qmax: int = 0) -> Any:
    return Type(name, number, bits, np.dtype(dtype), kind, qmin, qmax)


FLOAT = _type("FLOAT", 1, 32, np.float32, "float")
FLOAT16 = _type("FLOAT16", 10, 16, np.float16, "float")
BFLOAT16 = _type("BFLOAT16", 16, 16, ml_dtypes.bfloat16, "float")
INT32 = _type("INT32", 6, 32, np.int32, "int", -(2**31), 2**31 - 1)
UINT8 = _type("UINT8", 2, 8, np.uint8, "int", 0, 255)
INT8 = _type("INT8", 3, 8, np.int8, "int", -128, 127)
UINT16 = _type("UINT16", 4, 16, np.uint16, "int", 0, 65535)
INT16 = _type("INT16", 5, 16, np.int16, "int", -32768, 32767)
UINT4 = _type("UINT4", 21, 4, ml_dtypes.uint4, "int", 0, 15)
INT4 = _type("INT4", 22, 4, ml_dtypes.int4, "int", -8, 7)
UINT2 = _type("UINT2", 25, 2, ml_dtypes.uint2, "int", 0, 3)
INT2 = _type("INT2", 26, 2, ml_dtypes.int2, "int", -2, 1)
E4M3FN = _type("FLOAT8E4M3FN", 17, 8, ml_dtypes.float8_e4m3fn, "fp8")
E4M3FNUZ = _type("FLOAT8E4M3FNUZ", 18, 8, ml_dtypes.float8_e4m3fnuz, "fp8")
E5M2 = _type("FLOAT8E5M2", 19, 8, ml_dtypes.float8_e5m2, "fp8")
E5M2FNUZ = _type("FLOAT8E5M2FNUZ", 20, 8, ml_dtypes.float8_e5m2fnuz, "fp8")
E2M1 = _type("FLOAT4E2M1", 23, 4, ml_dtypes.float4_e2m1fn, "mini")
E2M3 = _type("FLOAT6E2M3", 27, 6, ml_dtypes.float6_e2m3fn, "mini")
E3M2 = _type("FLOAT6E3M2", 28, 6, ml_dtypes.float6_e3m2fn, "mini")
E8M0 = _type("FLOAT8E8M0", 24, 8, ml_dtypes.float8_e8m0fnu, "e8m0")

TYPES = {t.name: t for t in (
    FLOAT, UINT8, INT8, UINT16, INT16, INT32, FLOAT16, BFLOAT16, E4M3FN, E4M3FNUZ, E5M2, E5M2FNUZ,
    UINT4, INT4, E2M1, E8M0, UINT2, INT2, E2M3, E3M2)}
BY_DTYPE = {t.dtype: t for t in TYPES.values()}

FLOATS = (FLOAT, FLOAT16, BFLOAT16)
INTEGERS = (UINT8, INT8, UINT16, INT16, UINT4, INT4, UINT2, INT2)
FP8 = (E4M3FN, E4M3FNUZ, E5M2, E5M2FNUZ)
MINI = (E2M3, E3M2, E2M1)  # neither NaN nor infinity
SMALL = FP8 + MINI
OUTPUTS = INTEGERS + SMALL


def of(array: Any) -> Type:
    """The type of an array."""
    return BY_DTYPE[np.asarray(array).dtype]


# Small floats: (exponent bits, mantissa bits, bias, fnuz, largest code, saturated overflow, overflow, NaN)
_FORMATS = {
    "FLOAT8E4M3FN": dict(mantissa=3, bias=7, fnuz=False, largest=0x7E, infinity=None, nan=0x7F),
    "FLOAT8E4M3FNUZ": dict(mantissa=3, bias=8, fnuz=True, largest=0x7F, infinity=None, nan=0x80),
    "FLOAT8E5M2": dict(mantissa=2, bias=15, fnuz=False, largest=0x7B, infinity=0x7C, nan=0x7E),
    "FLOAT8E5M2FNUZ": dict(mantissa=2, bias=16, fnuz=True, largest=0x7F, infinity=None, nan=0x80),
    "FLOAT6E2M3": dict(mantissa=3, bias=1, fnuz=False, largest=31, infinity=None, nan=None),
    "FLOAT6E3M2": dict(mantissa=2, bias=3, fnuz=False, largest=31, infinity=None, nan=None),
    "FLOAT4E2M1": dict(mantissa=1, bias=1, fnuz=False, largest=7, infinity=None, nan=None),
}


def _magnitude(code: int, mantissa: int, bias: int) -> float:
    """The value of a positive code: its bits read as in IEEE 754."""
    exponent, fraction = code >> mantissa, code & ((1 << mantissa) - 1)
    if exponent == 0:
        return fraction * 2.0 ** (1 - bias - mantissa)
    return (2**mantissa + fraction) * 2.0 ** (exponent - bias - mantissa)


def _grid(t: Type) -> np.ndarray:
    """Magnitudes of codes 0 to largest, and of one imaginary code after it that rounding may reach."""
    f = _FORMATS[t.name]
    return np.array([_magnitude(c, f["mantissa"], f["bias"]) for c in range(f["largest"] + 2)], np.float64)


_GRIDS = {t.name: _grid(t) for t in SMALL}


def largest(t: Type) -> np.float32:
    """Largest finite value of a small float."""
    return np.float32(_GRIDS[t.name][-2])


def _decode_table(t: Type) -> np.ndarray:
    f = _FORMATS[t.name]
    half = 1 << (t.bits - 1)
    table = np.full(2 * half, np.nan, np.float32)
    for code in range(f["largest"] + 1):
        table[code] = _GRIDS[t.name][code]
        table[code + half] = -table[code]
    if f["fnuz"]:
        table[half] = np.nan
    if f["infinity"] is not None:
        table[f["infinity"]], table[f["infinity"] + half] = np.inf, -np.inf
    return table


_DECODE = {t.name: _decode_table(t) for t in SMALL}


def bf16_round(v: np.ndarray) -> np.ndarray:
    """float32 -> bfloat16, half to even, NaN kept (quiet, with its sign)."""
    v = np.asarray(v, np.float32)
    bits = v.view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    quiet = ((bits >> 16) | 0x40).astype(np.uint16)
    return np.where(np.isnan(v), quiet, rounded).astype(np.uint16).view(ml_dtypes.bfloat16)


def codes(array: np.ndarray) -> np.ndarray:
    """The bits of an array: one unsigned integer per element, unused high bits zero."""
    array = np.asarray(array, order="C")
    t = of(array)
    bits = array.reshape(-1).view(f"u{array.dtype.itemsize}").reshape(array.shape)
    return bits & bits.dtype.type((1 << t.bits) - 1) if t.bits < 8 else bits


def from_codes(values: np.ndarray, t: Type) -> np.ndarray:
    """The array with these bits."""
    values = np.asarray(values, f"u{t.dtype.itemsize}", order="C")
    if t.bits < 8 and t.kind == "int" and t.qmin < 0:
        sign = np.uint8(1 << (t.bits - 1))
        with np.errstate(over="ignore"):
            values = np.asarray((values ^ sign) - sign)
    return values.reshape(-1).view(t.dtype).reshape(values.shape)


def to_float(array: np.ndarray) -> np.ndarray:
    """Every type except INT32 exactly; INT32 rounded to FLOAT."""
    t = of(array)
    if t is BFLOAT16:
        return (codes(array).astype(np.uint32) << np.uint32(16)).view(np.float32).reshape(array.shape)
    if t.kind in ("fp8", "mini"):
        return _DECODE[t.name][codes(array)]
    if t is E8M0:
        c = codes(array).astype(np.int32)
        return np.where(c == 255, np.float32(np.nan), np.ldexp(np.float32(1), np.minimum(c, 254) - 127)).astype(np.float32)
    if t.kind == "int" and t.bits < 8:
        return to_int(array).astype(np.float32)
    return array.astype(np.float32)


def to_int(array: np.ndarray) -> np.ndarray:
    """The integers of an integer array, as int64."""
    t = of(array)
    if t.bits >= 8:
        return array.astype(np.int64)
    c = codes(array).astype(np.int64)
    return np.where(c > t.qmax, c - (1 << t.bits), c)


def round_to(v: np.ndarray, t: Type) -> np.ndarray:
    """float32 -> FLOAT, FLOAT16 or BFLOAT16, half to even."""
    if t is FLOAT16:
        return v.astype(np.float16)
    return bf16_round(v) if t is BFLOAT16 else v


def encode_small(v: np.ndarray, t: Type, saturate: bool, nan_sign: Any) -> Any:
    """float32 -> FLOAT8, FLOAT6 or FLOAT4 by the specification's table.

    Returns the array, and which elements were larger than the largest value after rounding (including infinities).
    """
    f, grid = _FORMATS[t.name], _GRIDS[t.name]
    half = 1 << (t.bits - 1)
    if t.kind == "mini":  # the imaginary code after the largest is that of -0
        saturate = True
    size = np.abs(v).astype(np.float64)
    nan = np.isnan(v)
    size = np.where(nan, 0, size)
    below = np.clip(np.searchsorted(grid, size, side="right") - 1, 0, len(grid) - 2)
    middle = (grid[below] + grid[below + 1]) / 2
    up = (size > middle) | ((size == middle) & (below % 2 == 1))
    code = below + up
    past = (code > f["largest"]) | np.isinf(size)
    if saturate:
        code = np.where(past, f["largest"], code)
    elif f["infinity"] is not None:
        code = np.where(past, f["infinity"], code)
    else:
        code = np.where(past, f["nan"], code)
    negative = np.signbit(v)
    if f["fnuz"]:
        code = np.where(negative & (code != 0) & (code != 0x80), code + half, code)
    else:
        code = np.where(negative, code + half, code)
    if t.kind == "mini":
        code = np.where(nan, np.where(nan_sign, 0, half), code)
    elif f["fnuz"]:
        code = np.where(nan, f["nan"], code)
    else:
        code = np.where(nan, f["nan"] + half * nan_sign, code)
    return from_codes(code.astype(np.uint8), t), past & ~nan
