"""quantd.checkpoints: quantctl convert in this process, with the same bytes, rules and errors."""

import json
import os
import re
import subprocess
import threading
from pathlib import Path

import ml_dtypes
import grpc
import numpy as np
import pytest

import quantd
from quantd import checkpoints

ROOT = Path(__file__).resolve().parents[3]
LAYOUTS = ["fp8-tiles", "compressed-tensors:int8", "compressed-tensors:int4-g32-asym", "compressed-tensors:nvfp4", "gguf:q8_0", "bnb:nf4-double",
           "bnb:int8"]
QUANTCTL = ROOT / os.environ.get("QUANTD_BUILD_DIR", "build/release") / "client" / "quantctl"


def weight(rows, seed):
    return np.random.default_rng(seed).standard_normal((rows, 256)).astype(np.float32).astype(ml_dtypes.bfloat16)


def save_model(folder, shards):
    Path(folder).mkdir()
    for file, tensors in shards.items():
        quantd.save(Path(folder, file), tensors)
    Path(folder, "config.json").write_text('{"model_type": "llama"}')
    if len(shards) > 1:
        index = {"weight_map": {name: file for file, tensors in shards.items() for name in tensors}}
        Path(folder, "model.safetensors.index.json").write_text(json.dumps(index))


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(Path(folder).rglob("*")) if path.is_file()}


@pytest.fixture(autouse=True)
def model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save_model("m", {f"model-0000{i + 1}-of-00003.safetensors": {
        f"l.{i}.q_proj.weight": weight(300, i), "l.9." + "qkv"[i] + "_proj.weight": weight(64, i + 5), f"l.{i}.norm.weight": weight(1, i)[0],
    } for i in range(3)})


@pytest.mark.parametrize("layout", LAYOUTS)
def test_bytes_and_report_are_those_of_quantctl(layout):
    out = "o.gguf" if layout.startswith("gguf") else "o"
    report = checkpoints.convert("m", out, to=layout, threads=2)
    whole = contents(".")
    dry = checkpoints.convert("m", "none", to=layout, dry_run=True) if out == "o" else report
    assert "double" in layout or dry == report
    if QUANTCTL.exists():
        subprocess.run([QUANTCTL, "convert", "m", "-o", out, f"--to={layout}", "--force", "--quiet"], check=True)
        assert contents(".") == whole
    back = checkpoints.convert(out, "back.safetensors" if out != "o" else "back", to="bf16")
    norms = 3 if out == "o.gguf" else 0  # FLOAT in a .gguf, so they are cast, too
    assert [entry["layout"] for entry in back["tensors"] if "layout" in entry] == ["bf16"] * (6 + norms)


@pytest.mark.parametrize("layout", ["fp8-tiles", "compressed-tensors:nvfp4", "bnb:nf4-double"])
def test_shards_by_shards(layout):
    """Each shard is made by a separate call, some at the same time, in any order; the last call makes the rest."""
    checkpoints.convert("m", "whole", to=layout)
    names = checkpoints.shards("m")
    assert names == sorted(name for name in os.listdir("m") if name.endswith(".safetensors"))
    threads = [threading.Thread(target=checkpoints.convert, args=("m", "o"), kwargs={"to": layout, "shards": [name]}) for name in names[:0:-1]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not os.path.exists("o") and set(names[1:]) <= set(os.listdir("o.partial"))
    with pytest.raises(quantd.QuantdError, match="resume"):
        checkpoints.convert("m", "o", to=layout)
    with pytest.raises(ValueError, match="'to'"):
        checkpoints.convert("m", "o", to="compressed-tensors:fp8", shards=names[:1])
    made = [os.stat("o.partial/" + name).st_ino for name in names[1:]]
    checkpoints.convert("m", "o", to=layout, resume=True)
    assert contents("o") == contents("whole") and not os.path.exists("o.partial")
    assert [os.stat("o/" + name).st_ino for name in names[1:]] == made
    with pytest.raises(ValueError, match="no shard 'x'"):
        checkpoints.convert("m", "p", to=layout, shards=["x"])


def test_progress_and_what_it_raises():
    calls = []
    checkpoints.convert("m", "o", to="fp8-tiles", progress=lambda *arguments: calls.append((threading.get_ident(), *arguments)))
    assert calls and {call[0] for call in calls} == {threading.get_ident()}
    assert all(0 <= done <= total and isinstance(name, str) for _, done, total, name in calls)
    assert [call[1] for call in calls] == sorted(call[1] for call in calls)

    class Enough(Exception):
        pass

    def stop(*_):
        raise Enough

    with pytest.raises(Enough):
        checkpoints.convert("m", "p", to="fp8-tiles", progress=stop)
    assert not os.path.exists("p") and not [name for name in os.listdir("p.partial") if name.endswith(".tmp")]
    checkpoints.convert("m", "p", to="fp8-tiles", resume=True)
    assert contents("p") == contents("o")


def test_errors_are_those_of_the_package():
    checkpoints.convert("m", "o", to="fp8-tiles")
    with pytest.raises(quantd.QuantdError, match="o exists") as error:
        checkpoints.convert("m", "o", to="fp8-tiles")
    assert error.value.code is grpc.StatusCode.ALREADY_EXISTS
    with pytest.raises(quantd.QuantdError, match="none") as error:
        checkpoints.convert("none", "p", to="fp8-tiles")
    assert error.value.code is grpc.StatusCode.NOT_FOUND
    with pytest.raises(quantd.InvalidArgumentError, match="did you mean fp8-tiles"):
        checkpoints.convert("m", "p", to="fp8-tile")
    bad = weight(4, 1)
    bad[3, 7] = np.nan
    save_model("n", {"model.safetensors": {"a.weight": bad}})
    with pytest.raises(ValueError, match="'a.weight'"):
        checkpoints.convert("n", "p", to="fp8-tiles")
    assert sorted(os.listdir()) == ["m", "n", "o"]


def test_the_readmes_example_prints_what_it_says(capsys):
    """As if pasted somewhere: with no names but its own."""
    pytest.importorskip("quantd")
    readme = Path(__file__).resolve().parents[1] / "README.md"
    (block,) = re.findall(r"```python\n(.*?)```", readme.read_text(), re.DOTALL)
    exec(compile(block, str(readme), "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out.splitlines() == re.findall(r"^print\(.*\)  +# (.*)$", block, re.MULTILINE) != []
