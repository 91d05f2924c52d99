"""quantctl embeddings quantize: every preset, in process and on a server of small messages with the same bytes; files with wrong
headers."""

import ast
import functools
import json

import numpy as np
import pytest
from quantctl import ctl as plain
from support import ROOT, Server

RNG = np.random.default_rng(9)


def presets():
    """The table of the Python client, which has the same lines."""
    tree = ast.parse((ROOT / "client/python/src/quantd/embeddings.py").read_text())
    (table,) = [node.value for node in tree.body if isinstance(node, ast.AnnAssign) and node.target.id == "PRESETS"]
    return {ast.literal_eval(key): {k.arg: ast.literal_eval(k.value) for k in value.keywords} for key, value in zip(table.keys, table.values)}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("small"), "--max_message_bytes=262144")
    yield server
    server.stop()


@pytest.fixture
def ctl(here):
    return functools.partial(plain, "embeddings")


def expected(x, *, recipe, output_type, bit_order=None, bit_threshold=None, signed_bits=None):
    if recipe == "ranges":
        step = np.float32(2) / np.float32(255)
        q = np.clip(np.floor((x - np.float32(-1)) / step), 0, 255)
        return q.astype(np.uint8) if output_type == "uint8" else (q - 128).astype(np.int8)
    if recipe == "unit":
        return np.trunc(np.clip((x.astype(float) + 1) / float(np.float32(2 / 255)) - 128, -128, 127)).astype(np.int8)
    if recipe == "direction":
        length = np.sqrt((x.astype(float) ** 2).sum(axis=1, keepdims=True))
        return np.trunc(x.astype(float) * 127 / length).astype(np.int8)
    bits = np.packbits(x >= 0 if bit_threshold else x > 0, axis=1, bitorder="little" if bit_order else "big")
    if output_type == "uint8":
        return bits
    return bits.view(np.int8) if signed_bits else (bits.astype(int) - 128).astype(np.int8)


@pytest.mark.parametrize("preset", presets())
def test_presets_here_and_in_pieces_on_a_server(ctl, small, preset):
    x = RNG.uniform(-1.1, 1.1, (700, 260)).astype(np.float32)
    np.save("x.npy", x)
    np.save("ranges.npy", np.float32([[-1] * 260, [1] * 260]))
    arguments = ["quantize", "x.npy", f"--preset={preset}"]
    if presets()[preset]["recipe"] == "ranges":
        arguments.append("--ranges=ranges.npy")
    here = json.loads(ctl(*arguments, "-o", "here.npy", "--json"))
    ctl(*arguments, "-o", "there.npy", "--noreport_error", address=small.address)  # a report is of one message
    y, wanted = np.load("here.npy"), expected(x, **presets()[preset])
    assert y.dtype == wanted.dtype and (y == wanted).all()
    assert open("here.npy", "rb").read() == open("there.npy", "rb").read()
    assert here["shape"] == list(y.shape)
    assert ("quantization_error" in here["tensors"][0]) == (presets()[preset]["recipe"] != "bits")


def test_what_is_wrong_is_said_in_a_line(ctl):
    np.save("x.npy", np.float32([[1, np.nan, 3]]))
    np.save("good.npy", np.ones((2, 3), np.float32))
    cases = [
        (["quantize", "good.npy", "-o", "y.npy", "--preset=faiss"], 2, "'faiss'"),
        (["quantize", "good.npy", "-o", "y.npy"], 2, "--preset"),
        (["quantize", "good.npy", "-o", "y.safetensors", "--preset=vespa"], 2, ".npy"),
        (["quantize", "x.npy", "-o", "y.npy", "--preset=vespa"], 1, "x[1] is nan"),
        (["quantize", "good.npy", "-o", "y.npy", "--preset=vespa", "--dimensions=4"], 1, "dimensions is 4"),
        (["quantize", "good.npy", "-o", "y.npy", "--preset=sentence-transformers-int8"], 2, "--calibrate"),
        (["quantize", "good.npy", "-o", "good.npy", "--preset=vespa", "--force"], 2, "good.npy"),
        (["quantize", "gone.npy", "-o", "y.npy", "--preset=vespa"], 2, "gone.npy"),
        (["calibrate"], 2, "embeddings calibrate is not a command"),
    ]
    for arguments, code, words in cases:
        error = ctl(*arguments, code=code)
        assert words in error and error.count("\n") == 1, (arguments, error)
