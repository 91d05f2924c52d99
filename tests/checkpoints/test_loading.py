"""The packages load what quantctl convert writes: a small random Llama on the CPU gives the logits of the package's own folder, bit for bit.
compressed-tensors, gguf and bitsandbytes read single tensors, and quantctl decodes the packages' folders."""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
from safetensors import safe_open  # noqa: E402
from safetensors.torch import save_file  # noqa: E402
from transformers import AutoModelForCausalLM, BitsAndBytesConfig, LlamaConfig, LlamaForCausalLM  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
QUANTCTL = ROOT / os.environ.get("QUANTD_BUILD_DIR", "build/release") / "client" / "quantctl"
# quantctl's layout -> the same scheme in llm-compressor.
SCHEMES = {"int8": "W8A8", "fp8": "FP8_DYNAMIC", "fp8-block": "FP8_BLOCK", "int4-g128": "W4A16", "int4-g128-asym": "W4A16_ASYM", "nvfp4": "NVFP4A16",
           "mxfp4": "MXFP4A16"}
IGNORE = ["lm_head", "re:.*embed_tokens.*"]


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    """A folder of three shards."""
    torch.manual_seed(0)
    config = LlamaConfig(vocab_size=128, hidden_size=256, intermediate_size=512, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                         max_position_embeddings=64)
    folder = tmp_path_factory.mktemp("llama") / "m"
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(folder, max_shard_size="1MB")
    assert len(list(folder.glob("*.safetensors"))) > 1
    return folder


def convert(source, out, to):
    done = subprocess.run([QUANTCTL, "convert", source, "-o", out, f"--to={to}", "--quiet"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return out


def logits(folder, **more):
    model = AutoModelForCausalLM.from_pretrained(folder, **more)
    with torch.no_grad():
        return model(torch.arange(32).reshape(1, 32)).logits.float()


def same(a, b):
    return torch.equal(a.view(torch.int32), b.view(torch.int32))


def tensors(folder):
    """{name: (dtype, shape, bytes)} of a folder, from all shards."""
    found = {}
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, "pt") as file:
            for name in file.keys():  # noqa: SIM118
                tensor = file.get_tensor(name)
                raw = tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
                found[name] = (str(tensor.dtype), tuple(tensor.shape), raw)
    return found


def quantization(folder):
    return json.loads((folder / "config.json").read_text())["quantization_config"]


@pytest.mark.parametrize("layout", SCHEMES)
def test_compressed_tensors(llama, tmp_path, layout):
    """llm-compressor's model_free_ptq makes the same tensors; both folders give the same logits; quantctl decodes the package's folder."""
    ptq = pytest.importorskip("llmcompressor").model_free_ptq
    ours, theirs = convert(llama, tmp_path / "ours", f"compressed-tensors:{layout}"), tmp_path / "theirs"
    ptq(model_stub=str(llama), save_directory=str(theirs), scheme=SCHEMES[layout], ignore=IGNORE, max_workers=1, device="cpu")
    made, wanted = tensors(ours), tensors(theirs)
    assert made.keys() == wanted.keys()
    for name, tensor in wanted.items():
        assert made[name] == tensor, name
    # There the group is named after the scheme, and patterns define the ignored modules.
    mine, package = ({**found, "ignore": 0, "config_groups": list(found["config_groups"].values())} for found in map(quantization, (ours, theirs)))
    assert mine == package
    if "asym" in layout:  # transformers expects zero points that are not packed, and loads neither folder
        for folder in (ours, theirs):
            with pytest.raises(RuntimeError, match="mismatched_sizes"):
                logits(folder)
    else:
        assert same(logits(ours), logits(theirs))
    back, again = convert(theirs, tmp_path / "back", "bf16"), convert(ours, tmp_path / "again", "bf16")
    assert tensors(back) == tensors(again)


@pytest.mark.parametrize("layout, flags", [
    ("nf4", {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}), ("fp4", {"load_in_4bit": True, "bnb_4bit_quant_type": "fp4"}),
    ("int8", {"load_in_8bit": True}),
])
def test_bitsandbytes(llama, tmp_path, layout, flags):
    """transformers quantizes while it loads: the same logits as with our folder; and quantctl decodes what it saves."""
    ours = convert(llama, tmp_path / "ours", f"bnb:{layout}")
    given = BitsAndBytesConfig(bnb_4bit_compute_dtype=torch.bfloat16, **flags)
    model = AutoModelForCausalLM.from_pretrained(llama, dtype=torch.bfloat16, quantization_config=given)
    model.save_pretrained(tmp_path / "theirs")
    with torch.no_grad():
        wanted = model(torch.arange(32).reshape(1, 32)).logits.float()
    assert same(logits(ours), wanted)
    made, saved = tensors(ours), tensors(tmp_path / "theirs")
    assert made.keys() == saved.keys()
    for name, tensor in saved.items():
        assert made[name][2] == tensor[2], name
    back, again = convert(tmp_path / "theirs", tmp_path / "back", "bf16"), convert(ours, tmp_path / "again", "bf16")
    assert tensors(back) == tensors(again)


@pytest.mark.parametrize("layout", ["fp8-tiles", "compressed-tensors:int4-g32", "compressed-tensors:int8-tensor", "compressed-tensors:fp8-tensor",
                                    "bnb:nf4-double", "bnb:fp4-double"])
def test_others_load_and_are_near(llama, tmp_path, layout):
    ours = convert(llama, tmp_path / "ours", layout)
    found, wanted = logits(ours), logits(llama, dtype=torch.bfloat16)
    assert float((found - wanted).abs().max()) < 0.5 * float(wanted.abs().max())
    # transformers computes the same as with the decoded folder, except where activations have 8 bits.
    if "int4" in layout:
        back = convert(ours, tmp_path / "back", "bf16")
        assert float((found - logits(back, dtype=torch.bfloat16)).abs().max()) < 0.02


def test_quantization_config_of_compressed_tensors(llama, tmp_path):
    quantization_config = pytest.importorskip("compressed_tensors.quantization").QuantizationConfig
    integers = ("int8", "int8-tensor", "int4-g128", "int4-g32", "int4-g128-asym", "int4-g32-asym")
    for layout in (*integers, "fp8", "fp8-tensor", "fp8-block", "nvfp4", "mxfp4"):
        config = quantization(convert(llama, tmp_path / layout, f"compressed-tensors:{layout}"))
        read = quantization_config.model_validate(config)
        weights = read.config_groups["group_0"].weights
        assert (weights.num_bits, weights.symmetric) == (4 if "4" in layout.replace("fp8", "").split("-")[0] else 8, "asym" not in layout)
        assert read.format == config["format"]


@pytest.mark.parametrize("layout", ["f16", "bf16", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "mxfp4"])
def test_gguf_reader(llama, tmp_path, layout):
    gguf = pytest.importorskip("gguf")
    reader = gguf.GGUFReader(convert(llama, tmp_path / "m.gguf", f"gguf:{layout}"))
    assert reader.get_field("general.architecture").contents() == "llama"
    back = tensors_of_file(convert(tmp_path / "m.gguf", tmp_path / "back.safetensors", "f32"))
    originals = tensors(llama)
    assert [tensor.name for tensor in reader.tensors] == sorted(originals, key=[t.name for t in reader.tensors].index)
    for tensor in reader.tensors:
        floats = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        assert list(tensor.shape[::-1]) == list(originals[tensor.name][1])
        assert floats.tobytes() == back[tensor.name].tobytes(), tensor.name
    # And to another type, from a .gguf that the package wrote.
    if layout == "f16":
        writer = gguf.GGUFWriter(tmp_path / "w.gguf", "llama")
        writer.add_context_length(64)
        writer.add_array("tokenizer.ggml.tokens", ["a", "b"])
        for tensor in reader.tensors:
            writer.add_tensor(tensor.name, np.array(tensor.data), raw_dtype=tensor.tensor_type)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        made = gguf.GGUFReader(convert(tmp_path / "w.gguf", tmp_path / "q.gguf", "gguf:q8_0"))
        assert made.get_field("tokenizer.ggml.tokens").contents() == ["a", "b"]
        assert made.get_field("llama.context_length").contents() == 64
        for tensor, before in zip(made.tensors, reader.tensors):
            if len(before.shape) < 2:
                assert tensor.data.tobytes() == before.data.tobytes()
                continue
            floats = gguf.quants.dequantize(before.data, before.tensor_type).astype(np.float32)
            assert tensor.data.tobytes() == gguf.quants.quantize(floats, gguf.GGMLQuantizationType.Q8_0).tobytes(), tensor.name


def tensors_of_file(path):
    with safe_open(path, "np") as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


SMALL = {"vocab_size": 128, "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4,
         "max_position_embeddings": 64}  # fmt: skip
GROUPED = {**SMALL, "num_key_value_heads": 4}
MOE = {"head_dim": 32, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 128}
FAMILIES = {
    "LlamaConfig": GROUPED, "MistralConfig": GROUPED, "Qwen2Config": GROUPED, "Qwen3Config": {**GROUPED, "head_dim": 32}, "Olmo2Config": GROUPED,
    "Phi3Config": {**GROUPED, "pad_token_id": 0}, "Gemma2Config": {**GROUPED, "head_dim": 32}, "Gemma3TextConfig": {**GROUPED, "head_dim": 32},
    "GPTNeoXConfig": SMALL, "OPTConfig": {**SMALL, "ffn_dim": 256, "word_embed_proj_dim": 128}, "Qwen3MoeConfig": {**GROUPED, **MOE},
    "BloomConfig": {"vocab_size": 128, "hidden_size": 128, "n_layer": 2, "n_head": 4},
}  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES)
def test_families(family, tmp_path):
    """Folders of small random models: the logits of bitsandbytes' own quantization, and of transformers' own decoding of FLOAT8 tiles."""
    torch.manual_seed(0)
    config = getattr(transformers, family)(**FAMILIES[family])
    AutoModelForCausalLM.from_config(config).to(torch.bfloat16).save_pretrained(tmp_path / "m")
    for layout, flags in (("nf4", {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}), ("int8", {"load_in_8bit": True})):
        theirs = BitsAndBytesConfig(bnb_4bit_compute_dtype=torch.bfloat16, **flags)
        wanted = logits(tmp_path / "m", dtype=torch.bfloat16, quantization_config=theirs)
        assert same(logits(convert(tmp_path / "m", tmp_path / layout, f"bnb:{layout}")), wanted)
    tiles = convert(tmp_path / "m", tmp_path / "tiles", "fp8-tiles")
    decode = transformers.FineGrainedFP8Config(weight_block_size=(128, 128), dequantize=True)
    wanted = logits(tiles, dtype=torch.bfloat16, quantization_config=decode)
    assert same(logits(convert(tiles, tmp_path / "back", "bf16")), wanted)


def test_gpt_oss(tmp_path):
    """transformers' decoding of MXFP4 blocks."""
    mxfp4 = pytest.importorskip("transformers.integrations.mxfp4")
    draw = torch.Generator().manual_seed(0)
    blocks = torch.randint(0, 256, (3, 96, 2, 16), dtype=torch.uint8, generator=draw)
    scales = torch.randint(110, 130, (3, 96, 2), dtype=torch.uint8, generator=draw)
    folder = tmp_path / "m"
    folder.mkdir()
    save_file({"e.down_proj_blocks": blocks, "e.down_proj_scales": scales}, folder / "model.safetensors")
    (folder / "config.json").write_text('{"model_type": "gpt_oss", "quantization_config": {"quant_method": "mxfp4"}}')
    back = tensors(convert(folder, tmp_path / "back", "bf16"))["e.down_proj"]
    wanted = mxfp4.convert_moe_packed_tensors(blocks, scales).contiguous()
    assert back == (str(wanted.dtype), tuple(wanted.shape), wanted.reshape(-1).view(torch.uint8).numpy().tobytes())
