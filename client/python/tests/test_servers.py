"""Servers that end, and servers that announce it: streams that are opened again, health, and whose fault a reset is."""

import asyncio
import threading
import time
from concurrent import futures

import grpc
import numpy as np
import pytest

import both_clients
import quantd
from quantd import errors, messages
from raw_server import RawServer

X = np.ones(4, np.float32)
Y = messages.Tensor(data_type=2, shape=[4], raw_data=b"\1\2\3\4")


def answer(item):
    """Its scale, which the client has chosen to be the item's number, tells which item it answers."""
    request = messages.StreamRequest.FromString(item)
    number = int(np.frombuffer(request.quantize.scale.raw_data, np.float32)[0])
    y = messages.Tensor(data_type=2, shape=[4], raw_data=bytes([number] * 4))
    return messages.StreamResponse(id=request.id, quantize=messages.QuantizeResponse(y=y)).SerializeToString()


class Going:
    """A Stream that ends after `each` answers, `times` times in all; records the items that it has seen."""

    def __init__(self, each, times, code=grpc.StatusCode.UNAVAILABLE):
        self.each, self.left, self.code, self.seen = each, times, code, []

    def __call__(self, items, context):
        for index, item in enumerate(items):
            if self.left and index == self.each:
                self.left -= 1
                context.abort(self.code, "the server is draining")
            self.seen.append(messages.StreamRequest.FromString(item).id)
            yield answer(item)


def items(address, count, **options):
    with quantd.Client(address, **options) as client, client.stream(max_in_flight=8) as stream:
        pending = [stream.quantize(X, float(number)) for number in range(1, count + 1)]
        return [future.exception() or int(future.result().y[0]) for future in pending]


@pytest.mark.parametrize("each", [0, 1, 5])
def test_a_stream_whose_server_goes_is_opened_again(each):
    going = Going(each, times=3)
    with RawServer(Stream=going) as server:
        assert items(server.address, 40) == list(range(1, 41))
    assert going.left == 0 and set(going.seen) == set(range(40))


def test_a_stream_is_given_up_when_its_server_never_comes_back():
    with RawServer(Stream=Going(0, times=1000)) as server:
        results = items(server.address, 3)
        assert len(server.calls) >= 5
    assert [(type(result), result.message) for result in results] == [(quantd.UnavailableError, "the server is draining")] * 3


def test_a_stream_is_not_opened_again_where_that_is_not_wanted_or_no_use():
    for options, code in ({"retry": False}, grpc.StatusCode.UNAVAILABLE), ({}, grpc.StatusCode.DATA_LOSS):
        with RawServer(Stream=Going(0, times=1000, code=code)) as server:
            results = items(server.address, 1, **options)
            assert len(server.calls) == 1
        assert [result.code for result in results] == [code]


def seen(server):
    """Waits until the stream was opened, and a little longer, until the client knows that it must wait."""
    while not server.calls:
        time.sleep(0.01)
    time.sleep(0.2)


class Leaving:
    """A server whose health is NOT_SERVING, for Check and for Watch."""

    def __init__(self):
        status = messages.HealthCheckResponse(status=2).SerializeToString()

        def watch(request, context):
            yield status
            while context.is_active():
                time.sleep(0.05)

        quantized = messages.QuantizeResponse(y=Y).SerializeToString()
        self.server = grpc.server(futures.ThreadPoolExecutor(8))
        self.server.add_generic_rpc_handlers((
            grpc.method_handlers_generic_handler("grpc.health.v1.Health", {
                "Check": grpc.unary_unary_rpc_method_handler(lambda request, context: status),
                "Watch": grpc.unary_stream_rpc_method_handler(watch)}),
            grpc.method_handlers_generic_handler(messages.SERVICE, {
                "Quantize": grpc.unary_unary_rpc_method_handler(lambda request, context: quantized)}),
        ))  # fmt: skip
        self.address = f"127.0.0.1:{self.server.add_insecure_port('127.0.0.1:0')}"
        self.server.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.stop(None)


def test_a_server_that_leaves_gets_no_call_but_the_question_whether_it_does():
    with Leaving() as leaving, RawServer(Quantize=lambda *_: messages.QuantizeResponse(y=Y).SerializeToString()) as other:
        with quantd.Client(leaving.address, retry=False) as client:
            assert client.health() == "NOT_SERVING"
            with pytest.raises(quantd.UnavailableError):
                client.quantize(X, 1.0, timeout=10)
        with quantd.Client(leaving.address) as client:  # health chooses among servers, and vetoes none
            assert client.quantize(X, 1.0, timeout=10).y.tolist() == [1, 2, 3, 4]
        with quantd.Client(f"ipv4:{leaving.address},{other.address}") as client:
            for _ in range(20):
                client.quantize(X, 1.0, timeout=10)
        assert len(other.calls) == 20

    async def ask():
        async with quantd.AsyncClient(leaving.address) as client:
            return await client.health()

    with Leaving() as leaving:
        assert asyncio.run(ask()) == "NOT_SERVING"
        # With a service config of the user's own, health is not checked.
        with quantd.Client(leaving.address, options=[("grpc.service_config", "{}")]) as client:
            assert client.quantize(X, 1.0).y.tolist() == [1, 2, 3, 4]


class Failed(grpc.RpcError):
    def __init__(self, code, details):
        self.code, self.details, self.trailing_metadata = (lambda: code), (lambda: details), (lambda: ())


def test_a_reset_of_the_peers_is_unavailable():
    """A server that stops, or a proxy before it, resets calls: the user has not cancelled them."""
    cancelled = grpc.StatusCode.CANCELLED
    dropped = errors.from_rpc_error(Failed(cancelled, "Received RST_STREAM with error code 8"))
    assert isinstance(dropped, quantd.UnavailableError)
    assert errors.from_rpc_error(Failed(cancelled, "Locally cancelled by application!")).code is cancelled
    internal = errors.from_rpc_error(Failed(grpc.StatusCode.INTERNAL, "Received RST_STREAM with error code 2"))
    assert internal.code is grpc.StatusCode.INTERNAL


@pytest.mark.parametrize("kind", [both_clients.Sync, both_clients.Async])
def test_a_server_that_comes_back_costs_no_call(kind):
    """Nobody listens for longer than five attempts take."""
    answer = lambda *_: messages.QuantizeResponse(y=Y).SerializeToString()  # noqa: E731
    with RawServer(Quantize=answer) as server:
        client = kind(server.address)
        assert client.quantize() == [1, 2, 3, 4]
    again = []
    port = int(server.address.rpartition(":")[2])
    later = threading.Timer(2, lambda: again.append(RawServer(Quantize=answer, port=port)))
    later.start()
    try:
        assert client.quantize() == [1, 2, 3, 4] and again
    finally:
        later.join()
        again[0].stop()
