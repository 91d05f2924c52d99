"""quantctl destroys no file except its own outputs: inputs, files of others, and leftovers of killed runs."""

import os
import subprocess

import numpy as np
import pytest
from models import contents
from quantctl import BINARY, ctl
from safetensors.numpy import save_file


pytestmark = pytest.mark.usefixtures("here")


def files():
    """x.npy cannot be quantized: an exit code of 2 means a refusal before the work, which would end with 1."""
    np.save("x.npy", np.float32([[1, np.nan], [2, 3]]))
    np.save("good.npy", np.float32([[1, 2], [3, 4]]))
    np.save("s.npy", np.float32(0.5))
    ctl("quantize", "good.npy", "-o", "q.npy")
    save_file({"range": np.float32([[0, 0], [4, 4]])}, "ranges.safetensors")
    ctl("calibrate", "good.npy", "-o", "r.safetensors", "--state_out=state")
    for name in ("token", "old.json", "other.npy"):
        open(name, "w").write(name)
    os.symlink("old.json", "soft.json")
    os.link("old.json", "hard.json")
    os.link("x.npy", "x.safetensors")
    os.mkdir("folder")
    os.symlink("folder", "same")


CALIBRATED = ["embeddings", "quantize", "x.npy", "-o", "y.npy", "--preset=sentence-transformers-int8", "--calibrate"]
RANGES = ["embeddings", "quantize", "good.npy", "-o", "y.npy", "--preset=sentence-transformers-int8", "--ranges=ranges.safetensors"]
CLASHES = [
    (["quantize", "x.npy", "-o", "y.npy", "--report=y.scale.npy"], "--output", "--report"),
    (["quantize", "x.npy", "-o", "y.npy", "--report=./y.quantization.json"], "--output", "--report"),
    (["quantize", "x.npy", "-o", "folder/y.npy", "--report=same/y.npy"], "--output", "--report"),
    (["quantize", "x.npy", "-o", "y.npy", "--report=x.npy"], "--report", "FILE"),
    (["quantize", "x.npy", "-o", "x.safetensors"], "--output", "FILE"),
    (["quantize", "x.npy", "-o", "y.npy", "--scale=s.npy", "--report=s.npy"], "--report", "--scale"),
    (["quantize", "x.npy", "-o", "y.npy", "--auth_token_file=token", "--report=token"], "--report", "--auth_token_file"),
    (["dequantize", "q.npy", "-o", "b.npy", "--report=q.scale.npy"], "--report", "FILE"),
    (["dequantize", "q.npy", "-o", "b.npy", "--report=q.quantization.json"], "--report", "FILE"),
    (["dequantize", "q.npy", "-o", "q.NPY"], "--output", "FILE"),
    (["calibrate", "x.npy", "-o", "n.safetensors", "--state_out=n.safetensors"], "--output", "--state_out"),
    (["calibrate", "x.npy", "-o", "n.npy", "--state_out=n.scale.npy"], "--output", "--state_out"),
    (["calibrate", "x.npy", "-o", "n.npy", "--state_out=n.zero_point.npy"], "--output", "--state_out"),
    (["calibrate", "x.npy", "-o", "n.npy", "--state_out=hard.json", "--report=old.json"], "--report", "--state_out"),
    (["calibrate", "x.npy", "-o", "n.npy", "--state_out=soft.json", "--report=old.json"], "--report", "--state_out"),
    (["calibrate", "good.npy", "x.npy", "-o", "n.npy", "--state_out=x.safetensors"], "--state_out", "FILE"),
    (["calibrate", "x.npy", "-o", "n.npy", "--state=state", "--state_out=state"], "--state_out", "--state"),
    (["calibrate", "x.npy", "-o", "n.npy", "--state=state", "--report=state"], "--report", "--state"),
    ([*CALIBRATED, "--report=y.ranges.safetensors"], "--report", "--ranges_out"),
    ([*CALIBRATED, "--ranges_out=z.safetensors", "--report=z.safetensors"], "--report", "--ranges_out"),
    ([*CALIBRATED, "--ranges_out=x.safetensors"], "--ranges_out", "FILE"),
    ([*CALIBRATED, "--report=y.npy"], "--report", "--output"),
    ([*RANGES, "--report=ranges.safetensors"], "--report", "--ranges"),
]


@pytest.mark.parametrize("arguments, one, other", CLASHES, ids=[" ".join(case[0]) for case in CLASHES])
def test_files_that_are_one_are_refused_before_the_work(arguments, one, other):
    files()
    before = contents(".")
    for force in ([], ["--force"]):
        err = ctl(*arguments, *force, code=2)
        assert f"{one} " in err and f"{other} " in err, err
        assert contents(".") == before


@pytest.mark.parametrize("arguments, words", [
    (["calibrate", "x.npy", "-o", "n.npy", "--state_out=old.json"], "old.json exists"),
    (["calibrate", "x.npy", "-o", "n.npy", "--report=old.json"], "old.json exists"),
    (["calibrate", "x.npy", "-o", "other.npy"], "other.npy exists"),
    (["calibrate", "x.npy", "-o", "none/n.npy"], "cannot write none/n.npy"),
    (["calibrate", "x.npy", "-o", "n.npy", "--state_out=none/s"], "cannot write none/s"),
    ([*CALIBRATED, "--ranges_out=ranges.safetensors"], "ranges.safetensors exists"),
    ([*CALIBRATED, "--report=old.json"], "old.json exists"),
    ([*CALIBRATED, "--report=none/r.json"], "cannot write none/r.json"),
])
def test_what_cannot_be_written_is_found_before_the_work(arguments, words):
    files()
    before = contents(".")
    assert words in ctl(*arguments, code=2)
    assert contents(".") == before


def test_a_folder_that_is_read_needs_no_right_to_write():
    os.mkdir("read")
    np.save("read/f.npy", np.asfortranarray(np.random.default_rng(1).standard_normal((5, 4))))
    np.save("read/s.npy", np.float64(0.5))
    ctl("quantize", "read/f.npy", "-o", "read/q.npy", "--type=int16")
    for name in ("q.npy", "q.scale.npy"):
        np.save(f"read/{name}", np.load(f"read/{name}").astype(np.load(f"read/{name}").dtype.newbyteorder(">")))
    np.save("read/ints.npy", np.asfortranarray(np.int8([[1, 2], [3, 4]])))
    os.chmod("read", 0o555)
    without_rights = ["setpriv", "--bounding-set=-all"] if os.getuid() == 0 else []
    try:
        for arguments in (["inspect", "read/f.npy"], ["inspect", "read/f.npy", "--type=int8"], ["inspect", "read/q.npy", "--against=read/f.npy"],
                          ["quantize", "read/f.npy", "-o", "y.npy", "--scale=read/s.npy"], ["dequantize", "read/q.npy", "-o", "b.npy"],
                          ["dequantize", "read/ints.npy", "-o", "i.npy", "--scale=read/s.npy"]):
            done = subprocess.run([*without_rights, BINARY, *arguments, "--quiet"], capture_output=True, text=True, timeout=60, check=False)
            assert (done.returncode, done.stderr) == (0, ""), arguments
    finally:
        os.chmod("read", 0o755)
    assert np.abs(np.load("b.npy") - np.load("read/f.npy")).max() < 1e-3
    assert np.load("i.npy").tolist() == [[0.5, 1], [1.5, 2]]
