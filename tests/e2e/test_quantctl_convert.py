"""quantctl convert: folders and files. The bits are those of tests/core/layouts_*_test.cc."""

import json
import os

import numpy as np
import pytest
from converting import BF16, BLOCKS, IGNORED, INDEX, OTHERS, RAGGED, convert, is_weight, layer, model, normal, shards
from models import LAYOUTS, contents, load_gguf, load_tensors, metadata, save_model, save_tensors


pytestmark = pytest.mark.usefixtures("here")


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if not name.startswith("gguf:")])
def test_a_folder_becomes_a_folder(layout):
    model()
    before = contents("m")
    convert("m", "-o", "out", f"--to={layout}")
    after = contents("out")
    assert contents("m") == before and not os.path.exists("out.partial")
    assert set(after) == {*shards(), *OTHERS, "config.json", INDEX}
    assert {name: after[name] for name in OTHERS} == OTHERS
    index, places, total = json.loads(after[INDEX]), {}, 0
    left = RAGGED if any(blocks in layout for blocks in BLOCKS) else []
    for shard, tensors in shards().items():
        assert metadata(f"out/{shard}") == {"format": "pt"}
        made = load_tensors(f"out/{shard}")
        places.update(dict.fromkeys(made, shard))
        total += sum(array.nbytes for array in made.values())
        for name, array in tensors.items():
            if is_weight(name) and name not in left:
                assert name not in made or made[name].dtype != array.dtype
                assert len([part for part in made if part.startswith(name.removesuffix("weight")) and part not in tensors]) >= 1, name
            else:
                assert made[name].tobytes() == array.tobytes() and made[name].shape == array.shape, name
    assert index["weight_map"] == places and list(index["weight_map"]) == sorted(places)
    assert index["metadata"] == {"mark": 1.5, "total_size": total}
    config, original = json.loads(after["config.json"]), json.loads(before["config.json"])
    quantization = config.pop("quantization_config")
    assert config == original and list(config) == sorted(config)
    ignored = quantization.get("ignore", quantization.get("modules_to_not_convert", quantization.get("llm_int8_skip_modules")))
    assert ignored == sorted([*IGNORED, *(name.removesuffix(".weight") for name in left)])
    # And back, to the original types or others.
    for output, dtype in (("bf16", BF16), ("f32", np.float32)):
        convert("out", "-o", "back-" + output, f"--to={output}")
        assert json.loads(contents("back-" + output)["config.json"]) == {**original, "dtype": {"bf16": "bfloat16", "f32": "float32"}[output]}
        for shard, tensors in shards().items():
            back = load_tensors(f"back-{output}/{shard}")
            assert set(back) == set(tensors)
            for name, array in tensors.items():
                if is_weight(name) and name not in left:
                    assert back[name].dtype == dtype
                    x, y = array.astype(np.float64), back[name].astype(np.float64)
                    assert ((x - y) ** 2).sum() < 0.05 * (x**2).sum(), name
                else:
                    wanted = array.astype(dtype) if array.dtype == BF16 else array
                    assert back[name].dtype == wanted.dtype and back[name].tobytes() == wanted.tobytes()


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name.startswith("gguf:")])
@pytest.mark.parametrize("dtype", [BF16, np.float16, np.float32])
def test_a_folder_becomes_a_gguf(layout, dtype):
    model(dtype=dtype)
    out = json.loads(convert("m", "-o", "x.gguf", f"--to={layout}", "--json"))
    keys, tensors, alignment = load_gguf("x.gguf")
    kind = layout.removeprefix("gguf:").upper()
    number = {"F16": 1, "Q4_0": 2, "Q4_1": 3, "Q8_0": 7, "Q5_0": 8, "Q5_1": 9, "BF16": 32, "MXFP4": 38}[kind]
    assert keys == {"general.architecture": ("string", "llama"), "general.quantization_version": ("u32", 2), "general.file_type": ("u32", number)}
    originals = {name: array for shard in shards(dtype).values() for name, array in shard.items()}
    assert list(tensors) == [name for name in originals if name != "mask"] and alignment == 32
    assert [entry for entry in out["tensors"] if "left_out" in entry] == [
        {"name": "mask", "dtype": "BOOL", "shape": [2], "left_out": "GGML has no type for BOOL", "bytes_before": 2, "bytes_after": 0}
    ]
    plain = {np.dtype(BF16): "BF16", np.dtype(np.float16): "F16", np.dtype(np.float32): "F32", np.dtype(np.int64): "I64"}
    for name, (found, shape, raw) in tensors.items():
        array = originals[name]
        assert shape == list(array.shape)
        if is_weight(name):
            assert found == ("F16" if name in RAGGED and kind not in ("F16", "BF16") else kind)
            if found == "F16":
                assert raw == array.astype(np.float16).tobytes()
        elif array.ndim < 2 and array.dtype != np.int64:
            assert (found, raw) == ("F32", array.astype(np.float32).tobytes())
        else:
            assert (found, raw) == (plain[array.dtype], array.tobytes())
    convert("x.gguf", "-o", "back.safetensors", "--to=f32")
    back = load_tensors("back.safetensors")
    assert set(back) == set(tensors)
    for name, array in back.items():
        x, y = originals[name].astype(np.float64), array.astype(np.float64)
        assert ((x - y) ** 2).sum() <= 0.02 * (x**2).sum(), name


def test_one_file_and_a_folder_of_one_shard():
    tensors = layer(0)
    save_model("m", {"model.safetensors": tensors})
    save_tensors("m.safetensors", tensors, {"format": "pt"})
    convert("m", "-o", "out/", "--to=fp8-tiles")
    assert set(contents("out")) == {"model.safetensors", "config.json"}
    convert("m.safetensors", "-o", "out.safetensors", "--to=fp8-tiles")
    assert contents("out")["model.safetensors"] == contents(".")["out.safetensors"]
    convert("out.safetensors", "-o", "back.safetensors", "--to=bf16")
    assert set(load_tensors("back.safetensors")) == set(tensors)


def test_one_maximum_for_weights_that_are_used_together():
    """q, k and v share nvfp4's scale if all of them are converted, also in different shards."""
    names = [f"l.0.{one}_proj.weight" for one in "qkv"]
    arrays = {name: normal(32, 64, seed=i) * BF16(2**i) for i, name in enumerate(names)}
    save_model("m", {f"model-0000{i + 1}-of-00003.safetensors": {name: arrays[name]} for i, name in enumerate(names)})

    def scales(*flags):
        convert("m", "-o", "out", "--to=compressed-tensors:nvfp4", "--force", *flags)
        found = {}
        for i in range(3):
            found.update(load_tensors(f"out/model-0000{i + 1}-of-00003.safetensors"))
        return [float(found[name + "_global_scale"][0]) for name in names if name + "_global_scale" in found]

    assert len(set(scales())) == 1
    apart = scales("--skip=k_proj")
    assert len(apart) == 2 and apart[0] != apart[1]


def entries(text):
    return {entry["name"]: entry for entry in json.loads(text)["tensors"]}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_dry_run_says_what_a_run_does(layout):
    model()
    out = "out.gguf" if layout.startswith("gguf") else "out"
    dry = json.loads(convert("m", "-o", out, f"--to={layout}", "--dry_run", "--json"))
    assert set(os.listdir()) == {"m"} and set(dry) == {"tensors", "bytes_before", "bytes_after"}
    lines = convert("m", "-o", out, f"--to={layout}", "--dry-run").splitlines()
    real = json.loads(convert("m", "-o", out, f"--to={layout}", "--json", "--report=r.json"))
    assert json.load(open("r.json")) == real
    if "double" not in layout:
        assert dry["tensors"] == real["tensors"] and dry["bytes_after"] == real["bytes_after"]
    assert abs(dry["bytes_after"] - real["bytes_after"]) <= 30 * len(dry["tensors"])
    assert dry["bytes_before"] == sum(array.nbytes for shard in shards().values() for array in shard.values())
    assert len(lines) == len(dry["tensors"]) + 1 and lines[-1].startswith("total")
    for line, entry in zip(lines, dry["tensors"]):
        fate = entry.get("layout") or "copied: " + entry["copied"] if "left_out" not in entry else "left out: " + entry["left_out"]
        shape = "[" + ", ".join(map(str, entry["shape"])) + "]"
        assert line == f"{entry['name']}  {entry['dtype']} {shape}  {fate}  {entry['bytes_before']} -> {entry['bytes_after']}"
    assert ("layout" in entries(json.dumps(dry))["model.layers.0.self_attn.q_proj.weight"])
    if out == "out":
        total = json.loads((contents("out"))[INDEX])["metadata"]["total_size"]
        assert total == real["bytes_after"]
        back = json.loads(convert("out", "-o", "b", "--to=f16", "--dry_run", "--json"))
        assert back["tensors"] == json.loads(convert("out", "-o", "b", "--to=f16", "--json"))["tensors"]


def test_which_tensors():
    names = ["a.weight", "embed.weight", "x_embeddings.weight", "a.norm.weight", "gate.weight", "b.gate_proj.weight", "router.weight", "a.bias",
             "lm_head.weight", "wte.weight", "h.ln_1.weight", "shared_expert_gate.weight", "a.wpe.weight", "weight", "lm_headx.weight"]
    save_tensors("m.safetensors", {**{name: normal(32, 32) for name in names}, "c.weight": normal(32), "d.weight": normal(2, 3, 4),
                                   "e.ids": np.zeros((4, 4), np.int64), "f.weight": np.zeros((4, 4)), "g.weight": np.zeros((0, 4), np.float32)})

    def converted(*flags):
        out = convert("m.safetensors", "-o", "o.safetensors", "--to=fp8-tiles", "--dry_run", "--json", *flags)
        return sorted(name for name, entry in entries(out).items() if "layout" in entry)

    assert converted() == ["a.weight", "b.gate_proj.weight", "lm_headx.weight"]
    assert converted("--all") == sorted(names)
    assert converted("--skip=^a") == ["b.gate_proj.weight", "lm_headx.weight"]
    assert converted("--only=a.weight|embed.weight") == ["a.weight"]
    assert converted("--only=a.weight|embed.weight", "--all") == ["a.weight", "embed.weight"]
    for name, what in (("c.weight", "1 dimension"), ("d.weight", "3 dimensions"), ("e.ids", "I64"), ("f.weight", "F64"), ("g.weight", "empty")):
        err = convert("m.safetensors", "-o", "o.safetensors", "--to=fp8-tiles", f"--only={name}", code=1)
        assert f"'{name}'" in err and what in err
    save_tensors("n.safetensors", {"a.weight": normal(4, 100)})
    err = convert("n.safetensors", "-o", "o.safetensors", "--to=compressed-tensors:int4-g128", "--only=a.weight", code=1)
    assert "'a.weight'" in err and "100" in err and "128" in err
    err = convert("n.safetensors", "-o", "o.safetensors", "--to=compressed-tensors:int4-g128", code=2)
    assert "0 of 1 tensors" in err and "'a.weight'" in err and not os.path.exists("o.safetensors")
    assert os.listdir() and not os.path.exists("o.safetensors.partial")
