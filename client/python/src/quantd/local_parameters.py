"""Stored parameters of quantd.local(): kept in this object, with the same names and errors as on a server."""

import dataclasses
import hashlib
import inspect
import re
from typing import Any, Dict, List, Optional

from . import messages, parameters, results
from .engine import Engine
from .errors import FieldViolation, QuantdError, StatusCode, invalid
from .parameter_set import ParameterSet, of_message, reference_of
from .parameters import Stores

_NAME = "1 to 64 of a-z, 0-9, '.', '_' and '-', the first a letter or a digit"
_IS_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}", re.ASCII)
_IS_REFERENCE = re.compile(_IS_NAME.pattern + r"(@sha256:[0-9a-f]{64})?", re.ASCII)
_DEFAULTS = {
    name: {p.name: p.default for p in inspect.signature(getattr(Engine, name)).parameters.values()}
    for name in ("quantize", "dequantize", "quantize_embeddings")
}


class LocalSets(Stores[ParameterSet, List[str]]):
    """The sets of one Local."""

    def __init__(self) -> None:
        self._sets: Dict[str, ParameterSet] = {}

    def _ask(self, method: str, request: Any, parse: Any, timeout: Optional[float]) -> Any:
        return parse(getattr(self, f"_{method}")(request).SerializeToString())

    def _put_parameters(self, request: Any) -> Any:
        if not _IS_NAME.fullmatch(request.name):
            raise invalid("name", f"name is {request.name!r}, must be {_NAME}")
        data = request.parameters.SerializeToString(deterministic=True)
        reference = f"{request.name}@sha256:{hashlib.sha256(data).hexdigest()}"
        self._sets.setdefault(reference, of_message(request.parameters, reference))
        return messages.PutParametersResponse(reference=reference)

    def _get_parameters(self, request: Any) -> Any:
        found = self._find(request.reference, "reference")
        return messages.GetParametersResponse(reference=found.reference, parameters=found.message())

    def _list_parameters(self, request: Any) -> Any:
        return messages.ListParametersResponse(references=sorted(r for r in list(self._sets) if r.startswith(request.prefix))[:4096])

    def _find(self, reference: str, field: str) -> ParameterSet:
        if not _IS_REFERENCE.fullmatch(reference):
            raise invalid(
                field, f"{field} is {reference!r}, must be name@sha256:HEX, HEX of 64 digits in lower case, or name, of {_NAME}")
        if "@" in reference:
            found = [reference] if reference in self._sets else []
        else:
            found = sorted(known for known in list(self._sets) if known.startswith(f"{reference}@"))
        if len(found) > 1:
            raise invalid(field, f"{field} is {reference}, a name that several sets have: {found[0]}, {found[1]}")
        if not found:
            message = f"no stored parameters {reference}: call PutParameters, then try again"
            if "@" not in reference:
                message = f"no stored parameters have the name {reference}"
            raise QuantdError(
                StatusCode.NOT_FOUND, message, [FieldViolation(field, message)], reason="PARAMETERS_NOT_FOUND", metadata={})
        return self._sets[found[0]]

    def _stored(self, operation: str, stored: Any, arguments: Dict[str, Any]) -> Any:
        reference = reference_of(stored)
        if isinstance(stored, ParameterSet) and reference not in self._sets:
            self._put_parameters(parameters.put_request(stored.name, stored))
        found = self._find(reference, "parameters")
        known = parameters.arguments_for(operation, found)
        own = {name: value for name, value in arguments.items() if name in _DEFAULTS[operation] and name not in ("self", "parameters")}
        for name in known:
            if own[name] is not _DEFAULTS[operation][name] and not (name == "block_size" and not own[name]):
                raise parameters.in_both(name, found)
        result = getattr(self, operation)(**{**own, **known})
        changes: Dict[str, Any] = {"parameters": found.reference}
        if isinstance(result, results.Quantized):  # as over the wire: without the contents of the set
            changes.update((name, None) for name in ("scale", "zero_point", "axis", "block_shape") if name in known)
            if "block_size" in known:
                changes["block_size"] = 0
        return dataclasses.replace(result, **changes)
