"""Every row of differences.py still holds: they still differ in this way, the server still does what the specification
says, and README.md shows the table as it is."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
import ask  # noqa: E402
import differences  # noqa: E402
import oracle  # noqa: E402
import oracle_types as ot  # noqa: E402
import outside  # noqa: E402
import quantd  # noqa: E402
from compare import count  # noqa: E402

IMPLEMENTATIONS = {"ONNX reference evaluator": outside.reference, "ONNX Runtime": outside.runtime}
OPERATIONS = {"QuantizeLinear": "quantize", "DequantizeLinear": "dequantize", "DynamicQuantizeLinear": "dynamic_quantize"}
ROWS = pytest.mark.parametrize("row", differences.TABLE, ids=lambda row: row.name)


def equal(ours, expected):
    return all(a == b or (a != a and b != b) for a, b in zip(ours, expected)) and len(ours) == len(expected)


@ROWS
def test_they_still_differ(row):
    inputs = [("x", row.x)] + ([("scale", row.scale), ("zero_point", row.zero_point)] if row.scale is not None else [])
    types = [row.output] if row.scale is not None else [ot.UINT8, ot.FLOAT, ot.UINT8]
    y = np.asarray(IMPLEMENTATIONS[row.implementation](row.operator, inputs, types, row.opset, **row.attributes)[row.part])
    assert equal(differences.flat(y), row.theirs), (
        f"{row.implementation} {row.version} now answers {differences.flat(y)}: change the row or take it out")
    assert not equal(row.theirs, row.ours)


def ask_both(row, client):
    arguments = [row.x] + ([row.scale, row.zero_point] if row.scale is not None else [])
    options = dict(row.arguments, **({"output_type": row.output} if row.operator == "QuantizeLinear" else {}))
    return ask.both(OPERATIONS[row.operator], client, *arguments, **options)


@ROWS
def test_the_server_follows_the_specification(client, row):
    ours, expected = ask_both(row, client)
    if isinstance(row.ours, str):
        assert ours is None and expected is None
    else:
        for answer in (ours, expected):
            assert equal(differences.flat(answer.scale if row.part else answer.y), row.ours)
    count("differences listed by name", row.x.size)


def test_the_readme_shows_the_table():
    readme = (Path(__file__).resolve().parent / "README.md").read_text()
    assert readme == differences.readme_with_table(readme), "run python tests/conformance/differences.py"


def test_names_are_used_once():
    names = [row.name for row in differences.TABLE]
    assert len(names) == len(set(names)) and oracle and quantd
