"""quantctl convert and .gguf: keys are kept, types change, damaged headers are refused."""

import os
import random
import struct

import ml_dtypes
import numpy as np
import pytest
from converting import convert
from models import VALUES, load_gguf, load_tensors, save_gguf
from quantctl import quantctl

BF16 = ml_dtypes.bfloat16
TYPES = {"F32": np.float32, "F16": np.float16, "BF16": BF16}
KEYS = {
    "general.architecture": ("string", "llama"), "general.name": ("string", "ä\n"), "general.file_type": ("u32", 0),
    **{"k." + kind: (kind, 1) for kind in VALUES if kind not in ("string", "array", "bool")}, "k.bool": ("bool", True),
    "tokens": ("array", ("string", ["a", "", "ß"])), "scores": ("array", ("f32", [0.5, -1.0])), "empty": ("array", ("i32", [])),
    "nested": ("array", ("array", [("u8", [1, 2]), ("string", ["x"])])),
}


pytestmark = pytest.mark.usefixtures("here")


def tensors():
    draw = np.random.default_rng(3)
    made = {"norm": ("F32", [64], draw.standard_normal(64).astype(np.float32).tobytes())}
    for kind, dtype in TYPES.items():
        for shape in ([64, 96], [3, 5, 32], [7, 33]):
            made[f"{kind}.{len(shape)}.{shape[-1]}.weight"] = (kind, shape, draw.standard_normal(shape).astype(dtype).tobytes())
    made["half"] = ("F16", [5], draw.standard_normal(5).astype(np.float16).tobytes())
    made["ids"] = ("I32", [2, 32], np.arange(64, dtype=np.int32).tobytes())
    made["doubles"] = ("F64", [2, 32], draw.standard_normal((2, 32)).tobytes())
    return made


NUMBERS = {"f16": 1, "q4_0": 2, "q4_1": 3, "q8_0": 7, "q5_0": 8, "q5_1": 9, "bf16": 32, "mxfp4": 38}


@pytest.mark.parametrize("layout", NUMBERS)
@pytest.mark.parametrize("alignment", [32, 8, 128])
def test_keys_and_tensors_are_kept(layout, alignment):
    keys = {**KEYS, **({} if alignment == 32 else {"general.alignment": ("u32", alignment)}), "last": ("i64", -1)}
    source = tensors()
    save_gguf("m.gguf", keys, source, alignment)
    convert("m.gguf", "-o", "o.gguf", f"--to=gguf:{layout}")
    found, made, found_alignment = load_gguf("o.gguf")
    version = {"general.quantization_version": ("u32", 2)}
    assert found == {**keys, "general.file_type": ("u32", NUMBERS[layout]), **version} and list(found) == [*keys, *version]
    assert found_alignment == alignment and list(made) == list(source)
    plain = layout in ("f16", "bf16")
    for name, (kind, shape, raw) in source.items():
        if kind in TYPES and len(shape) >= 2 and (plain or shape[-1] % 32 == 0):
            assert made[name][:2] == (layout.upper(), shape)
            if plain:
                floats = np.frombuffer(raw, TYPES[kind]).astype(np.float32)
                assert made[name][2] == floats.astype(TYPES[layout.upper()]).tobytes()
        else:
            assert made[name] == (kind, shape, raw)
    # The same as from a .safetensors with that weight.
    convert("o.gguf", "-o", "b.safetensors", "--to=f32")
    back = load_tensors("b.safetensors")
    assert set(back) == set(source)
    for name, (kind, shape, raw) in source.items():
        assert list(back[name].shape) == shape
        if kind in TYPES:
            x = np.frombuffer(raw, TYPES[kind]).astype(np.float64).reshape(shape)
            assert ((back[name] - x) ** 2).sum() <= 0.02 * (x**2).sum(), name
        elif kind == "F64":
            assert back[name].tobytes() == np.frombuffer(raw).astype(np.float32).tobytes()
        else:
            assert back[name].tobytes() == raw


def test_only_skip_and_quantized_sources():
    save_gguf("m.gguf", {"general.architecture": ("string", "x")}, tensors())
    convert("m.gguf", "-o", "o.gguf", "--to=gguf:q8_0", "--only=^F16", "--skip=3.32|33")
    found, made, _ = load_gguf("o.gguf")
    version = {"general.quantization_version": ("u32", 2)}
    assert found == {"general.architecture": ("string", "x"), **version, "general.file_type": ("u32", 7)}
    assert sorted(name for name, entry in made.items() if entry[0] == "Q8_0") == ["F16.2.96.weight"]
    err = convert("m.gguf", "-o", "p.gguf", "--to=gguf:q8_0", "--only=^F16", code=1)
    assert "'F16.2.33.weight'" in err
    assert "'norm'" in convert("m.gguf", "-o", "p.gguf", "--to=gguf:q8_0", "--only=norm", code=1)
    assert "'F16.2.96.weight'" in convert("o.gguf", "-o", "p.gguf", "--to=gguf:q4_0", code=2)
    assert "cannot be decoded" in unknown()
    assert sorted(os.listdir()) == ["m.gguf", "o.gguf", "u.gguf"]


def unknown():
    save_gguf("u.gguf", {}, {"x": ("F32", [32], bytes(128))})
    data = bytearray(open("u.gguf", "rb").read())
    at = data.index(b"x" + struct.pack("<I", 1)) + 13
    data[at : at + 4] = struct.pack("<I", 20)  # IQ4_NL
    open("u.gguf", "wb").write(data)
    return convert("u.gguf", "-o", "v.safetensors", "--to=f32", code=2)


def header(tensors=1, keys=1, version=3, magic=b"GGUF"):
    return magic + struct.pack("<IQQ", version, tensors, keys)


def text(value, length=None):
    return struct.pack("<Q", len(value) if length is None else length) + value


def tensor(name=b"t", shape=(32,), kind=0, offset=0, rank=None):
    return text(name) + struct.pack("<I", len(shape) if rank is None else rank) + b"".join(struct.pack("<Q", n) for n in shape) + struct.pack(
        "<IQ", kind, offset)


KEY = text(b"k") + struct.pack("<II", 4, 7)
HUGE = 2**62
DAMAGED = {
    "empty": b"", "short": b"GGUF", "magic": header(magic=b"GGML"), "version 1": header(version=1), "version 4": header(version=4),
    "big endian": b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "keys": header(keys=HUGE), "tensors": header(tensors=HUGE), "counts": header(HUGE, HUGE),
    "name": header() + text(b"k", HUGE), "name of key": header() + text(b"k", 2**16) + bytes(2**17), "empty name": header() + text(b"") + KEY[9:],
    "not UTF-8": header() + text(b"\xff") + KEY[9:], "value type": header() + text(b"k") + struct.pack("<I", 13),
    "string": header() + text(b"k") + struct.pack("<IQ", 8, HUGE), "array": header() + text(b"k") + struct.pack("<IIQ", 9, 4, HUGE),
    "array of strings": header() + text(b"k") + struct.pack("<IIQ", 9, 8, HUGE), "array type": header() + text(b"k") + struct.pack("<IIQ", 9, 99, 0),
    "array overflow": header() + text(b"k") + struct.pack("<IIQ", 9, 12, 2**61),
    "deep": header() + text(b"k") + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 1000,
    "twice": header(keys=2) + KEY + KEY + tensor() + bytes(256), "cut": header() + KEY[:-1],
    "alignment 0": header() + text(b"general.alignment") + struct.pack("<II", 4, 0) + tensor() + bytes(512),
    "alignment 3": header() + text(b"general.alignment") + struct.pack("<II", 4, 3) + tensor() + bytes(512),
    "alignment type": header() + text(b"general.alignment") + struct.pack("<IQ", 10, 32) + tensor() + bytes(512),
    "alignment huge": header() + text(b"general.alignment") + struct.pack("<II", 4, 2**31) + tensor() + bytes(512),
    "rank": header() + KEY + tensor(rank=2**31) + bytes(512), "dimension": header() + KEY + tensor(shape=(2**63,)) + bytes(512),
    "product": header() + KEY + tensor(shape=(2**40, 2**40)) + bytes(512), "size": header() + KEY + tensor(shape=(2**61,)) + bytes(512),
    "type": header() + KEY + tensor(kind=4) + bytes(512), "type 77": header() + KEY + tensor(kind=77) + bytes(512),
    "rows": header() + KEY + tensor(shape=(31,), kind=8) + bytes(512), "offset": header() + KEY + tensor(offset=8) + bytes(512),
    "offset huge": header() + KEY + tensor(offset=2**64 - 32) + bytes(512), "data": header() + KEY + tensor(shape=(3200,)) + bytes(512),
    "no data": header() + KEY + tensor(), "same name": header(tensors=2) + KEY + tensor() + tensor(offset=128) + bytes(512),
    "overlap": header(tensors=2) + KEY + tensor() + tensor(b"u", offset=32) + bytes(512),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_header_is_one_line(name):
    open("m.gguf", "wb").write(DAMAGED[name])
    for flags in (["-o", "o.gguf", "--to=gguf:q8_0"], ["-o", "o.safetensors", "--to=f32"], ["-o", "o.gguf", "--to=gguf:q8_0", "--dry_run"]):
        assert "m.gguf: malformed .gguf header" in convert("m.gguf", *flags, code=2)
    assert os.listdir() == ["m.gguf"]


@pytest.mark.gate
def test_any_byte_may_be_wrong():
    """A good file, cut off anywhere in the header or with other bytes: it is converted or refused with one line."""
    save_gguf("m.gguf", KEYS, {"a.weight": ("F32", [2, 32], bytes(256)), "b": ("Q8_0", [1, 64], bytes(68))})
    good = open("m.gguf", "rb").read()
    draw = random.Random(os.environ.get("QUANTD_TEST_SEED", "11"))
    for i in range(150):
        data = bytearray(good)
        if i % 3 == 0:
            data = data[: draw.randrange(len(data))]
        for _ in range(draw.choice((0, 1, 1, 4)) if i % 3 == 0 else draw.choice((1, 2, 8))):
            if data:
                data[draw.randrange(len(data))] = draw.choice((0, 1, 255, draw.randrange(256)))
        open("m.gguf", "wb").write(data)
        code, _, err = quantctl("convert", "m.gguf", "-o", "o.safetensors", "--to=f32", "--force")
        assert code in (0, 1, 2) and err.count("\n") == (code != 0), (i, code, err)
        assert not os.path.exists("o.safetensors.partial")
