"""Converts arguments to the contract's values: names from a list, integers, yes or no, and seconds."""

import difflib
import numbers
import operator
import warnings
from typing import Any, Collection, Dict, Literal, Optional, Tuple, get_args

import numpy as np

from .errors import ArgumentError, wrong_type, wrong_value
from .types import DataType, DataTypeLike, data_type

ZeroPointOrder = Literal["after_rounding", "before_rounding"]
Symmetry = Literal["asymmetric", "symmetric"]
NonFinite = Literal["reject", "ignore"]


def numbered(names: Any) -> Dict[str, int]:
    """The contract's numbers for the names of a Literal, which are in the order of the numbers."""
    return {name: number for number, name in enumerate(get_args(names), 1)}


_FOREVER = 1e9  # seconds; src/native/run.cc has the same
ZERO_POINT_ORDERS = numbered(ZeroPointOrder)
SYMMETRIES = numbered(Symmetry)
NON_FINITES = numbered(NonFinite)


def wrong_choice(name: str, value: Any, choices: Collection[str]) -> ArgumentError:
    """The error of a value that is none of the choices, with the one that may have been meant."""
    near = difflib.get_close_matches(str(value).lower(), choices, 1)
    meant = f", did you mean {near[0]!r}" if near else ""
    return wrong_value(name, f"{name} is {value!r}{meant}; one of {', '.join(map(repr, choices))}")


def choice(value: Optional[str], choices: Dict[str, int], name: str) -> int:
    """The number of a name, in upper or lower case, with - or _; 0 for None."""
    if value is None:
        return 0
    plain = str(value).lower().replace("-", "_")
    if plain not in choices:
        raise wrong_choice(name, value, choices)
    return choices[plain]


def type_number(value: Optional[DataTypeLike], name: str) -> int:
    """The number of a type; 0 for None."""
    return 0 if value is None else int(data_type(value, name))


def warn_of_lost_signs(x: Any, output_type: int, symmetry: int) -> None:
    """Warns if negative values of an array would become 0: a symmetric range of an unsigned type."""
    unsigned = output_type == 0 or DataType(output_type).name.startswith("UINT")
    if symmetry == SYMMETRIES["symmetric"] and unsigned and x.size and bool((x < 0).any()):
        name = DataType(output_type or DataType.UINT8).name
        warnings.warn(f"x has negative values, which become 0: symmetric {name} has no negative codes", UserWarning, stacklevel=4)


def symmetry_of(symmetry: Optional[str], symmetric: Any) -> Optional[str]:
    """The name of a symmetry, which `symmetric` says as yes or no."""
    if symmetric is None:
        return symmetry
    if symmetry is not None:
        raise wrong_type("symmetric", "symmetric and symmetry are given; give one or the other")
    return "symmetric" if flag(symmetric, "symmetric", False) else "asymmetric"


def integer(value: Any, name: str) -> int:
    """An integer of 64 bits."""
    number = value
    if type(value) is not int:
        try:
            number = operator.index(None if isinstance(value, bool) else value)
        except TypeError:
            raise wrong_type(name, f"{name} is {value!r}, must be an integer") from None
    if not -(1 << 63) <= number < 1 << 63:
        raise wrong_value(name, f"{name} is {number}, which is not a 64-bit integer")
    return number


def integers(values: Any, name: str) -> Tuple[int, ...]:
    """A sequence of integers."""
    try:
        found = tuple(values)
    except TypeError:
        raise wrong_type(name, f"{name} is {values!r}, must be a sequence of integers") from None
    return tuple(integer(value, name) for value in found)


def flag(value: Any, name: str, default: bool) -> bool:
    """Yes or no: a bool, or 1 or 0; `default` for None. Other values are errors, even if Python treats them as true, such as "no"."""
    if value is True or value is False:
        return value
    if value is None:
        return default
    if isinstance(value, (int, np.bool_)) and value in (0, 1):
        return bool(value)
    raise wrong_type(name, f"{name} is {value!r}, must be True or False")


def seconds(value: Any, name: str = "timeout") -> Optional[float]:
    """Seconds; None for None, and for more than 30 years, which gRPC treats as expired. An expired time is reported by the call."""
    if value is None:
        return None
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        raise wrong_type(name, f"{name} is {value!r}, must be a number of seconds, or None")
    if value != value:
        raise wrong_value(name, f"{name} is nan, must be a number of seconds, or None")
    return None if value > _FOREVER else float(max(value, 0))
