"""The help: examples that run, and numpydoc sections that name every argument."""

import doctest
import importlib
import inspect
import re
import runpy
from pathlib import Path

import pytest

import quantd

README = Path(__file__).resolve().parents[1] / "README.md"
DOCUMENTED = [
    (cls, name) for cls in (quantd.Client, quantd.AsyncClient) for name, function in inspect.getmembers(cls, inspect.isfunction)
    if not name.startswith("_") and name not in ("close",)
] + [(quantd, "load"), (quantd, "save")]


def test_help_opens_with_an_example_that_runs(address, monkeypatch):
    monkeypatch.setenv("QUANTD_ADDRESS", address)
    text = inspect.getdoc(quantd)
    assert text.splitlines()[2].startswith(">>> import"), "the example comes after one line"
    found = doctest.DocTestParser().get_doctest(text, {}, "quantd", None, 0)
    assert len(found.examples) >= 5
    report = []
    assert doctest.DocTestRunner().run(found, out=report.append).failed == 0, "".join(report)


@pytest.mark.parametrize("owner,name", DOCUMENTED, ids=lambda v: getattr(v, "__name__", v))
def test_every_argument_is_described(owner, name):
    function = getattr(owner, name)
    text = inspect.getdoc(function)
    parameters = [p for p in inspect.signature(function).parameters if p != "self"]
    section = re.search(r"Parameters\n-+\n(.*?)(\n\n\w+\n-+|\Z)", text, re.DOTALL)
    assert bool(parameters) == bool(section)
    described = re.findall(r"^\*{0,2}(\w+) : ", section.group(1), re.MULTILINE)
    assert described == parameters
    assert re.search(r"^(Returns|Raises)\n-+\n", text, re.MULTILINE)


@pytest.mark.parametrize("owner,name", DOCUMENTED, ids=lambda v: getattr(v, "__name__", v))
def test_numpydoc_agrees(owner, name):
    validate = pytest.importorskip("numpydoc.validate").validate
    path = f"quantd.{name}" if owner is quantd else f"quantd.{owner.__name__}.{name}"
    # Not required: an example, See Also and an extended summary for every method; a certain place for closing quotes.
    left_out = {"EX01", "SA01", "ES01", "GL01", "GL03", "RT03", "PR08", "PR09", "SS06"}
    errors = [(code, text) for code, text in validate(path)["errors"] if code not in left_out]
    assert errors == []


def test_shapes_are_said():
    for name in ("quantize", "dequantize", "dynamic_quantize"):
        text = inspect.getdoc(getattr(quantd.Client, name))
        assert "y has x's shape" in text and "of any shape" in text


def test_every_public_name_has_help():
    for name in quantd.__all__:
        value = getattr(quantd, name)
        if callable(value):
            assert inspect.getdoc(value), name


@pytest.mark.parametrize("readme", [README, README.parents[2] / "README.md"], ids=["client", "project"])
def test_the_readmes_examples_run(readme, address, monkeypatch, tmp_path):
    """As if pasted somewhere: with no names but its own."""
    monkeypatch.setenv("QUANTD_ADDRESS", address)
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", readme.read_text(), re.DOTALL)
    assert len(blocks) == readme.read_text().count("```python") >= 1
    for block in blocks:
        if "quantd.calibrate" in block:
            pytest.importorskip("quantd_core")
        exec(compile(block.replace("127.0.0.1:50051\")", f"{address}\")"), str(readme), "exec"), {"__name__": "__main__"})


def test_modules_have_a_first_line():
    folder = Path(importlib.import_module("quantd").__file__).parent
    for path in folder.glob("*.py"):
        assert path.read_text().startswith('"""'), path


def test_the_extra_local_brings_the_engine_beside_this_package(monkeypatch):
    said = {}
    monkeypatch.setattr("setuptools.setup", lambda **arguments: said.update(arguments))
    runpy.run_path(str(README.with_name("setup.py")))
    assert said["extras_require"]["local"] == [f"quantd-core @ {(README.parents[1] / 'python-core').as_uri()}"]
