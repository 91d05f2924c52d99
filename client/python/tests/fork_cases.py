"""Children of fork, as made by multiprocessing and torch's DataLoader: the parent's client and streams never make them hang."""

import concurrent.futures
import os
import signal

import numpy as np

import quantd

SERVER = "elsewhere"
X = np.ones(4, np.float32)


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
        slow = stream.dynamic_quantize(X)
        slow.add_done_callback(called.append)
        assert told(in_child(slow.result), "stream")
        assert in_child(lambda: len(concurrent.futures.wait([slow]).done)) == "1"
        assert in_child(lambda: slow.exception() and len(called)) == "0"  # only the parent may call them
        assert slow.result(20).y.size == 4 and called == [slow]


def test_a_child_makes_its_own(client, elsewhere):
    def own():
        with quantd.Client(elsewhere, timeout=10) as mine, mine.stream() as stream:
            return mine.quantize(X, 1.0).y.size + stream.quantize(X, 1.0).result(10).y.size

    with client.stream() as stream:
        stream.quantize(X, 1.0).result(20)
        assert in_child(own) == "8"


def test_shared_memory_stays_the_parents(elsewhere, tmp_path):
    with quantd.Client(elsewhere, shared_memory_dir=str(tmp_path)) as client, client.shared(X) as x:
        assert in_child(lambda: x.close() or len(list(tmp_path.iterdir()))) == "1"
        assert in_child(lambda: x.array().tolist()) == "[1.0, 1.0, 1.0, 1.0]"
        assert x.array().tolist() == [1, 1, 1, 1]
