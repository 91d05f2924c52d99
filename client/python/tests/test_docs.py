"""The help: examples that run, and numpydoc sections that name every argument."""

import doctest
import inspect
import re
import runpy
from pathlib import Path

import pytest

import quantd

README = Path(__file__).resolve().parents[1] / "README.md"


def test_help_opens_with_an_example_that_runs(address, monkeypatch):
    monkeypatch.setenv("QUANTD_ADDRESS", address)
    text = inspect.getdoc(quantd)
    assert text.splitlines()[2].startswith(">>> import"), "the example comes after one line"
    found = doctest.DocTestParser().get_doctest(text, {}, "quantd", None, 0)
    assert len(found.examples) >= 5
    report = []
    assert doctest.DocTestRunner().run(found, out=report.append).failed == 0, "".join(report)


@pytest.mark.parametrize("readme", [README, README.parents[2] / "README.md"], ids=["client", "project"])
def test_the_readmes_examples_print_what_they_say(readme, address, monkeypatch, tmp_path, capsys):
    """As if pasted somewhere: with no names but its own. What a print has as its comment is its line of output."""
    monkeypatch.setenv("QUANTD_ADDRESS", address)
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", readme.read_text(), re.DOTALL)
    assert len(blocks) == readme.read_text().count("```python") >= 1
    for block in blocks:
        if "quantd.calibrate" in block:
            pytest.importorskip("quantd_core")
        said = re.findall(r"^ *print\(.*\)  +# (.*)$", block, re.MULTILINE)
        assert said
        exec(compile(block.replace("127.0.0.1:50051\")", f"{address}\")"), str(readme), "exec"), {"__name__": "__main__"})
        assert capsys.readouterr().out.splitlines() == said


def test_the_extra_local_brings_the_engine_beside_this_package(monkeypatch):
    said = {}
    monkeypatch.setattr("setuptools.setup", lambda **arguments: said.update(arguments))
    runpy.run_path(str(README.with_name("setup.py")))
    assert said["extras_require"]["local"] == [f"quantd-core @ {(README.parents[1] / 'python-core').as_uri()}"]
