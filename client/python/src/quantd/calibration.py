"""Calibration: the choices of calibrate, the types of its data, and its result."""

from dataclasses import dataclass
from typing import Any, Dict, Iterable, Literal, Optional, Tuple, Union

from .choices import NON_FINITES, SYMMETRIES, choice, numbered, type_number
from .errors import wrong_type
from .foreign import Array
from .types import ArrayLike, DataType, described

Method = Literal["min_max", "percentile", "entropy", "mse"]
METHODS = numbered(Method)
# The data of calibrate: an array, or many.
Arrays = Union[ArrayLike, Iterable[ArrayLike]]
States = Union[bytes, bytearray, memoryview, Iterable[Union[bytes, bytearray, memoryview]]]


@dataclass(frozen=True, repr=False, eq=False)
class Calibrated:
    """Answer of calibrate.

    Attributes
    ----------
    scale : numpy.ndarray
        float32 of shape (), or (channels,) along an axis: 1 if only zeros were seen.
    zero_point : numpy.ndarray or None
        Of scale's shape and output_type; None for the float types.
    range : numpy.ndarray
        float32 of shape (2,) or (2, channels): the lowest values, then the highest. It can be the `ranges` of quantize_embeddings.
    elements, non_finite_elements : int
        Values that were seen, and NaN and infinities that were left out.
    state : bytes or None
        Set if return_state was: a summary of the values, for the `states` of another calibrate, of any method that needs no more
        than this one. Equal values give equal bytes, in any order.
    method, output_type, axis
        As in the call.
    """

    scale: Array
    zero_point: Optional[Array]
    range: Array
    elements: int
    non_finite_elements: int
    state: Optional[bytes] = None
    method: str = "min_max"
    output_type: DataType = DataType.UINT8
    axis: Optional[int] = None

    def quantize_arguments(self) -> Dict[str, Any]:
        """The arguments of quantize for this result, by name, except x: `client.quantize(x, **result.quantize_arguments())`.

        Returns
        -------
        dict
            scale, output_type, and zero_point and axis if there are any.
        """
        found = {"scale": self.scale, "zero_point": self.zero_point, "output_type": self.output_type, "axis": self.axis}
        return {name: value for name, value in found.items() if value is not None}

    def __repr__(self) -> str:
        parts = [f"{self.method}", self.output_type.dtype.name, f"scale {self.scale if self.scale.ndim == 0 else described(self.scale)}"]
        parts += [] if self.axis is None else [f"axis {self.axis}"]
        parts += [f"{self.elements} elements"]
        parts += [f"{self.non_finite_elements} not finite"] if self.non_finite_elements else []
        parts += [] if self.state is None else [f"state of {len(self.state)} bytes"]
        return f"<Calibrated {', '.join(parts)}>"


def numbers(
    method: Optional[str], output_type: Any, symmetry: Optional[str], percentile: Optional[float], non_finite: Optional[str]
) -> Dict[str, Any]:
    """The contract's numbers for the choices of a call; 0 means none."""
    return {
        "method": choice(method, METHODS, "method"),
        "output_type": type_number(output_type, "output_type"),
        "symmetry": choice(symmetry, SYMMETRIES, "symmetry"),
        "percentile": 0.0 if percentile is None else _number(percentile, "percentile"),
        "non_finite": choice(non_finite, NON_FINITES, "non_finite"),
    }


def _number(value: Any, name: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise wrong_type(name, f"{name} is {value!r}, must be a number") from None


def name_of(method: int) -> Any:
    """The name of a method's number, which may be 0."""
    return next((name for name, number in METHODS.items() if number == method), "min_max")


def is_array(xs: Any) -> bool:
    """Whether `xs` is one array, or a number, and not many of them."""
    if isinstance(xs, (str, bytes, bytearray, dict)):
        raise wrong_type("xs", f"xs is a {type(xs).__name__}, must be an array or an iterable of arrays")
    if hasattr(xs, "__array__") or hasattr(xs, "__dlpack__"):
        return True
    return not hasattr(xs, "__iter__")


def arrays(xs: Any) -> Iterable[Any]:
    """The arrays of the calibration, one after the other."""
    if is_array(xs):
        return (xs,)
    return xs


def state_bytes(states: Any) -> Tuple[bytes, ...]:
    """The states of a call; a single one may be given without a list."""
    if isinstance(states, (bytes, bytearray, memoryview)):
        states = (states,)
    if not hasattr(states, "__iter__"):
        raise wrong_type("states", f"states is a {type(states).__name__}, must be bytes or an iterable of bytes")
    found = tuple(states)
    for state in found:
        if not isinstance(state, (bytes, bytearray, memoryview)):
            raise wrong_type("states", f"states has a {type(state).__name__}, must be the bytes of a result's state")
    return tuple(bytes(state) for state in found)
