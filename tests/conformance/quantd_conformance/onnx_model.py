"""ONNX's files for a case: a model with one node, and tensors."""

from typing import Any, Dict, List, Tuple

import numpy as np
from google.protobuf.message import DecodeError

from onnx import AttributeProto, ModelProto, TensorProto
from quantd.types import DataType, pack, unpack

from . import oracle_types as ot
from .case import OPERATIONS, OPERATORS, Case

# The oldest IR with the opset, according to onnx's helper.
IR_VERSIONS = {10: 5, 11: 6, 13: 7, 19: 9, 21: 10, 23: 11, 24: 12, 25: 13, 28: 14}
INPUTS: Dict[str, Tuple[Tuple[str, str], ...]] = {
    "quantize": (("x", "x"), ("y_scale", "scale"), ("y_zero_point", "zero_point")),
    "dequantize": (("x", "x"), ("x_scale", "scale"), ("x_zero_point", "zero_point")),
    "dynamic_quantize": (("x", "x"),),
}
OUTPUTS: Dict[str, Tuple[str, ...]] = {"quantize": ("y",), "dequantize": ("y",), "dynamic_quantize": ("y", "y_scale", "y_zero_point")}
ATTRIBUTES = {"axis": "axis", "block_size": "block_size", "saturate": "saturate", "output_type": "output_dtype", "precision": "precision"}
OF_ATTRIBUTES = {onnx: ours for ours, onnx in ATTRIBUTES.items()}
OF_NUMBER = {t.number: t for t in ot.TYPES.values()}


class FormatError(ValueError):
    """A file with invalid contents."""


def _parsed(message: Any, data: bytes) -> Any:
    try:
        return message.FromString(data)
    except DecodeError as error:
        raise FormatError(f"no {message.DESCRIPTOR.name} of ONNX: {error}") from None


def tensor_bytes(name: str, array: np.ndarray) -> bytes:
    """An input_N.pb or output_N.pb."""
    return TensorProto(name=name, data_type=ot.of(array).number, dims=array.shape, raw_data=pack(array)).SerializeToString(
        deterministic=True
    )


def tensor_of(data: bytes) -> Tuple[str, np.ndarray]:
    """(name, array) of such a file: raw_data, or the lists of ONNX's own node tests."""
    proto = _parsed(TensorProto, data)
    try:
        kind = DataType(proto.data_type)
        if proto.raw_data or not (proto.float_data or proto.int32_data):
            return proto.name, unpack(proto.raw_data, kind, tuple(proto.dims))
        if proto.float_data:
            return proto.name, np.array(proto.float_data, np.float32).reshape(tuple(proto.dims))
        raw = np.array(proto.int32_data, np.int64)  # codes; small types as packed bytes
        size = 1 if kind.bits < 8 else kind.bits // 8
        return proto.name, unpack(raw.astype(f"<i{size}").tobytes(), kind, tuple(proto.dims))
    except (ValueError, OverflowError) as error:
        raise FormatError(f"tensor {proto.name!r}: {error}") from None


def model_bytes(case: Case, outputs: Dict[str, np.ndarray]) -> bytes:
    """model.onnx of a case; outputs: the types and shapes of the answer."""
    model = ModelProto(ir_version=IR_VERSIONS[case.opset], producer_name="quantd_conformance")
    model.opset_import.add(version=case.opset)
    graph = model.graph
    graph.name = case.name
    node = graph.node.add(op_type=OPERATORS[case.operation])
    for onnx_name, name in INPUTS[case.operation]:
        if name in case.inputs:
            node.input.append(onnx_name)
            _value(graph.input.add(name=onnx_name), case.inputs[name])
    for name in OUTPUTS[case.operation]:
        node.output.append(name)
        _value(graph.output.add(name=name), outputs[name])
    for name, value in case.attributes.items():
        number = ot.TYPES[value].number if isinstance(value, str) else int(value)
        node.attribute.add(name=ATTRIBUTES[name], i=number, type=AttributeProto.INT)
    return model.SerializeToString(deterministic=True)


def _value(info: Any, array: np.ndarray) -> None:
    info.type.tensor_type.elem_type = ot.of(array).number
    info.type.tensor_type.shape.SetInParent()
    for length in array.shape:
        info.type.tensor_type.shape.dim.add(dim_value=length)


def read_model(data: bytes) -> Tuple[str, int, Dict[str, Any], List[str], List[str]]:
    """(operation, opset, attributes with the contract's names, names of the node's inputs, names of its outputs)."""
    model = _parsed(ModelProto, data)
    opset = max((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), default=0)
    if len(model.graph.node) != 1 or model.graph.node[0].op_type not in OPERATIONS:
        raise FormatError(f"nodes are {[n.op_type for n in model.graph.node]}; one of {', '.join(OPERATIONS)} is read here")
    node = model.graph.node[0]
    attributes: Dict[str, Any] = {}
    for a in node.attribute:
        if a.name not in OF_ATTRIBUTES:
            raise FormatError(f"attribute {a.name} is not known here")
        name = OF_ATTRIBUTES[a.name]
        if name in ("output_type", "precision"):
            if a.i:
                attributes[name] = OF_NUMBER[a.i].name
        else:
            attributes[name] = bool(a.i) if name == "saturate" else a.i
    operation = OPERATIONS[node.op_type]
    known = [ours for _, ours in INPUTS[operation]]
    return operation, opset, attributes, [known[i] if name else "" for i, name in enumerate(node.input)], list(node.output)


def with_constants(data: bytes, tensors: Dict[str, np.ndarray], keep: Tuple[str, ...] = ()) -> bytes:
    """The same model with its inputs, except those in `keep`, as initializers: there engines accept types that their arrays lack, and
    some accept scales only there. tensors: by the names of graph inputs."""
    model = ModelProto.FromString(data)
    graph = model.graph
    inputs = [value for value in graph.input if value.name in keep]
    for value in graph.input:
        if value.name not in keep:
            graph.initializer.add().MergeFromString(tensor_bytes(value.name, tensors[value.name]))
    del graph.input[:]
    graph.input.extend(inputs)
    return model.SerializeToString(deterministic=True)
