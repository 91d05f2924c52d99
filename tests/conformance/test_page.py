"""README.md, reports/ and differences.json agree with the engines' answers: the same counts by rule, the same answers to the smallest inputs. After a
change run python tests/conformance/page.py."""

import importlib.metadata
import json

import pytest

import differences
import page
import shrink
from quantd.conformance import cases, engines, files, verify
from quantd.conformance.rules import RULES

DATA = json.loads(page.DATA.read_text())
AGAIN = "run python tests/conformance/page.py"
PACKAGES = {"onnx-reference": "onnx", "onnxruntime": "onnxruntime", "openvino": "openvino"}
OTHERS = [e for e in page.ENGINES if e in PACKAGES and e in DATA]


def installed(engine):
    package = PACKAGES[engine]
    pytest.importorskip(package)
    version = importlib.metadata.version(package)
    if version not in DATA[engine]["version"]:
        pytest.fail(f"{package} {version} is installed, the page is of {DATA[engine]['version']}: {AGAIN}")


def test_the_files_are_made_of_the_data():
    readme = (page.ROOM / "README.md").read_text()
    assert readme == page.with_page(readme, DATA), f"{AGAIN} --write-only"
    assert {p.name: p.read_text() for p in (page.ROOM / "reports").glob("*.md")} == dict(page.reports(DATA)), f"{AGAIN} --write-only"


@pytest.mark.parametrize("engine", ["onnx-reference", "onnxruntime"])
def test_counts_by_rule(engine):
    installed(engine)
    with engines.engine(engine) as (version, ask):
        result = verify.verify([files.stored(c) for c in cases.onnx_cases()], ask, version)
    counts = {
        c.rule: {"passed": c.passed, "failed": c.failed, "not_supported": c.not_supported, "answers": c.answers} for c in result.rules()
    }
    assert counts == DATA[engine]["rules"], AGAIN


@pytest.mark.parametrize("engine", OTHERS)
def test_they_still_differ(engine):
    installed(engine)
    with engines.engine(engine) as (_, ask):
        for row in DATA[engine]["differences"]:
            case = page.case_of(row["case"])
            found = verify.judge(files.stored(case), ask).found
            assert {k: page.array_json(v) for k, v in found.tensors.items()} == row["got"], f"{row['rule']}: {AGAIN}"
            assert shrink.fails(case, ask)


@pytest.mark.parametrize("engine", OTHERS)
def test_the_server_follows_the_specification(client, engine):
    ask = engines.of_client(client)
    for row in DATA[engine]["differences"]:
        case = page.case_of(row["case"])
        assert {k: page.array_json(v) for k, v in case.expected().tensors.items()} == row["expected"], f"{row['rule']}: {AGAIN}"
        assert verify.judge(case, ask, exact=True).status == verify.PASSED, row["rule"]


@pytest.mark.parametrize("engine", OTHERS)
def test_every_rule_that_fails_has_a_smallest_input(engine):
    failing = {rule for rule, count in DATA[engine]["rules"].items() if count["failed"]}
    assert {row["rule"] for row in DATA[engine]["differences"]} == failing
    assert all(not RULES[rule].open for rule in failing)


def test_what_random_tests_leave_out_is_on_the_page():
    names = {"ONNX reference evaluator": "onnx-reference", "ONNX Runtime": "onnxruntime"}
    for row in differences.TABLE:
        assert not row.rule or any(d["rule"] == row.rule for d in DATA[names[row.implementation]]["differences"])
