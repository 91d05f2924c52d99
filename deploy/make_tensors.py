#!/usr/bin/env python3
"""Writes the two tensor files that quickstart.sh quantizes: make_tensors.py FOLDER. Python's standard library only.

embeddings.npy      4096 x 768 FLOAT, as from a sentence encoder: near-normal rows of length one, a few strong channels.
layer.safetensors   a transformer's projection, weight 768 x 3072 and bias 3072, FLOAT.
Every run writes the same bytes.
"""
import array
import json
import math
import os
import random
import struct
import sys

ROWS, COLUMNS = 4096, 768


def little_endian(values):
    """The values as FLOAT bytes, in the byte order of both formats."""
    floats = array.array("f", values)
    if sys.byteorder == "big":
        floats.byteswap()
    return floats.tobytes()


def embeddings(generator):
    """Rows of length one; every 97th channel is eight times as strong, which makes real embeddings difficult."""
    strength = [8.0 if column % 97 == 0 else 1.0 for column in range(COLUMNS)]
    for _ in range(ROWS):
        row = [generator.gauss(0.0, 1.0) * s for s in strength]
        length = math.sqrt(sum(v * v for v in row))
        yield from (v / length for v in row)


def write_npy(path, shape, payload):
    header = repr({"descr": "<f4", "fortran_order": False, "shape": shape})
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + payload)


def write_safetensors(path, tensors):
    """tensors: name -> (shape, payload)."""
    header, offset = {}, 0
    for name, (shape, payload) in tensors.items():
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [offset, offset + len(payload)]}
        offset += len(payload)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    # This file is made last: when it exists, quickstart.sh knows that both are complete.
    with open(path + ".part", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, payload in tensors.values():
            file.write(payload)
    os.replace(path + ".part", path)


def main():
    folder = sys.argv[1]
    generator = random.Random(2026)
    write_npy(os.path.join(folder, "embeddings.npy"), (ROWS, COLUMNS), little_endian(embeddings(generator)))
    weight = little_endian(generator.gauss(0.0, 0.02) for _ in range(768 * 3072))
    bias = little_endian(generator.uniform(-0.1, 0.1) for _ in range(3072))
    write_safetensors(
        os.path.join(folder, "layer.safetensors"),
        {"projection.weight": ([768, 3072], weight), "projection.bias": ([3072], bias)},
    )


if __name__ == "__main__":
    main()
