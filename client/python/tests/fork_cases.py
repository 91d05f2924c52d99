"""Children of fork, as made by multiprocessing and torch's DataLoader: the parent's client and streams never make them hang."""

import asyncio
import concurrent.futures
import os
import signal
import threading
import time

import grpc
import numpy as np
import pytest

import fake_server
import quantd
from raw_server import RawServer

SERVER = "elsewhere"
X = np.ones(4, np.float32)
SLOW = np.full(4, fake_server.SLEEP_X, np.float32)  # answered after 2 s


def in_child(function, forks=5):
    """The function's result, or its error, in a child of fork, which is killed if it hangs.

    In one of some hundred children, gRPC's own fork handlers cause a SIGSEGV within os.fork() (grpcio 1.85, after "Other threads are
    currently calling into gRPC, skipping fork() handlers"): then another child is made.
    """
    read, write = os.pipe()
    child = os.fork()
    if not child:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(20)
        os.write(write, b"<")
        try:
            text = str(function())
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        os.write(write, text.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    status = os.waitpid(child, 0)[1]
    if not text and os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGSEGV and forks > 1:
        return in_child(function, forks - 1)
    return text[1:] or f"it ended with status {status}, of SIGALRM if it hung"


def told(text, what):
    return text.startswith(f"RuntimeError: this {what} was made by process {os.getpid()} and this is ") and "after the fork" in text


def test_a_stream_says_so(client):
    with client.stream() as stream:
        assert stream.quantize(X, 1.0).result(20).y.size == 4
        assert told(in_child(lambda: stream.quantize(X, 1.0).result()), "stream")
        assert told(in_child(client.stream), "client")
        assert stream.quantize(X, 1.0).result(20).y.size == 4


def test_futures_that_are_open_fail(client):
    called = []
    with client.stream() as stream:
        slow = stream.dynamic_quantize(SLOW)
        slow.add_done_callback(called.append)
        assert told(in_child(slow.result), "stream")
        assert in_child(lambda: len(concurrent.futures.wait([slow]).done)) == "1"
        assert in_child(lambda: slow.exception() and len(called)) == "0"  # only the parent may call them
        assert slow.result(20).y.size == 4 and called == [slow]


def test_a_future_whose_answer_is_being_read_fails(client, monkeypatch):
    from quantd import calls

    reading, go = threading.Event(), threading.Event()

    def settle(*arguments):
        reading.set()
        go.wait(20)
        return settled(*arguments)

    settled = calls.settle
    monkeypatch.setattr(calls, "settle", settle)
    with client.stream() as stream:
        future = stream.quantize(X, 1.0)
        assert reading.wait(20)
        text = in_child(future.result)
        go.set()
        assert told(text, "stream") and future.result(20).y.size == 4


@pytest.mark.parametrize("name", ["close", "cancel", "__exit__"])
def test_closing_does_nothing(client, name):
    with client.stream() as stream:
        slow = stream.dynamic_quantize(SLOW)
        arguments = (None, None, None) if name == "__exit__" else ()
        assert in_child(lambda: getattr(stream, name)(*arguments)) == "None"
        assert in_child(client.close) == "None"
        assert in_child(lambda: client.__exit__(None, None, None)) == "None"
        assert slow.result(20).y.size == 4 and client.health() == "SERVING"


def test_locks_that_threads_of_the_parent_hold(client):
    """Threads that were inside the stream during the fork do not exist in the child, but their locks stay locked."""
    end = threading.Event()

    def work(stream):
        while not end.is_set():
            stream.quantize(X, 1.0)

    with client.stream(max_in_flight=2) as stream:
        threads = [threading.Thread(target=work, args=(stream,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            texts = [in_child(lambda: stream.quantize(X, 1.0).result()) for _ in range(30)]
        finally:
            end.set()
            for thread in threads:
                thread.join()
    assert all(told(text, "stream") for text in texts), texts


def test_a_child_makes_its_own(client, elsewhere):
    def own():
        with quantd.Client(elsewhere, timeout=10) as mine, mine.stream() as stream:
            return mine.quantize(X, 1.0).y.size + stream.quantize(X, 1.0).result(10).y.size

    with client.stream() as stream:
        stream.quantize(X, 1.0).result(20)
        assert in_child(own) == "8"


def test_a_child_that_ends_as_a_program_does(elsewhere):
    """With its finalizers, and with everything that the interpreter frees."""
    import subprocess
    import sys

    script = (
        "import os, sys, numpy as np, quantd\n"
        "client = quantd.Client(sys.argv[1])\n"
        "stream = client.stream()\n"
        "future = stream.quantize(np.ones(4, np.float32), 1.0)\n"
        "future.result()\n"
        "child = os.fork()\n"
        "if child:\n"
        "    print(os.waitpid(child, 0)[1])\n"
        "else:\n"
        "    del client, future\n"
        "    sys.exit(0)\n")
    run = subprocess.run([sys.executable, "-c", script, elsewhere], capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stdout) == (0, "0\n"), run.stderr


def test_an_async_client_says_so(elsewhere):
    """As if in a child: in a real one gRPC's asyncio may crash before our code runs."""

    async def calls():
        async with quantd.AsyncClient(elsewhere) as client:
            client._transport._process = parent = os.getppid()
            with pytest.raises(RuntimeError, match=f"this client was made by process {parent} and this is {os.getpid()}: .*after the fork"):
                await client.quantize(X, 1.0)
            client._transport._process = os.getpid()
            assert (await client.quantize(X, 1.0)).y.size == 4

    asyncio.run(calls())


def test_shared_memory_stays_the_parents(elsewhere, tmp_path):
    with quantd.Client(elsewhere, shared_memory_dir=str(tmp_path)) as client, client.shared(X) as x:
        assert in_child(lambda: x.close() or len(list(tmp_path.iterdir()))) == "1"
        assert in_child(lambda: x.array().tolist()) == "[1.0, 1.0, 1.0, 1.0]"
        assert x.array().tolist() == [1, 1, 1, 1]


def test_a_stream_that_waits_to_be_opened_again():
    def stream(items, context):
        next(items)
        context.set_trailing_metadata([("grpc-retry-pushback-ms", "25000")])
        context.abort(grpc.StatusCode.UNAVAILABLE, "later")
        yield b""

    with RawServer(Stream=stream) as server, quantd.Client(server.address) as client:
        calls = client.stream()
        future = calls.quantize(X, 1.0)
        while not server.calls:
            time.sleep(0.01)
        time.sleep(0.2)
        assert told(in_child(future.result), "stream") and in_child(calls.cancel) == "None"
        calls.cancel()
