"""ParameterSet: stored parameters in Python, and their conversion from and to messages."""

from dataclasses import dataclass, field
from typing import Any, Dict, Optional, Union

from . import messages
from .choices import NON_FINITES, ZERO_POINT_ORDERS
from .embeddings import BIT_ORDERS, BIT_THRESHOLDS, RECIPES, SIGNED_BITS
from .errors import wrong_type, wrong_value
from .types import DataType, from_message

_NAMES = {
    "zero_point_order": ZERO_POINT_ORDERS,
    "recipe": RECIPES,
    "bit_order": BIT_ORDERS,
    "bit_threshold": BIT_THRESHOLDS,
    "signed_bits": SIGNED_BITS,
    "non_finite": NON_FINITES,
}


@dataclass(frozen=True, repr=False)
class ParameterSet:
    """Answer of put_parameters and get_parameters: a set that calls can name instead of arguments.

    As `parameters` of a call it does more than its reference: if a server does not have the set, it is stored there first.

    Attributes
    ----------
    reference : str
        "name@sha256:HEX": the name, and the hash of the contents, which never change.
    kind : {"quantize", "quantize_embeddings"}
        The calls that it is for; a set for quantize is also for dequantize.
    arguments : dict
        The arguments that a call with it leaves out, by name; a preset is replaced by its arguments.
    """

    reference: str
    kind: str
    arguments: Dict[str, Any] = field(compare=False)
    data: bytes = field(default=b"", repr=False, compare=False)

    @property
    def name(self) -> str:
        """The part of the reference before the hash."""
        return self.reference.partition("@")[0]

    def __str__(self) -> str:
        return self.reference

    def __repr__(self) -> str:
        digits = self.reference.partition("@sha256:")[2][:8]
        return f"<ParameterSet {self.name}@sha256:{digits}… of {self.kind}: {', '.join(self.arguments)}>"

    def message(self) -> Any:
        """The contract's ParameterSet message."""
        return messages.ParameterSet.FromString(self.data)


def of_message(message: Any, reference: str) -> ParameterSet:
    """The set of a ParameterSet message. Raises ValueError if it has no kind."""
    kind = message.WhichOneof("kind")
    if kind is None:
        raise ValueError("a set of parameters has no kind")
    return ParameterSet(reference, kind, _arguments(getattr(message, kind)), message.SerializeToString(deterministic=True))


def _arguments(message: Any) -> Dict[str, Any]:
    found: Dict[str, Any] = {}
    for f, value in message.ListFields():
        if f.message_type is not None:
            found[f.name] = from_message(value)
        elif f.name in ("output_type", "precision"):
            found[f.name] = DataType(value)
        elif f.name in _NAMES:
            found[f.name] = next((name for name, number in _NAMES[f.name].items() if number == value), value)
        elif f.name == "block_shape":
            found[f.name] = tuple(value)
        else:
            found[f.name] = value
    return found


Parameters = Union[str, ParameterSet]


def reference_of(parameters: Optional[Parameters]) -> str:
    """The reference in a request; "" for None."""
    if parameters is None:
        return ""
    if not isinstance(parameters, (str, ParameterSet)):
        raise wrong_type("parameters", f"parameters is a {type(parameters).__name__}, must be a reference, or what put_parameters returned")
    if not str(parameters):
        raise wrong_value("parameters", "parameters is empty, must be a reference such as 'name@sha256:…', or a name")
    return str(parameters)
