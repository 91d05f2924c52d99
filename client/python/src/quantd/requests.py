"""Requests: from the arguments of a call to the wire's messages. The server checks values; here only types are made."""

from typing import Any, Optional, Sequence

from . import messages
from .choices import NON_FINITES, SYMMETRIES, ZERO_POINT_ORDERS
from .choices import choice as _choice
from .choices import type_number as _type
from .shared import SharedTensor
from .types import DataType, DataTypeLike, as_array, data_type, to_message

def _granularity(request, axis: Optional[int], block_size: int, block_shape: Optional[Sequence[int]]) -> None:
    if axis is not None:
        request.axis = axis
    request.block_size = block_size
    if block_shape is not None:
        request.block_shape.extend(block_shape)


def _put(field, value: Any, name: str, default: DataType) -> DataType:
    """Sets a tensor of the request; the type that it has."""
    if isinstance(value, SharedTensor):
        field.CopyFrom(value._message())
        return value.data_type
    array = as_array(value, name, default)
    field.CopyFrom(to_message(messages.Tensor, array))
    return data_type(array.dtype)


def _put_output(request, out: Optional[SharedTensor]) -> None:
    if out is None:
        return
    if not isinstance(out, SharedTensor):
        raise TypeError(f"out is {type(out).__name__}, must be what shared or shared_empty of Client returned")
    request.output.CopyFrom(out._reference())


def quantize(
    x: Any,
    scale: Any,
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
):
    """The QuantizeRequest of these arguments; see Client.quantize."""
    request = messages.QuantizeRequest(
        output_type=_type(output_type),
        precision=_type(precision),
        zero_point_order=_choice(zero_point_order, ZERO_POINT_ORDERS, "zero_point_order"),
        report_error=report_error,
    )
    _put(request.x, x, "x", DataType.FLOAT)
    _put(request.scale, scale, "scale", DataType.FLOAT)
    if zero_point is not None:
        default = DataType(request.output_type or DataType.UINT8)
        _put(request.zero_point, zero_point, "zero_point", default)
    if not saturate:
        request.saturate = False
    _granularity(request, axis, block_size, block_shape)
    _put_output(request, out)
    return request


def dequantize(
    x: Any,
    scale: Any,
    zero_point: Any = None,
    *,
    output_type: Optional[DataTypeLike] = None,
    axis: Optional[int] = None,
    block_size: int = 0,
    block_shape: Optional[Sequence[int]] = None,
    tensor_scale: Any = None,
    out: Optional[SharedTensor] = None,
):
    """The DequantizeRequest of these arguments; see Client.dequantize."""
    request = messages.DequantizeRequest(output_type=_type(output_type))
    x_type = _put(request.x, x, "x", DataType.UINT8)
    _put(request.scale, scale, "scale", DataType.FLOAT)
    if zero_point is not None:
        _put(request.zero_point, zero_point, "zero_point", x_type)
    if tensor_scale is not None:
        _put(request.tensor_scale, tensor_scale, "tensor_scale", DataType.FLOAT)
    _granularity(request, axis, block_size, block_shape)
    _put_output(request, out)
    return request


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
):
    """The DynamicQuantizeRequest of these arguments; see Client.dynamic_quantize."""
    request = messages.DynamicQuantizeRequest(
        output_type=_type(output_type),
        scale_type=_type(scale_type),
        symmetry=_choice(symmetry, SYMMETRIES, "symmetry"),
        non_finite=_choice(non_finite, NON_FINITES, "non_finite"),
        report_error=report_error,
    )
    _put(request.x, x, "x", DataType.FLOAT)
    if not saturate:
        request.saturate = False
    _granularity(request, axis, block_size, block_shape)
    _put_output(request, out)
    return request
