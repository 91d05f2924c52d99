"""The models that ONNX Runtime runs for comparison. models.py FOLDER writes them: quantize.onnx and so on.

Each is one node; every tensor is an input or an output, and x has one dimension of any length, or two.
"""

import pathlib
import sys

import onnx
from onnx import TensorProto, helper

FLOAT, UINT8 = TensorProto.FLOAT, TensorProto.UINT8


def operators(value, code, rows):
    """Operator, inputs and outputs, name: type and shape; of values and codes of these types. rows: of a matrix, with a scale each."""
    x, scales = (["rows", "n"], ["rows"]) if rows else (["n"], [])
    given = {"scale": (value, scales), "zero_point": (code, scales)}
    return {
        "quantize": ("QuantizeLinear", {"x": (value, x), **given}, {"y": (code, x)}),
        "dynamic_quantize": ("DynamicQuantizeLinear", {"x": (value, x)}, {"y": (code, x), "y_scale": (FLOAT, []), "y_zero_point": (code, [])}),
        "dequantize": ("DequantizeLinear", {"x": (code, x), **given}, {"y": (value, x)}),
    }


def model(name, value=FLOAT, code=UINT8, rows=False):
    operator, *sides = operators(value, code, rows)[name]
    node = helper.make_node(operator, *map(list, sides), **({"axis": 0} if rows else {}))
    tensors = ([helper.make_tensor_value_info(tensor, *info) for tensor, info in side.items()] for side in sides)
    # Versions that every ONNX Runtime of recent years can read.
    graph = helper.make_graph([node], name, *tensors)
    made = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 19)])
    onnx.checker.check_model(made)
    return made


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for each in operators(FLOAT, UINT8, rows=False):
        onnx.save(model(each), folder / f"{each}.onnx")
