"""quantctl and files whose headers are made to take memory or time: read, or refused with one line, within 256 MiB and in time."""

import json
import struct

import numpy as np
import pytest
from quantctl import quantctl
from safetensors.numpy import load_file
from test_quantctl_large import MEMORY

OUT = ["-o", "out.safetensors", "--quiet", "--threads=2"]


pytestmark = [pytest.mark.gate, pytest.mark.usefixtures("here")]


def bounded(*arguments):
    """The one-line error of a command; "" if it had none."""
    code, _, err = quantctl(*arguments, timeout=120, limit=f"--data={MEMORY}")
    assert code in (0, 2) and err.count("\n") == (code != 0), (code, err)
    assert "no memory" not in err, err
    return err


def safetensors(name, header, data=b""):
    with open(name, "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header + data)


def entry(shape="[0]", more="", end=0):
    return f'{{{more}"dtype":"I8","shape":{shape},"data_offsets":[0,{end}]}}'


def described(description):
    """A file with a tensor of floats and one of codes, and a description of quantized tensors."""
    header = json.dumps({
        "__metadata__": {"quantd": description}, "s": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]},
        "y": {"dtype": "I8", "shape": [4], "data_offsets": [4, 8]},
    })
    safetensors("m.safetensors", header.encode(), np.float32([2]).tobytes() + b"\1\2\3\4")


PART = '{"input_type":"float","y":{"tensor":"y","type":"int8","shape":[4]},"scale":{"tensor":"s","type":"float","shape":[]}}'
# The contents of a JSON text, some 20 MB of it.
JUNK = {
    "empty objects": lambda: "[" + ",".join(["{}"] * 3_000_000) + "]",
    "objects": lambda: "{" + ",".join(f'"{i}":{{}}' for i in range(800_000)) + "}",
    "empty lists": lambda: "[" + ",".join(["[]"] * 3_000_000) + "]",
    "numbers": lambda: "[" + ",".join("1" * 5_000_000) + "]",
    "a text": lambda: '"' + "x" * 20_000_000 + '"',
}


@pytest.mark.parametrize("junk", JUNK.values(), ids=JUNK)
def test_headers_of_safetensors(junk):
    more = f'"x":{junk()},'
    safetensors("m.safetensors", f'{{"w":{entry(more=more)}}}'.encode())
    assert "nothing to quantize" in bounded("quantize", "m.safetensors", *OUT)
    assert bounded("inspect", "m.safetensors") == ""
    bounded("convert", "m.safetensors", *OUT, "--to=fp8-tiles")


def test_shapes_and_metadata_of_safetensors():
    for count, text in ((40_000, "more than 2000000 dimensions"), (31_000, "nothing to quantize")):
        shape = "[" + ",".join(["0"] * 64) + "]"
        safetensors("m.safetensors", ("{" + ",".join(f'"{i}":{entry(shape)}' for i in range(count)) + "}").encode())
        assert text in bounded("quantize", "m.safetensors", *OUT)
    metadata = ",".join(f'"{i}":""' for i in range(1_900_000))
    safetensors("m.safetensors", f'{{"__metadata__":{{{metadata}}}}}'.encode())
    assert "more than 100000 keys" in bounded("inspect", "m.safetensors")


@pytest.mark.parametrize("junk", JUNK.values(), ids=JUNK)
def test_descriptions(junk):
    text = f'{{"version":1,"tensors":{{"w":{PART[:-1]},"x":{junk()}}}}},"x":0}}'
    if len(text) < 24_000_000 - 3 * text.count('"'):  # its escapes included, in a header
        described(text)
        assert bounded("dequantize", "m.safetensors", *OUT) == ""
        assert load_file("out.safetensors")["w"].tolist() == [2, 4, 6, 8]
    np.save("y.npy", np.int8([1, 2, 3, 4]))
    np.save("y.scale.npy", np.float32(2))
    with open("y.quantization.json", "w") as file:
        file.write(text.replace('"tensor":"y"', '"tensor":"y.npy"').replace('"tensor":"s"', '"tensor":"y.scale.npy"'))
    assert bounded("dequantize", "y.npy", "-o", "b.npy", "--quiet") == ""
    assert np.load("b.npy").tolist() == [2, 4, 6, 8]


def test_descriptions_of_too_much():
    described('{"version":1,"tensors":{' + ",".join(f'"{i}":{PART}' for i in range(140_000)) + "}}")
    for arguments in (["dequantize", "m.safetensors", *OUT], ["inspect", "m.safetensors"], ["quantize", "m.safetensors", *OUT]):
        assert "more than 100000 quantized tensors" in bounded(*arguments)
    np.save("y.npy", np.int8([1, 2, 3, 4]))
    with open("y.quantization.json", "w") as file:
        file.write("{")
        file.truncate(2_000_000_000)
    assert "y.quantization.json has 2000000000 bytes, 25000000 are the most" in bounded("inspect", "y.npy")
    with open("y.quantization.json", "w") as file:
        file.write('{"version":1,"tensors":{' + ",".join(f'"{i}":{PART}' for i in range(3)) + "}}")
    assert "a set of .npy holds one" in bounded("inspect", "y.npy")


def gguf(keys=(), tensors=()):
    with open("m.gguf", "wb") as file:
        file.write(b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys)))
        file.write(b"".join(struct.pack("<Q", len(key)) + key + struct.pack("<IB", 0, 7) for key in keys))
        for name, shape in tensors:
            file.write(struct.pack("<Q", len(name)) + name + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, 0))
        file.write(bytes(-file.tell() % 32))


def test_headers_of_gguf():
    """Of real sizes; test_quantctl_convert_gguf.py has those that claim more than there is."""
    convert = ["convert", "m.gguf", "-o", "o.safetensors", "--to=f32", "--quiet"]
    gguf(keys=[str(i).encode().ljust(4096) for i in range(60_000)])
    assert "names have" in bounded(*convert) and "33554432 are the most" in bounded(*convert)
    gguf(tensors=[(str(i).encode().ljust(4000), (0,)) for i in range(60_000)])
    assert "names have" in bounded(*convert)
    gguf(tensors=[(str(i).encode(), (0,) * 64) for i in range(100_000)])
    assert "more than 2000000 dimensions" in bounded(*convert)
