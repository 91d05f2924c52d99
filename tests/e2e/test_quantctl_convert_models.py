"""quantctl convert and the checkpoints that people have: each form of storage is decoded to the right values, or refused by name."""

import json
import os

import ml_dtypes
import numpy as np
import pytest
from converting import convert, normal
from models import load_gguf, load_tensors, save_gguf, save_model, save_tensors
from quantctl import quantctl

BF16, E4M3, E5M2, E8M0 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float8_e8m0fnu
FP4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)
FP8 = {"quant_method": "fp8", "weight_block_size": [128, 128]}
pytestmark = pytest.mark.usefixtures("here")


def fp8(*shape, dtype=E4M3, seed=1):
    return (normal(*shape, dtype=np.float32, seed=seed) * 20).astype(dtype)


def positive(*shape, dtype=np.float32, seed=2):
    return (np.abs(normal(*shape, dtype=np.float32, seed=seed)) * 0.01 + 0.001).astype(dtype)


def powers(*shape, seed=3):
    return (2.0 ** np.random.default_rng(seed).integers(-9, 3, shape)).astype(np.float32).astype(E8M0)


def spread(scale, rows, columns, shape):
    """The scale of every element."""
    scale = np.asarray(scale).astype(np.float32)
    full = np.repeat(np.repeat(scale, rows, -2), columns, -1)
    return full[..., : shape[-2], : shape[-1]]


def nibbles(*shape, seed=4):
    return np.random.default_rng(seed).integers(0, 256, shape).astype(np.uint8)


def fp4(packed):
    low, high = FP4[packed & 15], FP4[packed >> 4]
    return np.stack([low, high], -1).reshape(*packed.shape[:-1], -1)


def packed(codes, bits):
    """Integers in words, as compressed-tensors packs them."""
    per = 32 // bits
    padded = np.zeros((codes.shape[0], -(-codes.shape[1] // per) * per), np.uint32)
    padded[:, : codes.shape[1]] = (codes + 2 ** (bits - 1)).astype(np.uint32)
    words = sum(padded[:, i::per] << np.uint32(bits * i) for i in range(per))
    return words.astype(np.uint32).view(np.int32)


def folder(tensors, config, name="m"):
    save_model(name, {"model.safetensors": tensors}, {"model_type": "x", **({"quantization_config": config} if config else {})})


def groups(strategy, bits=4, kind="int", **more):
    return {"quant_method": "compressed-tensors", "config_groups": {"g": {"weights": {
        "num_bits": bits, "strategy": strategy, "type": kind, "symmetric": False, **more}}}}


def decodings():
    """(name, tensors, quantization_config, the decoded float32 values by name, the type through which they are rounded)."""
    for scale_type in (np.float32, BF16, np.float16):
        codes, grid = fp8(200, 300), positive(2, 3, dtype=scale_type)
        yield f"fp8-grid-{np.dtype(scale_type)}", {"a.weight": codes, "a.weight_scale_inv": grid}, FP8, {
            "a.weight": codes.astype(np.float32) * spread(grid, 128, 128, codes.shape)}, None
    codes, grid = fp8(130, 600), positive(3, 3)
    yield "fp8-64x256", {"a.weight": codes, "a.weight_scale_inv": grid}, {**FP8, "weight_block_size": [64, 256]}, {
        "a.weight": codes.astype(np.float32) * spread(grid, 64, 256, codes.shape)}, None
    scale = np.array(0.0123, BF16)
    yield "mistral", {"a.weight": codes, "a.weight_scale_inv": scale, "a.activation_scale": scale}, {**FP8, "weight_block_size": None}, {
        "a.weight": codes.astype(np.float32) * np.float32(scale)}, None
    yield "mistral-qscale", {"a.weight": codes, "a.qscale_weight": scale, "a.qscale_act": scale}, {**FP8, "weight_block_size": None}, {
        "a.weight": codes.astype(np.float32) * np.float32(scale)}, None
    grid, blocks, group = powers(2, 5), nibbles(32, 32), powers(32, 2)
    yield "deepseek-v4", {"a.weight": codes, "a.scale": grid, "e.0.w1.weight": blocks.view(np.int8), "e.0.w1.scale": group,
                          "q_norm.scale": normal(8, 2)}, {**FP8, "scale_fmt": "ue8m0"}, {
        "a.weight": codes.astype(np.float32) * spread(grid, 128, 128, codes.shape), "e.0.w1.weight": fp4(blocks) * spread(group, 1, 32, (32, 64)),
        "q_norm.scale": normal(8, 2).astype(np.float32)}, None
    e5 = fp8(64, 64, dtype=E5M2)
    yield "e5m2", {"a.weight": e5, "a.scale_weight": np.float32([0.5])}, None, {"a.weight": e5.astype(np.float32) * np.float32(0.5)}, None
    experts, grid = fp8(3, 128, 256), positive(3, 1, 2)
    yield "experts", {"x.experts.gate_up_proj": experts, "x.experts.gate_up_proj_scale_inv": grid}, FP8, {
        "x.experts.gate_up_proj": experts.astype(np.float32) * spread(grid, 128, 128, experts.shape)}, None
    yield "modelopt-fp8", {"a.weight": codes, "a.weight_scale": np.float32(0.02), "a.input_scale": np.float32(1),
                           "k_proj.k_scale": np.float32(1), "kv_scale": np.float32(1), "act_scale": np.float32(1),
                           "a.input_quantizer._amax": np.float32(1)}, {"quant_method": "modelopt", "quant_algo": "FP8"}, {
        "a.weight": codes.astype(np.float32) * np.float32(0.02)}, None
    second, blocks, group = np.float32(0.0007), nibbles(16, 32), fp8(16, 4)
    yield "modelopt-nvfp4", {"a.weight": blocks, "a.weight_scale": group, "a.weight_scale_2": second}, {"quant_method": "modelopt"}, {
        "a.weight": fp4(blocks) * (spread(group, 1, 16, (16, 64)) * second)}, None
    blocks, group = nibbles(2, 96, 2, 16), np.random.default_rng(6).integers(110, 130, (2, 96, 2)).astype(np.uint8)
    values = fp4(blocks).reshape(2, 96, 64) * spread(2.0 ** (group.astype(np.float32) - 127), 1, 32, (96, 64))
    yield "gpt-oss", {"e.gate_up_proj_blocks": blocks, "e.gate_up_proj_scales": group, "e.gate_up_proj_bias": normal(2, 96)}, {
        "quant_method": "mxfp4"}, {"e.gate_up_proj": values.transpose(0, 2, 1), "e.gate_up_proj_bias": normal(2, 96).astype(np.float32)}, None
    draw = np.random.default_rng(9)
    for bits, columns, group, points in ((4, 128, 32, None), (4, 192, 64, np.int8), (4, 128, 128, np.int32), (4, 130, 0, None), (4, 130, 0, np.int8),
                                         (8, 130, 0, None), (8, 128, 32, np.int8), (8, 96, 32, np.int32)):
        codes = draw.integers(-(2 ** (bits - 1)), 2 ** (bits - 1), (19, columns))
        scale = positive(19, columns // group if group else 1, dtype=BF16)
        zero = draw.integers(-4, 4, scale.shape)
        made = {"a.weight_packed": packed(codes, bits), "a.weight_scale": scale, "a.weight_shape": np.array([19, columns], np.int64)}
        if points is not None:
            made["a.weight_zero_point"] = zero.astype(np.int8) if points is np.int8 else packed(zero.T, bits).T
        config = groups("group" if group else "channel", bits, group_size=group or None)
        values = (codes - (spread(zero, 1, group or columns, codes.shape) if points is not None else 0)).astype(np.float32)
        yield f"int{bits}-{columns}-{group}-{points and np.dtype(points)}", made, config, {
            "a.weight": values * spread(scale, 1, group or columns, codes.shape)}, BF16
    codes, scale, zero = draw.integers(-128, 128, (9, 64)).astype(np.int8), positive(9, 1), draw.integers(-9, 9, (9, 1)).astype(np.int8)
    yield "int8-zero-point", {"a.weight": codes, "a.weight_scale": scale, "a.weight_zero_point": zero}, groups("channel", 8), {
        "a.weight": (codes.astype(np.float32) - zero) * scale}, None


@pytest.mark.parametrize("name, tensors, config, wanted, through", [pytest.param(*case, id=case[0]) for case in decodings()])
def test_a_form_is_decoded_to_the_right_bits(name, tensors, config, wanted, through):
    folder(tensors, config)
    for output, dtype in (("bf16", BF16), ("f32", np.float32)):
        convert("m", "-o", output, f"--to={output}")
        made = load_tensors(f"{output}/model.safetensors")
        assert set(made) == set(wanted)
        for key, values in wanted.items():
            values = values if through is None else values.astype(through).astype(np.float32)
            assert made[key].dtype == dtype and made[key].shape == values.shape, key
            assert made[key].tobytes() == values.astype(dtype).tobytes(), key
        made = json.load(open(f"{output}/config.json"))
        assert made["dtype"] == {"bf16": "bfloat16", "f32": "float32"}[output] and "quantization_config" not in made
    err = convert("m", "-o", "n", "--to=compressed-tensors:int8", "--all", code=2)
    assert "quantized" in err and not os.path.exists("n")


FLOATS = {"n.weight": normal(64, 64)}
CODES, GRID, SCALE = fp8(256, 384), positive(2, 3), np.float32(0.1)
WORDS = {"a.weight_packed": packed(np.zeros((16, 64), int), 4), "a.weight_scale": positive(16, 2, dtype=BF16), "a.weight_shape": np.array([16, 64])}
GPTQ = {"a.qweight": np.zeros((8, 64), np.int32), "a.qzeros": np.zeros((2, 8), np.int32), "a.scales": normal(2, 64, dtype=np.float16)}
REFUSED = {  # tensors, quantization_config, which name of them the error has
    "no scale": ({"a.weight": CODES, "a.weight_scale_inv": GRID, "b.weight": CODES}, FP8, "b.weight"),
    "no codes": ({"a.weight": CODES, "a.weight_scale_inv": GRID, "b.weight_scale_inv": GRID}, FP8, "b.weight_scale_inv"),
    "transposed": ({"a.weight": CODES, "a.weight_scale_inv": GRID.T.copy()}, FP8, "a.weight"),
    "flat": ({"a.weight": CODES, "a.weight_scale_inv": GRID.ravel()}, FP8, "a.weight"),
    "other blocks": ({"a.weight": CODES, "a.weight_scale_inv": GRID}, {**FP8, "weight_block_size": [64, 256]}, "a.weight"),
    "blocks of text": ({"a.weight": CODES, "a.weight_scale_inv": GRID}, {**FP8, "weight_block_size": ["a", 1]}, "a.weight"),
    "two scales": ({"a.weight": CODES, "a.weight_scale_inv": GRID, "a.scale_weight": SCALE}, FP8, "a.weight"),
    "scale of integers": ({"a.weight": CODES, "a.weight_scale": np.ones((256, 1), np.int32)}, FP8, "a.weight"),
    "words transposed": ({**WORDS, "a.weight_packed": WORDS["a.weight_packed"].T.copy()}, groups("group", group_size=32), "a.weight_packed"),
    "words flat": ({**WORDS, "a.weight_packed": WORDS["a.weight_packed"].ravel()}, groups("group", group_size=32), "a.weight_packed"),
    "another group": (WORDS, groups("group", group_size=64), "a.weight_packed"),
    "activation order": ({**WORDS, "a.weight_g_idx": np.zeros(64, np.int32)}, groups("group", group_size=32), "a.weight_packed"),
    "sparse": ({"a.compressed": CODES, "a.bitmask": np.zeros((256, 48), np.uint8)},
               {"quant_method": "compressed-tensors", "sparsity_config": {"format": "sparse-24-bitmask"}}, "a."),
    "sparse without a config": ({"a.weight_compressed": normal(9), "a.weight_bitmask": np.zeros((256, 48), np.uint8)}, None, "a.weight_"),
    "gptq": (GPTQ, {"quant_method": "gptq"}, "a.qweight"),
    "gptq without a config": (GPTQ, None, "a.q"),
    "absmax": ({"a.weight": nibbles(64, 1), "a.weight.absmax": positive(2)}, {"quant_method": "bitsandbytes"}, "a.weight"),
    "zero points alone": ({"a.weight": CODES, "a.weight_scale_inv": GRID, "b.weight_zeros": positive(4, 4)}, FP8, "b.weight_zeros"),
    "a scale alone": ({"a.weight": CODES, "a.weight_scale_inv": GRID, "b.scale": GRID}, FP8, "b.scale"),
    "amax alone": ({"a.weight": CODES, "a.weight_scale_inv": GRID, "b.weight_quantizer._amax": SCALE}, FP8, "b.weight_quantizer._amax"),
    "codes of 64 bits": ({"a.weight": CODES, "a.weight_scale_inv": GRID, "b.weight": np.ones((8, 8), np.int64)}, FP8, "b.weight"),
    "doubles too large": ({"a.weight": CODES, "a.weight_scale_inv": GRID, "b": np.array([1e300])}, FP8, "'b'"),
    "4 bits as floats": ({"a.weight": normal(64, 1)}, {"quant_method": "bitsandbytes"}, "a.weight"),
    "codes alone": ({"a.weight": nibbles(64, 64).view(np.int8)}, None, "a.weight"),
    "NaN in codes": ({"a.weight": np.full((128, 128), np.nan, np.float32).astype(E4M3), "a.weight_scale_inv": positive(1, 1)}, FP8, "a.weight"),
    "infinite scale": ({"a.weight": fp8(128, 128), "a.weight_scale_inv": np.full((1, 1), np.inf, np.float32)}, FP8, "a.weight"),
    "infinite global scale": ({"a.weight_packed": nibbles(16, 16), "a.weight_scale": fp8(16, 2), "a.weight_global_scale": np.float32([np.inf])},
                              {"quant_method": "compressed-tensors"}, "a.weight"),
    "NaN power": ({"e_blocks": nibbles(1, 4, 1, 16), "e_scales": np.full((1, 4, 1), 255, np.uint8)}, {"quant_method": "mxfp4"}, "e"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_understood_is_refused_by_name(case):
    tensors, config, named = REFUSED[case]
    tensors = {name: np.asarray(array) for name, array in tensors.items()}
    folder({**FLOATS, **tensors}, config)
    for to, codes in (("bf16", (1, 2)), ("compressed-tensors:int8", (2,))):
        code, _, err = quantctl("convert", "m", "-o", "out", f"--to={to}")
        assert code in codes and err.count("\n") == 1 and (named in err or to != "bf16"), err
        assert os.listdir() == ["m"]


def test_too_large_for_f16():
    config = groups("channel", 8, "float")
    folder({"a.weight": np.full((64, 64), 448, np.float32).astype(E4M3), "a.weight_scale": np.full((64, 1), 200, np.float32)}, config)
    assert "'a.weight'" in convert("m", "-o", "o", "--to=f16", code=1)
    folder({"a.weight": fp8(64, 64), "a.weight_scale": positive(64, 1), "mask": np.float32([1e6])}, config, "n")
    assert "'mask'" in convert("n", "-o", "o", "--to=f16", code=1)
    folder({"a.weight": fp8(64, 64), "a.weight_scale": positive(64, 1), "mask": np.float32([-np.inf, 1]), "d": np.array([0.5, np.inf])},
           config, "k")
    convert("k", "-o", "o", "--to=f16")
    made = load_tensors("o/model.safetensors")
    assert {array.dtype for array in made.values()} == {np.dtype(np.float16)} and made["mask"].tolist() == [-np.inf, 1]
    assert made["d"].tolist() == [0.5, np.inf]


LEFT = {  # model_type: tensors that stay; everything that ends in .yes.weight is converted
    "gemma4": ["model.layers.0.router.proj.weight", "model.embed_tokens_per_layer.weight"],
    "switch_transformers": ["encoder.block.1.layer.1.mlp.router.classifier.weight", "shared.weight",
                            "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"],
    "gpt2": ["h.0.attn.c_attn.weight", "h.0.attn.c_proj.weight", "wte.weight", "wpe.weight"],
    "deepseek_v4": ["embed.weight", "head.weight", "layers.0.ffn.gate.weight"],
    "hunyuan_v1_moe": ["model.layers.0.mlp.gate.wg.weight"],
    "whisper": ["model.encoder.embed_positions.weight", "proj_out.weight"],
    "chatglm": ["transformer.output_layer.weight", "model.layers.61.shared_head.head.weight", "talker.codec_head.weight",
                "model.layers.0.mlp.expert_gate.weight", "model.layers.0.mlp.router_gate.weight"],
    "unknown": ["output.weight", "tok_embeddings.weight", "layers.0.moe.gate.weight", "x.c_fc.weight", "x.c_proj.weight"],
}


@pytest.mark.parametrize("model_type", LEFT)
def test_which_tensors_by_family(model_type):
    linear = ["model.layers.0.self_attn.q_proj.weight", "model.layers.0.mlp.experts.3.w1.weight", "layers.0.ffn.gate_proj.weight"]
    tensors = {name: normal(64, 64) for name in (*LEFT[model_type], *linear)}
    if model_type == "unknown":  # stored [in, out]: its bias says so
        tensors.update({"x.c_fc.weight": normal(64, 256), "x.c_fc.bias": normal(256)})
    save_model("m", {"model.safetensors": tensors}, {"model_type": model_type})
    out = json.loads(convert("m", "-o", "o", "--to=compressed-tensors:int8", "--json"))
    assert {entry["name"] for entry in out["tensors"] if "layout" in entry} == set(linear)
    ignored = json.load(open("o/config.json"))["quantization_config"]["ignore"]
    assert {name.removesuffix(".weight") for name in LEFT[model_type]} <= set(ignored)


def test_what_the_folder_says_of_itself():
    experts = "model.layers.0.mlp.experts"
    tensors = {"model.layers.0.self_attn.q_a_proj.weight": normal(64, 64), f"{experts}.gate_up_proj": normal(2, 64, 64),
               "model.layers.0.self_attn.kv_a_proj_with_mqa.weight": normal(64, 64, seed=8) * BF16(4),
               "model.layers.1.ffn.experts.mlp.w1": normal(64, 64), "model.layers.1.moe.input_linear.weight": normal(2, 64, 64)}
    save_model("m", {"model-1.safetensors": tensors}, {"model_type": "x"})
    save_tensors("m/consolidated.safetensors", FLOATS)
    out = convert("m", "-o", "o", "--to=compressed-tensors:nvfp4")
    assert "consolidated.safetensors" in out and not os.path.exists("o/consolidated.safetensors")
    made = load_tensors("o/model-1.safetensors")
    scales = {made[name + "_global_scale"].tobytes() for name in tensors if "self_attn" in name}
    assert len(scales) == 1
    ignored = json.load(open("o/config.json"))["quantization_config"]["ignore"]
    assert {"model.layers.1.ffn.experts", "model.layers.1.moe.input_linear"} <= set(ignored)
    assert experts in ignored and any(entry.startswith("re:") and "experts" in entry for entry in ignored)
    assert f"'{experts}.gate_up_proj'" in convert("m", "-o", "p", "--to=fp8-tiles", "--only=gate_up_proj", code=1)
    assert "0 of 5" in convert("m", "-o", "p", "--to=fp8-tiles", "--skip=.", code=2)
    assert f"'{experts}.gate_up_proj'" in convert("o", "-o", "part", "--to=bf16", "--only=gate_up_proj", code=1)
    convert("o", "-o", "part", "--to=bf16", "--only=q_a_proj")
    listed = json.load(open("part/config.json"))["quantization_config"]["ignore"]
    assert set(listed) == {*ignored, "model.layers.0.self_attn.q_a_proj"}
    convert("o", "-o", "back", "--to=bf16")
    assert "quantization_config" not in json.load(open("back/config.json"))


@pytest.mark.parametrize("text", ['{"a": [0.0, Infinity, -Infinity, NaN], "b": "NaN, Infinity"}'])
def test_json_as_python_writes_it(text):
    save_model("m", {"model.safetensors": FLOATS})
    open("m/config.json", "w").write(text)
    convert("m", "-o", "o", "--to=compressed-tensors:int8")
    made = json.load(open("o/config.json"))
    assert repr({key: made[key] for key in "ab"}) == repr(json.loads(text))


def test_gguf_as_llama_cpp_does():
    kept = ["position_embd.weight", "token_types.weight", "blk.0.ffn_gate_inp.weight", "blk.0.ssm_conv1d.weight", "blk.0.time_mix_w1.weight",
            "blk.0.attn_rel_b.weight", "blk.0.attn_norm.weight", "blk.0.attn_sinks"]
    taken = ["token_embd.weight", "output.weight", "blk.0.attn_q.weight", "blk.0.ffn_up_exps.weight"]
    tensors = {name: ("F32", [2, 4, 32] if "exps" in name else [4, 32], normal(256 if "exps" in name else 128, dtype=np.float32).tobytes())
               for name in (*kept, *taken)}
    tensors["blk.0.one.weight"] = ("F32", [1, 32], normal(32, dtype=np.float32).tobytes())
    save_gguf("m.gguf", {"general.architecture": ("string", "bert")}, tensors)
    convert("m.gguf", "-o", "o.gguf", "--to=gguf:q8_0")
    keys, made, _ = load_gguf("o.gguf")
    assert {name for name, entry in made.items() if entry[0] == "Q8_0"} == set(taken)
    assert keys["general.quantization_version"] == ("u32", 2) and keys["general.file_type"] == ("u32", 7)
    out = convert("o.gguf", "-o", "one.safetensors", "--to=bf16", "--only=attn_q")
    assert "cannot hold Q8_0" in out and load_tensors("one.safetensors")["blk.0.attn_q.weight"].dtype == BF16
    assert {name for name, entry in made.items() if entry[0] == "Q8_0"} & set(load_tensors("one.safetensors")) == {"blk.0.attn_q.weight"}
    save_gguf("s.gguf", {"split.count": ("u16", 3), "split.no": ("u16", 0)}, tensors)
    assert "3 parts" in convert("s.gguf", "-o", "t.gguf", "--to=gguf:q8_0", code=2)


def test_inspect_of_a_folder_and_a_gguf():
    tensors = {"a.weight": CODES, "a.weight_scale_inv": GRID, "b.weight": CODES, **FLOATS, "n.bias": normal(64)}
    folder(tensors, FP8)
    code, out, err = quantctl("inspect", "m", "--json")
    assert code == 0, err
    found = json.loads(out)
    roles = {entry["name"]: entry["role"] for entry in found["tensors"]}
    assert roles == {"a.weight": "codes", "a.weight_scale_inv": "part", "b.weight": "unknown", "n.weight": "linear", "n.bias": "floats"}
    assert found["bytes"] == sum(array.nbytes for array in tensors.values()) and found["quant_method"] == "fp8"
    code, out, _ = quantctl("inspect", "m")
    assert code == 0 and all(name in out for name in tensors) and "not understood" in out
    save_gguf("m.gguf", {}, {"token_embd.weight": ("F32", [4, 32], bytes(512)), "norm": ("F32", [32], bytes(128))})
    code, out, _ = quantctl("inspect", "m.gguf", "--json")
    assert code == 0 and {entry["role"] for entry in json.loads(out)["tensors"]} == {"linear", "floats"}
