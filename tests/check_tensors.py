#!/usr/bin/env python3
"""Computes quantctl's output a second time and compares every value: check_tensors.py INPUT OUTPUT.safetensors

INPUT: .npy or .safetensors, FLOAT. OUTPUT: UINT8 or INT8, one scale and zero point per tensor, as quantctl writes it.
Python's standard library only, nothing of quantd: y = clamp(round half to even(x / scale) + zero_point), the quotient
rounded to FLOAT. Exit code 1 if a value differs.
"""
import array
import ast
import json
import struct
import sys

LIMITS = {"U8": (0, 255, "B"), "I8": (-128, 127, "b")}


def floats(payload):
    values = array.array("f", payload)
    if sys.byteorder == "big":
        values.byteswap()
    return values


def read_npy(path):
    with open(path, "rb") as file:
        version = file.read(8)[6]
        size = struct.unpack("<H", file.read(2)) if version == 1 else struct.unpack("<I", file.read(4))
        header = ast.literal_eval(file.read(size[0]).decode())
        if header["descr"] != "<f4" or header["fortran_order"]:
            sys.exit(f"{path}: only row-major FLOAT")
        return file.read()


def read_safetensors(path):
    """(tensors: name -> (dtype, bytes), metadata)."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        payload = file.read()
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        tensors[name] = (entry["dtype"], payload[begin:end])
    return tensors, metadata


def one(kind, payload):
    """The only value of a tensor with one element."""
    if kind == "F32":
        (value,) = floats(payload)
        return value
    (value,) = array.array(LIMITS[kind][2], payload)
    return value


def differences(x, y_kind, y_payload, scale, zero_point):
    low, high, code = LIMITS[y_kind]
    # Dividing as double and rounding to FLOAT gives the correctly rounded FLOAT quotient (53 >= 2 * 24 + 2 bits).
    quotients = array.array("f", (value / scale for value in x))
    expected = array.array(code, (min(high, max(low, round(q) + zero_point)) for q in quotients))
    actual = array.array(code, y_payload)
    if len(actual) != len(expected):
        return max(len(actual), len(expected))
    return sum(a != b for a, b in zip(actual, expected))


def main():
    source, result = sys.argv[1:3]
    tensors, metadata = read_safetensors(result)
    inputs = {} if source.endswith(".npy") else read_safetensors(source)[0]
    failed = False
    for name, entry in json.loads(metadata["quantd"])["tensors"].items():
        payload = read_npy(source) if source.endswith(".npy") else inputs[name][1]
        x = floats(payload)
        y_kind, y_payload = tensors[entry["y"]["tensor"]]
        scale = one(*tensors[entry["scale"]["tensor"]])
        zero_point = one(*tensors[entry["zero_point"]["tensor"]]) if entry.get("zero_point") else 0
        wrong = differences(x, y_kind, y_payload, scale, zero_point)
        failed = failed or wrong > 0
        verdict = "every one exact" if wrong == 0 else f"{wrong} differ"
        print(f"computed again in Python: {name}: {len(x):,} values, scale {scale:.9g}, zero point {zero_point}: {verdict}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
