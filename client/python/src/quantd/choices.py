"""Arguments that are one of a list of names, as the contract's numbers."""

from typing import Dict, Optional

from .types import DataTypeLike, data_type

ZERO_POINT_ORDERS = {"after_rounding": 1, "before_rounding": 2}
SYMMETRIES = {"asymmetric": 1, "symmetric": 2}
NON_FINITES = {"reject": 1, "ignore": 2}


def choice(value: Optional[str], choices: Dict[str, int], name: str) -> int:
    """The number of a name, in any case of letters; 0 for None."""
    if value is None:
        return 0
    if str(value).lower() not in choices:
        raise ValueError(f"{name} is {value!r}; one of {', '.join(map(repr, choices))}")
    return choices[str(value).lower()]


def type_number(value: Optional[DataTypeLike]) -> int:
    """The number of a type; 0 for None."""
    return 0 if value is None else int(data_type(value))
