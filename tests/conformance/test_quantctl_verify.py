"""quantctl verify: judges a server with the conformance kit, without Python; damaged kits and unreachable servers."""

import itertools
import json
import os
import subprocess

import pytest

from conftest import ROOT
from quantd.conformance import cases, files
from quantd.conformance.case import Answer


BINARY = ROOT / os.environ.get("QUANTD_BUILD_DIR", "build/release") / "client" / "quantctl"


def quantctl(*arguments, address=None):
    """(exit code, stdout, stderr)."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("QUANTD_")}
    environment.update({"QUANTD_ADDRESS": address} if address else {})
    done = subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True, timeout=120, env=environment)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def chosen():
    """A case of each rule, family and operation, and every fortieth."""
    every = list(cases.all_cases())
    first = {(c.rule, c.family, c.group, c.operation): c for c in every}
    return list({id(c): c for c in itertools.chain(first.values(), every[::40])}.values())


@pytest.fixture(scope="module")
def kit(chosen, tmp_path_factory):
    folder = tmp_path_factory.mktemp("kit") / "kit"
    files.write(folder, chosen)
    return folder


def test_the_server_passes(address, kit, chosen):
    code, out, error = quantctl("verify", address, f"--cases={kit}", "--exact", "--json")
    assert (code, error) == (0, ""), out
    document = json.loads(out)
    layouts = sum(c.family == "layouts" for c in chosen)
    assert (document["passed"], document["failed"], document["not_supported"]) == (len(chosen) - layouts, 0, layouts)
    code, out, _ = quantctl("verify", f"--cases={kit}", "--only=^(mx|nvfp4)|^quantize-ties", address=address)
    assert code == 0 and "mx-scale" in out and "quantize-ties-to-even" in out and "embeddings" not in out and " 0 failed" in out


def test_open_questions_have_their_answers(address, kit, chosen):
    code, out, error = quantctl("verify", address, f"--cases={kit}", "--only=^open/", "--json")
    assert (code, error) == (0, "")
    answers = {}
    for case in (c for c in chosen if c.open):
        name = next(iter(case.answers))
        counts = answers.setdefault(case.rule, {})
        counts[name] = counts.get(name, 0) + 1
    assert {rule["rule"]: rule["answers"] for rule in json.loads(out)["rules"]} == answers


def test_a_server_is_not_asked_for_layouts(address, kit, chosen):
    code, out, error = quantctl("verify", address, f"--cases={kit}", "--only=^layouts/")
    assert (code, error) == (0, "")
    rows = {line.split()[0]: line.split() for line in out.splitlines() if line.startswith("layout-")}
    assert set(rows) == {c.rule for c in chosen if c.family == "layouts"}
    assert all(row[1:3] == ["0", "0"] for row in rows.values()) and all(int(row[3]) > 0 for row in rows.values())


def wrong(case):
    """The case with a different answer from the oracle's."""

    class Wrong(type(case)):
        def expected(self):
            found = super().expected()
            if found.refused is not None:
                return Answer({"y": self.inputs["x"]})
            y = found.tensors["y"].copy()
            raw = y.reshape(-1).view("u1")
            raw[-1] ^= 1
            return Answer({**found.tensors, "y": y}, report=found.report)

    return Wrong(**vars(case))


def test_what_fails_is_told(address, chosen, tmp_path):
    bad = [c for c in chosen if not c.open and c.family in ("node", "mx", "embeddings", "refused") and c.inputs["x"].size][::7]
    bad = [c for c in bad if not c.operation == "dequantize"]
    good = [c for c in chosen if c.family == "nvfp4"]
    files.write(tmp_path / "kit", [*map(wrong, bad), *good])
    code, out, error = quantctl("verify", address, f"--cases={tmp_path / 'kit'}")
    assert code == 1 and f"{len(bad)} of {len(bad) + len(good)} cases failed" in error and error.count("\n") == 1
    rows = {line.split()[0]: line.split() for line in out.splitlines() if line}
    for case in bad:
        assert int(rows[case.rule][2]) > 0, case.rule
    assert "first" in out and " got code " in out
    assert rows["nvfp4"][1:3] == [str(len(good)), "0"]


def damage(kit, what):
    model, group = next(kit.glob("node/*/model.onnx")), next(kit.glob("other/mx/*.json"))
    if what == "missing":
        model.unlink()
    elif what == "no model":
        model.write_bytes(b"\xff\xff")
    elif what == "empty":
        model.write_bytes(b"")
    elif what == "no tensor":
        next(model.parent.glob("test_data_set_0/input_0.pb")).write_bytes(b"\xff")
    elif what == "no output":
        next(model.parent.glob("test_data_set_0/output_0.pb")).unlink()
    elif what == "no json":
        group.write_text("{")
    elif what == "schema":
        group.write_text(group.read_text().replace('"schema": 1', '"schema": 2'))
    elif what == "member":
        group.write_text(group.read_text().replace('"cases"', '"case"'))
    elif what == "attribute":
        group.write_text(group.read_text().replace('"block_size"', '"block_sizes"'))
    elif what == "value":
        group.write_text(group.read_text().replace('"FLOAT8E8M0"', '"FLOAT9"'))
    elif what == "name":
        group.write_text(group.read_text().replace('"x":', '"z":'))
    elif what == "tensors":
        group.with_suffix(".safetensors").write_bytes(b"12345678")
    elif what == "manifest":
        (kit / "manifest.json").write_text("[]")


@pytest.mark.parametrize(
    "what",
    [
        "missing",
        "no model",
        "empty",
        "no tensor",
        "no output",
        "no json",
        "schema",
        "member",
        "attribute",
        "value",
        "name",
        "tensors",
        "manifest",
    ],
)
def test_damaged_kits(address, chosen, tmp_path, what):
    some = [next(c for c in chosen if c.family == "node"), next(c for c in chosen if c.family == "mx")]
    files.write(tmp_path / "kit", some)
    damage(tmp_path / "kit", what)
    code, out, error = quantctl("verify", address, f"--cases={tmp_path / 'kit'}")
    assert code == 2 and out == "" and error.startswith("quantctl: ") and error.count("\n") == 1, error
    assert str(tmp_path / "kit") in error or what == "value"


@pytest.mark.parametrize(
    "arguments,code,words",
    [
        (("--cases=nowhere",), 2, "nowhere"),
        ((), 2, "--cases"),
        (("--cases={kit}", "--only=("), 2, "--only"),
        (("--cases={kit}", "--only=no-such-rule"), 2, "matches no case"),
        (("--cases={kit}", "--case=x"), 2, "--cases"),
        (("--cases={empty}",), 2, "no case"),
    ],
)
def test_wrong_usage(address, kit, tmp_path, arguments, code, words):
    found, _, error = quantctl("verify", address, *(a.format(kit=kit, empty=tmp_path) for a in arguments))
    assert (found, error.count("\n")) == (code, 1) and words in error


def test_a_server_that_is_not_there(kit):
    code, out, error = quantctl("verify", "127.0.0.1:1", f"--cases={kit}", "--timeout=5")
    assert (code, out) == (1, "") and "127.0.0.1:1" in error and error.count("\n") == 1


def test_a_link_to_a_folder_without_end(address, chosen, tmp_path):
    """Folders that are endless because of links are not followed."""
    files.write(tmp_path / "kit", [next(c for c in chosen if c.family == "node")])
    os.symlink(tmp_path / "kit", tmp_path / "kit" / "node" / "again")
    code, out, _ = quantctl("verify", address, f"--cases={tmp_path / 'kit'}", "--json")
    assert code == 0 and json.loads(out)["passed"] == 1
