"""Folders, disks and machines with faults: the server starts and serves nevertheless, or gives the reason in one line and ends with exit
code 2."""

import os
import re

import numpy as np
import pytest

from small_machine import Cgroup, mounted
from support import quantize, run

pytestmark = pytest.mark.gate

MIB = 1 << 20


def serves(server, calls=20):
    """Small calls, and large ones that need every thread; all are answered correctly."""
    large = np.arange(2 * MIB, dtype=np.float32)
    expected = np.minimum(np.rint(large / np.float32(8192)), 255).astype(np.uint8).tobytes()
    for _ in range(calls):
        assert server.stub.Quantize(quantize([1.0, 2.0]), timeout=20).y.raw_data == b"\x02\x04"
    futures = [server.stub.Quantize.future(quantize(large, scale=8192), timeout=60) for _ in range(4)]
    assert [future.result().y.raw_data == expected for future in futures] == [True] * 4


def ends_cleanly(server):
    assert server.stop() == 0, server.log()[-2000:]


def refused(flags, before=()):
    """The one line that the server prints instead of serving, beside its log."""
    code, _, error = run("--http_listen=", *flags, before=before)
    lines = [line for line in error.splitlines() if not re.match(r"\d{4}-\d\d-\d\dT\S+ quantd: ", line)]
    assert code == 2 and len(lines) == 1, (code, error)
    assert lines[0].startswith("quantd: cannot "), lines
    return lines[0]


# Folders and disks.


def ready_file(folder):
    return ["--listen=127.0.0.1:0", f"--ready_file={folder}/ready"]


def unix_socket(folder):
    return [f"--listen=unix:{folder}/socket"]


@pytest.mark.parametrize("flags", [ready_file, unix_socket])
@pytest.mark.parametrize(
    "mount, why",
    [
        (['mount -t tmpfs none "$0"', 'mount -o remount,ro "$0"'], "Read-only file system"),
        (['mount -t tmpfs -o nr_inodes=2 none "$0"', 'touch "$0/fill"'], "No space left on device"),
    ],
    ids=["read-only", "full"],
)
def test_a_folder_that_takes_no_file(tmp_path, flags, mount, why):
    line = refused(flags(tmp_path), before=mounted(tmp_path, *mount))
    assert why in line and str(tmp_path) in line


def test_without_standard_files(start):
    """Their numbers must not be given to sockets: lines of the log would be sent to a client."""
    server = start(before=["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh"])
    for number in range(3):
        assert os.readlink(f"/proc/{server.process.pid}/fd/{number}") == "/dev/null"
    serves(server)
    ends_cleanly(server)


# Small machines.


def test_one_cpu(start):
    cpu = min(os.sched_getaffinity(0))
    server = start(before=["taskset", "--cpu-list", str(cpu)])
    assert " threads=1 " in server.log()
    serves(server)
    ends_cleanly(server)


def test_half_a_cpu(start):
    with Cgroup("cpu", 50_000) as group:
        server = start(before=group.command)
        assert " threads=1 " in server.log()
        serves(server)
        ends_cleanly(server)


def test_64_processes(start):
    with Cgroup("pids", 64) as group:
        server = start(before=group.command)
        serves(server)
        ends_cleanly(server)


def test_more_threads_than_there_may_be():
    """Reported before anything is bound, not when the first large request needs its threads."""
    with Cgroup("pids", 64) as group:
        line = refused(["--listen=127.0.0.1:0", "--threads=32"], before=group.command)
    assert "--threads" in line and re.search(r"cannot start \d+ threads", line)
    with Cgroup("pids", 1) as group:  # not even the log's
        assert "cannot start 1 thread for the log" in refused(["--listen=127.0.0.1:0"], before=group.command)


def test_256_mib(start):
    with Cgroup("memory", 256 * MIB) as group:
        server = start(before=group.command)
        assert f"memory_limit_bytes={256 * MIB} " in server.log()
        serves(server)
        ends_cleanly(server)
