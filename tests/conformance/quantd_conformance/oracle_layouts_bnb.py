"""bitsandbytes' layouts, for oracle_layouts.py: converts FLOATs to tensors and back, from core/LAYOUTS.md."""

import json
import math
from typing import Any, Dict, Optional

import numpy as np

from . import oracle_types as ot
from .oracle import Invalid

F32 = np.float32
NAMES = ("nf4", "nf4-double", "fp4", "fp4-double", "int8")
BLOCK, NESTED_BLOCK = 64, 256
LEAST = F32(1e-38)
NF4 = F32([
    -1, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0,
    0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023,
    1,
])  # fmt: skip
FP4 = F32([0, 0.0625, 8, 12, 4, 6, 2, 3, 0, -0.0625, -8, -12, -4, -6, -2, -3]) / F32(12)
# Codes sorted by value; of FP4's two zeros code 0 is the lower.
SORTED: Dict[str, np.ndarray] = {"nf4": np.arange(16), "fp4": np.array([11, 10, 13, 12, 15, 14, 9, 0, 8, 1, 6, 7, 4, 5, 2, 3])}
TABLES = {"nf4": NF4, "fp4": FP4}
DTYPES = {"FLOAT": "float32", "FLOAT16": "float16", "BFLOAT16": "bfloat16"}


def nested_map() -> np.ndarray:
    """The 256 values of -double's codes."""
    values = [F32(0), F32(1)]
    for i in range(7):
        n = 2**i + 1
        first, step = F32(0.1), (F32(1) - F32(0.1)) / F32(n - 1)
        # Like a fused operation: the double holds the sum exactly.
        line = F32([np.float64(first) + np.float64(step) * k if k < n // 2 else 1 - np.float64(step) * (n - 1 - k) for k in range(n)])
        means = (line[:-1] + line[1:]) / F32(2)
        size = F32(10.0 ** (i - 6)) * means
        values += [*size, *-size]
    return np.sort(F32(values))


NESTED = nested_map()


def encode(x: np.ndarray, t: ot.Type, name: str) -> Dict[str, np.ndarray]:
    return _int8(x) if name == "int8" else four_bits(x, t, name)


def _int8(x: np.ndarray) -> Dict[str, np.ndarray]:
    half = x.astype(np.float16).astype(F32)
    if np.isinf(half).any():
        raise Invalid("x", "has an element that FLOAT16 does not hold")
    a = np.abs(half).max(axis=1)
    codes = np.rint(half * ((F32(1) / a) * F32(127))[:, None])
    codes = np.where(a[:, None] == 0, F32(0), codes).astype(np.int8)
    return {"weight": codes, "SCB": a, "weight_format": np.array(0, np.uint8)}


def absmax_of(x: np.ndarray) -> np.ndarray:
    flat = x.reshape(-1)
    found = np.maximum.reduceat(np.abs(flat), np.arange(0, flat.size, BLOCK))
    if flat.size % BLOCK:
        found[-1] = np.maximum(found[-1], LEAST)
    return found


def offset_of(absmax: np.ndarray) -> F32:
    """The mean of absmax: summed in double, divided, rounded once."""
    total = 0.0
    for one in absmax.tolist():
        total += one
    return F32(total / absmax.size)


def four_bits(x: np.ndarray, t: ot.Type, name: str, offset: Optional[F32] = None) -> Dict[str, np.ndarray]:
    kind, flat = name[:3], x.reshape(-1)
    absmax, whole = absmax_of(x), flat.size // BLOCK * BLOCK
    y = np.empty_like(flat)
    y[:whole] = flat[:whole] * (F32(1) / np.maximum(absmax, LEAST)).repeat(BLOCK)[:whole]
    y[whole:] = flat[whole:] / absmax[-1]
    values = TABLES[kind][SORTED[kind]]
    middles = (values[:-1] + values[1:]) / F32(2)
    y = np.concatenate([np.clip(y, F32(-1), F32(1)), np.zeros(flat.size % 2, F32)])
    codes = SORTED[kind][np.searchsorted(middles, y, side="left")]
    packed = (codes[0::2] << 4 | codes[1::2]).astype(np.uint8).reshape(-1, 1)
    state: Dict[str, Any] = {"quant_type": kind, "blocksize": BLOCK, "dtype": DTYPES[t.name], "shape": list(x.shape)}
    parts = {"weight": packed, "weight.absmax": absmax, "weight.quant_map": TABLES[kind]}
    if name.endswith("-double"):
        offset = offset_of(absmax) if offset is None else offset
        codes, largest = nested_codes(absmax - offset)
        parts.update({"weight.absmax": codes, "weight.nested_absmax": largest, "weight.nested_quant_map": NESTED})
        state.update(nested_blocksize=NESTED_BLOCK, nested_dtype="float32", nested_offset=float(offset))
    return {**parts, f"weight.quant_state.bitsandbytes__{kind}": np.frombuffer(json.dumps(state).encode(), np.uint8)}


def nested_codes(v: np.ndarray) -> Any:
    """Codes of absmax - offset, and the largest magnitude of each block of 256."""
    b = np.maximum.reduceat(np.abs(v), np.arange(0, v.size, NESTED_BLOCK))
    each = b.repeat(NESTED_BLOCK)[: v.size]
    y = np.clip(v * (F32(1) / each), F32(-1), F32(1))
    zero = np.isnan(y) | (each == 0)
    k = np.trunc((np.where(zero, F32(0), y) + F32(1)) * F32(32767.5) + F32(0.5)).astype(np.int64)
    at = k / 32767.5 - 1
    code = np.abs(NESTED.astype(np.float64) - at[:, None]).argmin(axis=1)
    return np.where(zero, 0, code).astype(np.uint8), b


def decode(parts: Dict[str, np.ndarray], name: str) -> np.ndarray:
    codes = parts["weight"]
    if name == "int8":
        return codes.astype(F32) * parts["SCB"][:, None] * F32(0.007874015718698502)
    kind = name[:3]
    state = json.loads(parts[f"weight.quant_state.bitsandbytes__{kind}"].tobytes())
    absmax, table = parts["weight.absmax"], parts["weight.quant_map"].copy()
    if name.endswith("-double"):
        largest = parts["weight.nested_absmax"].repeat(NESTED_BLOCK)[: absmax.size]
        absmax = parts["weight.nested_quant_map"][absmax] * largest + F32(state["nested_offset"])
    if kind == "fp4":
        table[8] = F32(-0.0)
    count = math.prod(state["shape"])
    flat = codes.reshape(-1)
    each = table[np.stack([flat >> 4, flat & 15], axis=1).reshape(-1)[:count]] * absmax.repeat(BLOCK)[:count]
    t = next(t for t in ot.FLOATS if DTYPES[t.name] == state["dtype"])
    return ot.to_float(ot.round_to(each, t)).reshape(state["shape"])
