"""Which tensors quantctl converts, for every model type that transformers can build: the weights of nn.Linear, less heads and routers.

A model is built on the meta device with its type's default configuration; a sparse file with its names and shapes is enough for a dry run.
"""

import json
import os
import struct
import subprocess
from pathlib import Path

import families
import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]
QUANTCTL = ROOT / os.environ.get("QUANTD_BUILD_DIR", "build/release") / "client/quantctl"
DTYPES = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64", torch.bool: "BOOL"}
LEAST = 60
TYPES = dict(families.model_types())


def sparse_file(path, tensors):
    """A .safetensors whose bytes are a hole."""
    header, at = {}, 0
    for name, (dtype, shape) in tensors.items():
        size = torch.Size(shape).numel() * torch.empty(0, dtype=dtype).element_size()
        header[name] = {"dtype": DTYPES[dtype], "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + at)


def converted(folder, model_type, tensors, *flags):
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"model_type": model_type}))
    sparse_file(folder / "model.safetensors", tensors)
    ended = subprocess.run([QUANTCTL, "convert", folder, "-o", folder / "out", "--to=compressed-tensors:int8", "--dry_run", "--json", *flags],
                           capture_output=True, text=True, timeout=120, check=False)
    if ended.returncode == 2 and "0 of " in ended.stderr:
        return set()
    assert ended.returncode == 0, ended.stderr
    return {entry["name"] for entry in json.loads(ended.stdout)["tensors"] if "layout" in entry}


def check(model_type, folder):
    """(names that are converted, classes that were built) of a type; None: nothing can be built here."""
    counts = []
    for number, name in enumerate(TYPES[model_type]):
        model = families.build(model_type, name)
        if model is None:
            continue
        tensors = {key: (value.dtype, tuple(value.shape)) for key, value in model.state_dict().items() if value.dtype in DTYPES}
        wanted = families.truth(model)
        linear = {key for key in tensors if key.endswith(".weight") and wanted.get(families.words(key.removesuffix(".weight")), (False,))[0]}
        linear = {key for key in linear if len(tensors[key][1]) == 2}
        found = converted(folder / f"{model_type}-{number}", model_type, tensors)
        assert found == linear, (name, sorted(found - linear)[:5], sorted(linear - found)[:5])
        counts.append((name, len(linear), len(tensors)))
    return counts


@pytest.mark.parametrize("model_type", TYPES)
def test_the_converted_set_is_that_of_linear_layers(model_type, tmp_path, record_property):
    counts = check(model_type, tmp_path)
    if not counts:
        pytest.skip("transformers cannot build it here")
    for name, linear, tensors in counts:
        record_property("row", f"{model_type} {name}: {linear} of {tensors} tensors")


def test_there_are_enough_families():
    assert len(TYPES) >= LEAST
