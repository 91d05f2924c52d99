"""quantctl and files: formats of other programs, copies, bad files, and leftovers."""

import json

import numpy as np
import pytest
from quantctl import raw_tensors
from quantctl import ctl as plain
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from support import ROOT


@pytest.fixture
def ctl(here):
    """Writes over existing bytes."""

    def run(*arguments, force=True, **more):
        writes = force and arguments and arguments[0] in ("quantize", "dequantize")
        return plain(*arguments, *(["--force"] if writes else []), **more)

    return run


def normal(*shape):
    return np.random.default_rng(5).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2)])
def test_no_elements_and_no_dimensions(ctl, shape):
    np.save("x.npy", np.ones(shape, np.float32))
    for output in ("y.npy", "y.safetensors"):
        ctl("quantize", "x.npy", "-o", output, "--type=int4")
        ctl("dequantize", output, "-o", "back.npy")
        back = np.load("back.npy")
        assert back.shape == shape
        assert (np.abs(back - 1) < 0.01).all()
    ctl("inspect", "x.npy")


def model():
    return {
        "a.weight": normal(6, 64),
        "a.bias": normal(6),
        "b.weight": normal(4, 32).astype(np.float16),
        "ids": np.arange(10, dtype=np.int64),
        "mask": np.array([True, False]),
    }


def test_a_model_keeps_what_is_not_quantized(ctl):
    tensors = model()
    save_file(tensors, "m.safetensors", metadata={"format": "pt"})
    text = ctl("quantize", "m.safetensors", "-o", "q.safetensors", "--type=mxfp4")
    assert "ids  int64 [10] copied: not a float" in text
    assert "a.bias  float [6] copied: 1 dimension" in text
    with safe_open("q.safetensors", "numpy") as file:
        assert file.metadata()["format"] == "pt"
    stored = raw_tensors("q.safetensors")
    assert set(stored) == {*tensors, "a.weight_scale", "b.weight_scale"}
    assert stored["a.weight"][:2] == ("F4", [6, 64]) and stored["a.weight_scale"][0] == "F8_E8M0"
    for name in ("a.bias", "ids", "mask"):
        assert stored[name][2] == tensors[name].tobytes()
    ctl("dequantize", "q.safetensors", "-o", "back.safetensors")
    back = load_file("back.safetensors")
    assert {name: (t.shape, t.dtype) for name, t in back.items()} == {
        name: (t.shape, t.dtype) for name, t in tensors.items()
    }
    assert np.abs(back["a.weight"] - tensors["a.weight"]).max() < 1
    with safe_open("back.safetensors", "numpy") as file:
        assert file.metadata() == {"format": "pt"}


def names(document):
    return {tensor["name"] for tensor in document["tensors"]}


def test_which_tensors_are_quantized(ctl):
    save_file(model(), "m.safetensors")

    def chosen(*flags):
        return json.loads(ctl("quantize", "m.safetensors", "-o", "q.safetensors", "--json", *flags))

    default = chosen()
    assert names(default) == {"a.weight", "b.weight"}
    reasons = {tensor["name"]: tensor["reason"] for tensor in default["skipped"]}
    assert reasons.keys() == {"a.bias", "ids", "mask"} and "--all" in reasons["a.bias"]
    assert names(chosen("--all")) == {"a.weight", "a.bias", "b.weight"}
    assert names(chosen("--only=^a")) == {"a.weight"}
    assert names(chosen("--only=^a", "--all")) == {"a.weight", "a.bias"}
    skipping = chosen("--skip=^a", "--all")
    assert names(skipping) == {"b.weight"}
    assert {"name": "a.weight", "type": "float", "shape": [6, 64], "reason": "copied: in --skip"} in skipping["skipped"]
    # Only tensors that have the dimension are affected.
    three = {"c": normal(2, 3, 4), **model()}
    save_file(three, "m.safetensors")
    lacking = chosen("--axis=2")
    assert names(lacking) == {"c"}
    assert any("axis is 2, x has 2 dimensions" in t["reason"] for t in lacking["skipped"] if t["name"] == "a.weight")


def test_nothing_to_quantize_is_an_error_with_reasons(ctl, tmp_path):
    save_file(model(), "m.safetensors")
    quantize = ["quantize", "m.safetensors", "-o"]
    assert "a.bias is float [6]" in ctl(*quantize, "q.safetensors", "--only=bias", code=2)
    assert "not in --only" in ctl(*quantize, "q.safetensors", "--only=^c$", code=2)
    assert "axis is 5" in ctl(*quantize, "q.safetensors", "--axis=5", code=2)
    assert "regular expression" in ctl(*quantize, "q.safetensors", "--only=(", code=2)
    assert "choose one with --only" in ctl(*quantize, "q.npy", code=2)
    assert "left out: not in --only" in ctl(*quantize, "q.npy", "--only=a.bias", "--all")
    assert np.load("q.npy").shape == (6,)
    save_file({"w": normal(2, 2), "w_scale": normal(2)}, "m.safetensors")
    assert "two tensors named 'w_scale'" in ctl(*quantize, "q.safetensors", code=2)


def test_the_example_of_the_format(ctl):
    """client/FORMAT.md shows these bytes."""
    text = (ROOT / "client" / "FORMAT.md").read_text().split("## An example")[1]
    w = np.array([[0, 1, 2.5], [-4, -2, 7]], np.float16)
    save_file({"w": w, "bias": np.array([1, 2], np.float32)}, "m.safetensors")
    ctl("quantize", "m.safetensors", "-o", "q.safetensors", "--type=uint4", "--axis=0")
    with open("q.safetensors", "rb") as file:
        written = file.read()
    length = int.from_bytes(written[:8], "little")
    assert written[8 : 8 + length].decode().rstrip() in text
    shown = {int(line[:6]): line[6:40] for line in text.split("\n") if line[:6].strip().isdigit()}
    assert set(shown) == {0, 8, *(8 + length + offset for offset in (0, 8, 16, 19))}
    for offset, line in shown.items():
        if offset != 8:
            expected = bytes.fromhex("".join(line.split("  ")).replace(" ", ""))
            assert written[offset : offset + len(expected)] == expected, offset
    ctl("dequantize", "q.safetensors", "-o", "b.safetensors")
    assert load_file("b.safetensors")["w"].tolist()[0] == [0, 1, 2.5]


@pytest.mark.parametrize("kind", ["mxfp4", "nvfp4", "float8e4m3fnuz"])
def test_files_of_the_first_release_are_read(ctl, kind):
    """It stored FLOAT4 and FLOAT8E8M0 as bytes, and packed types with one dimension."""
    np.save("x.npy", normal(4, 32))
    ctl("quantize", "x.npy", "-o", "y.safetensors", f"--type={kind}")
    with safe_open("y.safetensors", "numpy") as file:
        metadata = file.metadata()
    stored = raw_tensors("y.safetensors")
    old = {}
    for name, (dtype, shape, data) in stored.items():
        other = dtype in ("F4", "F8_E8M0", "F8_E4M3FNUZ")
        old[name] = np.frombuffer(data, np.uint8) if other else np.frombuffer(data, {"F32": "<f4", "F8_E4M3": "u1"}[dtype])
    save_file({name: array.reshape(-1) if array.size > 1 else array.reshape(()) for name, array in old.items() if name != "y_scale"}
              | {"y_scale": old["y_scale"].reshape(stored["y_scale"][1])}, "old.safetensors", metadata=metadata)
    ctl("dequantize", "y.safetensors", "-o", "one.npy")
    ctl("dequantize", "old.safetensors", "-o", "other.npy")
    assert (np.load("one.npy") == np.load("other.npy")).all()


@pytest.mark.parametrize(
    "name, content, text",
    [
        ("x.npy", b"\x93NUMPY\x01\x00\x3b\x00{'descr': '<f4', 'fortran_order': False, 'shape': (9,9)}    ", "truncated"),
        ("x.safetensors", b"\x02\0\0\0\0\0\0\0[]", "not a JSON object"),
        ("x.npz", b"PK", "unpack it"),
        ("x.bin", b"1", "must end in .npy or .safetensors"),
    ],
)
def test_bad_files_are_exit_code_2_and_one_line(ctl, tmp_path, name, content, text):
    """tests/client/files_test.cc has everything else that can be wrong with them."""
    (tmp_path / name).write_bytes(content)
    for command in (["quantize", name, "-o", "out.npy"], ["dequantize", name, "-o", "out.npy"], ["inspect", name]):
        err = ctl(*command, code=2)
        assert name in err and text in err and err.count("\n") == 1, err
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_a_failure_leaves_the_old_output_alone(ctl, tmp_path):
    (tmp_path / "y.npy").write_bytes(b"precious")
    x = normal(3000)
    x[-1] = np.nan
    np.save("x.npy", x)
    ctl("quantize", "x.npy", "-o", "y.npy", code=1)
    assert (tmp_path / "y.npy").read_bytes() == b"precious"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x.npy", "y.npy"]


def test_what_exists_is_refused_without_force(ctl, tmp_path):
    np.save("x.npy", normal(3, 4))
    quantize = ["quantize", "x.npy", "-o"]
    ctl(*quantize, "y.npy", force=False)
    for name in ("y.npy", "y.scale.npy", "y.zero_point.npy", "y.quantization.json"):
        others = {path: path.read_bytes() for path in tmp_path.iterdir()}
        for path in others:
            if path.name not in ("x.npy", name):
                path.rename(path.with_suffix(".away"))
        assert f"{name} exists; --force overwrites it" in ctl(*quantize, "y.npy", force=False, code=2)
        for path in list(tmp_path.iterdir()):
            if path.suffix == ".away":
                path.rename(next(other for other in others if other.stem == path.stem))
        assert {path: path.read_bytes() for path in tmp_path.iterdir()} == others
    ctl(*quantize, "y.npy")
    (tmp_path / "report.json").write_text("old")
    arguments = [*quantize, "z.npy", "--report=report.json"]
    assert "report.json exists" in ctl(*arguments, force=False, code=2)
    assert not (tmp_path / "z.npy").exists()
    assert "--output z.safetensors and --report z.safetensors" in ctl(*quantize, "z.safetensors", "--report=z.safetensors", code=2)
    ctl(*arguments)
    assert json.loads((tmp_path / "report.json").read_text())["tensors"][0]["output_type"] == "uint8"
