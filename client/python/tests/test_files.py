"""load and save: the format to the byte, every type there and back, and no file is trusted unchecked."""

import json
import os
import pathlib
import resource
import shutil
import subprocess

import ml_dtypes
import numpy as np
import pytest

import quantd
from quantd import DataType
from raw_server import ROOT

# The example of client/FORMAT.md.
EXAMPLE_HEADER = (
    rb'{"__metadata__":{"quantd":"{\"version\":1,\"tensors\":{\"w\":{\"input_type\":\"float16\",\"axis\":0,'
    rb'\"y\":{\"tensor\":\"w\",\"type\":\"uint4\",\"shape\":[2,3]},\"scale\":{\"tensor\":\"w_scale\",\"type\":\"float\",'
    rb'\"shape\":[2]},\"zero_point\":{\"tensor\":\"w_zero_point\",\"type\":\"uint4\",\"shape\":[2]}}}}"},'
    rb'"bias":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"w_scale":{"dtype":"F32","shape":[2],"data_offsets":[8,16]},'
    rb'"w":{"dtype":"U8","shape":[3],"data_offsets":[16,19]},"w_zero_point":{"dtype":"U8","shape":[1],"data_offsets":[19,20]}}'
)
EXAMPLE = (552).to_bytes(8, "little") + EXAMPLE_HEADER.ljust(552) + bytes.fromhex("0000803f00000040abaa2a3ebcbb3b3f600ff250")


def quantized(**options):
    return quantd.Quantized(
        np.array([[0, 6, 15], [0, 2, 15]], ml_dtypes.uint4),
        **{"scale": np.float32([0.16666667, 0.73333335]), "zero_point": np.array([0, 5], ml_dtypes.uint4), "axis": 0,
           "input_type": DataType.FLOAT16, **options})


def test_the_example_of_the_format(tmp_path, client):
    path = tmp_path / "q.safetensors"
    quantd.save(path, {"bias": np.float32([1, 2]), "w": quantized()})
    assert path.read_bytes() == EXAMPLE
    found = quantd.load(path)
    assert list(found) == ["w", "bias"] and found["bias"].tolist() == [1, 2]
    back = client.dequantize(found["w"]).y
    assert back.dtype == np.float16
    np.testing.assert_array_equal(back, np.float16([[0, 1, 2.5], [-3.6666667, -2.2, 7.3333335]]))


@pytest.mark.parametrize("kind", [t for t in DataType if t is not DataType.FLOAT8E8M0], ids=lambda t: t.name)
@pytest.mark.parametrize("shape", [(), (0, 4), (3, 5), (2, 4), (7,)], ids=str)
def test_every_type_there_and_back(tmp_path, kind, shape):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, shape).astype(np.uint8).astype(kind.dtype)
    result = quantd.DynamicQuantized(
        y, np.ones((), ml_dtypes.float8_e8m0fnu), tensor_scale=np.float32(2), block_size=3, block_shape=None, axis=-1,
        input_type=DataType.BFLOAT16, zero_point=None)
    path = tmp_path / "a.safetensors"
    quantd.save(path, {"a/ü": result, "plain": np.arange(6.0).reshape(2, 3)}, metadata={"format": "pt"})
    found = quantd.load(path)
    assert found.metadata == {"format": "pt"} and found["plain"].dtype == np.float64
    again = found["a/ü"]
    for name in ("y", "scale", "tensor_scale"):
        ours, theirs = getattr(again, name), np.asarray(getattr(result, name))
        assert (ours.dtype, ours.shape, ours.tobytes()) == (theirs.dtype, theirs.shape, theirs.tobytes())
        assert ours.flags.writeable
    assert (again.axis, again.block_size, again.block_shape, again.zero_point) == (-1, 3, None, None)
    assert again.input_type is DataType.BFLOAT16 and again.original_type is None
    quantd.save(tmp_path / "b.safetensors", found)
    assert (tmp_path / "b.safetensors").read_bytes() == path.read_bytes()


def test_plain_tensors_of_every_type(tmp_path):
    safetensors = pytest.importorskip("safetensors")
    dtypes = ["<f8", "<f4", "<f2", "<i8", "<i4", "<i2", "i1", "<u8", "<u4", "<u2", "u1", "?", ml_dtypes.bfloat16,
              ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float8_e8m0fnu, ml_dtypes.float4_e2m1fn,
              ml_dtypes.float6_e2m3fn, ml_dtypes.float6_e3m2fn, ">f4", "<c8"]
    tensors = {str(np.dtype(d)) + str(i): np.ones((3, 4), d) for i, d in enumerate(dtypes)}
    path = tmp_path / "a.safetensors"
    quantd.save(path, tensors)
    found = quantd.load(path)
    for name, array in tensors.items():
        assert found[name].dtype == array.dtype.newbyteorder("=") and (found[name] == array).all(), name
    with safetensors.safe_open(path, "np") as file:  # the format's own reader
        assert set(file.keys()) == set(tensors)
        assert file.get_tensor("float640").tolist() == np.ones((3, 4)).tolist()


def test_what_cannot_be_written(tmp_path):
    path = tmp_path / "a"
    for tensors, match in (
        ({"w": quantized(), "w_scale": np.ones(1)}, "two tensors .* 'w_scale'"),
        ({"w": np.ones(3, ml_dtypes.int4)}, "int4"), ({"w": 3.0}, "must be an array"), ({1: np.ones(1)}, "name"),
        ({"__metadata__": np.ones(1)}, "name"), ({"w": np.array(["a"])}, "no dtype"), ({"\ud800": np.ones(1)}, "name"),
        ({"n" * 50_000_000: np.ones(1)}, "50000000 are the most"),
        *(({"w": np.zeros(shape, dtype)}, "tensor 'w' is float.* ends within a byte")
          for dtype in (ml_dtypes.float4_e2m1fn, ml_dtypes.float6_e2m3fn) for shape in ((3,), (3, 3), ())),
    ):
        with pytest.raises((TypeError, ValueError), match=match):
            quantd.save(os.fsencode(path), tensors)
    for metadata in ({"quantd": "x"}, {"a": 1}, {"a": "\udc00"}):
        with pytest.raises(ValueError, match="metadata"):
            quantd.save(path, {}, metadata=metadata)
    assert not list(tmp_path.iterdir())


def test_nothing_is_lost_when_writing(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_text("mine")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        quantd.save(path, {"a": np.ones(3)})
    assert path.read_text() == "mine"
    with pytest.raises(FileNotFoundError):
        quantd.save(tmp_path / "none" / "a", {"a": np.ones(3)})

    monkeypatch.setattr(os, "fsync", lambda descriptor: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space"):
        quantd.save(path, {"a": np.ones(3)}, overwrite=True)
    assert path.read_text() == "mine" and list(tmp_path.iterdir()) == [path]
    monkeypatch.undo()
    quantd.save(path, {"a": np.ones(3)}, overwrite=True)
    assert list(quantd.load(path)) == ["a"] and list(tmp_path.iterdir()) == [path]
    assert path.stat().st_mode & 0o777 == 0o666 & ~_umask()


def _umask():
    value = os.umask(0)
    os.umask(value)
    return value


def header(**tensors):
    return json.dumps(tensors).encode()


def file_of(text, data=b""):
    return len(text).to_bytes(8, "little") + text + data


def entry(begin=0, end=4, shape=(4,), dtype="U8"):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


def described(**changes):
    """A file of a quantized tensor with a changed description."""
    part = {"tensor": "a", "type": "uint8", "shape": [4]}
    w = {"input_type": "float", "y": part, "scale": {"tensor": "s", "type": "float", "shape": []}}
    w.update(changes.pop("w", {}))
    description = {"version": 1, "tensors": {"w": {k: v for k, v in w.items() if v is not ...}}, **changes}
    return file_of(header(__metadata__={"quantd": json.dumps(description)}, a=entry(), s=entry(4, 8, (), "F32")), bytes(8))


HOSTILE = {
    "empty": (b"", "not a .safetensors file: it has 0 bytes"),
    "no whole length": (b"\1\2\3", "it has 3 bytes"),
    "a header beyond the file": ((1000).to_bytes(8, "little") + b"{}", "header is 1000 bytes long, the file has 10"),
    "a header beyond all": (b"\xff" * 8 + b"{}", "header is 18446744073709551615 bytes"),
    "no JSON": (file_of(b"{"), "header is not JSON"),
    "no UTF-8": (file_of(b'{"\xff":1}'), "header is not JSON"),
    "bytes behind the header's end": (file_of(b'{}\0{"a":1}'), "header is not JSON"),
    "UTF-16": (file_of('{"a":1}'.encode("utf-16")), "header is not JSON"),
    "a byte order mark": (file_of(b"\xef\xbb\xbf{}"), "header is not JSON"),
    "NaN": (file_of(b'{"a":NaN}'), "NaN is not a number"),
    "infinity": (file_of(b'{"a":1e999}'), "1e999 is not a number"),
    "half a surrogate pair": (file_of(rb'{"\ud800":1}'), "surrogate"),
    "a length of -0": (file_of(b'{"a":{"dtype":"U8","shape":[-0],"data_offsets":[0,0]}}'), "not negative"),
    "deep": (file_of(b"[" * 100_000), "header is not JSON"),
    "a list": (file_of(b"[]"), "header is a list"),
    "a name twice": (file_of(b'{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}'),
                     "'a' occurs twice"),
    "overlap": (file_of(header(a=entry(0, 4), b=entry(3, 7)), bytes(7)), "'a' and 'b' overlap: one ends at 4, the other begins at 3"),
    "the same place": (file_of(header(a=entry(), b=entry()), bytes(4)), "overlap"),
    "a gap": (file_of(header(a=entry(0, 4), b=entry(5, 9)), bytes(9)), "belong to no tensor"),
    "bytes left over": (file_of(header(a=entry()), bytes(5)), "end at 4, the file has 5"),
    "beyond the file": (file_of(header(a=entry(0, 4)), bytes(3)), r"data_offsets \[0, 4\], of 3 bytes"),
    "backwards": (file_of(header(a=entry(4, 0)), bytes(4)), "data_offsets"),
    "negative": (file_of(header(a=entry(-4, 0)), bytes(4)), "not negative"),
    "three offsets": (file_of(header(a={"dtype": "U8", "shape": [4], "data_offsets": [0, 4, 4]}), bytes(4)), "data_offsets"),
    "no offsets": (file_of(header(a={"dtype": "U8", "shape": [4]}), bytes(4)), "data_offsets"),
    "offsets of another type": (file_of(header(a={"dtype": "U8", "shape": [4], "data_offsets": [0, 4.0]}), bytes(4)), "data_offsets"),
    "a shape of another size": (file_of(header(a=entry(shape=(5,))), bytes(4)), "takes 5 bytes, its data_offsets hold 4"),
    "a shape that overflows": (file_of(header(a=entry(shape=(1 << 62, 1 << 62))), bytes(4)), "its data_offsets hold 4"),
    "a shape past 64 bits": (file_of(header(a=entry(shape=(1 << 64,))), bytes(4)), "shape of tensor 'a'"),
    "a shape of booleans": (file_of(header(a=entry(shape=(True,), end=1)), bytes(1)), "shape of tensor 'a'"),
    "too many dimensions": (file_of(header(a=entry(shape=(1,) * 100, end=1)), bytes(1)), "dimension"),
    "nothing, but of a shape past numpy's bounds": (file_of(header(a=entry(shape=(0, 1 << 62, 1 << 62), end=0))), "a.safetensors: "),
    "an unknown dtype": (file_of(header(a=entry(dtype="F7")), bytes(4)), "dtype 'F7'"),
    "a dtype that is none": (file_of(header(a=entry(dtype=["U8"])), bytes(4)), "dtype"),
    "an entry that is none": (file_of(header(a=3)), "'a' is a int"),
    "metadata that are none": (file_of(header(__metadata__={"a": 1})), "__metadata__"),
    "BOOL of 7": (file_of(header(a=entry(dtype="BOOL")), b"\7" * 4), "BOOL"),
    "no description": (file_of(header(__metadata__={"quantd": "{"})), "is not JSON"),
    "another version": (described(version=2), "version 2"),
    "no version": (described(version=None), "version None"),
    "no tensors": (described(tensors=[]), "has no tensors"),
    "a tensor that is none": (described(tensors={"w": 1}), "'w' is a int"),
    "no y": (described(w={"y": ...}), "'w' has no y"),
    "a part of a missing tensor": (described(w={"scale": {"tensor": "z", "type": "float", "shape": []}}), "tensor 'z'"),
    "a part that is none": (described(w={"scale": 1}), "scale of quantized tensor 'w' is a int"),
    "a part of an unknown type": (described(w={"scale": {"tensor": "s", "type": "float7", "shape": []}}), "'float7'"),
    "a part of another size": (described(w={"scale": {"tensor": "s", "type": "float", "shape": [2]}}), "takes 8 bytes, tensor 's' has 4"),
    "an unknown input_type": (described(w={"input_type": "int8"}), "input_type"),
    "an axis that is none": (described(w={"axis": "0"}), "axis"),
    "no axis": (described(w={"axis": None}), "axis"),
    "no original_type": (described(w={"original_type": None}), "original_type"),
    "no block_shape": (described(w={"block_shape": None}), "block_shape"),
    "an axis past 64 bits": (described(w={"axis": 1 << 70}), "axis"),
    "a block_size that is none": (described(w={"block_size": 1.5}), "block_size"),
    "a block_shape that is none": (described(w={"block_shape": {"a": 1}}), "block_shape"),
    "a name in two places": (described(tensors={"a": {"input_type": "float", "y": {"tensor": "s", "type": "float", "shape": []},
                                                      "scale": {"tensor": "s", "type": "float", "shape": []}}}), "'a' is the name"),
}


@pytest.mark.parametrize("content,match", HOSTILE.values(), ids=HOSTILE)
def test_hostile_files(tmp_path, content, match):
    path = tmp_path / "a.safetensors"
    path.write_bytes(content)
    with pytest.raises(quantd.FormatError, match=match) as caught:
        quantd.load(path)
    assert str(path) in str(caught.value) and isinstance(caught.value, ValueError)


def test_broken_bytes_are_refused_or_read_never_worse(tmp_path):
    rng = np.random.default_rng(2)
    path = tmp_path / "a"
    for _ in range(500):
        data = bytearray(EXAMPLE)
        for place in rng.integers(0, 560, 2):
            data[place] = rng.integers(32, 127)
        path.write_bytes(data[: rng.integers(1, len(data) + 1)] if rng.integers(2) else data)
        try:
            quantd.load(path)
        except quantd.FormatError:
            pass


def test_claims_take_no_memory(tmp_path):
    path = tmp_path / "a"
    with open(path, "wb") as file:
        file.write(file_of(header(a=entry(0, 1 << 40, (1 << 40,))), b"x"))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(quantd.FormatError):
        quantd.load(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # KiB


def quantctl(folder, *arguments, **environment):
    binary = os.environ.get("QUANTCTL_BINARY") or ROOT / os.environ.get("QUANTD_BUILD_DIR", "build/release") / "client" / "quantctl"
    if not pathlib.Path(binary).exists() and not shutil.which(str(binary)):
        pytest.skip(f"{binary} is not built")
    done = subprocess.run([binary, *arguments], cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_files_of_quantctl_and_for_it(tmp_path, small):
    x = np.random.default_rng(1).standard_normal((64, 48)).astype(np.float32)
    quantd.save(tmp_path / "m.safetensors", {"w": x})
    for i, (flags, options) in enumerate([
        (["--type=uint4", "--axis=0"], {"output_type": "uint4", "axis": 0}),
        (["--type=int8", "--axis=-1", "--symmetric"], {"output_type": "int8", "axis": -1, "symmetry": "symmetric"}),
    ]):
        quantctl(tmp_path, "quantize", "m.safetensors", "-o", f"q{i}.safetensors", *flags, QUANTD_ADDRESS=small.address)
        found = quantd.load(tmp_path / f"q{i}.safetensors")["w"]
        ours = small.dynamic_quantize(x, **options)
        assert found.y.tobytes() == ours.y.tobytes() and found.scale.tobytes() == ours.scale.tobytes()
        quantd.save(tmp_path / f"r{i}.safetensors", {"w": ours})
        quantctl(tmp_path, "dequantize", f"r{i}.safetensors", "-o", f"d{i}.safetensors", QUANTD_ADDRESS=small.address)
        np.testing.assert_array_equal(quantd.load(tmp_path / f"d{i}.safetensors")["w"], small.dequantize(ours).y)
