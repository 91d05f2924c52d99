"""The official ONNX node tests of the three operators, from the onnx wheel."""

import importlib

import numpy as np
import pytest

pytest.importorskip("onnx")
import onnx  # noqa: E402
from onnx.backend.test.case import node as node_tests  # noqa: E402

from quantd_conformance import oracle_types as ot  # noqa: E402
from compare import count, same  # noqa: E402

OPERATORS = {"QuantizeLinear": "quantize", "DequantizeLinear": "dequantize", "DynamicQuantizeLinear": "dynamic_quantize"}


def _cases():
    """Importing a module of cases runs them and adds them to a list; cases of other modules need packages of their
    own."""
    for operator in OPERATORS:
        importlib.import_module(f"onnx.backend.test.case.node.{operator.lower()}")
    found = {}
    for case in node_tests._NodeTestCases:
        if case.model.graph.node[0].op_type in OPERATORS and len(case.model.graph.node) == 1:
            found[case.name] = case
    return list(found.values())


CASES = _cases()


def test_the_wheel_carries_cases():
    assert {c.model.graph.node[0].op_type for c in CASES} == set(OPERATORS)
    assert len(CASES) >= 25


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_node(client, case):
    node = case.model.graph.node[0]
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    options = {k: attributes.pop(k) for k in ("axis", "block_size") if k in attributes}
    if "saturate" in attributes:
        options["saturate"] = bool(attributes.pop("saturate"))
    for onnx_name, name in (("output_dtype", "output_type"), ("precision", "precision")):
        if attributes.get(onnx_name):
            options[name] = int(attributes[onnx_name])
        attributes.pop(onnx_name, None)
    assert not attributes, f"an attribute that this test does not know: {attributes}"
    for inputs, outputs in case.data_sets:
        inputs = [_array(v) for v in inputs]
        if options.get("block_size") and "axis" not in options:
            options["axis"] = 1
        answer = getattr(client, OPERATORS[node.op_type])(*inputs, **options)
        ours = [answer.y] if len(outputs) == 1 else [answer.y, answer.scale, answer.zero_point]
        for got, expected, name in zip(ours, outputs, node.output):
            same(got, _array(expected), f"{case.name} {name}")
        count(f"ONNX node tests (onnx {onnx.__version__}, opset {case.model.opset_import[0].version})", ours[0].size)


def _array(value):
    return onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)


def test_schema_versions_are_those_this_suite_was_written_for():
    versions = {s.since_version for s in onnx.defs.get_all_schemas_with_history() if s.name in OPERATORS and not s.domain}
    assert versions == {10, 11, 13, 19, 21, 23, 24, 25, 28}, "read what the new version says, then extend the tests"
    assert ot.TYPES
