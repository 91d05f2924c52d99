"""The models that ONNX Runtime runs for comparison. models.py FOLDER writes them: quantize.onnx and so on.

Each is one node; every tensor is an input or an output, and x has one dimension of any length.
"""

import pathlib
import sys

import onnx
from onnx import TensorProto, helper

FLOAT, UINT8 = TensorProto.FLOAT, TensorProto.UINT8
GIVEN = {"scale": (FLOAT, []), "zero_point": (UINT8, [])}
FOUND = {"y_scale": (FLOAT, []), "y_zero_point": (UINT8, [])}
# Operator, inputs and outputs, name: type and shape.
MODELS = {
    "quantize": ("QuantizeLinear", {"x": (FLOAT, ["n"]), **GIVEN}, {"y": (UINT8, ["n"])}),
    "dynamic_quantize": ("DynamicQuantizeLinear", {"x": (FLOAT, ["n"])}, {"y": (UINT8, ["n"]), **FOUND}),
    "dequantize": ("DequantizeLinear", {"x": (UINT8, ["n"]), **GIVEN}, {"y": (FLOAT, ["n"])}),
}


def model(name):
    operator, *sides = MODELS[name]
    node = helper.make_node(operator, *map(list, sides))
    tensors = ([helper.make_tensor_value_info(tensor, *info) for tensor, info in side.items()] for side in sides)
    # Versions that every ONNX Runtime of recent years can read.
    graph = helper.make_graph([node], name, *tensors)
    made = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)])
    onnx.checker.check_model(made)
    return made


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for each in MODELS:
        onnx.save(model(each), folder / f"{each}.onnx")
