"""What people read of quantctl: tables, progress on a terminal, help, completion, the man page, and one vocabulary of names."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import termios

import numpy as np
import pytest
from quantctl import BINARY, ctl
from safetensors.numpy import save_file

pytestmark = pytest.mark.usefixtures("here")


def on_a_terminal(columns, *arguments, **environment):
    """(exit code, everything that is printed) on a terminal of so many columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    plain = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "QUANTD_ADDRESS")}
    with subprocess.Popen([BINARY, *arguments], stdin=theirs, stdout=theirs, stderr=theirs,
                          env={**plain, "TERM": "xterm", **environment}) as process:
        os.close(theirs)
        printed = b""
        try:
            while part := os.read(ours, 65536):
                printed += part
        except OSError:  # the program has closed its end
            pass
        os.close(ours)
    return process.returncode, printed.decode()


def test_progress_fits_into_the_terminal():
    x = np.random.default_rng(1).standard_normal((512, 1024)).astype(np.float32)
    save_file({f"model.layers.{i}.a_name_that_is_long.{'w' * 60}é": x for i in range(24)}, "m.safetensors")
    for columns in (80, 20):
        code, printed = on_a_terminal(columns, "quantize", "m.safetensors", "-o", "q.safetensors", "--force", "--simd=scalar", "--threads=1")
        assert code == 0
        bars = [re.sub(r"\033\[[0-9;]*[mK]", "", bar) for bar in re.findall(r"\r\033\[K([^\r\n]+)", printed)]
        drawn = [bar for bar in bars if "%" in bar]
        assert drawn and max(map(len, drawn)) < columns, max(drawn, key=len)
    assert "\r" not in ctl("quantize", "m.safetensors", "-o", "q.safetensors", "--force")


def test_colours_are_for_terminals():
    red = "\033[31mquantctl:\033[0m no command"
    assert red in on_a_terminal(80, "quantise")[1]
    for environment in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert "\033" not in on_a_terminal(80, "quantise", **environment)[1]
    assert "\033" not in ctl("quantise", code=2)


def test_a_row_a_tensor_a_sum_and_the_worst_first():
    rng = np.random.default_rng(2)
    tensors = {"good": np.tile(np.arange(8, dtype=np.float32), (4, 1)), "bad": rng.standard_normal((4, 8)).astype(np.float32) ** 9,
               "middle": rng.standard_normal((16, 8)).astype(np.float32), "nothing": np.full((2, 2), np.nan, np.float32),
               "bias": np.zeros(3, np.float32)}
    save_file(tensors, "m.safetensors")
    quantize = ["quantize", "m.safetensors", "-o", "q.safetensors", "--type=int4", "--non-finite=ignore", "--force"]

    def order(*flags):
        return [line.split()[0] for line in ctl(*quantize, *flags).splitlines() if " -> " in line and "tensors:" not in line]

    text = ctl(*quantize)
    assert "4 tensors: 784 bytes -> " in text and "copied: 1 dimension" in text
    assert " none " in next(line for line in text.splitlines() if line.startswith("nothing"))
    decibels = json.loads(ctl(*quantize, "--json"))["tensors"]
    worst = sorted((t for t in decibels if t["name"] != "nothing"),
                   key=lambda t: np.inf if t["quantization_error"]["sqnr_db"] is None else t["quantization_error"]["sqnr_db"])
    assert order("--sort=sqnr") == ["nothing", *(t["name"] for t in worst)]
    assert order("--sort=size")[0] == "middle" and order("--sort=name") == ["bad", "good", "middle", "nothing"]
    assert "  scale  " in ctl(*quantize, "--details")
    shown = ctl("inspect", "q.safetensors", "--against=m.safetensors", "--sort=sqnr", "--only=^(good|bad|middle)$").splitlines()
    assert [line.split()[0] for line in shown[1:4]] == [t["name"] for t in worst]
    assert shown[4].startswith("3 quantized tensors, ") and len(shown) == 11  # and a table of the three that are stored
    assert len(ctl("inspect", "q.safetensors").splitlines()) == 10  # without codes and scales


@pytest.mark.parametrize("method, kind, axis", [("min-max", "int8", "-1"), ("percentile", "uint4", "-1"), ("MSE", "int8", None)])
def test_what_calibrate_wrote_is_what_quantize_takes(method, kind, axis):
    x = np.random.default_rng(3).standard_normal((40, 6)).astype(np.float32)
    np.save("x.npy", x)
    axes = [] if axis is None else [f"--axis={axis}"]
    ctl("calibrate", "x.npy", "-o", "r.safetensors", f"--type={kind}", f"--method={method}", *axes)
    ctl("calibrate", "x.npy", "-o", "c.npy", f"--type={kind}", f"--method={method}", *axes)
    ctl("quantize", "x.npy", "-o", "a.npy", "--calibration=r.safetensors")
    if kind != "uint4":  # a .npy of packed zero points cannot be read without its description
        of_file = os.path.exists("c.zero_point.npy")  # its type is that of the codes
        ctl("quantize", "x.npy", "-o", "b.npy", "--scale=c.scale.npy", "--zero_point=c.zero_point.npy" if of_file else f"--type={kind}", *axes)
        assert open("a.npy", "rb").read() == open("b.npy", "rb").read()
    ctl("dequantize", "a.npy", "-o", "back.npy")
    assert np.abs(np.load("back.npy") - x).max() < (1.6 if kind == "uint4" else 0.6)
    for flag in ("--scale=1", "--axis=0", "--symmetric", "--type=int2", "--block_size=2"):
        assert flag.split("=")[0] in ctl("quantize", "x.npy", "-o", "n.npy", "--calibration=r.safetensors", flag, code=2)


@pytest.mark.parametrize("names, blocks", [
    (["float8e4m3fn", "fp8", "e4m3", "float8_e4m3fn", "FLOAT8E4M3FN", "fp8_e4m3"], False),
    (["mxfp8", "MXFP8", "mx-fp8"], True), (["nvfp4", "NVFP4"], True), (["int4", "INT4"], False),
    (["float4e2m1", "float4_e2m1fn", "fp4"], False),
], ids=lambda value: value[0] if isinstance(value, list) else "")
def test_a_type_has_the_names_that_others_give_it(names, blocks):
    np.save("x.npy", np.random.default_rng(4).standard_normal((4, 64)).astype(np.float32))
    written = set()
    for name in names:
        ctl("quantize", "x.npy", "-o", "y.safetensors", f"--type={name}", "--force")
        written.add(open("y.safetensors", "rb").read())
    assert len(written) == 1
    (found,) = json.loads(ctl("inspect", "y.safetensors", "--json"))["quantized"]
    assert (found["block_size"] > 0) == blocks


@pytest.mark.parametrize("words, wanted", [
    (["quan"], {"quantize"}), (["quantize", "--block"], {"--block_size=", "--block_shape="}),
    (["calibrate", "--method", "=", "per"], {"percentile"}), (["convert", "--to", "gguf:q8"], {"gguf:q8_0"}), (["embeddings", ""], None),
])
def test_bash_completes(words, wanted):
    complete = """COMP_WORDS=(quantctl "$@"); COMP_CWORD=$#; _quantctl 2>/dev/null; printf '%s\\n' "${COMPREPLY[@]}" """
    script = f"source <({BINARY} completion bash); {complete}"
    done = subprocess.run(["bash", "-c", script, "bash", *words], capture_output=True, text=True, check=True)
    found = set(done.stdout.split())
    assert found >= {"quantize"} if wanted is None else found == wanted, done


def test_the_other_texts_hold_every_flag():
    zsh, man = ctl("completion", "zsh"), ctl("man")
    assert zsh.startswith("#compdef quantctl") and man.startswith(".TH QUANTCTL 1")
    for flag in ("--block_size", "--calibration", "--dry_run", "--ranges_out", "--service"):
        assert flag in zsh and flag.replace("-", "\\-") in man
