"""Compressed answers: for clients that accept them, if the call or the server's flags ask for it."""

import zlib

import grpc
import numpy as np
import pytest

from http2 import END_HEADERS, HEADERS, Peer, frame, message, request_headers
from support import pb, quantize, tensor, tensor_pb2, wait_for

LARGE = np.random.default_rng(0).standard_normal(100_000).astype(np.float32)
INT8 = 3
WANTED = "quantd-compress-answers"


def dynamic(array, **fields):
    return pb.DynamicQuantizeRequest(x=tensor(array), output_type=INT8, **fields)


def messages(data):
    """(whether it is compressed, its bytes) for each of gRPC's messages."""
    found = []
    while data:
        size = int.from_bytes(data[1:5], "big")
        found.append((data[0], data[5 : 5 + size]))
        assert len(found[-1][1]) == size
        data = data[5 + size :]
    return found


def ask(address, request, method="DynamicQuantize", accepts="identity,deflate,gzip", wanted=None):
    """The headers and messages of a call with these headers."""
    extra = [("grpc-accept-encoding", accepts)] if accepts is not None else []
    extra += [(WANTED, wanted)] if wanted is not None else []
    requests = request if isinstance(request, list) else [request]
    with Peer(address, window=1 << 30) as peer:
        stream = peer.open(method, extra=extra)
        peer.upload_on(stream, b"".join(message(each.SerializeToString()) for each in requests))
        data = peer.ended(stream)
        return peer.headers[stream], messages(data)


def inflate(encoding, data):
    inflater = zlib.decompressobj(31 if encoding == "gzip" else 15)
    plain = inflater.decompress(data)
    assert inflater.eof and not inflater.unused_data
    return plain


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_call_asks(server, encoding):
    plain = server.stub.DynamicQuantize(dynamic(LARGE), timeout=20)
    headers, [(compressed, data)] = ask(server.address, dynamic(LARGE), wanted=encoding)
    assert headers["grpc-status"] == "0" and headers["grpc-encoding"] == encoding
    assert compressed == 1 and len(data) < 0.9 * plain.ByteSize()
    assert pb.DynamicQuantizeResponse.FromString(inflate(encoding, data)) == plain


def test_nobody_asks(server):
    headers, [(compressed, data)] = ask(server.address, dynamic(LARGE))
    assert "grpc-encoding" not in headers and compressed == 0
    assert pb.DynamicQuantizeResponse.FromString(data) == server.stub.DynamicQuantize(dynamic(LARGE), timeout=20)


# An encoding that the client does not accept is not used: (what it accepts, what it asks for).
@pytest.mark.parametrize("accepts, wanted", [(None, "gzip"), ("identity", "gzip"), ("identity,deflate", "gzip"), ("gzip,br", "deflate"),
                                             ("identity,deflate,gzip", "none")])
def test_a_client_that_does_not_accept_it(server, accepts, wanted):
    headers, [(compressed, _)] = ask(server.address, dynamic(LARGE), accepts=accepts, wanted=wanted)
    assert headers["grpc-status"] == "0" and "grpc-encoding" not in headers and compressed == 0


def test_unknown_words(server):
    with pytest.raises(grpc.RpcError) as failed:
        server.stub.Quantize(quantize([1.0]), metadata=[(WANTED, "zstd")], timeout=10)
    assert failed.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert failed.value.details() == "quantd-compress-answers is 'zstd', must be none, gzip or deflate"


def test_small_answers_and_those_that_do_not_shrink_are_sent_as_they_are(server):
    headers, [(compressed, _)] = ask(server.address, dynamic(LARGE[:900]), wanted="gzip")
    assert headers["grpc-status"] == "0" and compressed == 0
    before = server.metrics()
    # All codes are equally frequent: with more than the 512 KiB after which that is noticed, and with fewer.
    for elements in (1_000_000, 100_000):
        noise = np.random.default_rng(1).integers(-127, 128, elements).astype(np.float32)
        plain = server.stub.Quantize(quantize(noise, scale=1.0, output_type=INT8), timeout=20)
        _, [(compressed, data)] = ask(server.address, quantize(noise, scale=1.0, output_type=INT8), method="Quantize", wanted="gzip")
        assert compressed == 0 and pb.QuantizeResponse.FromString(data) == plain
    after = server.metrics()
    assert after["quantd_compression_seconds_count"] == before["quantd_compression_seconds_count"] + 2
    assert after['quantd_compressed_answers_total{encoding="gzip"}'] == before['quantd_compressed_answers_total{encoding="gzip"}']


def test_metrics(server):
    before = server.metrics()
    plain = server.stub.DynamicQuantize(dynamic(LARGE), timeout=20)
    _, [(_, data)] = ask(server.address, dynamic(LARGE), wanted="deflate")

    def grown(name):
        return server.metrics()[name] - before[name]

    assert grown('quantd_compressed_answers_total{encoding="deflate"}') == 1
    assert grown('quantd_compressed_answers_total{encoding="gzip"}') == 0
    assert grown('quantd_compressed_bytes_total{direction="in"}') == plain.ByteSize()
    assert grown('quantd_compressed_bytes_total{direction="out"}') == len(data)
    assert grown("quantd_compression_seconds_count") == 1


def test_a_stream(server):
    """Item by item: a small answer and an error between two large ones are not compressed."""
    items = [
        pb.StreamRequest(id=1, dynamic_quantize=dynamic(LARGE)),
        pb.StreamRequest(id=2, dynamic_quantize=dynamic([1.0])),
        pb.StreamRequest(id=3, quantize=quantize([1.0, 2.0], scale=[1.0, 2.0, 3.0])),
        pb.StreamRequest(id=4, dynamic_quantize=dynamic(LARGE * 3)),
    ]
    headers, found = ask(server.address, items, method="Stream", wanted="gzip")
    assert headers["grpc-encoding"] == "gzip"
    answers = {}
    for compressed, data in found:
        answer = pb.StreamResponse.FromString(inflate("gzip", data) if compressed else data)
        answers[answer.id] = compressed, answer
    assert {number: compressed for number, (compressed, _) in answers.items()} == {1: 1, 2: 0, 3: 0, 4: 1}
    assert answers[1][1].dynamic_quantize == server.stub.DynamicQuantize(dynamic(LARGE), timeout=20)
    assert answers[4][1].dynamic_quantize == server.stub.DynamicQuantize(dynamic(LARGE * 3), timeout=20)
    assert answers[3][1].error.code == 3


def test_floats_and_values(server):
    """Answers of numbers: the result of Dequantize, and tensors as values."""
    codes = np.tile(np.arange(-128, 128), 500).astype(np.int8)
    x = pb.DequantizeRequest(scale=tensor(0.5))
    x.x.data_type, x.x.raw_data = INT8, codes.tobytes()
    x.x.shape.append(codes.size)
    values = dynamic(LARGE, output_encoding=tensor_pb2.TENSOR_ENCODING_VALUES)
    for method, request, kind in (("Dequantize", x, pb.DequantizeResponse), ("DynamicQuantize", values, pb.DynamicQuantizeResponse)):
        plain = getattr(server.stub, method)(request, timeout=20)
        _, [(compressed, data)] = ask(server.address, request, method=method, wanted="gzip")
        assert compressed == 1 and len(data) < 0.6 * plain.ByteSize()
        assert kind.FromString(inflate("gzip", data)) == plain


@pytest.fixture(scope="module")
def gzip_server(tmp_path_factory):
    from support import Server

    running = Server(tmp_path_factory.mktemp("server"), "--compress_answers=gzip", "--compress_answers_from=200")
    yield running
    assert running.stop() == 0


def test_the_flags(gzip_server):
    headers, [(compressed, _)] = ask(gzip_server.address, dynamic(LARGE))
    assert headers["grpc-encoding"] == "gzip" and compressed == 1
    # A call decides, and the client must accept the encoding.
    headers, [(compressed, _)] = ask(gzip_server.address, dynamic(LARGE), wanted="deflate")
    assert headers["grpc-encoding"] == "deflate" and compressed == 1
    for arguments in ({"wanted": "none"}, {"accepts": "identity,deflate"}):
        headers, [(compressed, _)] = ask(gzip_server.address, dynamic(LARGE), **arguments)
        assert "grpc-encoding" not in headers and compressed == 0
    # From 200 bytes on.
    for elements, expected in ((100, 0), (400, 1)):
        _, [(compressed, data)] = ask(gzip_server.address, dynamic(np.zeros(elements, np.float32)))
        assert compressed == expected, len(data)


def test_grpc_inflates_by_itself(gzip_server, server):
    """A client that does not use compression gets the same as before."""
    expected = server.stub.DynamicQuantize(dynamic(LARGE), timeout=20)
    before = gzip_server.metrics()['quantd_compressed_answers_total{encoding="gzip"}']
    assert gzip_server.stub.DynamicQuantize(dynamic(LARGE), timeout=20) == expected
    answers = gzip_server.stub.Stream(iter([pb.StreamRequest(id=7, dynamic_quantize=dynamic(LARGE))]), timeout=20)
    assert [answer.dynamic_quantize for answer in answers] == [expected]
    assert gzip_server.metrics()['quantd_compressed_answers_total{encoding="gzip"}'] == before + 2


def test_without_memory_for_it_answers_are_sent_as_they_are(start):
    """The request fits into the budget, but not the additional memory for compressing its answer."""
    server = start("--memory_budget_bytes=2000000", "--compress_answers=gzip")
    x = np.zeros(350_000, np.float32)
    _, [(compressed, data)] = ask(server.address, dynamic(x))
    assert compressed == 0 and len(data) > x.size
    _, [(compressed, _)] = ask(server.address, dynamic(x[:100_000]))
    assert compressed == 1


def test_a_client_that_goes_away_stops_it(start):
    server = start("--threads=1", "--compress_answers=gzip", "--max_message_bytes=200000000", "--memory_budget_bytes=1000000000")
    x = np.random.default_rng(1).standard_normal(10_000_000).astype(np.float32)
    codes = server.stub.DynamicQuantize(dynamic(x), metadata=[(WANTED, "none")], timeout=60)
    request = pb.DequantizeRequest(x=codes.y, scale=codes.y_scale)
    call = server.stub.Dequantize.future(request, timeout=60)
    wait_for(lambda: server.metrics()["quantd_kernel_seconds_count{operation=\"dequantize\"}"] == 1, 20, "the kernel has run")
    call.cancel()
    wait_for(lambda: server.metrics()["quantd_busy_cores"] == 0, 20, "the core is free")
    assert server.metrics()['quantd_compressed_answers_total{encoding="gzip"}'] == 0
    assert server.metrics()["quantd_inflight_bytes"] == 0


def test_what_others_say_in_its_place(server):
    """Of two values the last one counts; and the error of a refused call is never compressed."""
    with Peer(server.address) as peer:
        stream = peer.next_stream()
        extra = [("grpc-accept-encoding", "gzip"), (WANTED, "gzip")]
        peer.send(frame(HEADERS, END_HEADERS | 1, stream, request_headers("Nothing", extra)))
        assert peer.ended(stream) == b""
        assert peer.headers[stream]["grpc-status"] == "12" and "grpc-encoding" not in peer.headers[stream]
