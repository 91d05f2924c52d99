"""A difference in a form for the engine's maintainers: what the specification says, an input, the engine's output, the right one, and a program of
ten lines that shows it."""

import numpy as np

from quantd.conformance import onnx_model, verify
from quantd.conformance import oracle_types as ot
from quantd.conformance.case import Case
from quantd.conformance.rules import RULES
from quantd.types import DataType, unpack

# What is known about the reason, by engine and rule.
WHY = {
    (
        "onnx-reference",
        "quantize-saturates-infinity",
    ): "`np.rint(x).astype(np.int32)` comes before the clamp; what no int32 holds becomes INT_MIN.",
    (
        "onnx-reference",
        "quantize-saturates-past-int32",
    ): "`np.rint(x).astype(np.int32)` comes before the clamp; what no int32 holds becomes INT_MIN.",
    (
        "onnx-reference",
        "quantize-precision-of-scale",
    ): "Without `precision`, `x / y_scale` is divided in the type that numpy promotes the two to.",
    ("onnx-reference", "dequantize-minifloat-zero-point"): "The zero point is left out where x is FLOAT4E2M1.",
    ("onnxruntime", "quantize-precision-of-scale"): "A FLOAT16 quotient is not rounded to FLOAT16.",
    ("onnxruntime", "quantize-precision"): "The quotient is not rounded to the type that `precision` names.",
    ("onnxruntime", "quantize-saturates-infinity"): "The scalar loop converts to int32 before the clamp.",
    ("onnxruntime", "quantize-saturates-past-int32"): "The scalar loop converts to int32 before the clamp.",
    (
        "onnxruntime",
        "quantize-float8-overflows",
    ): "Without saturate, overflow is judged before the value is rounded to the target's mantissa.",
}


def value(array: np.ndarray, index=()) -> str:
    return verify.value(array, index)


def shown(array: np.ndarray) -> str:
    return ", ".join(value(array.reshape(-1), i) for i in range(array.size)) or "nothing"


def operands(case: Case) -> str:
    """The operands and attributes in a line."""
    parts = []
    for name, array in case.inputs.items():
        shape = f" {list(array.shape)}" if array.ndim > 1 else ""
        parts.append(f"{name.replace('_', ' ')} {ot.of(array).name}{shape} {{{shown(array)}}}")
    if case.operation == "quantize" and "zero_point" not in case.inputs:
        parts.append(f"to {case.attributes.get('output_type', 'UINT8')}")
    return ", ".join(parts + [f"{k} {v}" for k, v in case.attributes.items() if not (k == "output_type" and case.operation == "quantize")])


def first_difference(row) -> str:
    """The first output that differs, by name."""
    return next(name for name in row["expected"] if row["expected"][name] != row["got"][name])


def file_name(engine: str, rule: str) -> str:
    return f"{engine}-{rule}.md"


def text(title: str, engine, row, case: Case) -> str:
    rule = RULES[row["rule"]]
    name = first_difference(row)
    array = {
        k: unpack(bytes.fromhex(row[k][name]["bytes"]), DataType[row[k][name]["type"]], tuple(row[k][name]["shape"]))
        for k in ("got", "expected")
    }
    why = WHY.get((engine["engine"], row["rule"]))
    return f"""# {case.operator}: {row["rule"].split("-", 1)[1].replace("-", " ")} ({title})

- **Version**: {engine["version"]}, asked on {engine["date"]}
- **Operator**: {case.operator}, opset {case.opset}
- **Input**: {operands(case)}
- **Expected** {name}: {shown(array["expected"])}
- **Got** {name}: {shown(array["got"])}
- **The specification** ({rule.source}): "{rule.sentence(case.opset)}"
- **Where**: {row["cases"]} cases of this rule, opsets {", ".join(map(str, row["opsets"]))}, types {", ".join(row["types"])}
{f"- **Why**: {why}" + chr(10) if why else ""}
```python
{program(engine["engine"], case)}
```
"""


ASK = {
    "onnx-reference": """from onnx.reference import ReferenceEvaluator
print(ReferenceEvaluator(model).run(None, {}))""",
    "onnxruntime": """import onnxruntime
options = onnxruntime.SessionOptions()
options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
session = onnxruntime.InferenceSession(model.SerializeToString(), options)
print(session.run_with_ort_values(None, {})[0])""",
    "openvino": """import numpy
import openvino
core = openvino.Core()
compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
request = compiled.create_infer_request()
x = openvino.Tensor(request.get_input_tensor().element_type, {shape})
x.data.reshape(-1).view(numpy.uint8)[:] = numpy.frombuffer({raw}, numpy.uint8)
request.set_input_tensor(x)
request.infer()
print(request.get_output_tensor().data)""",
}


def program(engine: str, case: Case) -> str:
    """A program that needs only onnx and the engine."""
    lines = ["from onnx import TensorProto, helper", ""]
    names, constants = [], []
    for onnx_name, name in onnx_model.INPUTS[case.operation]:
        if name in case.inputs:
            names.append(onnx_name)
            t, array = ot.of(case.inputs[name]), case.inputs[name]
            raw = onnx_model.TensorProto.FromString(onnx_model.tensor_bytes(onnx_name, array)).raw_data
            constants.append((onnx_name, t, array, raw))
    attributes = "".join(
        f", {onnx_model.ATTRIBUTES[k]}={ot.TYPES[v].number if isinstance(v, str) else int(v)}" for k, v in case.attributes.items()
    )
    outputs = onnx_model.OUTPUTS[case.operation]
    wanted = case.expected().tensors
    lines.append(f'node = helper.make_node("{case.operator}", {names}, {list(outputs)}{attributes})'.replace("'", '"'))
    kept = [c for c in constants if engine != "openvino" or c[0] != "x"]
    given = [c for c in constants if engine == "openvino" and c[0] == "x"]
    lines.append("constants = [")
    lines += [
        f'    TensorProto(name="{n}", data_type=TensorProto.{t.name}, dims={list(a.shape)}, raw_data={raw!r}),' for n, t, a, raw in kept
    ]
    lines.append("]")
    inputs = ", ".join(f'helper.make_tensor_value_info("{n}", TensorProto.{t.name}, {list(a.shape)})' for n, t, a, _ in given)
    infos = ", ".join(
        f'helper.make_tensor_value_info("{o}", TensorProto.{ot.of(wanted[o]).name}, {list(wanted[o].shape)})' for o in outputs
    )
    lines.append(f'graph = helper.make_graph([node], "one_node", [{inputs}], [{infos}], initializer=constants)')
    lines.append(
        f'model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", {case.opset})], ir_version={onnx_model.IR_VERSIONS[case.opset]})'
    )
    ask = ASK[engine]
    if given:
        ask = ask.replace("{shape}", str(list(given[0][2].shape))).replace("{raw}", repr(given[0][3]))
    return "\n".join([*lines, ask])
