"""Requests: from the arguments of a call to what is sent, and from what comes back to its result.

The server checks values; here only types are made. A Request knows nothing of who sends it.
"""

import operator
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np

from . import embeddings, messages, results, wire
from .choices import NON_FINITES, SYMMETRIES, ZERO_POINT_ORDERS
from .choices import choice as _choice
from .choices import type_number as _type
from .parameter_set import Parameters, ParameterSet, reference_of
from .shared import SharedTensor
from .types import DataType, DataTypeLike, as_array, data_type, packed

Operand = Union[np.ndarray, SharedTensor]
_NUMBERS = {
    operation: {name: message.DESCRIPTOR.fields_by_name[name].number for name in ("x", "scale", "zero_point", "tensor_scale", "ranges")
                if name in message.DESCRIPTOR.fields_by_name}
    for operation, message in messages.REQUESTS.items()
}
_ITEM_NUMBERS = {name: messages.StreamRequest.DESCRIPTOR.fields_by_name[name].number for name in messages.REQUESTS}


def operand(value: Any, name: str, default: DataType) -> Operand:
    """What is sent as the tensor of that name."""
    return value if isinstance(value, SharedTensor) else as_array(value, name, default)


def type_of(value: Operand) -> DataType:
    return value.data_type if isinstance(value, SharedTensor) else data_type(value.dtype)


class Request:
    """One call: message has everything but the tensors, which are in operands; out is memory for y, or None.

    parameters: the set that the message names, where the caller gave all of it.
    """

    __slots__ = ("operation", "message", "operands", "out", "granularity", "parameters")

    def __init__(
        self,
        operation: str,
        message: Any,
        operands: Dict[str, Operand],
        out: Optional[SharedTensor] = None,
        granularity: Tuple[Optional[int], int, Optional[Tuple[int, ...]]] = (None, 0, None),
        parameters: Optional[Parameters] = None,
    ):
        if out is not None and not isinstance(out, SharedTensor):
            raise TypeError(f"out is {type(out).__name__}, must be what shared or shared_empty of Client returned")
        self.operation, self.message, self.operands, self.out = operation, message, operands, out
        self.granularity = granularity  # axis, block_size and block_shape of the call
        self.parameters = parameters if isinstance(parameters, ParameterSet) else None
        if parameters is not None:
            message.parameters = reference_of(parameters)

    @property
    def reference(self) -> str:
        """Of the stored parameters that it names; "" when it names none."""
        return getattr(self.message, "parameters", "")

    def _buffers(self) -> List[Any]:
        fields, rest, numbers = [], [], _NUMBERS[self.operation]
        for name, value in self.operands.items():
            if isinstance(value, SharedTensor):
                tensor = value._message().SerializeToString()
                rest.append(wire.field(numbers[name], tensor))
            else:
                fields.append(wire.Field(numbers[name], value))
        if self.out is not None:
            self.message.output.CopyFrom(self.out._reference())
        rest.append(self.message.SerializeToString())
        return wire.parts(fields, b"".join(rest))

    def encode(self) -> bytes:
        """The serialized message."""
        if self.out is None:
            for value in self.operands.values():
                if type(value) is not np.ndarray or value.nbytes > wire.SMALL:
                    break
            else:
                return self._encode_small()
        return wire.join(self._buffers())

    def _encode_small(self) -> bytes:
        """The same by the generated code alone, which for a few bytes is the faster way."""
        message = self.message
        for name, array in self.operands.items():
            tensor = getattr(message, name)
            tensor.data_type = data_type(array.dtype)
            if array.ndim:
                tensor.shape.extend(array.shape)
            tensor.raw_data = packed(array).tobytes()
        data = message.SerializeToString()
        for name in self.operands:
            message.ClearField(name)
        return data

    def encode_item(self, identity: int) -> bytes:
        """The serialized StreamRequest."""
        return wire.join(wire.item(identity, _ITEM_NUMBERS[self.operation], self._buffers()))

    def decode(self, data: bytes, engine: Any) -> "results.Result":
        """The result of a received answer, which must be in nobody else's hands. `engine`: what its dequantize uses.

        Raises ValueError or protobuf's DecodeError for an answer that is none to this request.
        """
        return self.result(wire.read(messages.ANSWERS[self.operation], data), engine)

    def result(self, answer: wire.Answer, engine: Any) -> "results.Result":
        """The same of an answer that was read."""
        y = self._y(answer)
        x, parameters = self.operands["x"], self._used(answer)
        if self.operation == "quantize_embeddings":
            wanted = embeddings.output_shape(tuple(x.shape), self.message.dimensions, self.message.recipe)
            if parameters is not None:  # which may say what the last dimension is
                wanted = (*wanted[:-1], *y.shape[-1:])
            if y.shape != wanted:
                raise ValueError(f"y has shape {list(y.shape)}, not {list(wanted)}")
            return results.QuantizedEmbeddings(y, results.error_of(answer.message), parameters)
        if y.shape != tuple(x.shape):
            raise ValueError(f"y has shape {list(y.shape)}, x has {list(x.shape)}")
        if self.operation == "dequantize":
            return results.Dequantized(y, parameters)
        error, kind, granularity = results.error_of(answer.message), type_of(x), self.granularity
        if self.operation == "quantize":
            scale, zero_point = kept(self.operands.get("scale")), kept(self.operands.get("zero_point"))
            return results.Quantized(
                y, error, scale, zero_point, None, *granularity, kind, engine, parameters=parameters)
        scale = answer.array("y_scale")
        if scale is None:
            raise ValueError("y_scale is missing")
        zero_point, tensor_scale = answer.array("y_zero_point"), answer.array("y_tensor_scale")
        return results.DynamicQuantized(y, scale, zero_point, tensor_scale, error, *granularity, kind, engine)

    def _used(self, answer: wire.Answer) -> Optional[str]:
        """The reference that an answer has, when it must have one."""
        asked = self.reference
        if not asked:
            return None
        used = answer.message.parameters
        if not used.startswith(asked if "@" in asked else f"{asked}@"):
            raise ValueError(f"it was made with the parameters {used!r}, not {asked!r}")
        return used

    def _y(self, answer: wire.Answer) -> np.ndarray:
        """y of an answer: where it lies in shared memory, a view of that, of types narrower than a byte a copy."""
        if self.out is not None:
            y = answer.message.y
            if y.HasField("shared_memory"):
                return self.out._view(DataType(y.data_type), y.shape)
        found = answer.array("y")
        if found is None:
            raise ValueError("y is missing")
        return found


def data_of_item(data: bytes, request: Request) -> bytes:
    """The serialized message of a call, of the stream's item that it was."""
    return getattr(messages.StreamRequest.FromString(data), request.operation).SerializeToString()


def kept(value: Optional[Operand]) -> Optional[np.ndarray]:
    """A scale or zero point as it was at the call, whatever the caller does with its memory later."""
    if value is None:
        return None
    return np.array(value.array() if isinstance(value, SharedTensor) else value)


def _granularity(request, axis: Optional[int], block_size: int, block_shape: Optional[Sequence[int]]):
    """Sets it in a message; the same as a Request keeps it."""
    if axis is not None:
        axis = operator.index(axis)
        request.axis = axis
    if block_size:
        block_size = operator.index(block_size)
        request.block_size = block_size
    if block_shape is not None:
        block_shape = tuple(map(operator.index, block_shape)) or None
        request.block_shape.extend(block_shape or ())
    return axis, block_size, block_shape


def _set(request, **fields: int) -> None:
    """Sets those that are not 0."""
    for name, value in fields.items():
        if value:
            setattr(request, name, value)


def quantize(
    x: Any,
    scale: Any = None,
    zero_point: Any = None,
    *,
    output_type: Optional[DataTypeLike] = None,
    axis: Optional[int] = None,
    block_size: int = 0,
    block_shape: Optional[Sequence[int]] = None,
    saturate: bool = True,
    precision: Optional[DataTypeLike] = None,
    zero_point_order: Optional[str] = None,
    report_error: bool = False,
    out: Optional[SharedTensor] = None,
    parameters: Optional[Parameters] = None,
) -> Request:
    """The request of these arguments; see Client.quantize."""
    if scale is None and parameters is None:
        raise TypeError("scale is missing: only parameters can have it in its place")
    message = messages.QuantizeRequest()
    _set(
        message,
        output_type=_type(output_type),
        precision=_type(precision),
        zero_point_order=_choice(zero_point_order, ZERO_POINT_ORDERS, "zero_point_order"),
        report_error=report_error,
    )
    operands = {"x": operand(x, "x", DataType.FLOAT)}
    if scale is not None:
        operands["scale"] = operand(scale, "scale", DataType.FLOAT)
    if zero_point is not None:
        operands["zero_point"] = operand(
            zero_point, "zero_point", DataType(message.output_type) if message.output_type else DataType.UINT8
        )
    if not saturate:
        message.saturate = False
    granularity = _granularity(message, axis, block_size, block_shape)
    return Request("quantize", message, operands, out, granularity, parameters)


def dequantize(
    x: Any,
    scale: Any = None,
    zero_point: Any = None,
    *,
    output_type: Optional[DataTypeLike] = None,
    axis: Optional[int] = None,
    block_size: int = 0,
    block_shape: Optional[Sequence[int]] = None,
    tensor_scale: Any = None,
    out: Optional[SharedTensor] = None,
    parameters: Optional[Parameters] = None,
) -> Request:
    """The request of these arguments; see Client.dequantize."""
    if isinstance(x, results.QuantizedResult):
        known = dict(scale=scale, zero_point=zero_point, axis=axis, block_size=block_size or None, block_shape=block_shape,
                     tensor_scale=tensor_scale, parameters=parameters)
        twice = [name for name, value in known.items() if value is not None]
        if twice:
            raise TypeError(f"x is a {type(x).__name__}, which has its own {' and '.join(twice)}; to use others, pass x.y")
        return dequantize(x.y, **x.dequantize_arguments(output_type), out=out)
    if scale is None and parameters is None:
        raise TypeError("scale is missing: only a result of quantize or dynamic_quantize is dequantized without one, or with parameters")
    message = messages.DequantizeRequest(output_type=_type(output_type))
    operands = {"x": operand(x, "x", DataType.UINT8)}
    if scale is not None:
        operands["scale"] = operand(scale, "scale", DataType.FLOAT)
    if zero_point is not None:
        operands["zero_point"] = operand(zero_point, "zero_point", type_of(operands["x"]))
    if tensor_scale is not None:
        operands["tensor_scale"] = operand(tensor_scale, "tensor_scale", DataType.FLOAT)
    granularity = _granularity(message, axis, block_size, block_shape)
    return Request("dequantize", message, operands, out, granularity, parameters)


def dynamic_quantize(
    x: Any,
    *,
    output_type: Optional[DataTypeLike] = None,
    axis: Optional[int] = None,
    block_size: int = 0,
    block_shape: Optional[Sequence[int]] = None,
    saturate: bool = True,
    scale_type: Optional[DataTypeLike] = None,
    symmetry: Optional[str] = None,
    non_finite: Optional[str] = None,
    report_error: bool = False,
    out: Optional[SharedTensor] = None,
) -> Request:
    """The request of these arguments; see Client.dynamic_quantize."""
    message = messages.DynamicQuantizeRequest()
    _set(
        message,
        output_type=_type(output_type),
        scale_type=_type(scale_type),
        symmetry=_choice(symmetry, SYMMETRIES, "symmetry"),
        non_finite=_choice(non_finite, NON_FINITES, "non_finite"),
        report_error=report_error,
    )
    operands = {"x": operand(x, "x", DataType.FLOAT)}
    if not saturate:
        message.saturate = False
    granularity = _granularity(message, axis, block_size, block_shape)
    return Request("dynamic_quantize", message, operands, out, granularity)


def quantize_embeddings(
    x: Any,
    *,
    preset: Optional[str] = None,
    recipe: Optional[str] = None,
    ranges: Any = None,
    output_type: Optional[DataTypeLike] = None,
    dimensions: int = 0,
    normalize: bool = False,
    bit_order: Optional[str] = None,
    bit_threshold: Optional[str] = None,
    signed_bits: Optional[str] = None,
    non_finite: Optional[str] = None,
    report_error: bool = False,
    out: Optional[SharedTensor] = None,
    parameters: Optional[Parameters] = None,
) -> Request:
    """The request of these arguments; see Client.quantize_embeddings."""
    message = messages.QuantizeEmbeddingsRequest()
    _set(
        message,
        **embeddings.numbers(preset, non_finite, recipe=recipe, output_type=output_type, bit_order=bit_order,
                             bit_threshold=bit_threshold, signed_bits=signed_bits),
        dimensions=operator.index(dimensions),
        normalize=bool(normalize),
        report_error=bool(report_error),
    )
    operands = {"x": operand(x, "x", DataType.FLOAT)}
    if ranges is not None:
        operands["ranges"] = operand(ranges, "ranges", DataType.FLOAT)
    return Request("quantize_embeddings", message, operands, out, parameters=parameters)


BUILDERS = {
    "quantize": quantize,
    "dequantize": dequantize,
    "dynamic_quantize": dynamic_quantize,
    "quantize_embeddings": quantize_embeddings,
}
