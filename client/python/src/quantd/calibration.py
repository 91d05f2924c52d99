"""Calibration: the choices of calibrate, what it takes for an array and for many of them, and its result.

This file is in two packages: quantd, and quantd_core, which needs neither gRPC nor protobuf.
"""

from dataclasses import dataclass
from typing import Any, Dict, Iterable, Optional, Tuple

import numpy as np

from .choices import NON_FINITES, SYMMETRIES, choice, type_number
from .types import DataType

METHODS = {"min_max": 1, "percentile": 2, "entropy": 3, "mse": 4}


@dataclass(frozen=True, repr=False)
class Calibrated:
    """Answer of calibrate.

    Attributes
    ----------
    scale : numpy.ndarray
        float32 of shape (), or (channels,) along an axis: 1 where nothing but zeros was seen.
    zero_point : numpy.ndarray or None
        Of scale's shape and output_type; None for the float types.
    range : numpy.ndarray
        float32 of shape (2,) or (2, channels): the lowest values, then the highest. What quantize_embeddings takes as `ranges`.
    elements, non_finite_elements : int
        Values that were seen, and NaN and infinities that were left out.
    state : bytes or None
        Set if return_state was: what was seen, for the `states` of another calibrate, of any method that needs no more than
        this one. Equal values give equal bytes, in whatever order they came.
    method, output_type, axis
        Those of the call.
    """

    scale: np.ndarray
    zero_point: Optional[np.ndarray]
    range: np.ndarray
    elements: int
    non_finite_elements: int
    state: Optional[bytes] = None
    method: str = "min_max"
    output_type: DataType = DataType.UINT8
    axis: Optional[int] = None

    def quantize_arguments(self) -> Dict[str, Any]:
        """The arguments of quantize for this result, by name, but for x: `client.quantize(x, **result.quantize_arguments())`.

        Returns
        -------
        dict
            scale, output_type, and where there are such zero_point and axis.
        """
        found = {"scale": self.scale, "zero_point": self.zero_point, "output_type": self.output_type, "axis": self.axis}
        return {name: value for name, value in found.items() if value is not None}

    def __repr__(self) -> str:
        with np.printoptions(threshold=8, edgeitems=2, precision=8):
            fields = [f"method={self.method!r}", f"output_type={self.output_type.name}"]
            fields += [f"{name}={np.array2string(value, separator=', ')}" for name, value in (
                ("scale", self.scale), ("zero_point", self.zero_point), ("range", self.range)) if value is not None]
        fields += [f"{name}={getattr(self, name)}" for name in ("axis", "elements", "non_finite_elements")
                   if getattr(self, name) is not None]
        if self.state is not None:
            fields.append(f"state=<{len(self.state)} bytes>")
        return f"Calibrated({', '.join(fields)})".replace("\n", "")


def numbers(
    method: Optional[str], output_type: Any, symmetry: Optional[str], percentile: Optional[float], non_finite: Optional[str]
) -> Dict[str, Any]:
    """The contract's numbers of what a call names; 0 is none."""
    return {
        "method": choice(method, METHODS, "method"),
        "output_type": type_number(output_type),
        "symmetry": choice(symmetry, SYMMETRIES, "symmetry"),
        "percentile": 0.0 if percentile is None else float(percentile),
        "non_finite": choice(non_finite, NON_FINITES, "non_finite"),
    }


def name_of(method: int) -> str:
    """The name of a method's number, 0 among them."""
    return next((name for name, number in METHODS.items() if number == method), "min_max")


def is_array(xs: Any) -> bool:
    """Whether it is one array, or a number, and not many of them."""
    if isinstance(xs, (str, bytes, bytearray, dict)):
        raise TypeError(f"xs is a {type(xs).__name__}, must be an array or an iterable of arrays")
    if hasattr(xs, "__array__") or hasattr(xs, "__dlpack__"):
        return True
    return not hasattr(xs, "__iter__") and not hasattr(xs, "__aiter__")


def arrays(xs: Any) -> Iterable:
    """What is calibrated on, one array after the other."""
    if is_array(xs):
        return (xs,)
    if not hasattr(xs, "__iter__"):
        raise TypeError(f"xs is a {type(xs).__name__}, which only AsyncClient can iterate over")
    return xs


def state_bytes(states: Any) -> Tuple[bytes, ...]:
    """The states of a call; one alone may be given as it is."""
    if isinstance(states, (bytes, bytearray, memoryview)):
        states = (states,)
    found = tuple(states)
    for state in found:
        if not isinstance(state, (bytes, bytearray, memoryview)):
            raise TypeError(f"states has a {type(state).__name__}, must be the bytes of a result's state")
    return tuple(bytes(state) for state in found)
