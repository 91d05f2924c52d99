"""Servers that lie, vanish or never answer; processes that fork; tasks that are cancelled. Every case ends with one clear error."""

import time

import numpy as np
import pytest

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
