"""Threads: their number, many calls at once, without the GIL, interrupted, in children of fork and of
multiprocessing."""

import concurrent.futures
import multiprocessing
import os
import subprocess
import sys
import threading

import grpc
import numpy as np
import pytest

import quantd
from support import floats, same
from quantd import local

# Kernels in plain loops, so that a call takes longer than a test needs to interrupt it.
SLOW = {**os.environ, "QUANTD_SIMD": "scalar"}


def run(script, environment=None):
    """What a separate Python process prints."""
    done = subprocess.run(
        [sys.executable, "-c", "import numpy as np, quantd, os, sys, time\n" + script], env=environment, timeout=120,
        capture_output=True, text=True)
    assert done.returncode == 0, f"ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout.strip()


def test_how_many(monkeypatch):
    monkeypatch.delenv("QUANTD_THREADS", raising=False)
    assert local().info().threads == len(os.sched_getaffinity(0)) or local().info().threads >= 1
    assert local(threads=3).info().threads == 3
    monkeypatch.setenv("QUANTD_THREADS", "5")
    assert local().info().threads == 5 and local(threads=2).info().threads == 2
    for wrong in ("0", "1025", "-1", "many", "1.5", str(10**30)):
        monkeypatch.setenv("QUANTD_THREADS", wrong)
        with pytest.raises(ValueError, match=f"QUANTD_THREADS is .*{wrong}.* 1 to 1024"):
            local()
    monkeypatch.setenv("QUANTD_THREADS", "")
    assert local().info().threads >= 1
    for wrong in (0, 1025, -1, 10**30):
        with pytest.raises(ValueError, match=f"threads is {wrong}, must be from 1 to 1024"):
            local(threads=wrong)
        with pytest.raises(ValueError, match=f"threads is {wrong}, must be from 1 to 1024"):
            local(threads=1).quantize(np.float32([1]), 1.0, threads=wrong)
    for wrong in (1.5, "two", object()):
        with pytest.raises(ValueError, match="threads is"):
            local(threads=wrong)


def test_a_wrong_instruction_set_is_named():
    done = subprocess.run(
        [sys.executable, "-c", "import quantd; quantd.in_process().info()"], env={**os.environ, "QUANTD_SIMD": "mmx"},
        capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "ValueError" in done.stderr and "mmx" in done.stderr and "scalar" in done.stderr


@pytest.mark.parametrize("operation", ["quantize", "dynamic_quantize"])
def test_the_same_bits_by_any_number_of_threads(operation):
    x = floats((1 << 21) + 5)
    arguments = (x, 0.03) if operation == "quantize" else (x,)
    expected = getattr(local(threads=1), operation)(*arguments)
    for threads in (2, 3, 8):
        for output_type in ("uint8", "int4"):
            one = getattr(local(threads=1), operation)(*arguments, output_type=output_type)
            same(getattr(local(threads=threads), operation)(*arguments, output_type=output_type).y, one.y)
        same(getattr(local(threads=1), operation)(*arguments, threads=threads).y, expected.y)


def test_sixteen_threads_at_once():
    engine = local(threads=2)
    tensors = [floats((257, 1 + 97 * i), seed=i) for i in range(16)]
    scales = [np.abs(floats((257,), seed=i)) + 1 for i in range(16)]
    expected = [engine.quantize(x, s, axis=0, output_type="int4").y for x, s in zip(tensors, scales)]
    together = threading.Barrier(16)

    def work(i):
        together.wait()
        for turn in range(30):
            j = (i + turn) % 16
            same(engine.quantize(tensors[j], scales[j], axis=0, output_type="int4", threads=1 + turn % 3).y, expected[j])
            with pytest.raises(quantd.InvalidArgumentError):
                engine.quantize(tensors[j], scales[j][1:], axis=0)
        return True

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        assert all(pool.map(work, range(16)))


def test_the_gil_is_given_away():
    """Another thread counts while a call computes; if the call held the GIL, it could not."""
    output = run("""
import threading
sys.setswitchinterval(1000)  # nobody takes the GIL: it must be given
x = np.ones(1 << 24, np.float32)
ticks, over = [], False
def tick():
    while not over:
        ticks.append(time.monotonic())
        time.sleep(0.001)
thread = threading.Thread(target=tick)
thread.start()
begin = time.monotonic()
quantd.quantize(x, 0.5, output_type="float8_e4m3fn", report_error=True, threads=1)
end = time.monotonic()
over = True
thread.join()
print(sum(begin < t < end for t in ticks))
""", SLOW)
    assert int(output) > 20


INTERRUPT = """
import signal, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background of a shell it is ignored
x = np.ones(1 << 25, np.float32)
def call():
    return quantd.quantize(x, 0.5, output_type="float8_e4m3fn", report_error=True, threads=%d)
begin = time.monotonic()
call()
whole = time.monotonic() - begin
threading.Timer(whole / 5, os.kill, (os.getpid(), signal.SIGINT)).start()
begin = time.monotonic()
try:
    call()
except KeyboardInterrupt:
    took = time.monotonic() - begin
    assert took < whole * 0.8, (took, whole)
    print("interrupted")
small = quantd.quantize(x[:5], 0.5)
assert small.y.tolist() == [2] * 5
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c(threads):
    assert run(INTERRUPT % threads, SLOW) == "interrupted"


def test_a_signal_that_raises_nothing_disturbs_nothing():
    output = run("""
import signal
seen = []
quantd.in_process().info()
signal.signal(signal.SIGALRM, lambda *_: seen.append(quantd.quantize(np.float32([4]), 0.5).y.tolist()))
signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
x = np.ones(1 << 24, np.float32)
for threads in (1, 2):
    y = quantd.quantize(x, 0.5, output_type="float8_e4m3fn", report_error=True, threads=threads).y
    assert (y == 2).all()
signal.setitimer(signal.ITIMER_REAL, 0)
print(len(seen) > 2 and all(y == [8] for y in seen))
""", SLOW)
    assert output == "True"


def test_timeouts():
    engine, x = local(threads=2), np.ones(1 << 24, np.float32)
    for timeout in (0, -1, 1e-9):
        with pytest.raises(quantd.DeadlineExceededError) as caught:
            engine.quantize(x, 0.5, report_error=True, timeout=timeout)
        assert caught.value.code is grpc.StatusCode.DEADLINE_EXCEEDED and isinstance(caught.value, TimeoutError)
    with pytest.raises(quantd.DeadlineExceededError):
        local(threads=2, timeout=1e-9).quantize(x, 0.5)
    assert local(threads=2, timeout=1e-9).quantize(x[:3], 0.5, timeout=60).y.shape == (3,)
    assert engine.quantize(x[:3], 0.5, timeout=float("inf")).y.shape == (3,)
    with pytest.raises(TypeError):
        engine.quantize(x, 0.5, timeout="soon")
    output = run("""
x = np.ones(1 << 25, np.float32)
begin = time.monotonic()
quantd.quantize(x, 0.5, output_type="float8_e4m3fn", report_error=True)
whole = time.monotonic() - begin
begin = time.monotonic()
try:
    quantd.quantize(x, 0.5, output_type="float8_e4m3fn", report_error=True, timeout=whole / 5)
except quantd.DeadlineExceededError:
    print(time.monotonic() - begin < whole * 0.8)
""", SLOW)
    assert output == "True"


FORK = """
import threading
x = np.arange(1 << 22, dtype=np.float32)
engine = quantd.local(threads=4)
expected = None if %(before)r == "nothing" else engine.dynamic_quantize(x).y.tobytes()
busy, over = %(before)r == "others compute", False
def compute():
    while not over:
        engine.dynamic_quantize(x)
others = [threading.Thread(target=compute) for _ in range(3 if busy else 0)]
for thread in others:
    thread.start()
for turn in range(10 if busy else 2):
    child = os.fork()
    if child == 0:
        y = engine.dynamic_quantize(x).y.tobytes()
        again = quantd.local(threads=2).dynamic_quantize(x, output_type="int4").y.shape
        if turn %% 2:
            sys.exit(0 if expected in (None, y) and again == x.shape else 3)  # the long way out
        os._exit(0 if expected in (None, y) and again == x.shape else 3)
    deadline = time.monotonic() + 60
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            break
        if time.monotonic() > deadline:
            os.kill(child, 9)
            raise SystemExit("the child hangs")
        time.sleep(0.005)
    assert status == 0, status
    assert expected in (None, engine.dynamic_quantize(x).y.tobytes())
over = True
for thread in others:
    thread.join()
print("done")
"""


@pytest.mark.parametrize("before", ["nothing", "it computed", "others compute"])
def test_children_of_fork_compute(before):
    assert run(FORK % {"before": before}).endswith("done")


def quantized(seed):
    return quantd.quantize(floats((512, 1024), seed=seed), 0.5).y


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(method):
    expected = [quantized(seed) for seed in range(6)]
    with multiprocessing.get_context(method).Pool(2) as pool:
        for ours, theirs in zip(pool.map_async(quantized, range(6)).get(60), expected):
            same(ours, theirs)


def test_many_pools():
    x = floats(1 << 19)
    expected = local(threads=1).quantize(x, 0.5).y
    for threads in (1, 2, 4, 16, 64):
        same(local(threads=threads).quantize(x, 0.5).y, expected)
