"""The readings of x / scale where the specification does not define the precision of the division, and the result of each."""

from typing import Dict, Optional

import numpy as np

from . import oracle
from . import oracle_types as ot
from .versions import SINCE_PRECISION

IN_SCALE_TYPE, IN_FLOAT, IN_DOUBLE, IN_X_TYPE = "in-the-scale-type", "in-float", "in-double", "in-the-x-type"
IN_INTEGERS = "in-integers"


def readings(opset: int, x: np.ndarray, s_each: np.ndarray) -> Dict[str, np.ndarray]:
    """The quotient of each reading, the oracle's first; only one if the specification defines it. s_each: one scale per element."""
    xt, st = ot.of(x), ot.of(s_each)
    with np.errstate(all="ignore"):
        single = ot.to_float(x) / ot.to_float(s_each)
        wide = _double(x) / _double(s_each)
        in_scale_type = ot.to_float(ot.round_to(_single_in(x, st) / ot.to_float(s_each), st)) if st.kind == "float" else single
        in_x_type = ot.to_float(ot.round_to(single, xt)) if xt.kind == "float" else single
    if st is ot.E8M0:
        return {IN_FLOAT: single, IN_X_TYPE: in_x_type, IN_DOUBLE: wide}
    if st is ot.INT32:
        return {IN_FLOAT: single, IN_DOUBLE: wide, IN_INTEGERS: np.trunc(np.trunc(_double(x)) / _double(s_each))}
    if opset >= SINCE_PRECISION:
        return {IN_SCALE_TYPE: in_scale_type}
    if xt is ot.INT32:
        return {IN_SCALE_TYPE: in_scale_type, IN_DOUBLE: wide}
    if st is ot.FLOAT:
        return {IN_SCALE_TYPE: in_scale_type}
    return {IN_SCALE_TYPE: in_scale_type, IN_FLOAT: single}


def _double(a: np.ndarray) -> np.ndarray:
    return a.astype(np.float64) if a.dtype == np.int32 else ot.to_float(a).astype(np.float64)


def _single_in(x: np.ndarray, t: ot.Type) -> np.ndarray:
    return ot.to_float(ot.round_to(ot.to_float(x), t))


def codes(v: np.ndarray, z_each: Optional[np.ndarray], t: ot.Type, saturate: bool = True) -> np.ndarray:
    """y of a quotient without NaN: rounded, zero point added, clamped; like the oracle."""
    if t.kind == "int":
        return oracle._integers(v, 0 if z_each is None else ot.to_int(z_each), t, np.isnan(v))[0]
    if t.kind == "mini" and z_each is not None:
        v = v + ot.to_float(z_each)
    return ot.encode_small(v, t, saturate, np.signbit(v))[0]


def disagree(opset: int, x: np.ndarray, s_each: np.ndarray, z_each: Optional[np.ndarray], t: ot.Type) -> np.ndarray:
    """The elements for which two readings give different codes."""
    found = [ot.codes(codes(v, z_each, t)) for v in readings(opset, x, s_each).values()]
    return np.any([one != found[0] for one in found[1:]], axis=0) if len(found) > 1 else np.zeros(x.shape, bool)


def settled(opset: int, x: np.ndarray, s_each: np.ndarray, z_each: Optional[np.ndarray], t: ot.Type) -> np.ndarray:
    """x, with the scale itself (a quotient of 1) instead of elements for which readings disagree."""
    filler = s_each.astype(np.int32) if ot.of(x) is ot.INT32 else ot.round_to(ot.to_float(s_each), ot.of(x))
    return np.where(disagree(opset, x, s_each, z_each, t), filler, x).astype(x.dtype)
