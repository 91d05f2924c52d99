"""Stored parameters: puts, gets and lists them, and completes requests with them."""

import dataclasses
from typing import Any, Callable, Dict, Generic, List, Optional, Tuple, TypeVar

import numpy as np

from . import messages, requests, results
from .errors import InvalidArgumentError, QuantdError, StatusCode, invalid, wrong_type
from .parameter_set import ParameterSet, of_message
from .shared import SharedTensor
from .types import to_message

_QUANTIZE = {"scale", "zero_point", "axis", "block_size", "block_shape", "saturate", "precision", "zero_point_order"}
_EMBEDDINGS = {
    "preset", "recipe", "ranges", "dimensions", "normalize", "bit_order", "bit_threshold", "signed_bits", "non_finite"}
_DEQUANTIZE = ("scale", "zero_point", "axis", "block_size", "block_shape")
# How often the set is stored before each new attempt: servers without a shared directory may take turns, and each time one more gets it.
PUTS = (1, 2, 3, 4)
AParameterSet = TypeVar("AParameterSet")  # the return type of a client's calls: a ParameterSet, or an awaitable of it
AReferences = TypeVar("AReferences")

_X = np.zeros(0, np.float32)


def make(arguments: Dict[str, Any]) -> ParameterSet:
    """The set of arguments of quantize or of quantize_embeddings, without a name."""
    for_quantize, for_embeddings = sorted(_QUANTIZE & set(arguments)), sorted(_EMBEDDINGS & set(arguments))
    others = sorted(set(arguments) - _QUANTIZE - _EMBEDDINGS - {"output_type"})
    if others:
        raise wrong_type(others[0], f"{' and '.join(others)} can't be stored: a set has the arguments of quantize or of quantize_embeddings "
                        "that are not part of one call alone")
    if for_quantize and for_embeddings:
        raise wrong_type(for_quantize[0], f"{for_quantize[0]} is for quantize, {for_embeddings[0]} for quantize_embeddings: a set is for one of them")
    if not (for_quantize or for_embeddings):
        raise wrong_type("scale", "a set needs arguments: scale, for example, or recipe")
    kind = "quantize" if for_quantize else "quantize_embeddings"
    request = requests.make(kind, _X, parameters="none", **arguments)
    request.message.ClearField("parameters")
    found = messages.ParameterSet()
    getattr(found, kind).CopyFrom(request.message)
    for name, value in request.operands.items():
        if name != "x":
            array = value.array() if isinstance(value, SharedTensor) else value
            getattr(getattr(found, kind), name).CopyFrom(to_message(messages.Tensor, array))
    getattr(found, kind).SetInParent()
    return of_message(found, "")


def put_request(name: str, stored: ParameterSet) -> Any:
    """The message that stores a set."""
    if not isinstance(name, str):
        raise wrong_type("name", f"name is {name!r}, must be a string")
    return messages.PutParametersRequest(name=name, parameters=stored.message())


def may_help(request: requests.Request, error: QuantdError) -> bool:
    """Whether the call may succeed once its parameters are stored on the server."""
    return request.parameters is not None and error.code is StatusCode.NOT_FOUND


def put_data(request: requests.Request) -> bytes:
    """The request that stores the parameters."""
    assert request.parameters is not None
    data: bytes = put_request(request.parameters.name, request.parameters).SerializeToString()
    return data


def get(reference: str) -> Tuple[Any, Callable[[bytes], ParameterSet]]:
    """The request for a set, and the parser of its answer."""
    return messages.GetParametersRequest(reference=str(reference)), _got


def arguments_for(operation: str, stored: ParameterSet) -> Dict[str, Any]:
    """The arguments of a set that a call uses. Raises the server's error for a set of the other kind."""
    if stored.kind != ("quantize" if operation == "dequantize" else operation):
        method = messages.METHODS[operation]
        raise invalid("parameters", f"parameters is {stored.reference}, a set of {stored.kind}, which is not for {method}")
    if operation != "dequantize":
        return stored.arguments
    return {name: value for name, value in stored.arguments.items() if name in _DEQUANTIZE}


def in_both(name: str, stored: ParameterSet) -> InvalidArgumentError:
    """The server's error if request and set have the same field."""
    return invalid(name, f"{name} is in the request and in {stored.reference}: it must be in only one of them")


def completed(request: requests.Request, stored: ParameterSet) -> requests.Request:
    """The request with the fields of the set instead of its reference. Raises the server's errors."""
    known = arguments_for(request.operation, stored)
    message, operands = type(request.message)(), dict(request.operands)
    message.CopyFrom(request.message)
    message.ClearField("parameters")
    for f, value in getattr(stored.message(), stored.kind).ListFields():
        if f.name not in known:
            continue
        if f.name in operands or any(set_field.name == f.name for set_field, _ in message.ListFields()):
            raise in_both(f.name, stored)
        if f.message_type is not None:
            operands[f.name] = known[f.name]
        elif f.name == "block_shape":
            message.block_shape.extend(value)
        else:
            setattr(message, f.name, value)
    granularity = (None, 0, None)
    if hasattr(message, "axis"):
        granularity = (
            message.axis if message.HasField("axis") else None, message.block_size, tuple(message.block_shape) or None)
    if request.operation != "quantize_embeddings" and "scale" not in operands:
        raise invalid("scale", "scale is missing")
    return requests.Request(request.operation, message, operands, request.out, granularity)


def own(result: Any, request: requests.Request, reference: str) -> Any:
    """The result of a completed request as the result of the original one: with its reference, and without the contents of the set."""
    if isinstance(result, results.Quantized):
        axis, block_size, block_shape = request.granularity
        kept = {name: requests.kept(request.operands.get(name)) for name in ("scale", "zero_point")}
        return dataclasses.replace(
            result, parameters=reference, axis=axis, block_size=block_size, block_shape=block_shape, **kept)
    return dataclasses.replace(result, parameters=reference)


def _put(stored: ParameterSet, data: bytes) -> ParameterSet:
    reference = messages.PutParametersResponse.FromString(data).reference
    if "@sha256:" not in reference:
        raise ValueError(f"{reference!r} is not a reference")
    return dataclasses.replace(stored, reference=reference)


def _got(data: bytes) -> ParameterSet:
    answer = messages.GetParametersResponse.FromString(data)
    return of_message(answer.parameters, answer.reference)


def _listed(data: bytes) -> List[str]:
    return list(messages.ListParametersResponse.FromString(data).references)


class Stores(Generic[AParameterSet, AReferences]):
    """The parameters methods of Client and AsyncClient. Subclasses implement the sending in `_ask`."""

    def _ask(self, method: str, request: Any, parse: Any, timeout: Optional[float]) -> Any:
        raise NotImplementedError

    def put_parameters(self, name: str, *, timeout: Optional[float] = None, **arguments: Any) -> AParameterSet:
        """Store arguments of quantize or quantize_embeddings under a name, for calls with ``parameters``.

        A set is identified by its name and its contents: storing the same arguments again gives the same set, other arguments another.

        Parameters
        ----------
        name : str
            Lower-case letters, digits, ".", "_" and "-", 64 at most.
        timeout : float, optional
            Seconds that the call may take.
        **arguments : Any
            The arguments of quantize or of quantize_embeddings, except x, report_error and out.

        Returns
        -------
        ParameterSet
            The set, with its reference. AsyncClient returns an awaitable of it.

        Raises
        ------
        QuantdError
            When the call fails: with FAILED_PRECONDITION if the server stores no sets.
        TypeError, ValueError
            For arguments that neither call has.
        """
        stored = make(arguments)
        return self._ask("put_parameters", put_request(name, stored), lambda data: _put(stored, data), timeout)

    def get_parameters(self, reference: str, *, timeout: Optional[float] = None) -> AParameterSet:
        """Read a stored set.

        Parameters
        ----------
        reference : str
            "name@sha256:HEX", or the name alone if only one set has it.
        timeout : float, optional
            Seconds that the call may take.

        Returns
        -------
        ParameterSet
            The set. AsyncClient returns an awaitable of it.

        Raises
        ------
        QuantdError
            When the call fails: with NOT_FOUND if there is no such set.
        """
        return self._ask("get_parameters", *get(reference), timeout)

    def list_parameters(self, prefix: str = "", *, timeout: Optional[float] = None) -> AReferences:
        """List the stored sets, at most 4,096.

        Parameters
        ----------
        prefix : str, optional
            The beginning of their references.
        timeout : float, optional
            Seconds that the call may take.

        Returns
        -------
        list of str
            Their references. AsyncClient returns an awaitable of it.

        Raises
        ------
        QuantdError
            When the call fails.
        """
        return self._ask("list_parameters", messages.ListParametersRequest(prefix=prefix), _listed, timeout)
