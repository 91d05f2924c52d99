"""A second implementation of weights in the layouts of checkpoints, with numpy, from core/LAYOUTS.md: encode and decode, all at once,
without code of the kernels.

A weight has two dimensions and is FLOAT, FLOAT16 or BFLOAT16, its type T. The result is a dict of tensors, with the names that they
have in a file for a weight called "weight": weight_scale, weight.absmax, SCB. "In T": in FLOAT, and rounded to T after every operation.
"""

from typing import Any, Callable, Dict, Tuple

import numpy as np

from . import oracle_layouts_bnb as bnb
from . import oracle_layouts_gguf as gguf
from . import oracle_types as ot
from .oracle import Invalid

F32 = np.float32
Parts = Dict[str, np.ndarray]
COMPRESSED = "compressed-tensors:"
TILE = 128
# The number of columns that share a scale: the columns must be a multiple of it.
GROUPS = {"int4-g128": 128, "int4-g32": 32, "int4-g128-asym": 128, "int4-g32-asym": 32, "nvfp4": 16, "mxfp4": 32}
SCALED = ("int8", "int8-tensor", "fp8", "fp8-tensor", "fp8-block")
LAYOUTS = (
    "fp8-tiles",
    *(f"{COMPRESSED}{name}" for name in (*SCALED, *GROUPS)),
    *(f"gguf:{name}" for name in ("f16", "bf16", *gguf.BYTES)),
    *(f"bnb:{name}" for name in bnb.NAMES),
)
DECODED_ALONE = tuple(f"gguf:{name}" for name in gguf.K_TYPES)
MANTISSA = {"FLOAT": 23, "FLOAT16": 10, "BFLOAT16": 7}
SMALLEST_NORMAL = {"FLOAT": F32(2.0**-126), "FLOAT16": F32(2.0**-14), "BFLOAT16": F32(2.0**-126)}


def columns_of(layout: str) -> int:
    """The columns of a weight must be a multiple of this."""
    family, _, name = layout.rpartition(":")
    if family == "gguf":
        return 1 if name in ("f16", "bf16") else 256 if name in gguf.K_TYPES else gguf.BLOCK
    return GROUPS.get(name, 1)


def encode(weight: np.ndarray, layout: str) -> Parts:
    """Raises Invalid for a weight that the layout can't represent: not finite, columns, a scale or value that overflows."""
    if weight.ndim != 2 or not weight.size or weight.shape[1] % columns_of(layout):
        raise Invalid("x", f"{layout} takes no weight of shape {weight.shape}")
    x, t = ot.to_float(weight), ot.of(weight)
    if not np.isfinite(x).all():
        raise Invalid("x", "is not finite")
    family, _, name = layout.rpartition(":")
    with np.errstate(all="ignore"):
        if family == "gguf":
            return {"weight": gguf.encode(x, name)}
        if family == "bnb":
            return bnb.encode(x, t, name)
        if layout == "fp8-tiles":
            return _fp8_tiles(x)
        if name in SCALED:
            return _scaled(x, t, name)
        return {"nvfp4": _nvfp4, "mxfp4": _mxfp4}.get(name, _int4)(x, t, name)


def decode(parts: Parts, layout: str, output: ot.Type) -> np.ndarray:
    family, _, name = layout.rpartition(":")
    with np.errstate(all="ignore"):
        if family == "gguf":
            found = gguf.decode(parts["weight"], name)
        elif family == "bnb":
            found = bnb.decode(parts, name)
        elif layout == "fp8-tiles":
            found = ot.to_float(parts["weight"]) * _each(parts["weight_scale_inv"], parts["weight"].shape, (TILE, TILE))
        elif name in SCALED:
            found = _unscaled(parts, name)
        else:
            found = (_un4 if name.startswith("int4") else _unfp4)(parts, name)
        return ot.round_to(found, output)


# ---------------------------------------------------------------- blocks


def in_type(values: Any, t: ot.Type) -> np.ndarray:
    """FLOATs rounded to T, as FLOATs."""
    return ot.to_float(ot.round_to(np.asarray(values, F32), t))


def _block_of(name: str, shape: Tuple[int, ...]) -> Tuple[int, int]:
    if name.endswith("-tensor"):
        return (shape[0], shape[1])
    return (TILE, TILE) if name == "fp8-block" else (1, GROUPS.get(name, shape[1]))


def _blocks(x: np.ndarray, block: Tuple[int, int], reduce: Callable[..., Any]) -> np.ndarray:
    """One number per block; the last blocks of a row or column may be incomplete."""
    rows = reduce.reduceat(x, np.arange(0, x.shape[0], block[0]), axis=0)
    return reduce.reduceat(rows, np.arange(0, x.shape[1], block[1]), axis=1)


def _each(scales: np.ndarray, shape: Tuple[int, ...], block: Tuple[int, int]) -> np.ndarray:
    """The number of its block for each element, as FLOAT."""
    return ot.to_float(scales).repeat(block[0], axis=0)[: shape[0]].repeat(block[1], axis=1)[:, : shape[1]]


def _range(x: np.ndarray, block: Tuple[int, int]) -> Tuple[np.ndarray, np.ndarray]:
    return np.minimum(_blocks(x, block, np.minimum), F32(0)), np.maximum(_blocks(x, block, np.maximum), F32(0))


def _largest(x: np.ndarray, block: Tuple[int, int]) -> np.ndarray:
    return _blocks(np.abs(x), block, np.maximum)


def e4m3(values: np.ndarray) -> np.ndarray:
    """Saturated at 448."""
    return ot.encode_small(values, ot.E4M3FN, True, False)[0]


def fp4(values: np.ndarray) -> np.ndarray:
    """Codes, saturated at 6; -0 becomes 0, but values that round to 0 from below keep their sign."""
    return ot.codes(ot.encode_small(np.where(values == 0, F32(0), values), ot.E2M1, True, False)[0])


# ---------------------------------------------------------------- one byte per element


def _fp8_tiles(x: np.ndarray) -> Parts:
    a = _largest(x, (TILE, TILE))
    s = (F32(1) / a) * F32(448)
    s = np.where(np.isinf(s), F32(1), s)  # for zeros, too
    return {"weight": e4m3(x * _each(s, x.shape, (TILE, TILE))), "weight_scale_inv": F32(1) / s}


def _epsilon(scale: np.ndarray, t: ot.Type) -> np.ndarray:
    return np.where(scale == 0, F32(2.0 ** -MANTISSA[t.name]), scale)


def _scaled(x: np.ndarray, t: ot.Type, name: str) -> Parts:
    block, integers = _block_of(name, x.shape), name.startswith("int8")
    scale = _epsilon(in_type(_largest(x, block) / F32(127.5 if integers else 448), t), t)
    y = in_type(x / _each(scale, x.shape, block), t)
    codes = np.rint(np.clip(y, F32(-128), F32(127))).astype(np.int8) if integers else e4m3(y)
    return {"weight": codes, "weight_scale": ot.round_to(scale.reshape(-1) if name.endswith("-tensor") else scale, t)}


def _unscaled(parts: Parts, name: str) -> np.ndarray:
    codes, scale = parts["weight"], parts["weight_scale"]
    block = _block_of(name, codes.shape)
    return in_type(ot.to_float(codes) * _each(scale.reshape(1, 1) if scale.ndim == 1 else scale, codes.shape, block), ot.of(scale))


# ---------------------------------------------------------------- four bits


def pack4(codes: np.ndarray) -> np.ndarray:
    """4-bit codes, eight per INT32 along the last dimension, the first lowest; missing ones are 0."""
    wide = np.zeros((*codes.shape[:-1], -(-codes.shape[-1] // 8) * 8), np.uint32)
    wide[..., : codes.shape[-1]] = codes
    wide = wide.reshape(*codes.shape[:-1], -1, 8) << (4 * np.arange(8, dtype=np.uint32))
    return np.bitwise_or.reduce(wide, axis=-1).astype(np.uint32).view(np.int32)


def unpack4(words: np.ndarray, count: int) -> np.ndarray:
    codes = words.view(np.uint32)[..., None] >> (4 * np.arange(8, dtype=np.uint32)) & np.uint32(15)
    return codes.reshape(*words.shape[:-1], -1)[..., :count].astype(np.int64)


def _int4(x: np.ndarray, t: ot.Type, name: str) -> Parts:
    block = _block_of(name, x.shape)
    low, high = _range(x, block)
    zero = np.zeros_like(low)
    if name.endswith("asym"):
        scale = in_type(in_type(high - low, t) / F32(15), t)
        if np.isinf(scale).any():
            raise Invalid("x", "has a scale that overflows")
        zero = in_type(F32(-8) - in_type(low / scale, t), t)
        zero = np.rint(np.where(np.isnan(zero), F32(0), np.clip(zero, F32(-8), F32(7)))).astype(F32)
    else:
        scale = in_type(np.maximum(-low, high) / F32(7.5), t)
    scale = _epsilon(scale, t)
    y = in_type(x / _each(scale, x.shape, block), t)
    if name.endswith("asym"):
        y = in_type(y + _each(zero, x.shape, block), t)
    codes = np.rint(np.clip(y, F32(-8), F32(7))).astype(np.int64) + 8
    parts = {"weight_packed": pack4(codes), "weight_scale": ot.round_to(scale, t)}
    if name.endswith("asym"):
        down = pack4((zero.astype(np.int64) + 8).T)
        parts["weight_zero_point"] = np.ascontiguousarray(down.T)
    return {**parts, "weight_shape": np.array(x.shape, np.int64)}


def _un4(parts: Parts, name: str) -> np.ndarray:
    rows, columns = (int(n) for n in parts["weight_shape"])
    q = unpack4(parts["weight_packed"], columns) - 8
    block = (1, GROUPS[name])
    if name.endswith("asym"):
        zero = unpack4(np.ascontiguousarray(parts["weight_zero_point"].T), rows).T - 8
        q = q - zero.repeat(block[1], axis=1)
    return in_type(q.astype(F32) * _each(parts["weight_scale"], (rows, columns), block), ot.of(parts["weight_scale"]))


def _pairs(codes: np.ndarray) -> np.ndarray:
    """Two 4-bit codes per byte, the first in the low half."""
    return (codes[:, 0::2] | codes[:, 1::2] << 4).astype(np.uint8)


def _nvfp4(x: np.ndarray, t: ot.Type, name: str) -> Parts:
    block = _block_of(name, x.shape)
    whole = np.maximum(np.abs(x).max(), SMALLEST_NORMAL[t.name])
    g = in_type(in_type(F32(1) / whole, t) * F32(2688), t)
    g = g if np.isfinite(g) else F32(1)
    scale = e4m3(g * in_type(_largest(x, block) / F32(6), t))
    scale = np.where(ot.codes(scale) == 0, ot.codes(e4m3(F32([0.125])))[0], ot.codes(scale)).astype(np.uint8).view(scale.dtype)
    codes = fp4(x / _each(ot.to_float(scale) / g, x.shape, block))
    return {"weight_packed": _pairs(codes), "weight_scale": scale, "weight_global_scale": F32([g])}


def power(exponent: Any) -> np.ndarray:
    """2^exponent as FLOAT, including denormals."""
    return np.ldexp(1.0, np.asarray(exponent, np.int64).astype(np.int32)).astype(F32)


def _mxfp4(x: np.ndarray, t: ot.Type, name: str) -> Parts:
    block = _block_of(name, x.shape)
    bits = ot.codes(ot.round_to(_largest(x, block), t)).astype(np.uint64) + (1 << MANTISSA[t.name] - 2)
    exponent = ot.to_float(ot.from_codes(bits, t)).view(np.uint32).astype(np.int64) >> 23 & 255
    code = np.where(bits >> MANTISSA[t.name] == 0, 0, np.maximum(exponent - 2, 0))
    scale = in_type(power(code - 127), t)
    # A power that FLOAT16 does not have becomes 1. If the carry makes an infinity, all elements are 0.
    scale, code = np.where(scale == 0, F32(1), scale), np.where((scale == 0) | (exponent == 255), 127, code)
    scale = np.where(exponent == 255, F32(np.inf), scale)
    codes = fp4(in_type(x / _each(scale, x.shape, block), t))
    return {"weight_packed": _pairs(codes), "weight_scale": code.astype(np.uint8)}


def _unfp4(parts: Parts, name: str) -> np.ndarray:
    """Rounded to BFLOAT16, whatever the type of the weight was."""
    packed, block = parts["weight_packed"], (1, GROUPS[name])
    codes = np.stack([packed & 15, packed >> 4], axis=-1).reshape(packed.shape[0], -1)
    values = ot.to_float(ot.from_codes(codes, ot.E2M1))
    if name == "nvfp4":
        scale = ot.to_float(parts["weight_scale"]) / parts["weight_global_scale"][0]
    else:
        scale = power(parts["weight_scale"].astype(np.int64) - 127)
    return in_type(values * _each(scale, codes.shape, block), ot.BFLOAT16)
