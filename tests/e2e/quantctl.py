"""quantctl as a process, and tensor files read and written without it."""

import json
import os
import subprocess
from pathlib import Path

import ml_dtypes
import numpy as np
from safetensors import safe_open
from support import ROOT

BINARY = ROOT / os.environ.get("QUANTD_BUILD_DIR", "build/release") / "client" / "quantctl"

# quantctl's names of types -> numpy. Types narrower than a byte are read with one byte per element.
TYPES = {
    "float": np.float32,
    "uint8": np.uint8,
    "int8": np.int8,
    "uint16": np.uint16,
    "int16": np.int16,
    "uint4": ml_dtypes.uint4,
    "int4": ml_dtypes.int4,
    "uint2": ml_dtypes.uint2,
    "int2": ml_dtypes.int2,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "float8e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "float8e5m2": ml_dtypes.float8_e5m2,
    "float8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "float8e8m0": ml_dtypes.float8_e8m0fnu,
    "float6e2m3": ml_dtypes.float6_e2m3fn,
    "float6e3m2": ml_dtypes.float6_e3m2fn,
    "float4e2m1": ml_dtypes.float4_e2m1fn,
}
BITS = {"uint4": 4, "int4": 4, "float6e2m3": 6, "float6e3m2": 6, "float4e2m1": 4, "uint2": 2, "int2": 2}


def environment(address=None):
    """This process's, with this QUANTD_ADDRESS or none."""
    others = {key: value for key, value in os.environ.items() if key != "QUANTD_ADDRESS"}
    return {**others, "QUANTD_ADDRESS": address} if address else others


def quantctl(*arguments, address=None, timeout=300, limit=None):
    """Runs quantctl: (exit code, stdout, stderr). `limit`: an option of prlimit, such as --data=BYTES, which limits all private memory that can
    be written. Not a preexec_fn: the tests' process uses gRPC, and must not be forked."""
    assert BINARY.exists(), f"{BINARY} is not there: build it, or set QUANTD_BUILD_DIR"
    command = [*(["prlimit", limit] if limit else []), str(BINARY), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=environment(address))
    return done.returncode, done.stdout, done.stderr


def ctl(*arguments, code=0, **more):
    """What quantctl prints, or its one line of error if it is expected to end with this code."""
    got, out, err = quantctl(*arguments, **more)
    assert got == code, f"exit {got}: {out}{err}"
    assert code == 0 or err.count("\n") == 1, err
    return err if code else out


def unpack(raw, kind, shape):
    """Packed bytes of a type as an array."""
    raw = np.frombuffer(raw, np.uint8)
    bits = BITS.get(kind)
    if bits is None:
        return raw.view(TYPES[kind]).reshape(shape)
    count = int(np.prod(shape))
    each = np.unpackbits(raw, bitorder="little")[: count * bits].reshape(count, bits)
    codes = np.packbits(each, axis=1, bitorder="little").reshape(-1)
    if kind in ("int4", "int2"):
        codes = codes.astype(np.int8)
        codes[codes >= 2 ** (bits - 1)] -= 2**bits
        return codes.astype(TYPES[kind]).reshape(shape)
    return (codes.view(TYPES[kind]) if kind.startswith("float") else codes.astype(TYPES[kind])).reshape(shape)


def raw_tensors(path):
    """name -> (dtype, shape, bytes) of a .safetensors, parsed by hand: numpy lacks some of its types."""
    data = Path(path).read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    body = data[8 + length :]
    return {
        name: (entry["dtype"], entry["shape"], body[entry["data_offsets"][0] : entry["data_offsets"][1]])
        for name, entry in header.items()
    }


def read_quantized(path, name="y"):
    """The parts of a quantized tensor in a .safetensors: {"y": array, "scale": array, ...}."""
    with safe_open(path, "numpy") as file:  # the format's own library must be able to open it
        entry = json.loads(file.metadata()["quantd"])["tensors"][name]
    stored = raw_tensors(path)
    parts = {}
    for role in ("y", "scale", "zero_point", "tensor_scale"):
        if role in entry:
            part = entry[role]
            parts[role] = unpack(stored[part["tensor"]][2], part["type"], part["shape"])
    return parts
