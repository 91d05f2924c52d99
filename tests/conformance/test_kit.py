"""The kit: export writes the cases, other tools can read it, quantd passes all of it, and verify reports failures."""

import json
import random
import xml.etree.ElementTree as xml

import numpy as np
import pytest

from compare import count
from quantd_conformance import __main__ as program
from quantd_conformance import cases, engines, files, verify
from quantd_conformance import oracle_types as ot
from quantd_conformance.rules import RULES
from quantd_conformance.versions import OPSETS


@pytest.fixture(scope="module")
def every():
    return list(cases.all_cases())


def some(every, number):
    """A case of each rule and family, and some more."""
    first = {(c.rule, c.family, c.group): c for c in every}
    chosen = [*first.values(), *random.Random(number).sample(every, number)]
    return list({id(c): c for c in chosen}.values())


@pytest.fixture(scope="module")
def kit(every, tmp_path_factory):
    """A part of the kit as files."""
    folder = tmp_path_factory.mktemp("kit") / "kit"
    files.write(folder, some(every, 600))
    return folder


def test_every_rule_has_cases_and_every_version(every):
    assert {c.rule for c in every} == set(RULES)
    names = [(c.family, c.group, c.name) for c in every]
    assert len(names) == len(set(names))
    assert len(every) > 25_000
    for operator in ("QuantizeLinear", "DequantizeLinear"):
        for opset in OPSETS:
            assert sum(c.operator == operator and c.opset == opset for c in every) > 30
    for c in every:
        assert c.open == bool(RULES[c.rule].open) == bool(c.answers)
        assert c.name.isidentifier() or not c.opset


def test_quantd_passes_all_of_it(client, every):
    result = verify.verify(every, engines.of_client(client), "the client under test", exact=True)
    assert not result.failed, verify.table(result)
    assert result.count(verify.PASSED) == len(every)
    count("the conformance kit", sum(c.inputs["x"].size for c in every), len(every))


# The rules by which others differ, as in README.md.
DIFFER = {
    "onnx-reference": {
        "quantize-saturates-past-int32", "quantize-saturates-infinity", "quantize-precision-of-scale", "dequantize-minifloat-zero-point"},
    "onnxruntime": {
        "quantize-saturates-past-int32", "quantize-saturates-infinity", "quantize-precision-of-scale", "quantize-precision",
        "quantize-float8-overflows"},
}


@pytest.mark.parametrize("name,passed,failed", [("onnx-reference", 7707, 495), ("onnxruntime", 4073, 101)])
def test_others_differ_where_the_readme_says(name, passed, failed):
    """The oracle is what others compute as well, at every version of the operators."""
    pytest.importorskip(name.partition("-")[0])
    with engines.engine(name) as (version, ask):
        result = verify.verify([files.stored(c) for c in cases.onnx_cases()], ask, version)
    assert {c.rule for c in result.rules() if c.failed} == DIFFER[name], verify.table(result)
    assert (result.count(verify.PASSED), result.count(verify.FAILED)) == (passed, failed), version
    count(version, 0, passed)


def test_what_is_written_is_read(every, kit):
    written = {(c.family, c.group, c.name): c for c in every}
    read = list(files.read(kit))
    assert len(read) >= 600
    for found in read:
        case = written[found.family, found.group, found.name]
        assert (found.rule, found.operation, found.opset, found.attributes) == (case.rule, case.operation, case.opset, case.attributes)
        assert found.inputs.keys() == case.inputs.keys()
        for name, array in case.inputs.items():
            assert found.inputs[name].dtype == array.dtype and (ot.codes(found.inputs[name]) == ot.codes(array)).all()
        assert list(found.answers) == list(case.answers)
        wanted = case.expected()
        if wanted.tensors or not case.opset:
            assert not verify.mismatches(found.expected(), wanted, exact_nan=True), case.name
        for name, known in case.answers.items():
            assert not verify.mismatches(found.answers[name], known, exact_nan=True)


def test_it_is_the_same_byte_for_byte(every, tmp_path):
    chosen = some(every, 60)
    manifests = [files.write(tmp_path / name / "kit.tar.xz", chosen) for name in ("one", "other") if (tmp_path / name).mkdir() is None]
    assert manifests[0] == manifests[1]
    assert (tmp_path / "one/kit.tar.xz").read_bytes() == (tmp_path / "other/kit.tar.xz").read_bytes()
    unpacked = files.unpacked(tmp_path / "one/kit.tar.xz", tmp_path / "unpacked")
    assert len(list(files.read(unpacked))) == len(chosen) == manifests[0]["cases"]


def test_onnx_reads_it(kit):
    onnx = pytest.importorskip("onnx")
    for model in sorted(kit.glob("*/*/model.onnx")):
        proto = onnx.load(model)
        onnx.checker.check_model(proto)
        given = sorted(model.parent.glob("test_data_set_0/input_*.pb"))
        assert len(given) == len(proto.graph.input)
        for path, info in zip(given, proto.graph.input):
            tensor = onnx.load_tensor(path)
            assert (tensor.name, tensor.data_type) == (info.name, info.type.tensor_type.elem_type)
            array = onnx.numpy_helper.to_array(tensor)
            mine = files.onnx_model.tensor_of(path.read_bytes())[1]
            assert array.shape == mine.shape and (ot.codes(array.astype(mine.dtype)) == ot.codes(mine)).all()


# ---- the program


def defect(case):
    """An engine whose INT8 codes are one too high, without FLOAT16, that refuses blocks."""
    if any(ot.of(v) is ot.FLOAT16 for v in case.inputs.values()):
        raise NotImplementedError("no FLOAT16")
    if "block_size" in case.attributes:
        raise ValueError("no blocks")
    found = case.expected()
    y = found.tensors.get("y")
    if y is not None and y.dtype == np.int8:
        return {**found.tensors, "y": (y.astype(np.int16) + 1).clip(-128, 127).astype(np.int8)}
    if found.refused is not None:
        raise ValueError("refused")
    return found.tensors


def run(capsys, *arguments):
    code = program.main(list(map(str, arguments)))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_verify_tells_what_fails(kit, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(files.Path(__file__).parent)
    code, out, _ = run(capsys, "verify", kit, "--engine=test_kit:defect", "--json", f"--junit={tmp_path / 'junit.xml'}")
    document = json.loads(out)
    assert code == 1 and document["failed"] > 0 and document["not_supported"] > 0
    rules = {r["rule"]: r for r in document["rules"]}
    assert rules["quantize-float8-rounds"]["failed"] == 0 and rules["quantize-blocks"]["failed"] > 0
    assert all("got " in f["why"] or "refused" in f["why"] for f in document["failures"])
    suite = xml.parse(tmp_path / "junit.xml").getroot()
    assert int(suite.get("failures")) == document["failed"] == len(suite.findall("testcase/failure"))
    assert int(suite.get("skipped")) == document["not_supported"] == len(suite.findall("testcase/skipped"))
    code, out, _ = run(capsys, "verify", kit, "--engine=test_kit:defect", "--only=^quantize-float8")
    assert code == 0 and "0 failed" in out and "dequantize" not in out


@pytest.mark.parametrize(
    "arguments,words",
    [
        (("verify", "nowhere", "--engine=onnx-reference"), "holds no case"),
        (("verify", "{kit}", "--engine=nothing"), "no engine 'nothing'"),
        (("verify", "{kit}", "--engine=no_such_module:f"), "no_such_module"),
        (("verify", "{kit}", "--engine=test_kit:nothing"), "nothing"),
        (("verify", "{kit}", "--engine=test_kit:OPSETS"), "is a tuple, must be a function"),
        (("verify", "{kit}", "--engine=:f"), "engine :f: "),
        (("verify", "{kit}", "--engine=quantd-local", "--only=["), "--only"),
        (("verify", "{kit}", "--engine=test_kit:defect", "--only=no-such-rule"), "matches no case"),
        (("export", "{kit}"), "not an empty folder"),
    ],
)
def test_wrong_usage(kit, capsys, arguments, words):
    if "quantd-local" in str(arguments):
        pytest.importorskip("quantd_core")
    code, _, err = run(capsys, *(a.format(kit=kit) for a in arguments))
    assert code == 2 and words in err and err.count("\n") == 1
