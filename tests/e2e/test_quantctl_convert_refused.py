"""quantctl convert: what is refused gives one line and leaves nothing."""

import json
import os
import shutil
import subprocess

import numpy as np
import pytest
from converting import BF16, INDEX, convert, layer, model, normal, shards
from models import contents, load_tensors, save_model, save_tensors
from quantctl import BINARY, environment, quantctl
from test_quantctl_large import can_mount


pytestmark = [pytest.mark.gate, pytest.mark.usefixtures("here")]


@pytest.mark.parametrize("layout, value", [("fp8-tiles", np.nan), ("compressed-tensors:int8", np.inf), ("gguf:q8_0", -np.inf), ("bnb:nf4", np.nan)])
def test_a_value_that_is_not_finite_is_refused(layout, value):
    """One of each family; tests/core/layouts_convert_test.cc has every layout, and what overflows."""
    tensors = shards()
    tensors["model-00002-of-00002.safetensors"]["model.layers.1.mlp.up_proj.weight"][199, 255] = value
    save_model("m", tensors)
    out = "out.gguf" if layout.startswith("gguf") else "out"
    err = convert("m", "-o", out, f"--to={layout}", code=1)
    assert "model.layers.1.mlp.up_proj.weight" in err
    assert os.listdir() == ["m"]
    convert("m", "-o", out, f"--to={layout}", "--skip=up_proj")


def test_a_quantized_model_is_refused():
    model()
    convert("m", "-o", "q", "--to=fp8-tiles")
    err = convert("q", "-o", "r", "--to=compressed-tensors:int8", code=2)
    assert "quantization_config" in err and "fp8" in err
    for layout in ("fp8-tiles", "compressed-tensors:int8", "compressed-tensors:int4-g32", "compressed-tensors:nvfp4", "bnb:nf4", "bnb:int8"):
        save_tensors("a.safetensors", {"a.weight": normal(32, 64)})
        convert("a.safetensors", "-o", "b.safetensors", f"--to={layout}", "--force")
        err = convert("b.safetensors", "-o", "c.safetensors", "--to=fp8-tiles", code=2)
        assert "'a.weight'" in err and layout in err
    convert("a.safetensors", "-o", "a.gguf", "--to=gguf:q8_0")
    assert "'a.weight'" in convert("a.gguf", "-o", "b.gguf", "--to=gguf:f16", code=2)
    assert "gguf" in convert("a.gguf", "-o", "b.safetensors", "--to=fp8-tiles", code=2)
    assert "nothing to decode" in convert("m", "-o", "r", "--to=bf16", code=2)
    save_model("g", {"model.safetensors": layer(0)}, {"quantization_config": {"quant_method": "gptq"}})
    assert "gptq" in convert("g", "-o", "r", "--to=bf16", code=2)
    assert quantctl("quantize", "a.safetensors", "-o", "z.safetensors", "--quiet")[0] == 0
    assert "dequantize" in convert("z.safetensors", "-o", "r.safetensors", "--to=fp8-tiles", code=2)
    assert not os.path.exists("r") and not os.path.exists("r.partial")


def test_out_that_exists_is_untouched():
    model()
    for make in (lambda: os.mkdir("out"), lambda: open("out", "w").write("x"), lambda: os.symlink("none", "out")):
        make()
        assert "out exists" in convert("m", "-o", "out", "--to=fp8-tiles", code=2)
        assert not os.path.exists("out.partial")
        assert os.path.islink("out") or os.path.isfile("out") or os.listdir("out") == []
        shutil.rmtree("out") if os.path.isdir("out") else os.remove("out")
    os.mkdir("out")
    open("out/mine", "w").write("x")
    assert "not a model's folder" in convert("m", "-o", "out", "--to=fp8-tiles", "--force", code=2)
    open("out/config.json", "w").write("{}")
    convert("m", "-o", "out", "--to=fp8-tiles", "--force")
    assert not os.path.exists("out/mine") and not os.path.exists("out.partial")
    for out in ("m", "m/out", ".", "m/../m/sub"):
        assert "are nested in each other" in convert("m", "-o", out, "--to=fp8-tiles", "--force", code=2)


def test_a_damaged_folder_is_one_line():
    def broken(change):
        shutil.rmtree("m", ignore_errors=True)
        model()
        change()
        err = convert("m", "-o", "out", "--to=fp8-tiles", code=2)
        assert sorted(os.listdir()) == ["m"]
        return err

    second = "m/model-00002-of-00002.safetensors"

    def edit(name, change):
        value = json.load(open(name))
        change(value)
        json.dump(value, open(name, "w"))

    def moved(index):
        index["weight_map"]["mask"] = "model-00001-of-00002.safetensors"

    assert second in broken(lambda: os.remove(second))
    assert second in broken(lambda: os.truncate(second, 40_000))
    assert second in broken(lambda: os.truncate(second, 4))
    assert "'mask'" in broken(lambda: edit("m/" + INDEX, moved))
    assert "'ghost'" in broken(lambda: edit("m/" + INDEX, lambda index: index["weight_map"].update(ghost="model-00001-of-00002.safetensors")))
    assert "'mask'" in broken(lambda: edit("m/" + INDEX, lambda index: index["weight_map"].pop("mask")))
    assert "../x" in broken(lambda: edit("m/" + INDEX, lambda index: index["weight_map"].update(mask="../x.safetensors")))
    assert "weight_map" in broken(lambda: open("m/" + INDEX, "w").write("{}"))
    assert INDEX in broken(lambda: open("m/" + INDEX, "w").write('{"weight_map": {'))
    assert INDEX in broken(lambda: os.remove("m/" + INDEX))
    assert "config.json" in broken(lambda: os.remove("m/config.json"))
    assert "config.json" in broken(lambda: open("m/config.json", "w").write("[" * 100_000))
    assert "config.json" in broken(lambda: open("m/config.json", "w").write("[]"))
    assert "pipe" in broken(lambda: os.mkfifo("m/pipe"))
    assert "gone" in broken(lambda: os.symlink("nothing", "m/gone"))
    assert "a link to a folder that contains it" in broken(lambda: os.symlink(".", "m/loop"))
    copy = dict(layer(0), mask=np.array([True]))
    assert "'mask'" in broken(lambda: save_tensors("m/model-00001-of-00002.safetensors", copy))


def test_links_are_followed():
    """Of a hub's cache, and within the folder, each folder once; the mode of a file stays; others are refused."""
    os.makedirs("hub/snapshots/m")
    model("hub/blobs")
    for name in os.listdir("hub/blobs"):
        os.symlink(f"../../blobs/{name}", f"hub/snapshots/m/{name}") if name != "sub" else shutil.copytree("hub/blobs/sub", "hub/snapshots/m/sub")
    os.chmod("hub/blobs/tokenizer.json", 0o600)
    convert("hub/snapshots/m", "-o", "a", "--to=fp8-tiles")
    convert("hub/blobs", "-o", "b", "--to=fp8-tiles")
    assert contents("a") == contents("b") and not any(os.path.islink("a/" + name) for name in os.listdir("a"))
    assert os.stat("a/tokenizer.json").st_mode & 0o777 == 0o600
    for i in range(22):
        os.mkdir(f"hub/blobs/{i}")
        for link in "ab":
            os.symlink(f"../{i + 1}", f"hub/blobs/{i}/{link}")
    os.mkdir("hub/blobs/22")
    convert("hub/blobs", "-o", "c", "--to=fp8-tiles")
    assert contents("c") == contents("b")
    open("secret", "w").write("x")
    os.symlink("../../secret", "hub/blobs/sub/link")
    assert "sub/link" in convert("hub/blobs", "-o", "d", "--to=fp8-tiles", code=2)


def test_wrong_usage():
    model()
    assert "did you mean fp8-tiles" in convert("m", "-o", "out", "--to=fp8-tile", code=2)
    assert "--to" in convert("m", "-o", "out", code=2)
    assert "gguf:f32" in convert("m", "-o", "out.gguf", "--to=gguf:f32", code=2)
    assert ".gguf" in convert("m", "-o", "out", "--to=gguf:q8_0", code=2)
    save_tensors("a.safetensors", {"a.weight": normal(32, 64)})
    assert ".safetensors" in convert("a.safetensors", "-o", "out", "--to=fp8-tiles", code=2)
    assert "--only" in convert("m", "-o", "out", "--to=fp8-tiles", "--only=[", code=2)
    assert "none" in convert("none", "-o", "out", "--to=fp8-tiles", code=2)
    assert "a model is" in convert("m/tokenizer.json", "-o", "out", "--to=fp8-tiles", code=2)
    assert "cannot write" in convert("m", "-o", "none/out", "--to=fp8-tiles", code=2)
    assert "lies in" in convert("m", "-o", "out", "--to=fp8-tiles", "--report=m/config.json", "--force", code=2)
    assert sorted(os.listdir()) == ["a.safetensors", "m"]
    open("r.json", "w").write("x")
    assert "r.json exists" in convert("m", "-o", "out", "--to=fp8-tiles", "--report=r.json", code=2)
    assert convert("m", "-o", "out", "--to=fp8-tiles", "--quiet") == ""


def test_names_of_two_outputs_that_clash():
    save_tensors("m.safetensors", {"a.weight": normal(32, 32), "a.weight_scale_inv": normal(1)})
    assert "'a.weight_scale_inv'" in convert("m.safetensors", "-o", "o.safetensors", "--to=fp8-tiles", code=2)
    assert os.listdir() == ["m.safetensors"]


@pytest.mark.parametrize("layout, parts, wrong", [
    ("fp8-tiles", "_scale_inv", np.ones((2, 1), np.float32)), ("compressed-tensors:int8", "_scale", np.ones((5, 1), BF16)),
    ("compressed-tensors:int4-g32", "_shape", np.array([32, 31], np.int64)), ("compressed-tensors:int4-g32", "_scale", np.ones((32, 0), BF16)),
    ("compressed-tensors:int4-g32", "_shape", np.array([-1, 2**62], np.int64)), ("compressed-tensors:nvfp4", "_scale", np.ones((32, 3), np.uint8)),
    ("bnb:nf4", ".absmax", np.ones(1, np.float32)), ("bnb:nf4", ".quant_state.bitsandbytes__nf4", np.frombuffer(b'{"quant_type": "nf4"}', np.uint8)),
    ("bnb:nf4", ".quant_state.bitsandbytes__nf4", np.frombuffer(b"[[[[", np.uint8)),
    ("bnb:nf4", ".quant_state.bitsandbytes__nf4",
     np.frombuffer(b'{"quant_type": "nf4", "blocksize": 64, "dtype": "bfloat16", "shape": [4611686018427387904, 8]}', np.uint8)),
])
def test_parts_that_do_not_fit_are_one_line(layout, parts, wrong):
    save_tensors("a.safetensors", {"a.weight": normal(32, 64)})
    convert("a.safetensors", "-o", "b.safetensors", f"--to={layout}")
    tensors = load_tensors("b.safetensors")
    save_tensors("c.safetensors", {**tensors, "a.weight" + parts: wrong})
    assert "a.weight" in convert("c.safetensors", "-o", "d.safetensors", "--to=bf16", code=2)
    save_tensors("c.safetensors", {name: array for name, array in tensors.items() if name != "a.weight" + parts})
    code, _, err = quantctl("convert", "c.safetensors", "-o", "d.safetensors", "--to=bf16")
    assert code == 2 and err.count("\n") == 1


MARK = "\x01number:"


def test_texts_of_a_config_stay_texts():
    """In any form, config.json and the index are JSON with the same contents."""
    texts = [MARK + "5", MARK + "007", MARK, MARK + "-", 'x"' + MARK + "12", 'x\\"' + MARK + "12", MARK + '1"', "\x00\x7f\u2028\U0001f600", ""]
    large = [2**70, -(2**70), 10**300, 2**63, -(2**63), 2**64 - 1, 2**64, 0, 1e300, 1e-05, -0.0]
    config = {"texts": texts, "keys": {text: text for text in texts}, MARK + "5": 1, "large": large, "empty": [{}, [], None, True]}
    tensors = shards()
    tensors["model-00001-of-00002.safetensors"][MARK + "5"] = np.zeros((2, 2), np.float32)
    tensors["model-00001-of-00002.safetensors"][MARK + "05.weight"] = np.zeros(2, np.float32)
    index = {"metadata": {"total_size": 0, **config}, **config,
             "weight_map": {tensor: name for name, one in tensors.items() for tensor in one}}
    save_model("m", tensors, config, index=index)
    for to in ("fp8-tiles", "compressed-tensors:int8", "bnb:nf4"):
        convert("m", "-o", "out", f"--to={to}", "--force", "--all")
        made = json.load(open("out/config.json"))
        assert made.pop("quantization_config") and made == json.load(open("m/config.json"))
        made = json.load(open("out/model.safetensors.index.json"))
        assert {key: made[key] for key in config} == config and {key: made["metadata"][key] for key in config} == config
        assert open("out/config.json").read() == json.dumps(json.load(open("out/config.json")), indent=2, sort_keys=True)


@pytest.mark.parametrize("text", [
    b'{"a": Nan}', b'{"a": +Infinity}', b'{"a": 1e999}', b'{"a": "\xff"}', b'{"\xed\xa0\x80": 1}', b'{"a": 01}', b"{" + b'"a":{' * 200 + b"}" * 201,
    b'{"a": ' + b"[" * 100_000, b'{"a": 1' + b"0" * 400 + b"}", b'{"a": 1} x', b"\xef\xbb\xbf{", b"",
])
def test_a_config_that_is_not_json_is_one_line(text):
    save_model("m", {"model.safetensors": layer(0)})
    open("m/config.json", "wb").write(text)
    assert "config.json" in convert("m", "-o", "out", "--to=fp8-tiles", code=2)
    assert os.listdir() == ["m"]


def test_of_keys_that_come_twice_the_last_counts():
    save_model("m", {"model.safetensors": layer(0)})
    open("m/config.json", "w").write('{"a": {"x": [1]}, "a": {"y": 2}, "b": 1, "b": [3]}')
    convert("m", "-o", "out", "--to=fp8-tiles")
    made = json.load(open("out/config.json"), object_pairs_hook=lambda pairs: pairs)
    assert ("a", [("y", 2)]) in made and ("b", [3]) in made and len(made) == 3


def test_folders_that_nothing_can_replace():
    model()
    save_model("d", {"model.safetensors": layer(0)})
    before = contents("d")
    for out in ("d/.", "d/x/..", "d/./"):
        assert "ends in ." in convert("m", "-o", out, "--to=compressed-tensors:int8", "--force", code=2)
    os.chdir("d")
    assert "ends in ." in convert("../m", "-o", ".", "--to=compressed-tensors:int8", "--force", code=2)
    os.chdir("..")
    assert contents("d") == before and sorted(os.listdir()) == ["d", "m"]


@pytest.mark.skipif(not can_mount(), reason="no right to mount")
@pytest.mark.parametrize("mount", ["-t tmpfs none", "--bind m"])
def test_a_mount_point_is_refused_before_the_work(mount):
    model()
    os.mkdir("d")
    shell = f'mount {mount} d && echo "{{}}" > d/config.json && "$@"; rc=$?; ls d; exit $rc'
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", shell, "sh", BINARY, "convert", "m", "-o", "d", "--to=compressed-tensors:int8", "--force"],
        capture_output=True, text=True, timeout=60, env=environment(), check=False)
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert "d is a mount point" in done.stderr or "nested in each other" in done.stderr
    assert "config.json" in done.stdout and sorted(os.listdir()) == ["d", "m"]
