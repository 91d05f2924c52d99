"""quantctl calibrate: every kind of file, states, and ranges that embeddings use."""

import json
import os

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from quantctl import raw_tensors

RNG = np.random.default_rng(21)


def read(path):
    """name -> array, and what the metadata says about the calibration."""
    with safe_open(path, "numpy") as file:
        said = json.loads(file.metadata()["quantd.calibration"])
        return {name: file.get_tensor(name) for name in file.keys()}, said


def min_max(x, axis=None, largest=255):
    """(range, scale, zero_point) of an unsigned type; tests/core has the formulas of all methods."""
    x = np.asarray(x).astype(np.float32)
    others = None if axis is None else tuple(i for i in range(x.ndim) if i != axis % x.ndim)
    found = np.stack([x.min(others), x.max(others)])
    low, high = np.minimum(found[0].astype(float), 0), np.maximum(found[1].astype(float), 0)
    scale = (high - low) / largest
    return found, np.float32(scale), np.rint(-low / scale)


@pytest.mark.parametrize("axis", [None, 0, -1])
def test_results(ctl, axis):
    x = (RNG.standard_normal((300, 700)) * 3).astype(np.float32)
    for number, part in enumerate(np.array_split(x, 3, axis=1 if axis == 0 else 0)):
        np.save(f"x{number}.npy", np.asfortranarray(part) if number == 1 else part)
    arguments = ["calibrate", "x0.npy", "x1.npy", "x2.npy", "--method=min_max", "--type=uint8", "--json"]
    arguments += [f"--axis={axis}"] if axis is not None else []
    document = json.loads(ctl(*arguments, "-o", "found.safetensors", "--threads=1"))
    ranges, scale, zero_point = min_max(x, axis)
    found, said = read("found.safetensors")
    assert found["range"].tobytes() == ranges.tobytes() and found["range"].shape == ranges.shape
    assert found["scale"].tobytes() == scale.tobytes() and found["scale"].shape == scale.shape
    assert (found["zero_point"] == zero_point).all() and found["zero_point"].dtype == np.uint8
    assert said["method"] == "min_max" and said["type"] == "uint8" and said["elements"] == x.size and said.get("axis") == axis
    assert document["elements"] == x.size and document["channels"] == scale.size and document["inputs"] == ["x0.npy", "x1.npy", "x2.npy"]


def test_files_of_every_kind_are_the_same(ctl):
    x = RNG.standard_normal((90, 33)).astype(np.float32)
    np.save("x.npy", x)
    np.save("double.npy", x.astype(np.float64))
    save_file({"a": x[:50], "b": x[50:], "other": x * 9}, "x.safetensors")
    wanted = None
    for case in (["x.npy"], ["double.npy"], ["x.safetensors", "--only=^[ab]$"]):
        ctl("calibrate", *case, "-o", "r.safetensors", "--axis=-1", "--method=mse", "--type=int8", "--force", "--quiet")
        bytes_now = open("r.safetensors", "rb").read()
        wanted = wanted or bytes_now
        assert bytes_now == wanted, case


def test_packed_zero_points(ctl):
    x = RNG.uniform(-1, 3, (20, 5)).astype(np.float32)
    np.save("x.npy", x)
    ctl("calibrate", "x.npy", "-o", "r.safetensors", "--axis=1", "--type=uint4", "--method=min_max")
    _, _, zero_point = min_max(x, 1, 15)
    packed = raw_tensors("r.safetensors")["zero_point"][2]
    assert [(packed[i // 2] >> 4 * (i % 2)) & 15 for i in range(5)] == zero_point.tolist()


def test_states_are_what_was_seen(ctl):
    x = RNG.standard_normal((600, 8)).astype(np.float32)
    x[3, 3] = np.nan
    np.save("whole.npy", x)
    np.save("a.npy", x[:100])
    np.save("b.npy", x[100:])
    flags = ["--axis=-1", "--method=percentile", "--non-finite=ignore", "--force"]
    ctl("calibrate", "whole.npy", "-o", "whole.safetensors", "--state-out=whole.state", *flags)
    ctl("calibrate", "b.npy", "-o", "b.safetensors", "--state-out=b.state", *flags)
    ctl("calibrate", "a.npy", "--state=b.state", "-o", "both.safetensors", "--state-out=both.state", *flags)
    assert open("both.safetensors", "rb").read() == open("whole.safetensors", "rb").read()
    assert open("both.state", "rb").read() == open("whole.state", "rb").read()
    ctl("calibrate", "--state=whole.state", "-o", "again.safetensors", *flags)
    assert open("again.safetensors", "rb").read() == open("whole.safetensors", "rb").read()
    assert read("whole.safetensors")[1]["non_finite_elements"] == 1


@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_embeddings_with_ranges_of_their_own(ctl, server, kind):
    x = RNG.standard_normal((400, 96)).astype(np.float32)
    np.save("x.npy", x)
    preset = f"--preset=sentence-transformers-{kind}"
    step = (x.max(axis=0) - x.min(axis=0)) / np.float32(255)
    wanted = np.clip(np.floor((x - x.min(axis=0)) / step), 0, 255)
    wanted = wanted.astype(np.uint8) if kind == "uint8" else (wanted - 128).astype(np.int8)
    for address in (None, server.address):
        out = ctl("embeddings", "quantize", "x.npy", "-o", "y.npy", preset, "--calibrate", "--force", address=address)
        assert "wrote y.ranges.safetensors" in out
        assert (np.load("y.npy") == wanted).all() and np.load("y.npy").dtype == wanted.dtype
    found, _ = read("y.ranges.safetensors")
    assert (found["range"] == [x.min(axis=0), x.max(axis=0)]).all()
    # The files of calibrate give the same codes for other embeddings.
    ctl("calibrate", "x.npy", "-o", "r.safetensors", "--axis=-1", "--method=min-max")
    for ranges in ("y.ranges.safetensors", "r.safetensors"):
        ctl("embeddings", "quantize", "x.npy", "-o", "z.npy", preset, f"--ranges={ranges}", "--force")
        assert (np.load("z.npy") == wanted).all()
    # With the first dimensions only.
    ctl("embeddings", "quantize", "x.npy", "-o", "cut.npy", preset, "--calibrate", "--dimensions=10", "--ranges-out=cut.safetensors")
    assert (np.load("cut.npy") == wanted[:, :10]).all()


def test_what_is_wrong_is_said_in_a_line(ctl):
    np.save("x.npy", np.float32([[1, np.nan, 3]]))
    np.save("good.npy", np.ones((2, 3), np.float32))
    np.save("other.npy", np.ones((2, 4), np.float32))
    np.save("bytes.npy", np.ones(4, np.uint8))
    save_file({"a": np.ones(2, np.float32), "b": np.ones(2, np.float32)}, "two.safetensors")
    open("junk.state", "wb").write(b"QDC1\1")
    go = ["-o", "r.safetensors"]
    spoiled = ["embeddings", "quantize", "good.npy", "-o", "y.npy"]
    cases = [
        (["calibrate", *go], 2, "no FILE and no --state"),
        (["calibrate", "good.npy"], 2, "--output"),
        (["calibrate", "gone.npy", *go], 2, "gone.npy"),
        (["calibrate", "x.npy", *go], 1, "x[1] is nan"),
        (["calibrate", "bytes.npy", *go], 1, "UINT8"),
        (["calibrate", "good.npy", "other.npy", "--axis=1", *go], 1, "other.npy"),
        (["calibrate", "good.npy", "--percentile=99", *go], 1, "percentile"),
        (["calibrate", "good.npy", "--method=best", *go], 2, "--method"),
        (["calibrate", "good.npy", "--type=int9", *go], 2, "int9"),
        (["calibrate", "good.npy", "--type=float", *go], 1, "output_type"),
        (["calibrate", "two.safetensors", *go], 2, "--only"),
        (["calibrate", "two.safetensors", "--only=c", *go], 2, "0 tensors"),
        (["calibrate", "good.npy", "--state=junk.state", *go], 1, "junk.state"),
        (["calibrate", "good.npy", "--state=gone.state", *go], 2, "gone.state"),
        (["calibrate", "good.npy", "-o", "good.npy"], 2, "good.npy"),
        (["calibrate", "two.safetensors", "--only=a", "-o", "two.safetensors", "--force"], 2, "two.safetensors"),
        (["calibrate", "good.npy", "-o", "r.txt"], 2, "r.txt"),
        ([*spoiled, "--preset=sentence-transformers-int8", "--calibrate", "--ranges=good.npy"], 2, "--ranges"),
        ([*spoiled, "--preset=sentence-transformers-int8", "--calibrate", "--normalize"], 2, "--normalize"),
        ([*spoiled, "--preset=sentence-transformers-int8", "--calibrate", "--ranges-out=r.npy"], 2, "r.npy"),
        ([*spoiled, "--preset=pgvector", "--calibrate"], 2, "no ranges"),
        ([*spoiled, "--preset=pgvector", "--ranges-out=r.safetensors"], 2, "--calibrate"),
        ([*spoiled, "--preset=sentence-transformers-int8", "--ranges=two.safetensors"], 2, "no tensor 'range'"),
    ]
    for arguments, code, words in cases:
        error = ctl(*arguments, code=code)
        assert words in error and error.count("\n") == 1, (arguments, error)
    assert not os.path.exists("r.safetensors") and not os.path.exists("y.npy")


def test_an_npy_of_ranges(ctl):
    x = RNG.standard_normal((50, 3)).astype(np.float32)
    np.save("x.npy", x)
    ctl("calibrate", "x.npy", "-o", "r.npy", "--axis=-1", "--method=min_max")
    assert (np.load("r.npy") == [x.min(axis=0), x.max(axis=0)]).all() and np.load("r.scale.npy").shape == (3,)
    ctl("embeddings", "quantize", "x.npy", "-o", "y.npy", "--preset=sentence-transformers-uint8", "--ranges=r.npy")
