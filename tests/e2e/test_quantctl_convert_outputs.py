"""quantctl convert destroys no file except its own outputs: models, and folders and files of others."""

import os
import shutil

import numpy as np
import pytest
from converting import OTHERS, convert, layer, model, shards
from models import contents, save_model, save_tensors

FLAGS = ["--to=fp8-tiles"]


pytestmark = pytest.mark.usefixtures("here")


def refused(*arguments):
    """The error of convert; nothing is changed, not even with --force or --resume."""
    before = contents(".")
    for more in ([], ["--force"], ["--resume"]):
        err = convert(*arguments, *FLAGS, *more, code=2)
        assert contents(".") == before and sorted(os.listdir()) == refused.listed, more
    return err


def test_a_model_in_the_place_of_the_work_is_refused():
    model("m.partial")
    save_tensors("a.safetensors.partial", {"a": np.zeros(1, np.float32)})
    os.symlink("m.partial", "n.partial")
    os.mkdir("deep.partial")
    model("deep.partial/m")
    refused.listed = sorted(os.listdir())
    for source, out in (("m.partial", "m"), ("m.partial", "n"), ("n.partial", "m"), ("deep.partial/m", "deep"), ("./m.partial/", "m/")):
        err = refused(source, "-o", out)
        assert "--output" in err and "FILE" in err and "nested in each other" in err, err
    os.chdir("m.partial")
    refused.listed = sorted(os.listdir())
    assert "nested in each other" in refused(".", "-o", "sub")


def test_a_model_of_links_into_the_output_is_refused():
    """As in a hub's cache: the folder of a model contains links to files elsewhere."""
    model("blobs")
    os.mkdir("m")
    for name in contents("blobs"):
        os.makedirs(os.path.dirname(f"m/{name}"), exist_ok=True)
        os.symlink(os.path.abspath(f"blobs/{name}"), f"m/{name}")
    before = contents(".")
    for more in (["--force"], ["--resume"]):
        err = convert("m", "-o", "blobs", *FLAGS, *more, code=2)
        assert "nested in each other" in err and "--output" in err and "FILE" in err
    err = convert("m", "-o", "new", *FLAGS, "--report=blobs/config.json", "--force", code=2)
    assert "--report" in err and "lies in" in err
    assert contents(".") == before


def test_a_file_of_the_model_by_another_name_is_refused():
    save_tensors("a.safetensors", layer(0))
    os.link("a.safetensors", "b.safetensors")
    before = contents(".")
    assert "nested in each other" in convert("a.safetensors", "-o", "b.safetensors", *FLAGS, "--force", code=2)
    assert "lies in" in convert("a.safetensors", "-o", "c.safetensors", *FLAGS, "--force", "--report=b.safetensors", code=2)
    os.mkdir("c.safetensors.partial")
    for report in ("c.safetensors", "c.safetensors.partial/r.json"):
        err = convert("a.safetensors", "-o", "c.safetensors", *FLAGS, "--force", f"--report={report}", code=2)
        assert "--report" in err and "lies in" in err
    assert contents(".") == before


def test_a_folder_that_no_run_has_made_is_not_erased():
    model()
    for make in (
        lambda: open("out.partial/mine", "w").write("x"),
        lambda: os.makedirs("out.partial/.git/objects"),
        lambda: open("out.partial/.quantctl-convert.json", "w").write("{}"),
        lambda: open("out.partial/.quantctl-convert.json", "w").write("mine"),
        lambda: [shutil.copy(f"m/{name}", "out.partial") for name in shards()],  # with names that the output has
    ):
        os.mkdir("out.partial")
        make()
        before = contents(".")
        for more in ("--force", "--resume"):
            assert "out.partial" in convert("m", "-o", "out", *FLAGS, more, code=2)
            assert contents(".") == before and os.path.exists("out.partial")
        shutil.rmtree("out.partial")
    for more in ("--force", "--resume"):  # a run that was killed at once
        os.mkdir("out.partial")
        open("out.partial/.quantctl-convert.json.0123.tmp", "w").write("{")
        convert("m", "-o", "out", *FLAGS, more)
        assert not os.path.exists("out.partial") and ".quantctl-convert.json" not in contents("out")
        shutil.rmtree("out")


def test_a_model_with_a_file_of_the_name_of_the_journal_is_refused():
    save_model("m", shards(), others={**OTHERS, ".quantctl-convert.json": b"mine"})
    refused.listed = ["m"]
    assert "m/.quantctl-convert.json" in refused("m", "-o", "out")
    os.makedirs("m/sub", exist_ok=True)
    os.rename("m/.quantctl-convert.json", "m/sub/.quantctl-convert.json")
    convert("m", "-o", "out", *FLAGS)
    assert contents("out")["sub/.quantctl-convert.json"] == b"mine" and ".quantctl-convert.json" not in contents("out")
