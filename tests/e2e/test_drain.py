"""SIGTERM and SIGINT: requests in flight finish, the exit code is 0, a second signal ends the server at once."""

import signal
import threading
import time

import grpc
import numpy as np
import pytest

from support import SERVICE, pb, pb_grpc, quantize, wait_for


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_server_ends_at_once(start, number):
    server = start()
    begin = time.monotonic()
    server.signal(number)
    assert server.process.wait(10) == 0
    assert time.monotonic() - begin < 2
    assert " draining " in server.log() and " stopped" in server.log()


def test_requests_in_flight_finish(start):
    """Requests that were sent before the signal are answered, all of them, and correctly: also those whose first byte
    waits behind another upload on the same connection."""
    server = start("--max_message_bytes=200000000")
    x = np.arange(8_000_000, dtype=np.float32)
    request = quantize(x, scale=1e6)
    futures = [server.stub.Quantize.future(request, timeout=60) for _ in range(6)]
    busy = f'grpc_server_started_total{{grpc_type="unary",grpc_service="{SERVICE}",grpc_method="Quantize"}}'
    wait_for(lambda: server.metrics()[busy] > 0, 20, "work begins")
    server.signal()
    expected = np.rint(x / np.float32(1e6)).astype(np.uint8).tobytes()
    assert [future.result().y.raw_data == expected for future in futures] == [True] * 6
    assert server.process.wait(20) == 0


def test_a_busy_stream_ends_with_unavailable(start):
    server = start("--drain_seconds=20")
    more = threading.Event()

    def items():
        yield pb.StreamRequest(id=1, quantize=quantize([1.0]))
        more.wait(10)
        yield pb.StreamRequest(id=2, quantize=quantize([2.0]))
        threading.Event().wait(3)

    stream = server.stub.Stream(items(), timeout=30)
    assert next(stream).id == 1
    server.signal()
    wait_for(lambda: " draining " in server.log(), 5, "the drain begins")
    time.sleep(0.2)
    more.set()
    assert next(stream).id == 2
    with pytest.raises(grpc.RpcError) as error:
        next(stream)
    assert error.value.code() == grpc.StatusCode.UNAVAILABLE
    assert server.process.wait(10) == 0


def test_who_comes_during_the_drain_is_refused_cleanly(start):
    server = start("--drain_seconds=20")
    stop = threading.Event()

    def items():
        yield pb.StreamRequest(id=1, quantize=quantize([1.0]))
        stop.wait(30)

    stream = server.stub.Stream(items(), timeout=30)
    assert next(stream).id == 1

    def refused():
        """A new client is served before the drain, and is told at once when there is no server any more."""
        error = pb_grpc.QuantizationServiceStub(server.channel()).Quantize.future(quantize([1.0]), timeout=10).exception()
        return error is not None and error.code() == grpc.StatusCode.UNAVAILABLE and "refused" in error.details()

    assert not refused()
    server.signal()
    wait_for(refused, 10, "new connections are refused")
    assert server.process.poll() is None
    stop.set()
    assert server.process.wait(20) == 0


def test_a_second_signal_ends_it_at_once(start):
    server = start("--lame_duck_seconds=30")
    server.signal()
    wait_for(lambda: " draining " in server.log(), 5, "the drain begins")
    begin = time.monotonic()
    server.signal()
    assert server.process.wait(10) == 128 + signal.SIGTERM
    assert time.monotonic() - begin < 5
