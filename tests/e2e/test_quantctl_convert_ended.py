"""Interrupted conversions of quantctl: killed and resumed, in bounded memory."""

import functools
import json
import os
import random
import shutil
import signal
import subprocess
import time

import ml_dtypes
import numpy as np
import pytest
from models import contents, load_tensors, save_model, save_tensors
from quantctl import BINARY, ctl, environment, quantctl
from test_quantctl_large import MEMORY

BF16 = ml_dtypes.bfloat16
FLAGS = ["-o", "out", "--to=compressed-tensors:int8", "--threads=2"]


pytestmark = [pytest.mark.gate, pytest.mark.usefixtures("here")]


def numbers(*shape, seed=0):
    return (np.random.default_rng(seed).integers(-1000, 1000, shape, np.int16) / np.float32(512)).astype(BF16)


def model(shards=6, rows=1024):
    """Some shards of 4 MiB each, with tensors that are copied in between."""
    save_model("m", {
        f"model-{i + 1:05}-of-{shards:05}.safetensors": {
            f"l.{i}.q_proj.weight": numbers(rows, 1024, seed=i), f"l.{i}.up_proj.weight": numbers(rows // 2, 1024, seed=i + 100),
            f"l.{i}.embed.weight": numbers(rows // 2, 1024, seed=i + 200),
        } for i in range(shards)
    }, others={"tokenizer.json": b"{}", "sub/x": b"y" * 100_000})


convert = functools.partial(ctl, "convert")


def start(*flags):
    return subprocess.Popen([BINARY, "convert", "m", *flags], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment())


def ended(number, after, *flags):
    """A run that gets a signal after `seconds`; returns its exit code."""
    process = start(*flags)
    time.sleep(after)
    process.send_signal(number)
    err = process.communicate(timeout=60)[1]
    assert err == "", err
    return process.returncode


@pytest.mark.parametrize("number, layout", [
    (signal.SIGTERM, "compressed-tensors:int8"), (signal.SIGINT, "compressed-tensors:int8"), (signal.SIGKILL, "compressed-tensors:int8"),
    (signal.SIGKILL, "bnb:nf4-double"),  # its texts have lengths of their own
])
def test_a_run_that_was_ended_goes_on(number, layout):
    """At any moment: no finished output is left, and a resumed run gives the bytes of an uninterrupted one."""
    model()
    flags = ["-o", "out", f"--to={layout}", "--threads=2"]
    begin = time.monotonic()
    convert("m", *flags)
    whole, length = contents("out"), time.monotonic() - begin
    shutil.rmtree("out")
    draw, kills = random.Random(os.environ.get("QUANTD_TEST_SEED", "7")), 0
    for _ in range(12):
        resume = ["--resume"] if draw.random() < 0.7 else ["--force"]
        code = ended(number, draw.uniform(0, 1.1 * length), *flags, *resume)
        if code == 0 or os.path.exists("out"):  # or it ended when everything was done
            assert contents("out") == whole and not os.path.exists("out.partial")
            shutil.rmtree("out")
            continue
        kills += 1
        assert code == (-9 if number == signal.SIGKILL else 128 + number) or (code == -number)
        if number != signal.SIGKILL and os.path.exists("out.partial"):
            assert not [name for name in contents("out.partial") if name.endswith(".tmp")]
        if os.path.exists("out.partial"):
            for name, data in contents("out.partial").items():
                assert name.endswith(".tmp") or name.startswith(".quantctl") or data == whole[name], name
            assert "--resume" in convert("m", *flags, code=2)
    convert("m", *flags, "--resume")
    assert contents("out") == whole and sorted(os.listdir()) == ["m", "out"]
    assert kills > 0


def test_what_is_finished_is_not_made_again():
    model(3)
    convert("m", *FLAGS)
    whole = contents("out")
    os.rename("out", "out.partial")
    add_state()
    first = "out.partial/model-00001-of-00003.safetensors"
    before = os.stat(first).st_ino
    os.remove("out.partial/model-00002-of-00003.safetensors")
    with open("out.partial/model-00003-of-00003.safetensors", "r+b") as file:
        file.truncate(1000)  # its size is wrong: it is made again
    convert("m", *FLAGS, "--resume")
    assert contents("out") == whole
    assert os.stat("out/model-00001-of-00003.safetensors").st_ino == before


def add_state():
    """Puts the state of a run that was killed into out.partial."""
    name, deadline = ".quantctl-convert.json", time.monotonic() + 60
    os.rename("out.partial", "kept")
    while not os.path.exists("out.partial/" + name):
        shutil.rmtree("out.partial", ignore_errors=True)
        shutil.rmtree("out", ignore_errors=True)
        ended(signal.SIGKILL, random.uniform(0.005, 0.2), *FLAGS)
        assert time.monotonic() < deadline
    shutil.copy("out.partial/" + name, "kept")
    shutil.rmtree("out.partial")
    os.rename("kept", "out.partial")


def test_resume_refuses_what_was_begun_otherwise():
    model(2)
    os.mkdir("out.partial")
    add_state()
    for change, what in (
        (["--to=compressed-tensors:fp8"], "'to'"), (["--skip=up"], "'skip'"), (["--only=up"], "'only'"), (["--all"], "'all'"),
    ):
        before = contents("out.partial")
        assert what in convert("m", *FLAGS, "--resume", *change, code=2)
        assert contents("out.partial") == before and not os.path.exists("out")
    os.utime("m/tokenizer.json", (1, 1))
    assert "sizes or times: tokenizer.json, of 2 bytes, was changed;" in convert("m", *FLAGS, "--resume", code=2)
    with open("m/tokenizer.json", "w") as file:
        file.write("[1, 2]")
    assert "sizes or times: tokenizer.json had 2 bytes and has 6 bytes;" in convert("m", *FLAGS, "--resume", code=2)
    with open("out.partial/.quantctl-convert.json", "r+") as file:  # another program's, or a later version's
        state = json.load(file)
        state["files"]["tokenizer.json"] = 2
        file.seek(0), file.truncate(), json.dump(state, file)
    assert "tokenizer.json had something else and has 6 bytes;" in convert("m", *FLAGS, "--resume", code=2)
    open("out.partial/mine", "w").write("x")
    convert("m", *FLAGS, "--force")
    assert not os.path.exists("out/mine")


def test_names_that_are_not_utf8_are_resumed():
    model(2)
    with open(b"m/note-\xff.txt", "w") as file:
        file.write("x")
    os.mkdir("out.partial")
    add_state()
    convert("m", *FLAGS, "--resume")
    assert os.path.exists(b"out/note-\xff.txt")


def test_resume_leaves_files_of_others_alone():
    model(1)
    os.mkdir("out.partial")
    open("out.partial/mine", "w").write("x")
    assert "mine" in convert("m", *FLAGS, "--resume", code=2)
    assert contents("out.partial") == {"mine": b"x"}


def test_two_at_a_time_are_refused():
    model()
    process = start(*FLAGS)
    deadline = time.monotonic() + 30
    while not os.path.exists("out.partial/.quantctl-convert.json") and process.poll() is None:
        assert time.monotonic() < deadline
    process.send_signal(signal.SIGSTOP)
    try:
        if os.path.exists("out.partial"):
            assert "at work" in convert("m", *FLAGS, "--resume", code=2)
            assert "at work" in convert("m", *FLAGS, "--force", code=2)
    finally:
        process.send_signal(signal.SIGCONT)
    assert process.wait(60) == 0 and os.path.exists("out")


def test_a_refusal_of_a_resumed_run_leaves_nothing():
    model(2)
    data = load_tensors("m/model-00002-of-00002.safetensors")
    bad = data["l.1.up_proj.weight"].copy()
    bad[-1, -1] = np.nan
    save_tensors("m/model-00002-of-00002.safetensors", {**data, "l.1.up_proj.weight": bad})
    assert "l.1.up_proj.weight" in convert("m", *FLAGS, "--resume", code=1)
    assert os.listdir() == ["m"]


def test_a_limit_on_file_sizes_is_one_line():
    model(1)
    err = convert("m", *FLAGS, code=2, limit=f"--fsize={1 << 20}")
    assert "cannot write" in err and "File too large" in err
    assert not os.path.exists("out") and not [name for name in contents("out.partial") if name.endswith(".tmp")]
    convert("m", *FLAGS, "--resume")


def test_a_shard_that_is_cut_off_meanwhile_is_one_line():
    model(6, rows=4096)
    process = start(*FLAGS, "--threads=1")
    last = "m/model-00006-of-00006.safetensors"
    while not os.path.exists("out.partial/.quantctl-convert.json") and process.poll() is None:
        pass
    os.truncate(last, 4096)
    err = process.communicate(timeout=60)[1]
    if process.returncode != 0:  # it may have been faster
        assert process.returncode == 2 and err.count("\n") == 1 and last in err
        assert not os.path.exists("out")


def sparse(name, tensors):
    """A .safetensors of zeros that takes no disk space."""
    header, size = {}, 0
    for tensor, (dtype, shape, width) in tensors.items():
        length = int(np.prod(shape)) * width
        header[tensor] = {"dtype": dtype, "shape": shape, "data_offsets": [size, size + length]}
        size += length
    text = json.dumps(header).encode()
    with open(name, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + size)
    return 8 + len(text)


TALL, ROW, WIDE = [34_000, 16_384], [1, 540_000_000], [128, 4_300_000]


@pytest.mark.parametrize("layout, shape", [
    ("fp8-tiles", WIDE), ("compressed-tensors:int8", ROW), ("compressed-tensors:int4-g32-asym", WIDE), ("compressed-tensors:nvfp4", TALL),
    ("bnb:nf4-double", TALL), ("bnb:int8", ROW), ("gguf:q4_1", ROW),
])
def test_memory_is_bounded_whatever_the_tensor(layout, shape):
    """RLIMIT_DATA limits all private memory. The tensor has more than 1 GB."""
    shape = [shape[0], shape[1] // 128 * 128]
    begin = sparse("m.safetensors", {"a.weight": ("BF16", shape, 2), "a.embed.weight": ("BF16", [1000, 100_000], 2)})
    with open("m.safetensors", "r+b") as file:
        for at in range(0, 2 * shape[0] * shape[1] - 2, 100_000_000):
            file.seek(begin + at)
            file.write(np.array([at / 1e8 - 3], BF16).tobytes())
    out = "o.gguf" if layout.startswith("gguf") else "o.safetensors"
    convert("m.safetensors", "-o", out, f"--to={layout}", "--threads=2", "--quiet", limit=f"--data={MEMORY}")
    if shape[0] == 128:
        convert(out, "-o", "b.safetensors", "--to=f16", "--threads=2", "--quiet", limit=f"--data={MEMORY}")
        with open("b.safetensors", "rb") as file:
            header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        assert header["a.weight"]["shape"] == shape and header["a.weight"]["dtype"] == "F16"


def test_memory_is_bounded_for_many_tensors():
    sparse("m.safetensors", {f"model.layers.{i}.mlp.experts.{i}.up_proj.weight": ("BF16", [2, 16], 2) for i in range(50_000)})
    for layout in ("compressed-tensors:nvfp4", "bnb:nf4-double"):
        convert("m.safetensors", "-o", "o.safetensors", f"--to={layout}", "--threads=2", "--quiet", "--force", "--report=r.json",
                limit=f"--data={MEMORY}")
        assert len(json.load(open("r.json"))["tensors"]) == 50_000
    # Reads 300,000 of them again.
    code, text, err = quantctl("inspect", "o.safetensors", "--only=absmax$", limit=f"--data={MEMORY}")
    assert (code, err) == (0, "") and text.count("up_proj.weight.nested_absmax ") == 50_000
    convert("o.safetensors", "-o", "b.safetensors", "--to=bf16", "--threads=2", "--quiet", limit=f"--data={MEMORY}")
    code, text, err = quantctl("inspect", "b.safetensors", limit=f"--data={MEMORY}")
    assert (code, err) == (0, "") and text.count("bfloat16  [2, 16]") == 50_000
