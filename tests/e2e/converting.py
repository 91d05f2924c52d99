"""The folder with which tests of quantctl convert start, and how they call it."""

import functools

import ml_dtypes
import numpy as np
from models import save_model
from quantctl import ctl

BF16 = ml_dtypes.bfloat16
INDEX = "model.safetensors.index.json"


convert = functools.partial(ctl, "convert")


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


RAGGED = [f"model.layers.{i}.mlp.down_proj.weight" for i in range(2)]  # 200 columns: not a multiple of 16
IGNORED = ["lm_head", "model.embed_tokens", *(f"model.layers.{i}.mlp.gate" for i in range(2))]
BLOCKS = ("int4", "nvfp4", "mxfp4")
