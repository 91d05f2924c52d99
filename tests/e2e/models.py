"""Models as they are on the Hub, and .gguf files, written and read without the program under test."""

import json
import struct
from pathlib import Path

import ml_dtypes
import numpy as np
from quantctl import raw_tensors

DTYPES = {
    "F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16, "I64": np.int64, "I32": np.int32, "I8": np.int8,
    "U8": np.uint8, "BOOL": np.bool_, "F8_E4M3": ml_dtypes.float8_e4m3fn, "F8_E5M2": ml_dtypes.float8_e5m2, "F8_E8M0": ml_dtypes.float8_e8m0fnu,
}
NAMES = {np.dtype(value): key for key, value in DTYPES.items()}
LAYOUTS = [
    "fp8-tiles",
    *("compressed-tensors:" + name for name in (
        "int8", "int8-tensor", "int4-g128", "int4-g32", "int4-g128-asym", "int4-g32-asym", "fp8", "fp8-tensor", "fp8-block", "nvfp4", "mxfp4"
    )),
    *("gguf:" + name for name in ("f16", "bf16", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "mxfp4")),
    *("bnb:" + name for name in ("nf4", "nf4-double", "fp4", "fp4-double", "int8")),
]


def save_tensors(path, tensors, metadata=None):
    """A .safetensors of arrays, in this order."""
    header, body = {}, bytearray()
    if metadata:
        header["__metadata__"] = metadata
    for name, array in tensors.items():
        raw = np.ascontiguousarray(array).tobytes()
        header[name] = {"dtype": NAMES[array.dtype], "shape": list(array.shape), "data_offsets": [len(body), len(body) + len(raw)]}
        body += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    Path(path).write_bytes(struct.pack("<Q", len(text)) + text + body)


def load_tensors(path):
    return {name: np.frombuffer(raw, DTYPES[dtype]).reshape(shape) for name, (dtype, shape, raw) in raw_tensors(path).items()}


def metadata(path):
    data = Path(path).read_bytes()
    return json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")]).get("__metadata__")


def save_model(folder, shards, config=None, others=None, index=None):
    """A folder; `shards`: {name: {tensor: array}}; unless there is just one, called model.safetensors, it gets an index."""
    folder = Path(folder)
    folder.mkdir()
    for name, tensors in shards.items():
        save_tensors(folder / name, tensors, {"format": "pt"})
    if index is None and list(shards) != ["model.safetensors"]:
        index = {
            "metadata": {"total_size": sum(array.nbytes for tensors in shards.values() for array in tensors.values()), "mark": 1.5},
            "weight_map": {tensor: name for name, tensors in shards.items() for tensor in tensors},
        }
    if index is not None:
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    config = {"model_type": "llama", "rms_norm_eps": 1e-05, "ä": [1, {"b": 2**70}], **(config or {})}
    (folder / "config.json").write_text(json.dumps(config))
    for name, text in (others or {}).items():
        (folder / name).parent.mkdir(exist_ok=True, parents=True)
        (folder / name).write_bytes(text)
    return folder


def contents(folder):
    """{name: bytes} of every file in a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(Path(folder).rglob("*")) if path.is_file()}


# .gguf: numbers of value types and of tensor types.
VALUES = {"u8": (0, "<B"), "i8": (1, "<b"), "u16": (2, "<H"), "i16": (3, "<h"), "u32": (4, "<I"), "i32": (5, "<i"), "f32": (6, "<f"),
          "bool": (7, "<?"), "string": (8, ""), "array": (9, ""), "u64": (10, "<Q"), "i64": (11, "<q"), "f64": (12, "<d")}
GGML = {"F32": (0, 1, 4), "F16": (1, 1, 2), "Q4_0": (2, 32, 18), "Q4_1": (3, 32, 20), "Q5_0": (6, 32, 22), "Q5_1": (7, 32, 24),
        "Q8_0": (8, 32, 34), "Q4_K": (12, 256, 144), "I8": (24, 1, 1), "I32": (26, 1, 4), "I64": (27, 1, 8),
        "F64": (28, 1, 8), "BF16": (30, 1, 2), "MXFP4": (39, 32, 17)}


def gguf_text(text):
    raw = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(raw)) + raw


def gguf_value(kind, value):
    if kind == "string":
        return gguf_text(value)
    if kind == "array":
        inner, values = value
        return struct.pack("<IQ", VALUES[inner][0], len(values)) + b"".join(gguf_value(inner, one) for one in values)
    return struct.pack(VALUES[kind][1], value)


def save_gguf(path, keys, tensors, alignment=32, version=3):
    """keys: {name: (kind, value)}; tensors: {name: (type, shape, bytes)}."""
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(keys))
    for name, (kind, value) in keys.items():
        head += gguf_text(name) + struct.pack("<I", VALUES[kind][0]) + gguf_value(kind, value)
    body = b""
    for name, (kind, shape, raw) in tensors.items():
        head += gguf_text(name) + struct.pack("<I", len(shape)) + b"".join(struct.pack("<Q", n) for n in reversed(shape))
        head += struct.pack("<IQ", GGML[kind][0], len(body))
        body += raw + b"\0" * (-len(raw) % alignment)
    head += b"\0" * (-len(head) % alignment)
    Path(path).write_bytes(head + body)


def load_gguf(path):
    """(keys as {name: (kind, value)}, tensors as {name: (type, shape, bytes)}, alignment)"""
    data, at = Path(path).read_bytes(), 0
    kinds = {number: kind for kind, (number, _) in VALUES.items()}
    types = {number: (name, elements, size) for name, (number, elements, size) in GGML.items()}

    def take(form):
        nonlocal at
        value = struct.unpack_from(form, data, at)[0]
        at += struct.calcsize(form)
        return value

    def text():
        nonlocal at
        length = take("<Q")
        at += length
        return data[at - length : at].decode()

    def value(kind):
        if kind == "string":
            return text()
        if kind == "array":
            inner = kinds[take("<I")]
            return inner, [value(inner) for _ in range(take("<Q"))]
        return take(VALUES[kind][1])

    assert take("<4s") == b"GGUF" and take("<I") in (2, 3)
    count, number = take("<Q"), take("<Q")
    keys = {}
    for _ in range(number):
        name, kind = text(), kinds[take("<I")]
        keys[name] = (kind, value(kind))
    alignment = keys.get("general.alignment", (None, 32))[1]
    entries = []
    for _ in range(count):
        name, rank = text(), take("<I")
        shape = [take("<Q") for _ in range(rank)][::-1]
        entries.append((name, shape, types[take("<I")], take("<Q")))
    begin = at + -at % alignment
    assert len(data) % alignment == 0
    tensors = {}
    for name, shape, (kind, elements, size), offset in entries:
        length = int(np.prod(shape, dtype=np.int64)) // elements * size
        assert offset % alignment == 0 and begin + offset + length <= len(data)
        tensors[name] = (kind, shape, data[begin + offset : begin + offset + length])
    return keys, tensors, alignment
