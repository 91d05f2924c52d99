"""Implementations by others, each as a function from numpy arrays to numpy arrays: ONNX's reference evaluator and ONNX Runtime, at any opset.
Every call makes a model of one node."""

import ctypes
import functools
import warnings

import numpy as np
import onnx
import onnx.reference
import onnxruntime
from onnx import TensorProto, helper

from quantd_conformance import oracle_types as ot

onnxruntime.set_default_logger_severity(4)


def tensor(name: str, array: np.ndarray) -> TensorProto:
    """An ONNX tensor with the bits of an array."""
    t = ot.of(array)
    result = TensorProto(name=name, data_type=t.number, dims=array.shape)
    bits = ot.codes(array).reshape(-1)
    if t.bits < 8:
        per_byte = 8 // t.bits
        bits = np.concatenate([bits, np.zeros(-bits.size % per_byte, np.uint8)]).reshape(-1, per_byte)
        bits = functools.reduce(np.bitwise_or, [bits[:, i] << np.uint8(i * t.bits) for i in range(per_byte)])
    result.raw_data = bits.tobytes()
    return result


def model(operator: str, inputs, output_types, opset: int, constants: bool, **attributes) -> onnx.ModelProto:
    """A graph of one node. inputs: (name, array or None); with constants, all of them are initializers."""
    names = [name if value is not None else "" for name, value in inputs]
    while names and not names[-1]:
        names.pop()
    node = helper.make_node(operator, names, [f"y{i}" for i in range(len(output_types))], **attributes)
    given = [(name, value) for name, value in inputs if value is not None]
    graph = helper.make_graph(
        [node], "one_node",
        [] if constants else [helper.make_tensor_value_info(n, ot.of(v).number, v.shape) for n, v in given],
        [helper.make_tensor_value_info(f"y{i}", t.number, None) for i, t in enumerate(output_types)],
        initializer=[tensor(n, v) for n, v in given] if constants else [],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10 if opset < 25 else 13)


def reference(operator: str, inputs, output_types, opset: int, **attributes):
    """ONNX's reference evaluator."""
    evaluator = onnx.reference.ReferenceEvaluator(model(operator, inputs, output_types, opset, False, **attributes))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return evaluator.run(None, {n: v for n, v in inputs if v is not None})


def _options():
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return options


def runtime(operator: str, inputs, output_types, opset: int, **attributes):
    """ONNX Runtime on the CPU. Raises onnxruntime's error if it has no kernel for these types."""
    proto = model(operator, inputs, output_types, opset, True, **attributes)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), _options(), ["CPUExecutionProvider"])
    outputs = session.run_with_ort_values(None, {})
    return [_bits(value, t) for value, t in zip(outputs, output_types)]


def _bits(value, t: ot.Type) -> np.ndarray:
    """The memory of an OrtValue: ONNX Runtime returns numpy arrays for few of the small types."""
    raw = np.frombuffer(ctypes.string_at(value.data_ptr(), value.tensor_size_in_bytes()), np.uint8)
    shape = value.shape()
    if t.bits < 8:
        fields = [(raw >> np.uint8(shift)) & np.uint8((1 << t.bits) - 1) for shift in range(0, 8, t.bits)]
        return ot.from_codes(np.stack(fields, 1).reshape(-1)[: int(np.prod(shape))].reshape(shape), t)
    return raw.view(f"u{t.dtype.itemsize}").view(t.dtype).reshape(shape)
