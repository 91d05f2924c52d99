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
from quantd_conformance.case import LAYOUT_OPERATIONS
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


def test_open_questions_have_answers_that_differ(every):
    for c in every:
        known = list(c.answers.values())
        if c.open:
            assert len(known) >= 2, c.name
            assert not verify.mismatches(c.expected(), known[0], exact_nan=True), c.name
            assert any(verify.mismatches(a, known[0], exact_nan=True) for a in known[1:]), c.name


def test_quantd_passes_all_of_it(client, every):
    result = verify.verify(every, engines.of_client(client), "the client under test", exact=True)
    assert not result.failed, verify.table(result)
    asked = [c for c in every if c.operation not in LAYOUT_OPERATIONS]  # layouts: test_layouts.py
    assert result.count(verify.PASSED) == len(asked) and result.count(verify.NOT_SUPPORTED) == len(every) - len(asked)
    count("the conformance kit", sum(c.inputs["x"].size for c in asked), len(asked))


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


def test_the_numbers_are_the_same_everywhere():
    """The generator for the cases: its bits do not depend on the release of numpy or the CPU."""
    from quantd_conformance.values import quotients, rng

    r = rng("everywhere")
    assert r.random(3).tolist() == EXPECTED_NUMBERS
    assert r.integers(-5, 6, 8).tolist() == EXPECTED_INTEGERS
    assert quotients(rng("here"), (4,), ot.INT8, True).view(np.uint32).tolist() == EXPECTED_QUOTIENTS


EXPECTED_NUMBERS = [0.9538920652586933, 0.9798057497656798, 0.2183998425496726]
EXPECTED_INTEGERS = [-1, 3, -2, 5, -1, -2, 3, 1]
EXPECTED_QUOTIENTS = [1114542435, 3260022784, 1124856927, 1099329097]


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


def test_onnx_backend_tests_run_it(kit):
    """onnx.backend.test with ONNX's reference evaluator as the backend: the tool that authors of backends have."""
    pytest.importorskip("onnx")
    import unittest

    import onnx.backend.base
    import onnx.backend.test.loader
    from onnx.backend.test.runner import Runner
    from onnx.reference import ReferenceEvaluator

    class Prepared:
        def __init__(self, model):
            self.evaluator = ReferenceEvaluator(model)

        def run(self, inputs):
            return self.evaluator.run(None, dict(zip(self.evaluator.input_names, inputs)))

    class Backend(onnx.backend.base.Backend):
        @classmethod
        def prepare(cls, model, device="CPU", **_):
            return Prepared(model)

        @classmethod
        def supports_device(cls, device):
            return device == "CPU"

    linked = kit.parent / "data"
    linked.mkdir(exist_ok=True)
    wanted = ("ties_to_even", "zero_point", "per_axis", "every_code", "dynamic")
    chosen = [
        p
        for p in sorted((kit / "node").iterdir())
        if any(w in p.name for w in wanted) and "float4e2m1" not in p.name and "bfloat16" not in p.name
    ][:40]
    (linked / "simple").mkdir(exist_ok=True)
    for folder in chosen:
        (linked / "simple" / folder.name).symlink_to(folder)
    runner = Runner(Backend, __name__)
    for test in onnx.backend.test.loader.load_model_tests(str(linked), "simple"):
        runner._add_model_test(test, "kit")
    suite = unittest.TestSuite()
    for case in runner.test_cases.values():
        suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(case))
    names = {t._testMethodName for t in suite if "cpu" in t._testMethodName}
    result = unittest.TestResult()
    unittest.TestSuite(t for t in suite if t._testMethodName in names and any(f.name in t._testMethodName for f in chosen)).run(result)
    assert result.testsRun >= 20 and not result.failures and not result.errors, (result.failures + result.errors)[:1]


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


def test_verify_of_another_folder(tmp_path, capsys):
    """ONNX's own node tests, as onnx writes them, can be run as well: they have no rule.txt."""
    onnx = pytest.importorskip("onnx")
    model = onnx.helper.make_model(
        onnx.helper.make_graph(
            [onnx.helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"])],
            "g",
            [onnx.helper.make_tensor_value_info(n, t, s) for n, t, s in (("x", 1, [3]), ("s", 1, []), ("z", 2, []))],
            [onnx.helper.make_tensor_value_info("y", 2, [3])],
        ),
        opset_imports=[onnx.helper.make_opsetid("", 13)],
        ir_version=8,
    )
    folder = tmp_path / "test_mine" / "test_data_set_0"
    folder.mkdir(parents=True)
    (tmp_path / "test_mine" / "model.onnx").write_bytes(model.SerializeToString())
    for i, array in enumerate((np.float32([1, 2, 300]), np.float32(2), np.uint8(128))):
        (folder / f"input_{i}.pb").write_bytes(onnx.numpy_helper.from_array(np.asarray(array), "xsz"[i]).SerializeToString())
    (folder / "output_0.pb").write_bytes(onnx.numpy_helper.from_array(np.uint8([128, 129, 255]), "y").SerializeToString())
    code, out, _ = run(capsys, "verify", tmp_path, "--engine=onnx-reference")
    assert code == 0 and "QuantizeLinear" in out and "1 passed, 0 failed" in out


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


def test_a_damaged_kit_is_refused(every, tmp_path, capsys):
    chosen = [next(c for c in every if c.opset), next(c for c in every if c.family == "mx")]
    damages = {
        "missing": lambda k: next(k.glob("node/*/model.onnx")).unlink(),
        "not onnx": lambda k: next(k.glob("node/*/model.onnx")).write_bytes(b"\xff\xff"),
        "short tensor": lambda k: next(k.glob("node/*/test_data_set_0/input_0.pb")).write_bytes(
            files.onnx_model.TensorProto(data_type=1, dims=[1 << 40], raw_data=b"1234").SerializeToString()
        ),
        "no json": lambda k: next(k.glob("other/mx/*.json")).write_text("{"),
        "schema": lambda k: next(k.glob("other/mx/*.json")).write_text('{"schema": 2}'),
        "no tensors": lambda k: next(k.glob("other/mx/*.safetensors")).write_bytes(b""),
        "no tensor": lambda k: next(k.glob("node/*/test_data_set_0/input_0.pb")).write_bytes(b"\xff"),
        "no input": lambda k: next(k.glob("node/*/test_data_set_0/input_1.pb")).unlink(),
        "no output": lambda k: next(k.glob("node/*/test_data_set_0/output_0.pb")).unlink(),
        "no outputs": lambda k: change(next(k.glob("other/mx/*.json")), '"outputs"', '"output"'),
        "a list": lambda k: change(next(k.glob("other/mx/*.json")), '"cases": [', '"cases": [[],'),
        "a case too few": lambda k: next(k.glob("other/mx/*.json")).unlink(),
        "manifest": lambda k: change(k / "manifest.json", '"cases": 2', '"cases": "2"'),
    }
    for i, (name, damage) in enumerate(damages.items()):
        folder = tmp_path / str(i)
        files.write(folder, chosen)
        damage(folder)
        code, _, err = run(capsys, "verify", folder, "--engine=test_kit:defect")
        assert code == 2 and err.startswith("quantd_conformance: ") and err.count("\n") == 1, (name, err)
        assert str(folder) in err, (name, err)


def change(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_any_damage_is_an_answer_in_a_line(every, tmp_path, capsys):
    """Files that are cut, changed or missing: all cases pass, some fail, or one line names the place."""
    files.write(tmp_path / "kit", list({(c.family, c.operation): c for c in every}.values()))
    draw = random.Random(29)
    paths = sorted(p for p in (tmp_path / "kit").rglob("*") if p.is_file() and p.name not in ("FORMAT.md", "LICENSE"))
    for number in range(80):
        path = draw.choice(paths)
        before = path.read_bytes()
        data = bytearray(before)
        how = draw.randrange(4)
        if how == 0:
            path.unlink()
        elif how == 1:
            path.write_bytes(data[: draw.randrange(len(data) + 1)])
        elif how == 2:
            for _ in range(draw.randrange(1, 6)):
                data[draw.randrange(len(data))] = draw.randrange(256)
            path.write_bytes(data)
        else:
            places = [i for i, byte in enumerate(data) if byte in b":,[{"] or [0]
            at = draw.choice(places) + 1
            path.write_bytes(data[:at] + draw.choice([b"[]", b"null", b"-1", b"1e99", b'""', b"[[]]", b"{}"]) + data[data.find(b",", at) :])
        code, _, err = run(capsys, "verify", tmp_path / "kit", "--engine=test_kit:defect")
        assert code in (0, 1) or (code == 2 and err.count("\n") == 1 and str(tmp_path) in err), (number, path, how, err)
        path.write_bytes(before)


def test_a_damaged_archive_is_refused(every, tmp_path, capsys):
    whole = tmp_path / "kit.tar.xz"
    files.write(whole, some(every, 1)[:3])
    data = whole.read_bytes()
    damages = {"cut": data[: len(data) // 2], "empty": b"", "no archive": b"x" * 1000, "changed": data[:99] + b"xxxx" + data[103:]}
    for name, damaged in damages.items():
        (tmp_path / "damaged.tar.xz").write_bytes(damaged)
        code, _, err = run(capsys, "verify", tmp_path / "damaged.tar.xz", "--engine=test_kit:defect")
        assert code == 2 and "damaged.tar.xz" in err and err.count("\n") == 1, (name, err)


def test_a_package_that_is_missing_is_named(kit, capsys, monkeypatch):
    monkeypatch.setitem(engines.sys.modules, "onnxruntime", None)
    code, _, err = run(capsys, "verify", kit, "--engine=onnxruntime")
    assert code == 2 and "onnxruntime" in err and "pip install 'quantd-conformance[onnxruntime]'" in err and err.count("\n") == 1


def test_the_rules_are_listed(capsys):
    code, out, _ = run(capsys, "rules", "--only=^open")
    assert code == 0 and out.count("open: ") == sum(bool(r.open) for r in RULES.values())
