"""Writes the models that ONNX Runtime runs beside quantd: quantize.onnx, dynamic_quantize.onnx, dequantize.onnx.

    peers_models.py FOLDER

Each is one node; every tensor is an input or an output, and x has one dimension of any length.
"""

import pathlib
import sys

import onnx
from onnx import TensorProto, helper

FLOAT, UINT8 = TensorProto.FLOAT, TensorProto.UINT8
# Operator: inputs and outputs, name: type and shape.
X, SCALAR = ["n"], []
MODELS = {
    "quantize": (
        "QuantizeLinear",
        {"x": (FLOAT, X), "scale": (FLOAT, SCALAR), "zero_point": (UINT8, SCALAR)},
        {"y": (UINT8, X)},
    ),
    "dynamic_quantize": (
        "DynamicQuantizeLinear",
        {"x": (FLOAT, X)},
        {"y": (UINT8, X), "y_scale": (FLOAT, SCALAR), "y_zero_point": (UINT8, SCALAR)},
    ),
    "dequantize": (
        "DequantizeLinear",
        {"x": (UINT8, X), "scale": (FLOAT, SCALAR), "zero_point": (UINT8, SCALAR)},
        {"y": (FLOAT, X)},
    ),
}


def tensors(infos):
    return [helper.make_tensor_value_info(name, *info) for name, info in infos.items()]


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, (operator, inputs, outputs) in MODELS.items():
        node = helper.make_node(operator, list(inputs), list(outputs))
        graph = helper.make_graph([node], name, tensors(inputs), tensors(outputs))
        # Versions that every ONNX Runtime of the last years reads.
        model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)])
        onnx.checker.check_model(model)
        onnx.save(model, folder / f"{name}.onnx")


main()
