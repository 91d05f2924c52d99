"""What gRPC's documents say about a server, where no other test covers it: server/transport/README.md has the table."""

import struct
import time

import pytest

from http2 import (
    DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PING, RST_STREAM, Peer, frame, literal, message, request_headers,
)
from support import quantize, wait_for

REQUEST = quantize([1.0]).SerializeToString()
CANCELED = 'grpc_server_handled_total{grpc_type="%s",grpc_service="quantd.v1.QuantizationService",grpc_method="%s",grpc_code="Canceled"}'


def answer(peer, headers):
    """Makes a call with these headers. Its answer's headers, including trailers, and DATA; None: it was reset."""
    stream = peer.next_stream()
    peer.send(frame(HEADERS, END_HEADERS, stream, headers) + frame(DATA, END_STREAM, stream, message(REQUEST)))
    data = peer.ended(stream)
    return peer.headers.get(stream, {}), data


@pytest.fixture
def peer(server):
    with Peer(server.address) as connection:
        yield connection


@pytest.mark.parametrize("extra", [
    [],
    [("user-agent", "")],
    [("grpc-timeout", "10S"), ("grpc-encoding", "identity"), ("grpc-message-type", "quantd.v1.QuantizeRequest"), ("user-agent", "grpc-x/1.0 (a)")],
    [("grpc-tags-bin", "AAE"), ("grpc-trace-bin", "AAE="), ("grpc-previous-rpc-attempts", "2"), ("grpc-of-tomorrow", "1")],
    [("custom", "a"), ("custom", "b"), ("custom-bin", "AAE,AAE="), ("custom-bin", "not base64 !")],
], ids=["none", "empty", "all", "reserved", "custom"])
def test_headers_that_a_call_may_have(peer, extra):
    headers, data = answer(peer, request_headers("Quantize", extra))
    assert headers["grpc-status"] == "0" and data


def test_values_that_are_no_ascii_are_no_error(peer):
    """White space around them, and bytes that HTTP allows in a field and gRPC does not."""
    extra = literal("a", b"caf\xc3\xa9") + literal("b", b"\xff\xfe\t\x80") + literal("x-request-id", b"\xe9t\xe9") + literal("c", b"  in between ")
    headers, _ = answer(peer, request_headers("Quantize") + extra)
    assert headers["grpc-status"] == "0"


def test_headers_that_a_call_may_lack(peer):
    """Instead of :authority there may be host, as in HTTP/1.1; without either of them the stream is reset."""
    fields = [(":method", "POST"), (":scheme", "http"), (":path", "/quantd.v1.QuantizationService/Quantize"), ("content-type", "application/grpc")]
    block = b"".join(literal(*field) for field in fields)
    headers, _ = answer(peer, block + literal("host", "a"))
    assert headers["grpc-status"] == "0"
    _, data = answer(peer, block)
    assert data is None


@pytest.mark.parametrize("path", [
    "/quantd.v1.quantizationservice/Quantize", "/quantd.v1.QuantizationService/quantize", "quantd.v1.QuantizationService/Quantize",
    "/quantd.v1.QuantizationService/Quantize/", "/quantd.v1.QuantizationService/Quantize?", "/",
])
def test_paths_are_exact(peer, path):
    stream = peer.next_stream()
    peer.send(frame(HEADERS, END_HEADERS | END_STREAM, stream, request_headers(path=path)))
    peer.ended(stream)
    # An invalid path is an error of HTTP/2.
    assert peer.headers.get(stream, {}).get("grpc-status") == "12" or (not path.startswith("/") and not peer.over[stream])


def test_the_end_of_a_request(peer):
    """With the last DATA frame, with an empty one, or with trailers."""
    for last in (frame(DATA, END_STREAM, 0), frame(HEADERS, END_HEADERS | END_STREAM, 0, literal("a", "b"))):
        stream = peer.next_stream()
        last = last[:5] + struct.pack(">I", stream) + last[9:]
        peer.send(frame(HEADERS, END_HEADERS, stream, request_headers("Quantize")) + frame(DATA, 0, stream, message(REQUEST)) + last)
        assert peer.ended(stream)
        assert peer.headers[stream]["grpc-status"] == "0"
    stream = peer.next_stream()
    peer.send(frame(HEADERS, END_HEADERS | END_STREAM, stream, request_headers("Quantize")))
    assert peer.ended(stream) == b""
    assert peer.headers[stream]["grpc-status"] == "3"


def frames_of(peer, stream):
    """(kind, flags) of the frames of a stream, until it is over."""
    found = []
    while stream not in peer.over:
        kind, flags, number, _ = peer.read_frame()
        if number == stream:
            found.append((kind, flags))
    return found


def test_an_answer_is_headers_messages_and_trailers(peer):
    stream = peer.call(REQUEST, "Quantize")
    found = frames_of(peer, stream)
    assert found == [(HEADERS, END_HEADERS), (DATA, 0), (HEADERS, END_HEADERS | END_STREAM)]
    headers = peer.headers[stream]
    assert headers[":status"] == "200" and headers["content-type"] == "application/grpc" and headers["grpc-status"] == "0"
    assert headers["grpc-accept-encoding"] == "identity,deflate,gzip" and "grpc-message" not in headers


def test_an_error_is_trailers_only(peer):
    stream = peer.call(quantize([1.0], scale=[1.0, 2.0]).SerializeToString(), "Quantize")
    found = frames_of(peer, stream)
    assert found == [(HEADERS, END_HEADERS | END_STREAM)]
    headers = peer.headers[stream]
    assert headers[":status"] == "200" and headers["content-type"] == "application/grpc" and headers["grpc-status"] == "3"
    assert headers["grpc-message"] and not headers["grpc-status-details-bin"].endswith("=")


def test_an_answer_before_the_requests_end_is_followed_by_a_reset(peer):
    stream = peer.next_stream()
    peer.send(frame(HEADERS, END_HEADERS, stream, request_headers("Quantize")) + frame(DATA, 0, stream, message(REQUEST)))
    assert frames_of(peer, stream)[-1] == (HEADERS, END_HEADERS | END_STREAM)
    kind, _, number, payload = peer.until(RST_STREAM, stream)
    assert (kind, number, payload) == (RST_STREAM, stream, bytes(4))  # NO_ERROR


def test_a_connection_that_breaks_cancels_its_calls(server):
    for method, kind in (("Stream", "bidi_stream"), ("Quantize", "unary")):
        name = CANCELED % (kind, method)
        before = server.metrics()[name]
        with Peer(server.address) as connection:
            connection.open(method)
            wait_for(lambda: server.metrics()["quantd_calls"] >= 1, 10, "the call is open")
        wait_for(lambda: server.metrics()[name] == before + 1, 10, "the call is cancelled")


def test_a_client_that_answers_no_ping_loses_its_calls(start):
    server = start("--keepalive_time=1")
    name = CANCELED % ("bidi_stream", "Stream")
    with Peer(server.address) as connection, Peer(server.address) as answering:
        connection.open("Stream")
        begin = time.monotonic()
        assert connection.until(PING) is not None
        assert time.monotonic() - begin > 0.5
        answering.until(PING, seconds=5)
        answering.send(frame(PING, 1, 0, bytes(8)))
        assert connection.closed(10)
        assert server.metrics()['quantd_connections_ended_total{reason="silent"}'] == 1
        assert answering.ended(answering.call(REQUEST, "Quantize"))
    wait_for(lambda: server.metrics()[name] == 1, 10, "the call is cancelled")


def test_a_goaway_names_the_last_call_that_is_answered(start):
    """A connection that is too old is told before it ends, and its last call is answered."""
    server = start("--max_connection_age=1", "--max_connection_age_grace=30")
    with Peer(server.address) as connection:
        stream = connection.open("Quantize")
        first = connection.until(GOAWAY)
        assert first[3][:8] == struct.pack(">II", 0x7FFFFFFF, 0)
        connection.send(frame(DATA, END_STREAM, stream, message(REQUEST)))
        last = None
        while (got := connection.read_frame()) is not None:
            if got[0] == PING and not got[1]:
                connection.send(frame(PING, 1, 0, got[3]))
            last = got[3] if got[0] == GOAWAY else last
        assert last[:8] == struct.pack(">II", stream, 0)
        assert connection.headers[stream]["grpc-status"] == "0"
