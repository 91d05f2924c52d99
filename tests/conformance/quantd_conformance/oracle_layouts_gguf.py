"""GGML's block types, for oracle_layouts.py: converts rows of FLOAT to bytes and back, from core/LAYOUTS.md."""

from typing import Callable, Dict, Tuple

import numpy as np

from . import oracle_types as ot
from .oracle import Invalid

F32 = np.float32
BLOCK = 32
BYTES = {"q8_0": 34, "q4_0": 18, "q4_1": 20, "q5_0": 22, "q5_1": 24, "mxfp4": 17}  # of 32 elements
K_TYPES = {"q2_k": 84, "q3_k": 110, "q4_k": 144, "q5_k": 176, "q6_k": 210}  # bytes of 256 elements
VALUES = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12], F32)


def _half(values: np.ndarray) -> np.ndarray:
    found = values.astype(np.float16)
    if np.isinf(found).any():
        raise Invalid("x", "has a scale or an element that FLOAT16 does not hold")
    return found


def _reciprocal(d: np.ndarray) -> np.ndarray:
    return np.where(d == 0, F32(0), F32(1) / d)


def _away(v: np.ndarray) -> np.ndarray:
    """Rounded half away from zero; non-finite values become 0."""
    v = np.where(np.isfinite(v), v, F32(0)).astype(np.float64)
    return (np.sign(v) * np.floor(np.abs(v) + 0.5)).astype(np.int64)


def _truncated(v: np.ndarray, most: int) -> np.ndarray:
    v = np.where(np.isfinite(v), v, F32(0))
    return np.minimum(np.trunc(v).astype(np.int64) & 255, most)


def _nibbles(codes: np.ndarray) -> np.ndarray:
    """16 bytes per block: code i in the low half of byte i, code i + 16 in the high half."""
    return ((codes[:, :16] & 15) | (codes[:, 16:] & 15) << 4).astype(np.uint8)


def _fifths(codes: np.ndarray) -> np.ndarray:
    """4 bytes per block: bit i is bit 4 of code i."""
    return np.packbits(codes >> 4 & 1, axis=1, bitorder="little")


def _smallest(x: np.ndarray) -> np.ndarray:
    """Of zeros of both signs the first in numpy's order, which is that of AVX-512."""
    found = x.min(axis=1)
    ordered = x[:, (*range(31, 16, -1), 4, 0, 12, 8, 16, 2, 10, 6, 14, 3, 11, 7, 15, 1, 9, 5, 13)]
    first = np.take_along_axis(ordered, (ordered == 0).argmax(axis=1)[:, None], axis=1)[:, 0]
    return np.where(found == 0, first, found)


def _extreme(x: np.ndarray) -> np.ndarray:
    """The first element with the largest magnitude."""
    return np.take_along_axis(x, np.abs(x).argmax(axis=1)[:, None], axis=1)[:, 0]


def encode(x: np.ndarray, name: str) -> np.ndarray:
    """As FLOAT16 or BFLOAT16, or as bytes [rows, bytes of a row]."""
    if name == "f16":
        return _half(x)
    if name == "bf16":
        return ot.round_to(x, ot.BFLOAT16)
    rows, x = x.shape[0], x.reshape(-1, BLOCK)
    parts = {"q8_0": _q8_0, "mxfp4": _mxfp4}.get(name, _q4_or_5)(x, name)
    return np.concatenate([np.ascontiguousarray(p).view(np.uint8).reshape(len(x), -1) for p in parts], axis=1).reshape(rows, -1)


def _q8_0(x: np.ndarray, name: str) -> Tuple[np.ndarray, ...]:
    d = np.abs(x).max(axis=1) / F32(127)
    return _half(d), _away(x * _reciprocal(d)[:, None]).astype(np.int8)


def _q4_or_5(x: np.ndarray, name: str) -> Tuple[np.ndarray, ...]:
    most = 31 if name.startswith("q5") else 15
    if name.endswith("_0"):
        middle = (most + 1) // 2
        d = _extreme(x) / F32(-middle)
        heads = (_half(d),)
        codes = _truncated(x * _reciprocal(d)[:, None] + F32(middle + 0.5), most)
    else:
        m = _smallest(x)
        d = (x.max(axis=1) - m) / F32(most)
        heads = (_half(d), _half(m))
        codes = _truncated((x - m[:, None]) * _reciprocal(d)[:, None] + F32(0.5), most)
    return (*heads, _fifths(codes), _nibbles(codes)) if most == 31 else (*heads, _nibbles(codes))


def _mxfp4(x: np.ndarray, name: str) -> Tuple[np.ndarray, ...]:
    a = np.abs(x).max(axis=1)
    whole = np.floor(np.log2(np.where(a == 0, 1, a).astype(np.float64)).astype(F32)).astype(np.int64)  # rounded to FLOAT before the floor
    e = np.where(a == 0, 0, np.maximum(whole + 125, 0))
    away = np.abs(_unit(e)[:, None, None] * VALUES - x[:, :, None])
    return e.astype(np.uint8), _nibbles(away.argmin(axis=2))


def _unit(e: np.ndarray) -> np.ndarray:
    """2^(e - 128), half of the scale, because the values are doubled."""
    return np.ldexp(1.0, e.astype(np.int32) - 128).astype(F32)


# ---------------------------------------------------------------- decoding


def decode(stored: np.ndarray, name: str) -> np.ndarray:
    if name in ("f16", "bf16"):
        return ot.to_float(stored)
    size, elements = (K_TYPES[name], 256) if name in K_TYPES else (BYTES[name], BLOCK)
    return DECODERS[name](stored.reshape(-1, size)).reshape(stored.shape[0], stored.shape[1] // size * elements)


def _float16(block: np.ndarray, at: int) -> np.ndarray:
    return np.ascontiguousarray(block[:, at : at + 2]).view(np.float16).astype(F32)  # [blocks, 1]


def _codes(block: np.ndarray, at: int) -> np.ndarray:
    qs = block[:, at : at + 16]
    return np.concatenate([qs & 15, qs >> 4], axis=1).astype(np.int64)


def _with_fifths(block: np.ndarray, at: int) -> np.ndarray:
    return _codes(block, at + 4) | np.unpackbits(block[:, at : at + 4], axis=1, bitorder="little").astype(np.int64) << 4


def _f(codes: np.ndarray) -> np.ndarray:
    return codes.astype(F32)


# The position of each of the 256 elements.
AT = np.arange(256)


def _pair(qs: np.ndarray) -> np.ndarray:
    return qs[:, 32 * (AT // 128) + AT % 32] >> (2 * (AT // 32 % 4)) & 3


def _bit(qh: np.ndarray) -> np.ndarray:
    return qh[:, AT % 32] >> (AT // 32) & 1


def _q2_k(b: np.ndarray) -> np.ndarray:
    b, d, dmin = b.astype(np.int64), _float16(b, 80), _float16(b, 82)
    scales = b[:, AT // 16]
    return (d * _f(scales & 15)) * _f(_pair(b[:, 16:80])) - dmin * _f(scales >> 4)


def _q3_k(b: np.ndarray) -> np.ndarray:
    b, d = b.astype(np.int64), _float16(b, 108)
    k, scales = AT // 16, b[:, 96:108]
    sc = (scales[:, k % 8] >> (4 * (k // 8)) & 15 | (scales[:, 8 + k % 4] >> (2 * (k // 4)) & 3) << 4) - 32
    return (d * _f(sc)) * _f(_pair(b[:, 32:96]) - np.where(_bit(b[:, :32]) == 1, 0, 4))


def _six_bits(s: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
    """The scale and minimum of each element, from 12 bytes."""
    j = AT // 32
    low, after = np.minimum(j, 3), np.maximum(j, 4)
    sc = np.where(j < 4, s[:, low] & 63, s[:, np.minimum(after + 4, 11)] & 15 | s[:, after - 4] >> 6 << 4)
    m = np.where(j < 4, s[:, low + 4] & 63, s[:, np.minimum(after + 4, 11)] >> 4 | s[:, after] >> 6 << 4)
    return sc, m


def _q4_or_5_k(b: np.ndarray, five: bool) -> np.ndarray:
    b, d, dmin = b.astype(np.int64), _float16(b, 0), _float16(b, 2)
    qs = b[:, 48 if five else 16 :]
    q = qs[:, 32 * (AT // 64) + AT % 32] >> (4 * (AT // 32 % 2)) & 15
    if five:
        q = q + 16 * _bit(b[:, 16:48])
    sc, m = _six_bits(b[:, 4:16])
    return (d * _f(sc)) * _f(q) - dmin * _f(m)


def _q6_k(b: np.ndarray) -> np.ndarray:
    signed, d, b = b[:, 192:208].view(np.int8), _float16(b, 208), b.astype(np.int64)
    h, r = AT // 128, AT % 128
    low = b[:, 64 * h + r % 64] >> (4 * (r // 64)) & 15
    high = b[:, 128 + 32 * h + r % 32] >> (2 * (r // 32)) & 3
    return (d * _f(signed[:, AT // 16])) * _f((low | high << 4) - 32)


DECODERS: Dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "q8_0": lambda b: _f(np.ascontiguousarray(b[:, 2:]).view(np.int8)) * _float16(b, 0),
    "q4_0": lambda b: _f(_codes(b, 2) - 8) * _float16(b, 0),
    "q4_1": lambda b: _float16(b, 0) * _f(_codes(b, 4)) + _float16(b, 2),
    "q5_0": lambda b: _f(_with_fifths(b, 2) - 16) * _float16(b, 0),
    "q5_1": lambda b: _float16(b, 0) * _f(_with_fifths(b, 4)) + _float16(b, 2),
    "mxfp4": lambda b: _unit(b[:, :1].astype(np.int64)) * VALUES[_codes(b, 1)],
    "q2_k": _q2_k,
    "q3_k": _q3_k,
    "q4_k": lambda b: _q4_or_5_k(b, False),
    "q5_k": lambda b: _q4_or_5_k(b, True),
    "q6_k": _q6_k,
}
