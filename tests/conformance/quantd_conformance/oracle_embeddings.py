"""A second implementation of quantize_embeddings, with numpy, from core/EMBEDDINGS.md."""

import math

from typing import Any

import numpy as np

from .oracle import Error, Invalid

UNIT_STEP = np.float64(np.float32(2.0 / 255))


def lengths(x: np.ndarray) -> np.ndarray:
    """The lengths of rows, with the order of the sixteen sums."""
    rows, width = x.shape
    sums = np.zeros((rows, 16))
    squares = x.astype(np.float64) ** 2
    for begin in range(0, width, 16):
        part = squares[:, begin : begin + 16]
        sums[:, : part.shape[1]] += part
    for half in (8, 4, 2, 1):
        sums[:, :half] += sums[:, half : 2 * half]
    return np.sqrt(sums[:, 0])


def used(x: np.ndarray, dimensions: int, normalize: bool) -> Any:
    """The values after truncating and normalising, and their lengths."""
    x = np.ascontiguousarray(x[:, : dimensions or x.shape[1]].astype(np.float32))
    length = lengths(x)
    if normalize:
        good = (length > 0) & np.isfinite(length)
        divided = (x.astype(np.float64) / np.where(good, length, 1)[:, None]).astype(np.float32)
        x = np.where(good[:, None], divided, x)
        length = lengths(x)
    return x, length


def _codes(recipe: str, x: Any, length: Any, ranges: Any) -> Any:
    """Codes as numbers, x^, and which values saturate."""
    none = np.zeros(x.shape, bool)
    if recipe == "ranges":
        low, high = ranges
        step = (high - low) / np.float32(255)
        step = np.where(step == 0, np.float32(1), step)
        q = np.floor((x - low) / step)
        code = np.where(np.isnan(q), 0, np.clip(q, 0, 255))
        return code, code.astype(np.float64) * step.astype(np.float64) + low.astype(np.float64), (q < 0) | (q > 255)
    wide = x.astype(np.float64)
    if recipe == "unit":
        v = (wide + 1) / UNIT_STEP - 128
        code = np.where(np.isnan(v), 127, np.trunc(np.clip(v, -128, 127)))
        return code, (code + 128) * UNIT_STEP - 1, (v < -128) | (v > 127)
    good = ((length > 0) & np.isfinite(length))[:, None]
    n = np.where(good, length[:, None], 1)
    code = np.where(good, np.trunc(np.clip(wide * 127 / n, -127, 127)), 0)
    return code, np.where(good, code * n / 127, 0), none


def _report(x: Any, back: Any, saturated: Any) -> Any:
    finite = np.isfinite(x)
    wide = x[finite].astype(np.float64)
    errors = wide - back[finite]
    signal, noise = math.fsum(wide**2), math.fsum(errors**2)
    with np.errstate(all="ignore"):
        sqnr = float(np.inf if noise == 0 else 10 * np.log10(np.float64(signal) / noise))
    return Error(
        sqnr,
        noise / errors.size if errors.size else 0.0,
        float(np.abs(errors).max(initial=0.0)),
        int(saturated.sum()),
        int((~finite).sum()),
    )


def quantize_embeddings(
    x: Any,
    *,
    recipe: str,
    ranges: Any = None,
    signed: Any = None,
    dimensions: int = 0,
    normalize: bool = False,
    lsb_first: bool = False,
    greater_or_equal: bool = False,
    twos_complement: bool = False,
    ignore: bool = False,
    report_error: bool = False,
) -> Any:
    """y, and the report or None. All arguments must have an effect; raises Invalid for values that are not finite."""
    rows = int(np.prod(x.shape[:-1]))
    shape, x = x.shape, x.astype(np.float32).reshape(rows, x.shape[-1])
    if not ignore and not np.isfinite(x).all():
        raise Invalid("x", "is not finite")
    with np.errstate(all="ignore"):
        x, length = used(x, dimensions, normalize)
        if recipe == "bits":
            bits = x >= 0 if greater_or_equal else x > 0
            y = np.packbits(bits, axis=1, bitorder="little" if lsb_first else "big")
            if signed:
                y = y.view(np.int8) if twos_complement else (y.astype(np.int16) - 128).astype(np.int8)
            return y.reshape(*shape[:-1], y.shape[1]), None
        code, back, saturated = _codes(recipe, x, length, ranges)
        if recipe == "ranges":
            y = (code - 128).astype(np.int8) if signed else code.astype(np.uint8)
        else:
            y = code.astype(np.int8)
        report = _report(x, back, saturated) if report_error else None
    return y.reshape(*shape[:-1], y.shape[1]), report
