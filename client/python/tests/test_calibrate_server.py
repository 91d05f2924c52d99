"""calibrate with the real server: all kinds of clients give the same, in any pieces, and so does quantd.local()."""

import asyncio
import itertools
import subprocess
import sys
import threading
import time

import ml_dtypes
import numpy as np
import pytest

import quantd
from test_calibrate import BIG, Clients, X, run_async
from test_split import bits


@pytest.fixture(params=["sync", "async"])
def calibrate(request):
    return Clients(request.param)


def same(a, b):
    assert repr(a) == repr(b)
    for name in ("scale", "zero_point", "range"):
        x, y = getattr(a, name), getattr(b, name)
        assert (x is None) == (y is None) and (x is None or (x.dtype, x.shape, bits(x)) == (y.dtype, y.shape, bits(y)))
    assert a.state == b.state


@pytest.fixture(scope="module")
def server(large):
    if "calibrate" not in large.info().extensions:
        pytest.skip("this server has no Calibrate")
    return large


@pytest.mark.parametrize("axis", [None, 0, -1])
def test_pieces_give_the_same(server, small, calibrate, axis):
    options = dict(axis=axis, return_state=True, output_type="int8", symmetry="symmetric")
    x = BIG[:, :, :200] if axis == -1 else BIG
    same(calibrate(small.address, x, **options), server.calibrate(x, **options))


def test_in_process_gives_the_same(server):
    pytest.importorskip("quantd_core", reason="quantd-core is not installed: ./tests/run.sh engine builds it")
    with quantd.local() as local:
        for x in (X, X.astype(np.float16), X.astype(ml_dtypes.bfloat16), (X * 100).astype(np.int32)):
            for method in ("min_max", "percentile", "entropy", "mse"):
                for output_type in ("uint8", "int4", "uint16") + (("float8_e4m3fn",) if method[0] in "mp" and method != "mse" else ()):
                    for axis in (None, 1):
                        options = dict(method=method, output_type=output_type, axis=axis, return_state=True)
                        same(server.calibrate(x, **options), local.calibrate(x, **options))
        for wrong in (dict(xs=X, axis=3), dict(xs=X, output_type="float8_e5m2"), dict(xs=X, method="percentile", percentile=3.0),
                      dict(xs=[X, X[:, :3]], axis=1), dict(xs=[]), dict(xs=X, states=[b"QDC1"]), dict(xs=np.float32([1, np.inf])),
                      dict(xs=np.uint8([1]))):
            with pytest.raises(quantd.InvalidArgumentError) as theirs:
                server.calibrate(**wrong)
            with pytest.raises(quantd.InvalidArgumentError) as ours:
                local.calibrate(**wrong)
            assert theirs.value.field == ours.value.field, wrong


def test_it_goes_into_quantize_and_quantize_embeddings(server):
    found = server.calibrate(X, output_type="int8", axis=1)
    y = server.quantize(X, **found.quantize_arguments())
    assert y.y.dtype == np.int8 and y.dequantize().y.shape == X.shape
    ranges = server.calibrate(X.reshape(-1, 25), method="percentile", axis=1).range
    assert server.quantize_embeddings(X, preset="sentence-transformers-uint8", ranges=ranges).y.shape == X.shape


def test_many_calibrations_at_once(server):
    """A hundred tasks over one connection, each with its own iterator."""
    inputs = [X * np.float32(i + 1) for i in range(100)]

    async def each(client, x):
        async def rows():
            for row in x:
                yield row
                await asyncio.sleep(0)

        return await client.calibrate(rows(), return_state=True)

    async def use(client):
        return await asyncio.gather(*(each(client, x) for x in inputs))

    for found, x in zip(run_async(server.address, use), inputs):
        assert found.elements == x.size
        same(found, server.calibrate(x, return_state=True))


INTERRUPT = """
import itertools, os, signal, sys, threading
import numpy as np, quantd
signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background of a shell it is ignored
def endless():
    for i in itertools.count():
        if i == 20:
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        yield np.ones(1 << 16, np.float32)
with quantd.Client(sys.argv[1]) as client:
    try:
        client.calibrate(endless())
    except KeyboardInterrupt:
        print("interrupted", client.calibrate(np.ones(5, np.float32)).elements)
"""


def test_ctrl_c(server):
    done = subprocess.run([sys.executable, "-c", INTERRUPT, server.address], capture_output=True, text=True, timeout=60)
    assert done.stdout == "interrupted 5\n", done.stderr


def test_sixteen_threads_and_calls_that_fail_leave_none_behind(server):
    """Good and bad calls of one client; gRPC's thread for each call ends with it."""
    wanted = [server.calibrate(X * np.float32(i + 1), return_state=True) for i in range(16)]
    bad = X.copy()
    bad[3, 4, 5] = np.nan
    failures = []

    def work(i):
        try:
            for _ in range(5):
                same(server.calibrate((row for row in X * np.float32(i + 1)), return_state=True), wanted[i])
                with pytest.raises(quantd.InvalidArgumentError, match="is nan"):
                    server.calibrate(itertools.chain(X, bad, itertools.repeat(X[0])))
                with pytest.raises(ZeroDivisionError):
                    server.calibrate(X / (i - j) if j != i else 1 // 0 for j in range(100, -1, -1))
        except BaseException as error:
            failures.append(error)
            raise

    before = threading.active_count()
    threads = [threading.Thread(target=work, args=(i,)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    end = time.monotonic() + 20
    while threading.active_count() > before + 1 and time.monotonic() < end:
        time.sleep(0.05)
    assert not failures and threading.active_count() <= before + 1
