"""Types as a checker sees them: all types of the package are known; misspelt arguments and unknown names are errors."""

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import quantd
from quantd import choices, embeddings, engine, messages, operations, types

ROOT = Path(__file__).resolve().parents[3]
PYRIGHT = ROOT / "build" / "pyright" / "node_modules" / ".bin" / "pyright"  # where tests/suites/python.sh puts it
OPERATIONS = ("quantize", "dequantize", "dynamic_quantize", "quantize_embeddings")
X = np.ones((2, 32), np.float32)


def pyright(folder, *arguments):
    """Its output about this interpreter's packages, from a folder without settings."""
    if not PYRIGHT.exists():
        pytest.skip("./tests/run.sh python installs pyright")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    run = subprocess.run([PYRIGHT, *arguments, "--outputjson"], cwd=folder, capture_output=True, text=True, timeout=300,
                         env={**os.environ, "PATH": path})
    return json.loads(run.stdout)


def test_every_type_is_known(tmp_path):
    found = pyright(tmp_path, "--verifytypes", "quantd", "--ignoreexternal")["typeCompleteness"]
    # The methods of a stream have the types of Client's by ParamSpec, which every checker infers.
    inferred = {"quantd.client.Client.stream"} | {f"quantd.stream.Stream.{name}" for name in OPERATIONS}
    unknown = {symbol["name"] for symbol in found["symbols"] if symbol["isExported"] and not symbol["isTypeKnown"] and symbol["diagnostics"]}
    assert unknown == inferred
    counts = found["exportedSymbolCounts"]
    assert counts["withUnknownType"] == 0 and counts["withKnownType"] > 550, counts


def accepted(call):
    try:
        call()
        return True
    except quantd.InvalidArgumentError:
        return False


def test_names_of_types_are_those_that_calls_take(small):
    codes, floats, scales = (set(map(types.data_type, _names(alias))) for alias in (types.CodeName, types.FloatName, types.ScaleName))
    for kind in quantd.DataType:
        assert accepted(lambda kind=kind: small.quantize(X, 1.0, output_type=kind)) == (kind in codes), kind
        assert accepted(lambda kind=kind: small.dequantize(np.uint8([1]), 1.0, output_type=kind)) == (kind in floats), kind
        assert accepted(lambda kind=kind: small.dynamic_quantize(
            X, output_type="float4_e2m1fn", scale_type=kind, block_size=16)) == (kind in scales), kind
        assert {kind.name, kind.dtype.name} <= _names(types.DataTypeLike)


def _names(alias):
    """The names within Literals, which may be in a Union."""
    return {alias} if isinstance(alias, str) else {name for part in get_args(alias) for name in _names(part)}


def test_other_names_are_those_of_the_contract():
    enums = quantd.messages.QuantizeEmbeddingsRequest.DESCRIPTOR.fields_by_name
    ways = {"recipe": embeddings.RECIPES, "bit_order": embeddings.BIT_ORDERS, "bit_threshold": embeddings.BIT_THRESHOLDS,
            "signed_bits": embeddings.SIGNED_BITS, "non_finite": choices.NON_FINITES}
    others = [(quantd.messages.QuantizeRequest, "zero_point_order", choices.ZERO_POINT_ORDERS),
              (quantd.messages.DynamicQuantizeRequest, "symmetry", choices.SYMMETRIES)]
    fields = [(enums[name], numbers) for name, numbers in ways.items()]
    for field, numbers in fields + [(message.DESCRIPTOR.fields_by_name[name], numbers) for message, name, numbers in others]:
        known = {value.number: value.name for value in field.enum_type.values if value.number}
        assert {number: known[number].endswith(f"_{name.upper()}") for name, number in numbers.items()} == dict.fromkeys(known, True)
    assert get_args(embeddings.Preset) == tuple(embeddings.PRESETS)


@pytest.mark.parametrize("name", OPERATIONS)
def test_signatures_have_every_field(name):
    fields = {field.name for field in messages.REQUESTS[name].DESCRIPTOR.fields}
    # `out` is the place of y; its bytes always come as raw_data.
    left = fields - set(inspect.signature(getattr(operations.Operations, name)).parameters) - {"output", "output_encoding"}
    assert not left


@pytest.mark.parametrize("name", OPERATIONS)
def test_signatures_agree(name):
    def parameters(owner, without=()):
        found = inspect.signature(getattr(owner, name)).parameters.values()
        return [(p.name, p.kind, p.default) for p in found if p.name not in without]

    wanted = parameters(operations.Operations, {"timeout"})
    assert parameters(quantd.Stream, {"timeout"}) == wanted
    assert parameters(engine.Engine, {"timeout", "threads"}) == wanted
    assert parameters(quantd, {"timeout", "threads"}) == wanted[1:]
