"""Folders, disks, clocks and machines with faults: the server starts and serves nevertheless, or gives the reason in one line and ends with exit
code 2."""

import datetime
import os
import re
import shutil
import struct
import subprocess
import time

import grpc
import numpy as np
import pytest

from http2 import DATA, END_HEADERS, HEADERS, Peer, frame, request_headers
from small_machine import Cgroup, mounted
from support import pb, quantize, run, tensor, wait_for

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


# The wall clock.

# Loaded before libc: the time of the clock, plus the seconds in the file.
SHIM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

static volatile int64_t* shift;
static int (*real)(clockid_t, struct timespec*);

__attribute__((constructor)) static void begin(void) {
  real = dlsym(RTLD_NEXT, "clock_gettime");
  int fd = open(getenv("SHIFT_FILE"), O_RDONLY);
  void* page = mmap(NULL, 8, PROT_READ, MAP_SHARED, fd, 0);
  if (page == MAP_FAILED) abort();
  shift = page;
}
int clock_gettime(clockid_t clock, struct timespec* now) {
  if (!real) begin();
  int failed = real(clock, now);
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) now->tv_sec += *shift;
  return failed;
}
int gettimeofday(struct timeval* now, void* zone) {
  struct timespec precise;
  clock_gettime(CLOCK_REALTIME, &precise);
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return 0;
}
time_t time(time_t* out) {
  struct timespec precise;
  clock_gettime(CLOCK_REALTIME, &precise);
  if (out) *out = precise.tv_sec;
  return precise.tv_sec;
}
"""
DAY = 24 * 3600


@pytest.fixture
def clock(tmp_path):
    """The environment of a server whose clock `set` moves by seconds."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang-19")
    if compiler is None:
        pytest.skip("no C compiler here")

    class Clock:
        environment = {"LD_PRELOAD": str(tmp_path / "shim.so"), "SHIFT_FILE": str(tmp_path / "shift")}

        def set(self, seconds):
            with open(tmp_path / "shift", "r+b") as file:
                file.write(struct.pack("=q", seconds))

    (tmp_path / "shift").write_bytes(bytes(8))
    (tmp_path / "shim.c").write_text(SHIM)
    subprocess.run([compiler, "-shared", "-fPIC", "-O", "-o", tmp_path / "shim.so", tmp_path / "shim.c", "-ldl"], check=True)
    return Clock()


def logged_at(server, what):
    line = next(line for line in server.log().splitlines() if f" {what} " in line)
    return datetime.datetime.fromisoformat(line.split(" ")[0].replace("Z", "+00:00"))


@pytest.mark.parametrize("jump", [DAY, -DAY], ids=["a day ahead", "a day back"])
def test_the_clock_jumps(start, clock, jump):
    """Only the dates in the log follow the clock: calls, deadlines, times in the queue, connections and the drain do not."""
    server = start(
        "--memory_budget_bytes=20000000", "--queue_timeout=2", "--keepalive_time=3600", "--max_connection_age=7200",
        "--drain_seconds=1", environment=clock.environment,
    )
    serves(server, calls=1)
    with Peer(server.address) as silent, Peer(server.address, window=0) as holder:
        headers = request_headers(extra=[("grpc-timeout", "2S")])
        begin = time.monotonic()
        silent.send(frame(HEADERS, END_HEADERS, silent.next_stream(), headers) + frame(DATA, 0, silent.stream, b"\0\0"))
        holder.upload(pb.DynamicQuantizeRequest(x=tensor(np.zeros(12 * MIB // 4))).SerializeToString())
        waiting = server.stub.Quantize.future(quantize(np.zeros(3_500_000)), timeout=60)
        wait_for(lambda: server.metrics()["quantd_queued_requests"] == 1, 5, "one waits for memory")
        clock.set(jump)
        assert server.stub.Quantize(quantize([1.0]), timeout=10).y.raw_data == b"\x02"
        # The call that its peer does not continue ends at the deadline that it had before the jump.
        silent.ended(1)
        assert silent.headers[1]["grpc-status"] == "4"
        assert 1.5 < time.monotonic() - begin < 10
        error = waiting.exception()
        assert error.code() == grpc.StatusCode.UNAVAILABLE
        assert 1.5 < time.monotonic() - begin < 10
    serves(server)
    ended = [number for name, number in server.metrics().items() if name.startswith("quantd_connections_ended_total")]
    assert sum(ended) <= 2, "the connections of this test, and no other"
    assert server.get("/livez")[0] == 200
    with Peer(server.address) as idle:
        idle.open("Stream")
        wait_for(lambda: server.metrics()["quantd_calls"] == 1, 5, "a call is open during the drain")
        begin = time.monotonic()
        ends_cleanly(server)
    assert 0.5 < time.monotonic() - begin < 5
    moved = (logged_at(server, "draining") - logged_at(server, "listening")).total_seconds()
    assert abs(moved - jump) < 60


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
