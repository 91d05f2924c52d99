"""The packages as an engine of the conformance kit:

PYTHONPATH=../conformance python -m quantd_conformance verify KIT --engine=kit_engine:answer --only='^layouts/'

in this folder, with the environment of suite checkpoints.
"""

import ml_dtypes
import numpy as np
import packages
import torch

DTYPES = {
    torch.float32: np.float32,
    torch.float16: np.float16,
    torch.bfloat16: ml_dtypes.bfloat16,
    torch.float8_e4m3fn: ml_dtypes.float8_e4m3fn,
    torch.int8: np.int8,
    torch.uint8: np.uint8,
    torch.int32: np.int32,
    torch.int64: np.int64,
}
OUTPUTS = {"FLOAT": torch.float32, "FLOAT16": torch.float16, "BFLOAT16": torch.bfloat16}
GGUF_FLOATS = {"gguf:f16": np.float16, "gguf:bf16": ml_dtypes.bfloat16}


def array(tensor):
    return np.frombuffer(packages.raw(tensor), DTYPES[tensor.dtype]).reshape(tuple(tensor.shape))


def tensor(value):
    if value.dtype == ml_dtypes.float8_e4m3fn:
        return torch.from_numpy(value.view(np.uint8).copy()).view(torch.float8_e4m3fn)
    return packages.tensor(value)


def answer(case):
    layout = case.attributes["layout"]
    if case.expected().refused is not None:
        raise NotImplementedError("the packages refuse nothing")
    if case.operation == "decode_layout":
        return decoded(case, layout)
    if case.operation != "encode_layout":
        raise NotImplementedError("the packages have layouts alone")
    x = case.inputs["x"]
    found = {suffix: array(part) for suffix, part in packages.encode(layout, tensor(x)).items()}
    if layout.startswith("gguf:"):
        found[""] = found[""].reshape(x.shape[0], -1).view(GGUF_FLOATS.get(layout, np.uint8))
    return {"SCB" if suffix == ".SCB" else "weight" + suffix: part for suffix, part in found.items()}


def decoded(case, layout):
    parts = {".SCB" if name == "SCB" else name.removeprefix("weight"): part for name, part in case.inputs.items()}
    shape = case.expected().tensors["y"].shape
    if layout in GGUF_FLOATS:
        parts[""] = parts[""].view(np.uint8)
    parts = {suffix: tensor(part) for suffix, part in parts.items()}
    y = packages.decode(layout, parts, shape, OUTPUTS[case.attributes["output_type"]])
    if y is None:
        raise NotImplementedError("the package cannot read what it wrote")
    return {"y": array(y)}
