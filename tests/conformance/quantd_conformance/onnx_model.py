"""ONNX's files for a case: a model with one node, and tensors."""

from typing import Any, Dict, List, Tuple

import numpy as np
from google.protobuf.message import DecodeError

from onnx import ModelProto, TensorProto, helper, numpy_helper

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
    return numpy_helper.from_array(array, name).SerializeToString(deterministic=True)


def tensor_of(data: bytes) -> Tuple[str, np.ndarray]:
    """(name, array) of such a file."""
    proto = _parsed(TensorProto, data)
    try:
        array = numpy_helper.to_array(proto)
        ot.of(array)  # of a type that is known here
        return proto.name, array
    except (KeyError, OverflowError, TypeError, ValueError) as error:
        raise FormatError(f"tensor {proto.name!r}: {error}") from None


def model_bytes(case: Case, outputs: Dict[str, np.ndarray]) -> bytes:
    """model.onnx of a case; outputs: the types and shapes of the answer."""
    inputs = [(onnx_name, case.inputs[name]) for onnx_name, name in INPUTS[case.operation] if name in case.inputs]
    attributes = {
        ATTRIBUTES[name]: ot.TYPES[value].number if isinstance(value, str) else int(value) for name, value in case.attributes.items()}
    node = helper.make_node(OPERATORS[case.operation], [name for name, _ in inputs], OUTPUTS[case.operation], **attributes)
    infos = [[helper.make_tensor_value_info(name, ot.of(array).number, array.shape) for name, array in arrays]
             for arrays in (inputs, [(name, outputs[name]) for name in OUTPUTS[case.operation]])]
    graph = helper.make_graph([node], case.name, *infos)
    opset = [helper.make_opsetid("", case.opset)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=IR_VERSIONS[case.opset], producer_name="quantd_conformance")
    return model.SerializeToString(deterministic=True)


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
