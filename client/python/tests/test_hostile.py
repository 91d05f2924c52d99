"""Servers that lie, vanish or never answer; processes that fork; tasks that are cancelled. Every case ends with one clear error."""

import asyncio
import gc
import os
import threading
import time

import grpc
import numpy as np
import pytest

import both_clients
import quantd
from quantd import messages
from raw_server import RawServer, info

X = np.ones(300_000, np.float32)


def y(count, data_type=2, shape=None, raw=None):
    return messages.QuantizeResponse(y=messages.Tensor(
        data_type=data_type, shape=[count] if shape is None else shape, raw_data=b"\1" * count if raw is None else raw)
    ).SerializeToString()


NONSENSE = {
    "nothing": b"",
    "random bytes": bytes(range(256)) * 100,
    "a truncated message": y(300_000)[:-5],
    "too short": y(299_999),
    "another shape of the same size": y(300_000, shape=[2, 150_000]),
    "fewer bytes than the shape says": y(300_000, raw=b"\1" * 299_999),
    "more bytes than the shape says": y(300_000, raw=b"\1" * 300_001),
    "an unknown type": y(300_000, data_type=99),
    "no type": y(300_000, data_type=0),
    "a negative shape": y(300_000, shape=[-300_000]),
    "a shape that overflows": y(300_000, shape=[1 << 62, 1 << 62]),
    "shared memory": messages.QuantizeResponse(
        y={"data_type": 2, "shape": [300_000], "shared_memory": {"region": "../x", "byte_size": 300_000}}).SerializeToString(),
    "values of another number": messages.QuantizeResponse(
        y={"data_type": 2, "shape": [300_000], "int_values": {"values": [1, 2]}}).SerializeToString(),
}


@pytest.mark.parametrize("split", [False, True], ids=["one message", "pieces"])
@pytest.mark.parametrize("answer", NONSENSE.values(), ids=NONSENSE)
def test_nonsense(answer, split):
    limit = info(1 << 20) if split else info()
    with RawServer(GetServerInfo=limit, Quantize=lambda *_: answer) as server, quantd.Client(server.address, timeout=20) as client:
        with pytest.raises(quantd.QuantdError, match="INTERNAL: the server's answer is wrong"):
            client.quantize(X, 1.0)


def test_nonsense_about_scales():
    good = {"y": {"data_type": 2, "shape": [4], "raw_data": b"abcd"}}
    for wrong in ({}, {"y_scale": {"data_type": 1, "shape": [2], "raw_data": b"abcd"}}, {"y_scale": {"data_type": 7}}):
        data = messages.DynamicQuantizeResponse(**good, **wrong).SerializeToString()
        with RawServer(DynamicQuantize=lambda *_: data) as server, quantd.Client(server.address, timeout=20) as client:
            with pytest.raises(quantd.QuantdError, match="the server's answer is wrong"):
                client.dynamic_quantize(np.ones(4, np.float32))


@pytest.mark.parametrize("limit,budget", [(1, 0), (100, 0), (0, 1), ((1 << 64) - 1, 0)])
def test_nonsense_about_limits(limit, budget):
    def quantize(request, context):
        return y(len(messages.QuantizeRequest.FromString(request).x.raw_data) // 4)

    with RawServer(GetServerInfo=info(limit, budget), Quantize=quantize) as server:
        with quantd.Client(server.address, timeout=60) as client:
            if limit > 1 << 40:
                assert client.quantize(X, 1.0).y.size == X.size
            else:
                with pytest.raises(quantd.ResourceExhaustedError, match="does not fit into a message"):
                    client.quantize(X, 1.0)


def test_servers_without_info_get_one_message():
    with RawServer(Quantize=lambda *_: y(300_000)) as server, quantd.Client(server.address, timeout=20) as client:
        assert client.quantize(X, 1.0).y.size == X.size
        assert [name for name, _ in server.calls] == ["Quantize"]  # it does not know GetServerInfo


def test_a_limit_that_was_lowered_is_learnt():
    limits = [1 << 30]

    def quantize(request, context):
        if len(request) > limits[0]:
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too large")
        return y(len(messages.QuantizeRequest.FromString(request).x.raw_data) // 4)

    with RawServer(GetServerInfo=lambda *a: info(limits[0])(*a), Quantize=quantize) as server:
        with quantd.Client(server.address, timeout=20) as client:
            assert client.quantize(X, 1.0).y.size == X.size
            limits[0] = 1 << 19
            assert client.quantize(X, 1.0).y.size == X.size
            assert client.quantize(X, 1.0).y.size == X.size
            limits[0] = 0  # it claims to have no limit, and refuses nevertheless
            with pytest.raises(quantd.ResourceExhaustedError, match="too large"):
                client.quantize(X, 1.0)


@pytest.mark.parametrize("kind", [both_clients.Sync, both_clients.Async])
@pytest.mark.parametrize("limit", [1 << 16, 1 << 30], ids=["pieces", "one message"])
def test_what_a_server_refused_is_said_although_its_limits_cannot_be_asked_again(kind, limit):
    asked = []

    def limits(request, context):
        asked.append(1)
        return info(limit)(request, context) if len(asked) == 1 else context.abort(grpc.StatusCode.UNAVAILABLE, "it is gone")

    def quantize(request, context):
        context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "no room")

    with RawServer(GetServerInfo=limits, Quantize=quantize) as server, kind(server.address, retry=False) as client:
        with pytest.raises(quantd.ResourceExhaustedError, match="no room") as caught:
            client.quantize(X)
    assert len(asked) == 2 and caught.value.__context__ is None


def test_a_failed_call_keeps_no_request():
    """Not even until the next garbage collection."""
    x = np.ones(1000, np.float32)

    def quantize(request, context):
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, "no")

    def errors_in_cycles():
        gc.collect()
        found = [each for each in gc.garbage if isinstance(each, quantd.QuantdError)]
        gc.garbage.clear()
        return found

    async def main(address):
        async with quantd.AsyncClient(address, retry=False) as client:
            with pytest.raises(quantd.InvalidArgumentError):
                await client.quantize(x, 1.0)
            return errors_in_cycles()

    with RawServer(Quantize=quantize) as server, quantd.Client(server.address, retry=False) as client:
        gc.collect()
        gc.disable()
        gc.set_debug(gc.DEBUG_SAVEALL)
        try:
            with pytest.raises(quantd.InvalidArgumentError):
                client.quantize(x, 1.0)
            assert not errors_in_cycles()
            assert not asyncio.run(main(server.address))
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
            gc.enable()


@pytest.mark.parametrize("retry", [False, True])
def test_a_server_that_goes_in_the_middle_of_a_tensor(retry):
    count = []

    def quantize(request, context):
        count.append(1)
        if len(count) == 5:
            threading.Thread(target=server.stop).start()
            time.sleep(0.5)
        return y(len(messages.QuantizeRequest.FromString(request).x.raw_data) // 4)

    server = RawServer(GetServerInfo=info(1 << 20), Quantize=quantize)
    with quantd.Client(server.address, timeout=30, retry=retry) as client:
        with pytest.raises(quantd.QuantdError) as caught:
            client.quantize(np.ones(8 << 20, np.float32), 1.0)
    assert caught.value.code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
    assert len(count) < 32


def test_a_failed_piece_stops_the_others():
    def quantize(request, context):
        context.abort(grpc.StatusCode.PERMISSION_DENIED, "no")

    with RawServer(GetServerInfo=info(1 << 20), Quantize=quantize) as server, quantd.Client(server.address) as client:
        with pytest.raises(quantd.QuantdError, match="PERMISSION_DENIED"):
            client.quantize(np.ones(32 << 20, np.float32), 1.0)
        assert len(server.calls) < 40  # of 129


def test_a_timeout_is_for_all_pieces_together():
    def slow(request, context):
        time.sleep(0.2)
        return y(len(messages.QuantizeRequest.FromString(request).x.raw_data) // 4)

    with RawServer(GetServerInfo=info(1 << 20), Quantize=slow, threads=1) as server:
        with quantd.Client(server.address) as client:
            begin = time.monotonic()
            with pytest.raises(quantd.DeadlineExceededError):
                client.quantize(np.ones(8 << 20, np.float32), 1.0, timeout=1)
            assert time.monotonic() - begin < 4


def item(identity, **response):
    return messages.StreamResponse(id=identity, **response).SerializeToString()


GOOD = {"quantize": {"y": {"data_type": 2, "shape": [4], "raw_data": b"abcd"}}}


@pytest.mark.parametrize("answers,match", [
    ([b"\xff\xff"], "answer is wrong"), ([item(0)], "nothing answers quantize"), ([item(0, dequantize={})], "dequantize answers"),
    ([item(7, **GOOD)], "without an answer"), ([], "without an answer"), ([item(0, quantize={"y": {"data_type": 2}})], "is wrong"),
    ([item(0, error={"code": 3, "message": "bad"})], "INVALID_ARGUMENT: bad"), ([item(0, error={"code": 77})], "UNKNOWN")])
def test_nonsense_in_a_stream(answers, match):
    def stream(requests, context):
        next(requests)
        yield from answers

    with RawServer(Stream=stream) as server, quantd.Client(server.address) as client:
        with client.stream(timeout=20) as calls:
            future = calls.quantize(np.ones(4, np.float32), 1.0)
            with pytest.raises(quantd.QuantdError, match=match):
                future.result(20)


def test_answers_that_come_twice_do_no_harm():
    def stream(requests, context):
        for _ in requests:
            yield item(0, **GOOD)
            yield item(0, **GOOD)
            yield item(1, **GOOD)

    with RawServer(Stream=stream) as server, quantd.Client(server.address) as client:
        with client.stream(timeout=20, max_in_flight=1) as calls:
            assert calls.quantize(np.ones(4, np.float32), 1.0).result(20).y.tobytes() == b"abcd"


def test_futures_that_are_cancelled_by_their_holder(client):
    with client.stream() as stream:
        futures = [stream.quantize(np.ones(1000, np.float32), 1.0) for _ in range(100)]
        for future in futures[::2]:
            future.cancel()  # it is running already: no effect
        assert all(future.result(20).y.size == 1000 for future in futures)


def test_a_forked_child_is_told_to_make_its_own_client(client):
    assert client.health() == "SERVING"
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            client.quantize(np.ones(4, np.float32), 1.0)
            text = "no error"
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        os.write(write, text.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    assert text.startswith("RuntimeError: this client was made by process") and "after the fork" in text
    assert client.health() == "SERVING"


def test_results_cross_to_spawned_workers(client):
    import multiprocessing

    with multiprocessing.get_context("spawn").Pool(1) as pool:
        error = pool.apply_async(_fail, (client.address,))
        with pytest.raises(quantd.InvalidArgumentError) as caught:
            error.get(60)
        assert caught.value.field == "scale"
        result = pool.apply(_result, (client.address,))
    assert client.dequantize(result).y.shape == (2, 3)


def _fail(address):
    with quantd.Client(address) as client:
        client.quantize(np.ones((2, 3), np.float32), np.ones(7, np.float32))


def _result(address):
    with quantd.Client(address) as client:
        return client.dynamic_quantize(np.ones((2, 3), np.float32), axis=0)


def test_numbers_that_are_no_lengths(client):
    for options in ({"axis": 1.5}, {"block_size": 2.5}, {"block_shape": [1.5]}, {"axis": "0"}):
        with pytest.raises(TypeError):
            client.quantize(np.ones((2, 3), np.float32), 1.0, **options)
    with pytest.raises((ValueError, OverflowError)):
        client.quantize(np.ones((2, 3), np.float32), 1.0, axis=1 << 70)
