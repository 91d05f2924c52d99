"""Streams that are used in their own callbacks, and streams that nobody closes."""

import subprocess
import sys
import threading
import time

import numpy as np
import pytest


SERVER = "elsewhere"
X = np.ones(4, np.float32)


class Outcome:
    """What a callback has recorded."""

    def __init__(self):
        self._done, self.value = threading.Event(), None

    def of(self, function):
        """A callback that records what the function returns or raises."""

        def call(future):
            try:
                self.value = function()
            except BaseException as error:
                self.value = error
            self._done.set()

        return call

    def wait(self):
        assert self._done.wait(20), "the callback hangs"
        return self.value


def after_first_answer(stream, function):
    """What a function returns or raises in a callback of the stream's reader."""
    found = Outcome()
    stream.dynamic_quantize(X).add_done_callback(found.of(function))
    return found.wait()


def test_a_callback_makes_calls(client):
    with client.stream(max_in_flight=1) as stream:
        futures = after_first_answer(stream, lambda: [stream.quantize(X, 1.0) for _ in range(5)])
        assert [future.result(20).y.size for future in futures] == [4] * 5
        assert stream.quantize(X, 1.0).result(20).y.size == 4


@pytest.mark.parametrize("name", ["close", "cancel"])
def test_a_callback_closes_its_stream(client, name):
    stream = client.stream()
    other = stream.quantize(X, 1.0)
    assert after_first_answer(stream, getattr(stream, name)) is None
    assert other.result(20).y.size == 4
    with pytest.raises(ValueError, match="closed"):
        stream.quantize(X, 1.0)
    stream.close()


@pytest.mark.parametrize("last", [
    "", "stream.quantize(x, 1.0)", "stream.dynamic_quantize(x)", "stream.dynamic_quantize(x).add_done_callback(print)"])
def test_a_program_ends_that_closes_nothing(elsewhere, last):
    script = """if True:
        import sys, numpy as np, quantd
        x = np.ones(4, np.float32)
        client = quantd.Client(sys.argv[1])
        streams = [client.stream() for _ in range(4)]
        for stream in streams:
            stream.quantize(x, 1.0).result()
            LAST
    """.replace("LAST", last)
    begin = time.monotonic()
    run = subprocess.run([sys.executable, "-c", script, elsewhere], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0 and "Traceback" not in run.stderr, run.stderr
    assert time.monotonic() - begin < 20
