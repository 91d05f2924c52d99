"""Requests: converts the arguments of a call to its message, and the answer to its result.

The server checks values; here only types are converted. A Request does not depend on the client that sends it.
"""

from typing import Any, Dict, List, Optional, Tuple, Union

import numpy as np

from . import embeddings, messages, results, wire
from .choices import NON_FINITES, SYMMETRIES, ZERO_POINT_ORDERS, choice, flag, integer, integers, symmetry_of, type_number, warn_of_lost_signs
from .errors import wrong_type
from .foreign import Array
from .shared import SharedTensor
from .types import DataType, as_array, data_type, spelled_out

Operand = Union[Array, SharedTensor]
Granularity = Tuple[Optional[int], int, Optional[Tuple[int, ...]]]
_NUMBERS: Dict[str, Dict[str, int]] = {
    operation: {name: message.DESCRIPTOR.fields_by_name[name].number for name in ("x", "scale", "zero_point", "tensor_scale", "ranges")
                if name in message.DESCRIPTOR.fields_by_name}
    for operation, message in messages.REQUESTS.items()
}
_ITEM_NUMBERS: Dict[str, int] = {
    name: messages.StreamRequest.DESCRIPTOR.fields_by_name[name].number for name in messages.REQUESTS}


def operand(value: Any, name: str, default: DataType) -> Operand:
    """The tensor of that name in a request."""
    return value if isinstance(value, SharedTensor) else as_array(value, name, default)


def type_of(value: Operand) -> DataType:
    return value.data_type if isinstance(value, SharedTensor) else data_type(value.dtype)


class Request:
    """One call: message has everything except the tensors, which are in operands; out is memory for y, or None."""

    __slots__ = ("operation", "message", "operands", "out", "granularity")

    def __init__(
        self,
        operation: str,
        message: Any,
        operands: Dict[str, Operand],
        out: Optional[SharedTensor] = None,
        granularity: Granularity = (None, 0, None),
    ):
        if out is not None and not isinstance(out, SharedTensor):
            raise wrong_type("out", f"out is {type(out).__name__}, must be what shared or shared_empty of Client returned")
        self.operation: str = operation
        self.message: Any = message
        self.operands: Dict[str, Operand] = operands
        self.out: Optional[SharedTensor] = out
        self.granularity: Granularity = granularity  # axis, block_size and block_shape of the call

    def _buffers(self) -> List[Any]:
        buffers, numbers = [], _NUMBERS[self.operation]
        for name, value in self.operands.items():
            if isinstance(value, SharedTensor):
                buffers.append(wire.field(numbers[name], value._message().SerializeToString()))
            else:
                buffers += wire.tensor(numbers[name], value)
        if self.out is not None:
            self.message.output.CopyFrom(self.out._reference())
        buffers.append(self.message.SerializeToString())
        return buffers

    def encode(self, spare: Optional[bytes] = None) -> bytes:
        """The serialized message; see wire.join."""
        return wire.join(self._buffers(), spare)

    def encode_item(self, identity: int) -> bytes:
        """The serialized StreamRequest."""
        return wire.join(wire.item(identity, _ITEM_NUMBERS[self.operation], self._buffers()))

    def decode(self, data: bytes, engine: Any) -> "results.Result":
        """The result from a received answer, whose memory nothing else may use. `engine` is used by its dequantize.

        Raises ValueError or protobuf's DecodeError if it is not an answer to this request.
        """
        return self.result(wire.read(messages.ANSWERS[self.operation], data), engine)

    def result(self, answer: wire.Answer, engine: Any) -> "results.Result":
        """The result from a parsed answer."""
        message, x = answer[0], self.operands["x"]
        y = wire.array(answer, "y") if self.out is None else _y_in(self.out, answer)
        if y is None:
            raise ValueError("y is missing")
        if self.operation == "quantize_embeddings":
            wanted = embeddings.output_shape(tuple(x.shape), self.message.dimensions, self.message.recipe)
            if y.shape != wanted:
                raise ValueError(f"y has shape {list(y.shape)}, not {list(wanted)}")
            return results.QuantizedEmbeddings(y, results.error_of(message))
        if y.shape != x.shape:
            raise ValueError(f"y has shape {list(y.shape)}, x has {list(x.shape)}")
        if self.operation == "dequantize":
            return results.Dequantized(y)
        error, kind, granularity = results.error_of(message), type_of(x), self.granularity
        if self.operation == "quantize":
            zero_point = kept(self.operands["zero_point"]) if "zero_point" in self.operands else None
            return results.quantized(results.Quantized, y, kept(self.operands["scale"]), zero_point, None, error, granularity, kind, engine)
        scale = wire.array(answer, "y_scale")
        if scale is None:
            raise ValueError("y_scale is missing")
        zero_point, tensor_scale = wire.array(answer, "y_zero_point"), wire.array(answer, "y_tensor_scale")
        return results.quantized(results.DynamicQuantized, y, scale, zero_point, tensor_scale, error, granularity, kind, engine)


def _y_in(out: SharedTensor, answer: wire.Answer) -> Optional[Array]:
    """y of an answer: if it is in shared memory, a view of that; for types narrower than a byte a copy."""
    y = answer[0].y
    return out._view(DataType(y.data_type), y.shape) if y.HasField("shared_memory") else wire.array(answer, "y")


def kept(value: Operand) -> Array:
    """A copy of a scale or zero point at the time of the call, because the caller may change its memory later."""
    return np.array(value.array() if isinstance(value, SharedTensor) else value)


_TYPES = ("output_type", "precision", "scale_type")
_CHOICES = {
    "zero_point_order": ZERO_POINT_ORDERS, "symmetry": SYMMETRIES, "non_finite": NON_FINITES, "recipe": embeddings.RECIPES,
    "bit_order": embeddings.BIT_ORDERS, "bit_threshold": embeddings.BIT_THRESHOLDS, "signed_bits": embeddings.SIGNED_BITS,
}  # fmt: skip
_UNSAID = {"saturate": True, "block_size": 0, "dimensions": 0, "report_error": False, "normalize": False}  # as if it were not given


def _field(name: str, value: Any) -> Any:
    """The value of an argument in its field of the message."""
    if name in _TYPES:
        return type_number(value, name)
    if name in _CHOICES:
        return choice(value, _CHOICES[name], name)
    if name in ("axis", "block_size", "dimensions"):
        return integer(value, name)
    return integers(value, name) if name == "block_shape" else flag(value, name, False)


def make(
    operation: str,
    x: Any,
    scale: Any = None,
    zero_point: Any = None,
    *,
    tensor_scale: Any = None,
    ranges: Any = None,
    out: Optional[SharedTensor] = None,
    **options: Any,
) -> Request:
    """The request of a call; for its arguments see Client's method of that name. None means not given."""
    if operation == "dequantize" and isinstance(x, results.QuantizedResult):
        others = {"scale": scale, "zero_point": zero_point, "tensor_scale": tensor_scale}
        given = results.arguments_of(x, {**options, **others})
        return make(operation, x.y, out=out, **given)
    if scale is None and operation in ("quantize", "dequantize"):
        raise wrong_type("scale", results.NO_SCALE if operation == "dequantize" else "scale is missing")
    if operation == "dynamic_quantize":
        options = spelled_out(options)
        options["symmetry"] = symmetry_of(options.get("symmetry"), options.pop("symmetric", None))
    if operation == "quantize_embeddings":
        options.update(embeddings.chosen(options.pop("preset", None), options, ranges))
    fields: Dict[str, Any] = {}
    for name, value in options.items():
        if value is not None and value is not _UNSAID.get(name):
            fields[name] = _field(name, value)
    operands = {"x": operand(x, "x", DataType.UINT8 if operation == "dequantize" else DataType.FLOAT)}
    if fields.get("symmetry") == SYMMETRIES["symmetric"]:
        x = operands["x"]
        warn_of_lost_signs(x.array() if isinstance(x, SharedTensor) else x, fields.get("output_type", 0), fields["symmetry"])
    if scale is not None:
        operands["scale"] = operand(scale, "scale", DataType.FLOAT)
    if tensor_scale is not None:
        operands["tensor_scale"] = operand(tensor_scale, "tensor_scale", DataType.FLOAT)
    if ranges is not None:
        operands["ranges"] = operand(ranges, "ranges", DataType.FLOAT)
    if zero_point is not None:
        said = fields.get("output_type")
        default = type_of(operands["x"]) if operation == "dequantize" else DataType(said) if said else DataType.UINT8
        operands["zero_point"] = operand(zero_point, "zero_point", default)
    granularity = (fields.get("axis"), fields.get("block_size", 0), fields.get("block_shape") or None)
    return Request(operation, messages.REQUESTS[operation](**fields), operands, out, granularity)
