"""What the packages make of a weight in each layout, and how they decode it: {suffix: tensor}, suffixes as in the core's layout.h.

Only for the environment of suite `checkpoints`. The packages do the work; this file only calls them.
"""

import os

os.environ["TORCHDYNAMO_DISABLE"] = "1"  # bitsandbytes would compile a function for every shape

import types
import warnings

import gguf
import numpy as np
import torch
from bitsandbytes import functional as bnb
from bitsandbytes.backends.default.ops import _dequantize_4bit_compute
from compressed_tensors.compressors.base import BaseCompressor
from compressed_tensors.entrypoints.convert.converters.fp8block_dequantizer import FP8BlockDequantizer
from compressed_tensors.quantization import QuantizationArgs, QuantizationConfig, QuantizationScheme
from llmcompressor.entrypoints.model_free.converter import ModelFreePtqConverter
from transformers.integrations.finegrained_fp8 import Fp8Quantize

warnings.filterwarnings("ignore")
try:
    from loguru import logger

    logger.remove()
except ImportError:
    pass

TORCH = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
TILE = 128
FP8_TILES = types.SimpleNamespace(quantization_config=types.SimpleNamespace(weight_block_size=(TILE, TILE), scale_fmt=None))
# The sign that numpy chooses among zeros of both signs depends on the CPU; ours is that of AVX-512.
ZEROS_AS_OURS = np._core._multiarray_umath.__cpu_features__.get("AVX512F", False)


def tensor(array):
    """A torch tensor of an array of numpy or ml_dtypes."""
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.uint16).copy()).view(torch.bfloat16)
    return torch.from_numpy(array.copy())


def raw(value):
    """The bytes of a tensor; a dimension of 1 may have any stride."""
    flat = torch.empty(value.numel(), dtype=value.dtype)
    flat.copy_(value.reshape(-1))
    return flat.view(torch.uint8).numpy().tobytes()


# ---- compressed-tensors


def scheme(name):
    """The scheme of `name`, such as int4-g32-asym."""
    weights = {"num_bits": 8, "type": "int", "symmetric": True, "strategy": "channel", "dynamic": False}
    inputs = {"num_bits": 8, "type": "int", "symmetric": True, "strategy": "token", "dynamic": True}
    form = "int-quantized"
    if name.endswith("-tensor"):
        weights["strategy"] = "tensor"
    if name.startswith("int4"):
        group = 128 if "g128" in name else 32
        weights.update(num_bits=4, strategy="group", group_size=group, symmetric=not name.endswith("asym"))
        inputs, form = None, "pack-quantized"
    elif name.startswith("fp8"):
        weights["type"] = inputs["type"] = "float"
        form = "float-quantized"
        if name == "fp8-block":
            weights.update(strategy="block", block_structure=[TILE, TILE])
            inputs.update(strategy="group", group_size=TILE)
    elif name == "nvfp4":
        weights.update(num_bits=4, type="float", strategy="tensor_group", group_size=16, scale_dtype=torch.float8_e4m3fn)
        inputs, form = None, "nvfp4-pack-quantized"
    elif name == "mxfp4":
        weights.update(num_bits=4, type="float", strategy="group", group_size=32, scale_dtype=torch.uint8)
        inputs, form = None, "mxfp4-pack-quantized"
    return QuantizationScheme(
        targets=["Linear"],
        weights=QuantizationArgs(**weights),
        input_activations=None if inputs is None else QuantizationArgs(**inputs),
        format=form,
    )


def compress(name, weight):
    of = scheme(name)
    config = QuantizationConfig(config_groups={"group_0": of}, format=of.format, ignore=[])
    made = ModelFreePtqConverter(config).process({"m.weight": weight.clone()})
    return {key.removeprefix("m.weight"): value for key, value in made.items()}


def decompress(name, parts):
    of = scheme(name)
    compressor = BaseCompressor.get_value_from_registry(getattr(of.format, "value", of.format))
    return compressor.decompress({"weight" + suffix: value for suffix, value in parts.items()}, of)["weight"]


# ---- fp8-tiles


def tiles(weight):
    """transformers accepts whole tiles only: zeros at the edges change nothing."""
    rows, columns = weight.shape
    padded = torch.zeros(-(-rows // TILE) * TILE, -(-columns // TILE) * TILE, dtype=weight.dtype)
    padded[:rows, :columns] = weight
    made = Fp8Quantize(FP8_TILES)._quantize_one("m.weight", padded)
    return {"": made["m.weight"][:rows, :columns].contiguous(), "_scale_inv": made["m.weight_scale_inv"]}


# ---- gguf


def ggml(name):
    return getattr(gguf.GGMLQuantizationType, name.upper())


def gguf_encode(name, weight):
    with np.errstate(all="ignore"):
        made = gguf.quants.quantize(weight.float().numpy(), ggml(name))
    return {"": torch.from_numpy(np.ascontiguousarray(made).view(np.uint8))}


def gguf_decode(name, stored, shape):
    kind = np.float16 if name == "f16" else np.uint8
    with np.errstate(all="ignore"):
        return torch.from_numpy(gguf.quants.dequantize(stored.numpy().view(kind), ggml(name))).reshape(shape)


# ---- bitsandbytes


def bnb_encode(name, weight):
    if name == "int8":
        codes, scales, _ = bnb.int8_vectorwise_quant(weight.half())
        return {"": codes, ".SCB": scales, "_format": torch.tensor(0, dtype=torch.uint8)}
    codes, state = bnb.quantize_4bit(weight.clone(), blocksize=64, quant_type=name[:3], compress_statistics=name.endswith("double"))
    return {"": codes, **{"." + key: value for key, value in state.as_dict(packed=True).items()}}


def bnb_state(parts):
    return bnb.QuantState.from_dict({key[1:]: value for key, value in parts.items() if key.startswith(".")}, device="cpu")


def bnb_decode(name, parts, shape):
    """Its Python implementation, which counts blocks correctly for any columns. In fp4, code 8 is -0, as in its C++
    implementation."""
    if name == "int8":
        return bnb.int8_vectorwise_dequant(parts[""], parts[".SCB"])
    state = bnb_state(parts)
    absmax = state.absmax
    if state.nested:
        absmax = bnb.dequantize_blockwise(state.absmax, state.state2) + state.offset
    codes = parts[""].reshape(-1)
    map_of = state.code.clone()
    if name.startswith("fp4"):
        map_of[8] = -0.0
    return _dequantize_4bit_compute(codes, absmax, map_of, 64, shape, state.dtype)


# ---- All


def encode(layout, weight):
    family, _, name = layout.partition(":")
    if family == "fp8-tiles":
        return tiles(weight)
    return {"compressed-tensors": compress, "gguf": gguf_encode, "bnb": bnb_encode}[family](name, weight)


def decode(layout, parts, shape, output):
    """As `output`, a dtype of torch; None if the package cannot read what it wrote."""
    family, _, name = layout.partition(":")
    if family == "fp8-tiles":
        return FP8BlockDequantizer(dtype=output)._create_dequantized_weight(parts[""], parts["_scale_inv"])
    if family == "compressed-tensors":
        zeros = parts.get("_zero_point")
        if zeros is not None and 1 in zeros.shape:
            return None
        made = decompress(name, parts)
    elif family == "gguf":
        made = gguf_decode(name, parts[""], shape)
    else:
        made = bnb_decode(name, parts, shape)
    return made.to(output).reshape(shape)


def offset_of(parts):
    """nested_offset of bitsandbytes' -double; 0 of other layouts."""
    import json

    text = next((value for key, value in parts.items() if ".quant_state" in key), None)
    return 0.0 if text is None else json.loads(bytes(text.tolist())).get("nested_offset", 0.0)


def is_refused(layout, weight, parts):
    """Whether a scale is infinite, or an element is out of FLOAT16's range."""
    family, _, name = layout.partition(":")
    if name in ("f16", "int8") and family in ("gguf", "bnb"):
        return bool(weight.half().isinf().any())
    if name.endswith("asym"):
        return bool(parts["_scale"].isinf().any())
    sizes = {"q8_0": (34, 1), "q4_0": (18, 1), "q4_1": (20, 2), "q5_0": (22, 1), "q5_1": (24, 2)}
    if family == "gguf" and name in sizes:
        size, halves = sizes[name]
        stored = parts[""].numpy().reshape(-1, size)[:, : 2 * halves].copy().view(np.float16)
        return not bool(np.isfinite(stored).all())
    return False


def is_not_followed(layout, weight, parts):
    """The cases that core/LAYOUTS.md lists as different."""
    magnitudes = weight.float().abs()
    if layout == "fp8-tiles":
        return bool((parts["_scale_inv"] == 0).any())
    if layout == "gguf:mxfp4":
        largest = magnitudes.reshape(-1, 32).amax(1)
        return bool(((largest > 0) & (largest < 2.0**-125)).any())
    if layout.endswith("-double"):
        return offset_of(parts) == float("inf")
    return False
