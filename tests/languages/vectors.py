#!/usr/bin/env python3
"""vectors.py QUANTCTL FOLDER: quantizes random tensors with quantctl in its own process, as bytes that every client must get.

Writes FOLDER/vectors.tsv, a line per tensor, separated by tabs, bytes in hexadecimal, "-" if there is none:

    type (the number of DataType)  shape (2,3; "-" for 0-D)  axis ("-": one scale)
    x (FLOAT)  y  scale (FLOAT)  shape of scale  zero point  back (FLOAT, y dequantized)

Standard library only. TEST_SEED repeats a run."""

import json
import os
import pathlib
import random
import struct
import subprocess
import sys

TYPES = {
    "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "float8e4m3fn": 17, "float8e4m3fnuz": 18, "float8e5m2": 19,
    "float8e5m2fnuz": 20, "uint4": 21, "int4": 22, "float4e2m1": 23, "uint2": 25, "int2": 26,
    "float6e2m3": 27, "float6e3m2": 28,
}  # fmt: skip
# Lengths that are not multiples of what a byte or a vector holds.
SHAPES = [[], [1], [7], [3, 5], [2, 3, 17], [33, 130]]


def write(path, tensors):
    header, data = {}, b""
    for name, (shape, values) in tensors.items():
        packed = struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(packed)]}
        data += packed
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def read(path):
    """The bytes of every tensor in a safetensors file, and the description of the quantized ones."""
    whole = path.read_bytes()
    (length,) = struct.unpack("<Q", whole[:8])
    header = json.loads(whole[8 : 8 + length])
    metadata = header.pop("__metadata__", {})
    data = whole[8 + length :]
    tensors = {name: data[slice(*entry["data_offsets"])] for name, entry in header.items()}
    return tensors, json.loads(metadata["quantd"])["tensors"] if "quantd" in metadata else {}


def numbers(shape):
    return ",".join(map(str, shape)) or "-"


def main():
    quantctl, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    seed = int(os.environ.get("TEST_SEED") or random.randrange(1 << 32))
    print(f"TEST_SEED={seed}")
    chance = random.Random(seed)
    tensors = {}
    for shape in SHAPES:
        elements = 1
        for length in shape:
            elements *= length
        spread = chance.choice([1e-3, 1, 50])
        tensors["x" + "_".join(map(str, shape))] = (shape, [chance.gauss(0, spread) for _ in range(elements)])
    source, small, back = (folder / f"{name}.safetensors" for name in ("x", "y", "back"))
    write(source, tensors)
    floats, _ = read(source)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("QUANTD_")}

    def run(*arguments):
        subprocess.run([quantctl, *arguments, "--force", "--quiet"], check=True, env=environment)

    lines = []
    for type_name, number in TYPES.items():
        for axis in (None, 0, -1):
            run("quantize", source, "-o", small, f"--type={type_name}", "--all", *([] if axis is None else [f"--axis={axis}"]))
            run("dequantize", small, "-o", back)
            parts, described = read(small)
            dequantized, _ = read(back)
            for name, (shape, _) in tensors.items():
                if name not in described:  # 0-D has no axis
                    continue
                entry = described[name]
                zero_point = parts[entry["zero_point"]["tensor"]].hex() if "zero_point" in entry else "-"
                lines.append("\t".join([
                    str(number), numbers(shape), "-" if axis is None else str(axis), floats[name].hex(),
                    parts[entry["y"]["tensor"]].hex(), parts[entry["scale"]["tensor"]].hex(), numbers(entry["scale"]["shape"]),
                    zero_point, dequantized[name].hex(),
                ]))  # fmt: skip
    (folder / "vectors.tsv").write_text("\n".join(lines) + "\n")
    expected = len(TYPES) * (3 * len(SHAPES) - 2)
    assert len(lines) == expected, f"{len(lines)} tensors, not {expected}"
    print(f"{len(lines)} tensors")


if __name__ == "__main__":
    main()
