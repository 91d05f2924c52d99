"""quantctl and what can end it: large files in bounded memory, signals, truncated files, full disks, terminals."""

import os
import shutil
import signal
import subprocess
import time

import numpy as np
import pytest
from quantctl import BINARY, environment, quantctl

pytestmark = pytest.mark.gate

MIB = 1 << 20
MEMORY = 256 * MIB


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    shutil.rmtree(tmp_path)  # these files are too large to keep


def sparse(name, shape, dtype=np.float32):
    """A .npy of zeros that takes no disk space, with some values."""
    array = np.lib.format.open_memmap(name, "w+", dtype, shape)
    array.reshape(-1)[:: array.size // 50] = np.linspace(-3, 3, len(array.reshape(-1)[:: array.size // 50]))
    array.flush()
    return name


def test_memory_is_bounded_whatever_the_file(folder):
    """RLIMIT_DATA limits all private memory that can be written: heap, stacks, what the core allocates. The file is  larger; blocks of
    2 give 42 million scales, for which the core in one piece would take 8 bytes each."""
    sparse("x.npy", (1 << 13, 10 << 10))  # 320 MiB
    bounded = {"limit": f"--data={MEMORY}"}
    for flags in (["--type=uint8"], ["--type=nvfp4"], ["--type=int4", "--axis=1", "--block_size=2"]):
        code, _, err = quantctl("quantize", "x.npy", "-o", "y.safetensors", "--force", "--threads=2", *flags, **bounded)
        assert (code, err) == (0, ""), (flags, err)
        code, _, err = quantctl("dequantize", "y.safetensors", "-o", "b.npy", "--force", "--threads=2", **bounded)
        assert (code, err) == (0, ""), (flags, err)
    code, out, err = quantctl("inspect", "y.safetensors", "--against=x.npy", "--only=^y$", "--threads=2", **bounded)
    assert (code, err) == (0, "") and "SQNR" in out
    for flags in (["--axis=-1", "--method=min_max"], ["--axis=0", "--method=min_max"], ["--method=percentile"], ["--method=mse", "--type=int8"]):
        code, _, err = quantctl("calibrate", "x.npy", "x.npy", "-o", "r.safetensors", "--force", "--threads=2", *flags, **bounded)
        assert (code, err) == (0, ""), (flags, err)
    back, x = np.load("b.npy", mmap_mode="r"), np.load("x.npy", mmap_mode="r")
    assert np.abs(back[::512, ::64] - x[::512, ::64]).max() < 0.2


SIGNALS = [
    signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE, signal.SIGXCPU, signal.SIGALRM, signal.SIGUSR1, signal.SIGUSR2,
    signal.SIGVTALRM, signal.SIGRTMIN + 3,
]


def start_slow(*flags, ignored=()):
    """A quantize of 2 GiB, as soon as its output has appeared under a temporary name."""
    sparse("x.npy", (1 << 14, 1 << 15))

    def set_signals():  # these tests may themselves run under nohup, or behind a shell's &
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)

    process = subprocess.Popen(
        [BINARY, "quantize", "x.npy", "-o", "y.npy", *flags],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(), preexec_fn=set_signals,
    )
    deadline = time.monotonic() + 30
    while not any(name.endswith(".tmp") for name in os.listdir()):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.001)
    return process


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_leaves_nothing(folder, number):
    process = start_slow()
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (128 + number, "", "")
    assert os.listdir() == ["x.npy"]


def test_an_input_that_is_cut_off_meanwhile_is_one_line(folder):
    process = start_slow()
    os.truncate("x.npy", 4096)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, "")
    assert err == "quantctl: x.npy was cut off, or its disk failed, while it was in use\n"
    assert os.listdir() == ["x.npy"]


# A separate file system of 1 MiB, in a namespace that ends with the command.
ON_A_SMALL_DISK = ["unshare", "-m", "sh", "-c", 'mkdir d && mount -t tmpfs -o size=1m none d && "$@"; rc=$?; ls -A d; exit $rc', "sh"]


def can_mount():
    tried = subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, check=False)
    return tried.returncode == 0


@pytest.mark.skipif(not can_mount(), reason="no right to mount")
def test_a_full_disk_is_one_line(folder):
    np.save("x.npy", np.ones((1500, 1000), np.float32))
    for output in ("d/y.npy", "d/y.safetensors"):
        done = subprocess.run(
            [*ON_A_SMALL_DISK, BINARY, "quantize", "x.npy", "-o", output],
            capture_output=True, text=True, timeout=60, env=environment(), check=False,
        )
        assert (done.returncode, done.stdout) == (2, ""), done.stderr  # ls shows that nothing is left
        assert done.stderr.count("\n") == 1 and "No space left on device" in done.stderr
        os.rmdir("d")
