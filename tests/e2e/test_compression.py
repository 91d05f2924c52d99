"""Compressed answers: for clients that accept them, if the call or the server's flags ask for it."""

import zlib

import numpy as np
import pytest

from http2 import Peer, message
from support import pb, quantize, tensor

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
