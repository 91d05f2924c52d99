"""How the packages make the same files on the CPU, for checkpoints.py: {layout: function of (source folder, out)}."""

import os
import shutil

os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")
import bitsandbytes.functional  # noqa: E402
import gguf  # noqa: E402
from llmcompressor import model_free_ptq  # noqa: E402
from safetensors import safe_open  # noqa: E402
from safetensors.torch import save_file  # noqa: E402


def shards(source):
    for path in sorted(source.glob("*.safetensors")):
        with safe_open(path, "pt") as file:
            yield path.name, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


def compressed(scheme):
    def work(source, out):
        model_free_ptq(model_stub=str(source), save_directory=str(out), scheme=scheme, ignore=["lm_head"], max_workers=2, device="cpu")

    return work


def of_gguf(kind):
    def work(source, out):
        writer = gguf.GGUFWriter(out, "llama")
        for _, tensors in shards(source):
            for name, tensor in tensors.items():
                writer.add_tensor(name, gguf.quants.quantize(tensor.float().numpy(), kind), raw_dtype=kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()

    return work


def of_bitsandbytes(kind):
    def work(source, out):
        out.mkdir()
        for shard, tensors in shards(source):
            made = {}
            for name, tensor in tensors.items():
                made[name], state = bitsandbytes.functional.quantize_4bit(tensor, quant_type=kind)
                made.update({f"{name}.{key}": value for key, value in state.as_dict(packed=True).items()})
            save_file(made, out / shard)
        shutil.copy(source / "config.json", out)

    return work


SIDES = {
    "compressed-tensors:int8": compressed("W8A8"),
    "compressed-tensors:fp8-block": compressed("FP8_BLOCK"),
    "compressed-tensors:int4-g128": compressed("W4A16"),
    "compressed-tensors:nvfp4": compressed("NVFP4A16"),
    "gguf:q8_0": of_gguf(gguf.GGMLQuantizationType.Q8_0),
    "gguf:q4_0": of_gguf(gguf.GGMLQuantizationType.Q4_0),
    "bnb:nf4": of_bitsandbytes("nf4"),
}
