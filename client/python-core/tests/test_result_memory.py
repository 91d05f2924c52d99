"""Memory of large results: it is used again when the last array of it is gone, and given back when nobody uses it."""

import multiprocessing
import os
import threading
import time

import numpy as np
import pytest

import quantd

MIB = 1 << 20
LOCAL = quantd.local(threads=1)
CODES = np.arange(16 * MIB, dtype=np.uint8)


def result(point=0, codes=CODES):
    return LOCAL.dequantize(codes, np.float32(1), np.uint8(point)).y


def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_used_again():
    first = result()
    address = first.ctypes.data
    assert first.flags.owndata and address % 64 == 0
    del first
    assert result().ctypes.data == address


def test_a_view_keeps_it():
    view = result(3)[1000:2000]
    before = view.copy()
    others = [result(point) for point in range(8)]
    np.testing.assert_array_equal(view, before)
    assert [other[0] for other in others] == [-point for point in range(8)]


def test_resize():
    y = result(1)
    y.resize(20 * MIB, refcheck=False)
    np.testing.assert_array_equal(y[: 16 * MIB], result(1))
    y.resize(10, refcheck=False)
    np.testing.assert_array_equal(y, np.arange(10) - 1)


def test_bounded_and_given_back():
    results = [result() for _ in range(6)]
    held = resident()
    del results
    assert held - resident() > 64 * MIB
    end = time.monotonic() + 30
    while held - resident() < 6 * 64 * MIB - 16 * MIB:
        assert time.monotonic() < end, resident()
        time.sleep(0.05)


def test_threads():
    wrong = []

    def work(point):
        for codes in [CODES[:MIB], CODES[: 2 * MIB], CODES[: 5 * MIB]] * 5:
            y = result(point, codes)
            if y[0] != -point or y[-1] != 255 - point:
                wrong.append((point, y))

    threads = [threading.Thread(target=work, args=(point,)) for point in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_has_its_own():
    held, pipe = result(5), multiprocessing.Pipe()
    result()

    def child():
        pipe[1].send([float(y[0]) for y in (held, result(7), result(8))])

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    assert pipe[0].recv() == [-5, -7, -8]
    process.join()
    assert process.exitcode == 0 and result(1)[0] == -1
