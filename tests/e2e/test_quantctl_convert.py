"""quantctl convert: folders, files, refusals. The arithmetic is compared with the packages in tests/checkpoints."""

import json
import os
import shutil

import ml_dtypes
import numpy as np
import pytest
from models import LAYOUTS, contents, load_gguf, load_tensors, metadata, save_model, save_tensors
from quantctl import quantctl

BF16 = ml_dtypes.bfloat16
INDEX = "model.safetensors.index.json"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def convert(*arguments, code=0):
    got, out, err = quantctl("convert", *arguments)
    assert got == code, f"exit {got}: {out}{err}"
    assert (err == "") if code == 0 else err.count("\n") == 1, err
    return err if code else out


def normal(*shape, dtype=BF16, seed=5):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32).astype(dtype)


def layer(number, dtype=BF16):
    name = f"model.layers.{number}."
    return {
        name + "input_layernorm.weight": normal(256, dtype=dtype, seed=number),
        name + "self_attn.q_proj.weight": normal(256, 256, dtype=dtype, seed=number + 10),
        name + "self_attn.k_proj.weight": normal(64, 256, dtype=dtype, seed=number + 20),
        name + "self_attn.q_proj.bias": normal(256, dtype=dtype, seed=number + 30),
        name + "mlp.gate.weight": normal(8, 256, dtype=dtype, seed=number + 40),
        name + "mlp.up_proj.weight": normal(200, 256, dtype=dtype, seed=number + 50),
        name + "mlp.down_proj.weight": normal(256, 200, dtype=dtype, seed=number + 60),
    }


def shards(dtype=BF16):
    first = {"model.embed_tokens.weight": normal(40, 256, dtype=dtype), **layer(0, dtype), "step": np.array(7, np.int64)}
    second = {**layer(1, dtype), "lm_head.weight": normal(40, 256, dtype=dtype), "mask": np.array([True, False])}
    return {"model-00001-of-00002.safetensors": first, "model-00002-of-00002.safetensors": second}


OTHERS = {"tokenizer.json": b'{"a": 1}', "sub/notes.txt": b"\x00\xff", ".gitattributes": b"x", "weights.tmp": b"t"}


def model(name="m", dtype=BF16, **more):
    return save_model(name, shards(dtype), others={**OTHERS, "pytorch_model.bin": b"no", "sub/x.GGUF": b"no"}, **more)


def is_weight(name):
    return name.endswith("_proj.weight")


RAGGED = [f"model.layers.{i}.mlp.down_proj.weight" for i in range(2)]  # 200 columns are no multiple of 16
IGNORED = ["lm_head", "model.embed_tokens", *(f"model.layers.{i}.mlp.gate" for i in range(2))]
BLOCKS = ("int4", "nvfp4", "mxfp4")


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
    # And back, of the types that they had, or others.
    for output, dtype in (("bf16", BF16), ("f32", np.float32)):
        convert("out", "-o", "back-" + output, f"--to={output}")
        assert json.loads(contents("back-" + output)["config.json"]) == original
        for shard, tensors in shards().items():
            back = load_tensors(f"back-{output}/{shard}")
            assert set(back) == set(tensors)
            for name, array in tensors.items():
                if is_weight(name) and name not in left:
                    assert back[name].dtype == dtype
                    x, y = array.astype(np.float64), back[name].astype(np.float64)
                    assert ((x - y) ** 2).sum() < 0.05 * (x**2).sum(), name
                else:
                    assert back[name].tobytes() == array.tobytes()


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


def test_a_few_codes_by_hand():
    """One layout of each family, computed here in FLOAT."""
    w = normal(300, 256, dtype=np.float32)
    w[3] = 0
    save_tensors("m.safetensors", {"a.weight": w})
    convert("m.safetensors", "-o", "i.safetensors", "--to=compressed-tensors:int8")
    made = load_tensors("i.safetensors")
    scale = np.abs(w).max(1, keepdims=True) / np.float32(127.5)
    scale[scale == 0] = np.float32(2**-23)
    assert made["a.weight_scale"].tobytes() == scale.tobytes()
    assert made["a.weight"].tobytes() == np.rint(np.clip(w / scale, -128, 127)).astype(np.int8).tobytes()
    convert("m.safetensors", "-o", "t.safetensors", "--to=fp8-tiles")
    made = load_tensors("t.safetensors")
    assert made["a.weight_scale_inv"].shape == (3, 2)
    tile = w[256:, 128:]
    s = np.float32(1) / np.abs(tile).max() * np.float32(448)
    assert made["a.weight_scale_inv"][2, 1] == np.float32(1) / s
    assert made["a.weight"][256:, 128:].tobytes() == np.clip(tile * s, -448, 448).astype(ml_dtypes.float8_e4m3fn).tobytes()
    convert("m.safetensors", "-o", "q.gguf", "--to=gguf:q8_0")
    blocks = w.reshape(-1, 32)
    d = np.abs(blocks).max(1, keepdims=True) / np.float32(127)
    inverse = np.where(d == 0, np.float32(0), np.float32(1) / np.where(d == 0, np.float32(1), d))
    x = blocks * inverse
    codes = (np.sign(x) * np.floor(np.abs(x) + np.float32(0.5))).astype(np.int8)
    expected = b"".join(one.astype(np.float16).tobytes() + row.tobytes() for one, row in zip(d, codes))
    assert load_gguf("q.gguf")[1]["a.weight"][2] == expected


@pytest.mark.parametrize("layout", LAYOUTS)
def test_bytes_do_not_depend_on_threads_or_instructions(layout):
    model()
    out = "out.gguf" if layout.startswith("gguf") else "out"
    files = []
    for flags in (["--threads=1"], ["--threads=3"], ["--simd=scalar"]):
        convert("m", "-o", out, "--force", f"--to={layout}", *flags)
        files.append(contents(".") if out != "out" else contents("out"))
    assert files[0] == files[1] == files[2]


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
    """q, k and v share nvfp4's scale when all are converted, also across shards."""
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
                                   "e.weight": np.zeros((4, 4), np.int32), "f.weight": np.zeros((4, 4)), "g.weight": np.zeros((0, 4), np.float32)})

    def converted(*flags):
        out = convert("m.safetensors", "-o", "o.safetensors", "--to=fp8-tiles", "--dry_run", "--json", *flags)
        return sorted(name for name, entry in entries(out).items() if "layout" in entry)

    assert converted() == ["a.weight", "b.gate_proj.weight", "lm_headx.weight"]
    assert converted("--all") == sorted(names)
    assert converted("--skip=^a") == ["b.gate_proj.weight", "lm_headx.weight"]
    assert converted("--only=a.weight|embed.weight") == ["a.weight"]
    assert converted("--only=a.weight|embed.weight", "--all") == ["a.weight", "embed.weight"]
    for name, what in (("c.weight", "1 dimension"), ("d.weight", "3 dimensions"), ("e.weight", "I32"), ("f.weight", "F64"), ("g.weight", "empty")):
        err = convert("m.safetensors", "-o", "o.safetensors", "--to=fp8-tiles", f"--only={name}", code=1)
        assert f"'{name}'" in err and what in err
    save_tensors("n.safetensors", {"a.weight": normal(4, 100)})
    err = convert("n.safetensors", "-o", "o.safetensors", "--to=compressed-tensors:int4-g128", "--only=a.weight", code=1)
    assert "'a.weight'" in err and "100" in err and "128" in err
    convert("n.safetensors", "-o", "o.safetensors", "--to=compressed-tensors:int4-g128")
    assert load_tensors("o.safetensors")["a.weight"].tobytes() == normal(4, 100).tobytes()
    assert os.listdir() and not os.path.exists("o.safetensors.partial")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_is_refused(layout, value):
    tensors = shards()
    tensors["model-00002-of-00002.safetensors"]["model.layers.1.mlp.up_proj.weight"][199, 255] = value
    save_model("m", tensors)
    out = "out.gguf" if layout.startswith("gguf") else "out"
    err = convert("m", "-o", out, f"--to={layout}", code=1)
    assert "model.layers.1.mlp.up_proj.weight" in err
    assert os.listdir() == ["m"]
    convert("m", "-o", out, f"--to={layout}", "--skip=up_proj")


def test_what_overflows_is_refused():
    save_tensors("m.safetensors", {"a.weight": np.array([[65504, -65504] * 64], np.float16)})
    err = convert("m.safetensors", "-o", "o.safetensors", "--to=compressed-tensors:int4-g128-asym", code=1)
    assert "'a.weight'" in err
    save_tensors("m.safetensors", {"a.weight": np.full((1, 32), 1e9, np.float32)})
    for layout in ("gguf:f16", "gguf:q4_0", "bnb:int8"):
        err = convert("m.safetensors", "-o", "o." + ("gguf" if "gguf" in layout else "safetensors"), f"--to={layout}", code=1)
        assert "'a.weight'" in err
    assert os.listdir() == ["m.safetensors"]


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
        assert "in one another" in convert("m", "-o", out, "--to=fp8-tiles", "--force", code=2)


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
    assert "ring" in broken(lambda: os.symlink(".", "m/loop"))
    copy = dict(layer(0), mask=np.array([True]))
    assert "'mask'" in broken(lambda: save_tensors("m/model-00001-of-00002.safetensors", copy))


def test_links_are_followed():
    os.mkdir("blobs")
    model("real")
    os.mkdir("m")
    for name in os.listdir("real"):
        os.symlink(f"../real/{name}", f"m/{name}")
    convert("m", "-o", "a", "--to=fp8-tiles")
    convert("real", "-o", "b", "--to=fp8-tiles")
    assert contents("a") == contents("b") and not any(os.path.islink("a/" + name) for name in os.listdir("a"))


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

