"""Threads: their number, many calls at once, without the GIL, interrupted, in children of fork and of
multiprocessing."""

import os
import subprocess
import sys

import numpy as np
import pytest

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
    assert 1 <= local().info().threads <= len(os.sched_getaffinity(0))
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


FORK = """
import signal, threading
x = np.arange(1 << 22, dtype=np.float32)
engine = quantd.local(threads=4)
expected = None if %(before)r == "nothing" else engine.dynamic_quantize(x).y.tobytes()
busy, over = %(before)r == "others compute", False
def compute():
    while not over:
        engine.dynamic_quantize(x)
others = [threading.Thread(target=compute, daemon=True) for _ in range(3 if busy else 0)]
for thread in others:
    thread.start()
for turn in range(15 if busy else 2):
    child = os.fork()
    if child == 0:
        signal.alarm(30)  # if it hangs
        y = engine.dynamic_quantize(x).y.tobytes()
        again = quantd.local(threads=2).dynamic_quantize(x, output_type="int4").y.shape
        if turn %% 2:
            sys.exit(0 if expected in (None, y) and again == x.shape else 3)  # the long way out
        os._exit(0 if expected in (None, y) and again == x.shape else 3)
    status = os.waitpid(child, 0)[1]
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
