"""The server's lines on stderr: which lines, how many of them, and that no reader can stop the server."""

import ctypes
import fcntl
import json
import os
import re
import signal
import socket
import subprocess

import grpc
import numpy as np
import pytest

from http2 import DATA, END_STREAM, Peer, frame, message
from support import BINARY, SANITIZED, pb, pb_grpc, quantize, run, tensor, wait_for

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


def test_unknown_methods_and_refused_heads_have_lines(start):
    server = start()
    server.channel().unary_unary("/made/Up").future(b"", timeout=10).exception()
    assert "method=/made/Up code=UNIMPLEMENTED" in first(server, "UNIMPLEMENTED")
    bad_head = (("x-filler", "x" * 15000), ("x-more", "y" * 5000))
    server.stub.Quantize.future(quantize([1.0]), timeout=10, metadata=bad_head).exception()
    assert "METADATA_TOO_LARGE" in first(server, "RESOURCE_EXHAUSTED")


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


@pytest.mark.parametrize("level, expected", [("error", 0), ("warn", 0), ("info", 1), ("debug", 1)])
def test_levels(start, level, expected):
    server = start(f"--log_level={level}")
    bad(server.stub)
    if expected:
        first(server, "call failed")
    assert server.stop() == 0
    assert len(lines(server, "call failed")) == expected
    assert len(lines(server, "listening")) == expected


def test_ten_thousand_bad_requests_are_a_few_lines(start):
    server = start()
    with Peer(server.address) as peer:
        count = 10_000
        payload = message(quantize([1.0], scale=[]).SerializeToString())
        for done in range(0, count, 50):
            streams = [peer.open("Quantize") for _ in range(50)]
            peer.send(b"".join(frame(DATA, END_STREAM, stream, payload) for stream in streams))
            for stream in streams:
                peer.ended(stream, 60)
    assert server.metrics()['quantd_log_lost_total{reason="repeated"}'] > 0
    assert server.stop() == 0
    failed = lines(server, "call failed")
    left_out = sum(int(found[1]) for found in re.finditer(r" more like it left_out=(\d+)", server.log()))
    written = [line for line in failed if "more like it" not in line]
    assert len(written) + left_out == count
    # Ten lines in ten seconds, and one with the number of the others.
    assert len(failed) <= 400 and left_out > count / 2


def test_headers_of_others_stay_in_their_line(start):
    """Newlines never get this far: nghttp2 refuses such a header. Escape codes, quotes and bytes beyond ASCII do, or may not."""
    server = start()
    for value in ["a\nb", "a\x1b[31mb", 'x" level="error', "\xff\xfe", "y" * 8000, "z" * (1 << 20)]:
        with Peer(server.address) as peer:
            try:
                stream = peer.open("Quantize", extra=[("x-request-id", value)])
                peer.send(frame(DATA, END_STREAM, stream, message(b"")))
                peer.ended(stream, 10)
            except (OSError, AssertionError, EOFError):
                pass  # refused
    bad(server.stub, (("x-request-id", "the last one"),))
    first(server, "the last one")
    assert server.stop() == 0
    text = server.log_file.read_bytes()
    assert all(32 <= byte < 127 or byte == 10 for byte in text)
    assert all(re.match(r"\d{4}-\d\d-\d\dT\S+ quantd: ", line) and len(line) < 4096 for line in server.log().splitlines())


def test_connections_that_are_ended_have_a_line(start):
    server = start()
    host, port = server.address.split(":")
    with socket.create_connection((host, int(port))) as rude:
        name = "ipv4:%s:%d" % rude.getsockname()
        rude.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        rude.recv(1000)
        assert f"warn: connection ended reason=protocol_error peer={name}" in first(server, "connection ended")


def test_too_many_connections_have_lines_at_a_bounded_rate(start):
    server = start("--max_connections=4")
    host, port = server.address.split(":")
    peers = []
    for _ in range(100):
        peers.append(socket.create_connection((host, int(port))))
    line = first(server, "connection refused")
    assert "reason=too_many" in line and "peer=ipv4:127.0.0.1:" in line
    wait_for(lambda: server.metrics()['quantd_guard_actions_total{action="connection_refused"}'] >= 20, 20, "they are counted")
    assert len(lines(server, "connection refused")) <= 20
    for peer in peers:
        peer.close()


def test_no_descriptors_left_is_an_error(start):
    server = start(descriptors=64)
    host, port = server.address.split(":")
    peers = []
    for _ in range(100):
        peers.append(socket.create_connection((host, int(port))))
    assert "error: connection refused reason=file_descriptors_exhausted" in first(server, "file_descriptors_exhausted")
    for peer in peers:
        peer.close()
    wait_for(lambda: server.metrics()['quantd_guard_actions_total{action="descriptors_exhausted"}'] > 0, 20, "it is counted")


def test_overload_begins_and_ends_with_counts(start):
    server = start("--max_queued_requests=0", "--max_inflight_requests=1", "--queue_timeout=1")
    big = pb.DynamicQuantizeRequest(x=tensor(np.ones(1 << 20)))
    stubs = [server.stub] * 40

    def some_are_refused():
        calls = [stub.DynamicQuantize.future(big, timeout=30) for stub in stubs]
        return [call for call in calls if call.exception() is not None]

    refused = wait_for(some_are_refused, 60, "the server has too much to do")
    assert refused[0].exception().code() == grpc.StatusCode.UNAVAILABLE
    assert re.search(r"warn: overload begins (\w+=\d+ ?)+$", first(server, "overload begins"))
    over = first(server, "overload is over", 40)
    assert sum(int(n) for n in re.findall(r"(?:queue_full|queue_timeout|receiving_full|upload_stalled|too_many_calls)=(\d+)", over)) >= len(refused)
    assert " seconds=" in over


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


@pytest.mark.skipif(SANITIZED, reason="the sanitizer's own handler is there")
@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL])
def test_a_crash_leaves_a_stack_and_its_own_exit_status(start, form, number, tmp_path):
    server = start(f"--log_format={form}", "--simd=scalar", f"--shared_memory_dir={tmp_path}")  # with the guard's handler for SIGBUS
    # To the main thread: a process's signal may go to a thread that is just starting, whose stack is two frames of libc.
    assert ctypes.CDLL(None).tgkill(server.process.pid, server.process.pid, number) == 0
    assert server.process.wait(20) == -number
    lines = server.log().splitlines()
    crash = lines[next(i for i, line in enumerate(lines) if "crashed" in line) :]
    if form == "json":
        head, *frames = [json.loads(line) for line in crash]
        assert head["message"] == "crashed" and head["signal"] == number.name and head["version"].count(".") == 2
        assert re.fullmatch("[0-9a-f]{40}", head["build_id"])
        assert len(frames) > 2 and frames[0]["message"] == "frame" and frames[-1]["module"] == "quantd"
    else:
        line = rf"signal={number.name} number={int(number)} sent_by=\d+ version=\S+ build_id=[0-9a-f]{{40}} thread=\d+$"
        assert re.search("Z quantd: error: crashed " + line, crash[0])
        assert len(crash) > 3 and "quantd: error: frame n=0 module=" in crash[1]
        assert any("module=quantd offset=0x" in line and "symbol=" in line for line in crash[1:])


class Unread:
    """A server whose stderr is a pipe that nobody reads, or that is closed."""

    def __init__(self, tmp_path, *flags, close=False):
        self.reader, writer = os.pipe()
        ready = tmp_path / "ready.json"
        command = [str(BINARY), "--listen=127.0.0.1:0", "--http_listen=127.0.0.1:0", f"--ready_file={ready}", "--log_level=debug", *flags]
        self.process = subprocess.Popen(command, stderr=writer)
        os.close(writer)
        if close:
            os.close(self.reader)
            self.reader = None
        wait_for(ready.exists, 20, "it serves")
        self.ready = json.loads(ready.read_text())

    def shrink(self):
        """A pipe of one page is soon full."""
        fcntl.fcntl(self.reader, 1031, 4096)  # F_SETPIPE_SZ

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.reader is not None:
            os.close(self.reader)


@pytest.mark.parametrize("close", [False, True], ids=["nobody reads", "closed"])
@pytest.mark.parametrize("crash", [False, True], ids=["drain", "crash"])
def test_a_log_that_nobody_takes_stops_nothing(tmp_path, close, crash):
    server = Unread(tmp_path, close=close)
    try:
        if not close:
            server.shrink()
        channel = grpc.insecure_channel(server.ready["grpc"][0])
        stub = pb_grpc.QuantizationServiceStub(channel)
        for i in range(200):
            # Each reason has lines of its own, and so has each unknown method.
            channel.unary_unary(f"/made/Up{i}").future(b"", timeout=10).exception()
            bad(stub)
            assert stub.Quantize(quantize([1.0]), timeout=10).y.raw_data == b"\x02"
        channel.close()
        server.process.send_signal(signal.SIGSEGV if crash else signal.SIGTERM)
        assert server.process.wait(30) == (-signal.SIGSEGV if crash and not SANITIZED else server.process.returncode if crash else 0)
    finally:
        server.end()


def test_variables_that_are_no_flags_are_a_line(start):
    service = {"QUANTD_PORT": "tcp://10.0.0.1:50051", "QUANTD_SERVICE_HOST": "10.0.0.1", "QUANTD_PORT_50051_TCP": "tcp://10.0.0.1:50051"}
    server = start(environment={**service, "QUANTD_MAX_MESAGE_BYTES": "1", "QUANTD_ADDRESS": "x:1"})
    ignored = server.log().splitlines()[0]
    assert "warn: ignored variables in the environment" in ignored
    assert re.findall(r"QUANTD_\w+", ignored) == ["QUANTD_MAX_MESAGE_BYTES", "QUANTD_MAX_MESSAGE_BYTES", "QUANTD_ADDRESS"]
