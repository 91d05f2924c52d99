"""quantctl and files: formats of others, copies, bad files, and what is left behind."""

import json
import os
import pty
import signal
import struct
import subprocess
import time

import ml_dtypes
import numpy as np
import pytest
from quantctl import BINARY, quantctl, raw_tensors, read_quantized
from safetensors import safe_open
from safetensors.numpy import load_file, save_file


@pytest.fixture
def ctl(server, tmp_path, monkeypatch):
    """ctl(*arguments): runs quantctl in a folder of its own and returns what it printed."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments, code=0):
        got, out, err = quantctl(*arguments, address=server.address)
        assert got == code, f"exit {got}: {out}{err}"
        return err if code else out

    return run


def normal(*shape):
    return np.random.default_rng(5).standard_normal(shape).astype(np.float32)


def quantized(ctl, array, *flags):
    """y of an array, through a .npy."""
    np.save("x.npy", array)
    ctl("quantize", "x.npy", "-o", "y.safetensors", *flags)
    return read_quantized("y.safetensors")["y"]


@pytest.mark.parametrize("shape", [(6, 5), (2, 3, 4, 5), (7,), (1, 1)])
def test_orders_and_widths_of_numpy(ctl, shape):
    x = normal(*shape)
    expected = quantized(ctl, x)
    assert (quantized(ctl, np.asfortranarray(x)) == expected).all()
    assert (quantized(ctl, x.astype(">f4")) == expected).all()
    assert (quantized(ctl, np.asfortranarray(x.astype(">f8"))) == expected).all()
    assert (quantized(ctl, x.astype(np.float64)) == expected).all()


def test_float64_says_that_it_is_rounded(server, tmp_path):
    np.save(tmp_path / "x.npy", np.array([0.1, 1.0]))
    arguments = ["quantize", tmp_path / "x.npy", "-o", tmp_path / "y.npy"]
    code, _, err = quantctl(*arguments, address=server.address)
    assert code == 0 and "float64" in err and "rounded to float" in err
    assert quantctl(*arguments, "--quiet", address=server.address) == (0, "", "")


@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16])
def test_half_types_there_and_back(ctl, kind):
    x = normal(5, 8).astype(kind)
    np.save("x.npy", x)
    ctl("quantize", "x.npy", "-o", "y.npy", "--type=int16")
    name = "float16" if kind == np.float16 else "bfloat16"
    ctl("dequantize", "y.npy", "-o", "back.npy", f"--output_type={name}")
    back = np.load("back.npy")
    back = back.view(kind) if kind != np.float16 else back
    assert np.abs(back.astype(float) - x.astype(float)).max() < 0.02


def test_float8_npy_is_what_ml_dtypes_can_view(ctl):
    x = normal(4, 4)
    np.save("x.npy", x)
    ctl("quantize", "x.npy", "-o", "y.npy", "--type=float8e4m3fn", "--scale=1")
    assert (np.load("y.npy").view(ml_dtypes.float8_e4m3fn) == x.astype(ml_dtypes.float8_e4m3fn)).all()


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


def test_int32_with_a_scale(ctl):
    np.save("x.npy", np.array([-5, 7, 1000], np.int32))
    ctl("quantize", "x.npy", "-o", "y.npy", "--scale=2", "--type=int8")
    assert np.load("y.npy").tolist() == [-2, 4, 127]


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
    text = ctl("quantize", "m.safetensors", "-o", "q.safetensors", "--type=mxfp4", "--tensor=*.weight")
    assert "ids  int64 [10] copied" in text
    with safe_open("q.safetensors", "numpy") as file:
        assert file.metadata()["format"] == "pt"
    stored = raw_tensors("q.safetensors")
    assert set(stored) == {*tensors, "a.weight_scale", "b.weight_scale"}
    for name in ("a.bias", "ids", "mask"):
        assert stored[name][2] == tensors[name].tobytes()
    ctl("dequantize", "q.safetensors", "-o", "back.safetensors")
    back = load_file("back.safetensors")
    assert {name: (t.shape, t.dtype) for name, t in back.items() if name != "b.weight"} == {
        name: (t.shape, t.dtype) for name, t in tensors.items() if name != "b.weight"
    }
    assert np.abs(back["a.weight"] - tensors["a.weight"]).max() < 1


def test_all_float_tensors_by_default_and_one_into_a_npy(ctl):
    save_file(model(), "m.safetensors")
    report = json.loads(ctl("quantize", "m.safetensors", "-o", "q.safetensors", "--json"))
    assert {tensor["name"] for tensor in report["tensors"]} == {"a.weight", "a.bias", "b.weight"}
    assert "choose one with --tensor" in ctl("quantize", "m.safetensors", "-o", "q.npy", code=2)
    ctl("quantize", "m.safetensors", "-o", "q.npy", "--tensor=a.bias")
    assert np.load("q.npy").shape == (6,)
    assert "has no tensor 'c'" in ctl("quantize", "m.safetensors", "-o", "q.npy", "--tensor=c", code=2)
    assert "is of type int64" in ctl("quantize", "m.safetensors", "-o", "q.npy", "--tensor=ids", code=2)
    err = ctl("quantize", "m.safetensors", "-o", "q.safetensors", "--axis=1", code=2)
    assert "tensor 'a.bias': axis is 1, x has 1 dimensions" in err and "--tensor" in err


def test_files_of_torch_types(ctl):
    """F8_E4M3 as other tools write it, dequantized by flags alone."""
    codes = np.arange(0, 120, dtype=np.uint8)
    header = json.dumps({"w": {"dtype": "F8_E4M3", "shape": [10, 12], "data_offsets": [0, 120]}}).encode()
    with open("w.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header + codes.tobytes())
    ctl("dequantize", "w.safetensors", "-o", "w.npy", "--scale=2")
    expected = codes.view(ml_dtypes.float8_e4m3fn).astype(np.float32).reshape(10, 12) * 2
    assert (np.load("w.npy") == expected).all()


def test_packed_bytes_of_others_by_type_and_shape(ctl):
    np.save("p.npy", np.array([0x21, 0x43, 0x05], np.uint8))
    ctl("dequantize", "p.npy", "-o", "b.npy", "--type=uint4", "--shape=5", "--scale=0.5", "--zero_point=1")
    assert np.load("b.npy").tolist() == [0, 0.5, 1, 1.5, 2]
    err = ctl("dequantize", "p.npy", "-o", "b.npy", "--type=uint4", "--shape=7", "--scale=0.5", code=2)
    assert "has 3 bytes, shape [7] of uint4 takes 4" in err
    assert "--scale" in ctl("dequantize", "p.npy", "-o", "b.npy", code=2)


@pytest.mark.parametrize(
    "name, content, text",
    [
        ("x.npy", b"", "not a .npy"),
        ("x.npy", b"\x93NUMPY\x01\x00\xff\xff{", "claims 65535 bytes"),
        ("x.npy", b"\x93NUMPY\x01\x00\x3b\x00{'descr': '<f4', 'fortran_order': False, 'shape': (9,9)}    ", "truncated"),
        ("x.safetensors", b"\xff" * 20, "claims"),
        ("x.safetensors", b"\x02\0\0\0\0\0\0\0[]", "not a JSON object"),
        ("x.npz", b"PK", "unpack it"),
        ("x.bin", b"1", "must end in .npy or .safetensors"),
    ],
)
def test_bad_files_are_exit_code_2_and_one_line(ctl, tmp_path, name, content, text):
    (tmp_path / name).write_bytes(content)
    for command in (["quantize", name, "-o", "out.npy"], ["dequantize", name, "-o", "out.npy"], ["inspect", name]):
        err = ctl(*command, code=2)
        assert name in err and text in err and err.count("\n") == 1, err
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_wrong_usage_is_exit_code_2(ctl, tmp_path):
    np.save("x.npy", normal(3))
    assert "-o OUT" in ctl("quantize", "x.npy", code=2)
    assert "cannot open none.npy" in ctl("quantize", "none.npy", "-o", "y.npy", code=2)
    assert "not a regular file" in ctl("inspect", ".", code=2)
    assert "is not a data type; there are: float" in ctl("quantize", "x.npy", "-o", "y.npy", "--type=int5", code=2)
    assert "cannot write none/y.npy" in ctl("quantize", "x.npy", "-o", "none/y.npy", code=2)
    assert "see quantctl" in ctl(code=2)
    assert [p.name for p in tmp_path.iterdir()] == ["x.npy"]
    assert "Exit code" in ctl("--help") and "--block_shape" in ctl("quantize", "--help")


def test_a_damaged_description_is_an_error_not_a_guess(ctl, tmp_path):
    np.save("x.npy", normal(4, 4))
    ctl("quantize", "x.npy", "-o", "y.npy", "--type=int4")
    description = tmp_path / "y.quantization.json"
    good = description.read_text()
    description.write_text(good.replace("[4,4]", "[4,400]", 1))
    assert "has 8 bytes, shape [4, 400]" in ctl("dequantize", "y.npy", "-o", "b.npy", code=2)
    description.write_text(good.replace("y.scale.npy", "../y.scale.npy"))
    assert "damaged" in ctl("dequantize", "y.npy", "-o", "b.npy", code=2)
    description.write_text(good[:-3])
    assert "damaged" in ctl("dequantize", "y.npy", "-o", "b.npy", code=2)


def test_a_failure_leaves_the_old_output_alone(ctl, tmp_path):
    (tmp_path / "y.npy").write_bytes(b"precious")
    x = normal(3000)
    x[-1] = np.nan
    np.save("x.npy", x)
    ctl("quantize", "x.npy", "-o", "y.npy", "--piece_bytes=5000", code=1)
    assert (tmp_path / "y.npy").read_bytes() == b"precious"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x.npy", "y.npy"]


def run_on_terminal(arguments, address, until=None):
    """quantctl with stderr on a terminal: (process, what it showed there). `until` ends it early by SIGINT."""
    reader, writer = pty.openpty()
    process = subprocess.Popen(
        [str(BINARY), *map(str, arguments)],
        stdout=subprocess.DEVNULL,
        stderr=writer,
        env={**os.environ, "QUANTD_ADDRESS": address},
    )
    os.close(writer)
    shown = b""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            part = os.read(reader, 4096)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        shown += part
        if until is not None and until in shown:
            process.send_signal(signal.SIGINT)
            until = None
    os.close(reader)
    return process.wait(20), shown


def test_progress_on_a_terminal_and_nothing_left_after_an_interrupt(server, tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((6000, 1000), np.float32))
    arguments = ["quantize", tmp_path / "x.npy", "-o", tmp_path / "y.npy", "--piece_bytes=12000"]
    code, shown = run_on_terminal(arguments, server.address, until=b"%")
    assert code == 128 + signal.SIGINT and b"[" in shown
    assert [p.name for p in tmp_path.iterdir()] == ["x.npy"]
    code, shown = run_on_terminal([*arguments[:-1], "--quiet"], server.address)
    assert (code, shown) == (0, b"")
