"""The server's lines on stderr: which lines, how many of them, and that no reader can stop the server."""

import json
import re
import signal
import socket

import grpc
import numpy as np

from http2 import DATA, Peer, frame
from support import pb, quantize, run, tensor, wait_for

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
SECRET = 123456.75


def bad(stub, metadata=()):
    """A call that fails: more scales than it may have; the values of scales and x must not be in any log."""
    call = stub.Quantize.future(quantize([SECRET], scale=[0.5, SECRET, SECRET]), timeout=10, metadata=metadata)
    assert call.exception().code() == grpc.StatusCode.INVALID_ARGUMENT


def lines(server, word):
    return [line for line in server.log().splitlines() if word in line]


def first(server, word, seconds=20):
    return wait_for(lambda: lines(server, word), seconds, f"a line with {word!r}")[0]


def test_a_failed_call_has_a_line_without_its_contents(start):
    server = start()
    bad(server.stub, (("x-request-id", "id 7"), ("traceparent", TRACE)))
    line = first(server, "call failed")
    assert re.search(r"Z quantd: call failed method=Quantize code=INVALID_ARGUMENT peer=ipv4:127\.0\.0\.1:\d+ field=axis ", line)
    assert line.endswith(f' request_id="id 7" traceparent={TRACE}')
    items = [pb.StreamRequest(id=1, quantize=quantize([SECRET], scale=[SECRET, SECRET]))]
    list(server.stub.Stream(iter(items), timeout=10))
    first(server, "item=true")
    # The value of an element, in the error that its client gets.
    wild = pb.DynamicQuantizeRequest(x=tensor([SECRET, np.inf]))
    assert server.stub.DynamicQuantize.future(wild, timeout=10).exception() is not None
    # If the message cannot be parsed, there is no field.
    server.channel().unary_unary("/quantd.v1.QuantizationService/Dequantize").future(b"\xff", timeout=10).exception()
    assert re.search(r' error="the message is truncated or not a [^"]+DequantizeRequest"$', first(server, "method=Dequantize"))
    wait_for(lambda: len(lines(server, "call failed")) == 4, 20, "a line for each")
    assert "123456" not in server.log()


def test_json_lines_are_json(start):
    server = start("--log_format=json")
    bad(server.stub, (("x-request-id", 'a"b\\'), ("traceparent", TRACE)))
    first(server, "call failed")
    assert server.stop() == 0
    parsed = [json.loads(line) for line in server.log().splitlines()]
    assert [line["message"] for line in parsed] == ["configuration", "listening", "call failed", "draining", "drained", "stopped"]
    assert parsed[0]["max_message_bytes"] == 67108864 and parsed[0]["log_format"] == "json"
    assert parsed[1]["grpc"] == server.address and parsed[1]["pid"] == server.process.pid
    assert parsed[2]["request_id"] == 'a"b\\' and parsed[2]["code"] == "INVALID_ARGUMENT" and parsed[2]["traceparent"] == TRACE
    assert parsed[3]["signal"] == signal.SIGTERM
    for line in parsed:
        assert line["level"] in ("info", "warn")
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"])


def test_what_cannot_serve_says_so_in_json(start):
    code, _, error = run("--log_format=json", "--listen=192.0.2.1:1", "--http_listen=")
    assert code == 2
    assert "192.0.2.1" in json.loads(error)["error"]


def test_connections_that_are_ended_have_a_line(start):
    server = start()
    host, port = server.address.split(":")
    with socket.create_connection((host, int(port))) as rude:
        name = "ipv4:%s:%d" % rude.getsockname()
        rude.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        rude.recv(1000)
        assert f"warn: connection ended reason=protocol_error peer={name}" in first(server, "connection ended")


def test_the_drain_says_what_became_of_the_calls(start):
    server = start("--drain_seconds=1")
    idle = Peer(server.address)
    idle.open("Stream")
    wait_for(lambda: server.metrics()["quantd_calls"] == 1, 20, "the call is there")
    assert server.metrics()["quantd_draining"] == 0
    assert server.stop(30) == 0
    # It was told the reason, but did not end by itself.
    assert re.search(r" drained connections=\d+ calls=1 calls_finished=0 calls_cut=1 seconds=", first(server, "drained"))
    upload = start("--drain_seconds=0.2")
    half = Peer(upload.address)
    stream = half.open("Quantize")
    half.send(frame(DATA, 0, stream, b"\0\0\0\4\0" + b"x" * 10))
    wait_for(lambda: upload.metrics()["quantd_calls"] == 1, 20, "the call is there")
    assert upload.stop(30) == 0
    assert re.search(r" calls=1 calls_finished=0 calls_cut=1 ", first(upload, "drained"))


def test_variables_that_are_no_flags_are_a_line(start):
    service = {"QUANTD_PORT": "tcp://10.0.0.1:50051", "QUANTD_SERVICE_HOST": "10.0.0.1", "QUANTD_PORT_50051_TCP": "tcp://10.0.0.1:50051"}
    server = start(environment={**service, "QUANTD_MAX_MESAGE_BYTES": "1", "QUANTD_ADDRESS": "x:1"})
    ignored = server.log().splitlines()[0]
    assert "warn: ignored variables in the environment" in ignored
    assert re.findall(r"QUANTD_\w+", ignored) == ["QUANTD_MAX_MESAGE_BYTES", "QUANTD_MAX_MESSAGE_BYTES", "QUANTD_ADDRESS"]
