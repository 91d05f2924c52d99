"""What a server allows: connections, descriptors, message sizes, memory. Beyond that it says so, and continues."""

import socket
import struct
import time

import grpc
import numpy as np
import pytest

from http2 import DATA, HEADERS, PING, Peer, frame
from support import SANITIZED, SERVICE, Server, pb, pb_grpc, quantize, tensor, wait_for

MIB = 1 << 20


def handled(metrics, method, code):
    kind = "bidi_stream" if method == "Stream" else "unary"
    return metrics[f'grpc_server_handled_total{{grpc_type="{kind}",grpc_service="{SERVICE}",grpc_method="{method}",grpc_code="{code}"}}']


def connect(server):
    host, port = server.address.rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=5)


@pytest.mark.skipif(SANITIZED, reason="UBSan opens a pipe to look at an object")
def test_out_of_descriptors_it_is_not_deaf(tmp_path_factory):
    """More connections than descriptors: those that are accepted work, the others get an error, and afterwards all is well."""
    server = Server(tmp_path_factory.mktemp("server"), descriptors=100)
    try:
        old = server.stub.Quantize(quantize([1.0]), timeout=5)
        connections = [connect(server) for _ in range(200)]
        assert server.stub.Quantize(quantize([1.0]), timeout=5) == old
        assert server.metrics()['quantd_connections_ended_total{reason="too_many"}'] > 0
        for connection in connections:
            connection.close()
        for _ in range(5):
            fresh = pb_grpc.QuantizationServiceStub(server.channel())
            assert fresh.Quantize(quantize([1.0]), timeout=5, wait_for_ready=True) == old
        assert server.get("/livez")[0] == 200
    finally:
        assert server.stop() == 0


def test_the_soft_limit_of_descriptors_is_raised(server):
    limits = open(f"/proc/{server.process.pid}/limits").read()
    line = next(line for line in limits.splitlines() if line.startswith("Max open files"))
    soft, hard = line.split()[3:5]
    assert soft == hard or int(soft) >= 1 << 20


def test_one_peer_does_not_lock_out_others(start):
    """One address has taken all places: another one gets in, in the place of an idle connection."""
    server = start("--max_connections=20", "--event_loops=2")
    port = int(server.address.rsplit(":", 1)[1])
    greedy = [socket.create_connection(("127.0.0.1", port), source_address=("127.0.0.2", 0), timeout=5) for _ in range(40)]
    refused = 'quantd_connections_ended_total{reason="too_many"}'
    wait_for(lambda: server.metrics().get(refused, 0) >= 10, 10, "some are refused")
    assert server.metrics()["quantd_connections"] <= 21
    assert server.stub.Quantize(quantize([1.0]), timeout=5, wait_for_ready=True).y.raw_data == b"\x02"
    for connection in greedy:
        connection.close()


def test_a_message_over_the_limit_is_refused_at_its_length(start):
    """Unary and in a stream: refused by name before its bytes arrive, and counted; the connection goes on."""
    server = start("--max_message_bytes=1000000")
    with Peer(server.address) as peer:
        for method in ("DynamicQuantize", "Stream"):
            stream = peer.open(method)
            peer.send(frame(DATA, 0, stream, b"\x00" + struct.pack(">I", 999 * MIB) + bytes(1000)))
            assert peer.until(HEADERS, stream)[1] & 1  # trailers only: the call is over
            assert peer.headers[stream]["grpc-status"] == str(grpc.StatusCode.RESOURCE_EXHAUSTED.value[0])
            text = peer.headers[stream]["grpc-message"]
            assert "1047527424" in text and "1000000" in text and "--max_message_bytes" in text
    metrics = server.metrics()
    assert metrics['quantd_rejected_total{reason="message_too_large"}'] == 2
    assert handled(metrics, "DynamicQuantize", "ResourceExhausted") == 1
    assert handled(metrics, "Stream", "ResourceExhausted") == 1
    error = server.stub.DynamicQuantize.future(pb.DynamicQuantizeRequest(x=tensor(np.ones(300_000))), timeout=10).exception()
    assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "1200" in error.details() and "1000000" in error.details()
    assert len(server.stub.DynamicQuantize(pb.DynamicQuantizeRequest(x=tensor([1.0])), timeout=5).y.raw_data) == 1


@pytest.mark.skipif(SANITIZED, reason="a sanitizer needs all addresses")
def test_out_of_memory_ends_a_call_not_the_process(tmp_path_factory):
    """The system has less than the flags promise."""
    less = ["prlimit", f"--as={900 * MIB}"]
    server = Server(tmp_path_factory.mktemp("server"), "--max_message_bytes=1000000000", before=less)
    try:
        request = pb.DequantizeRequest(
            x=dict(data_type=2, shape=[200 * MIB], raw_data=bytes(200 * MIB)), scale=tensor(1.0), output_type=1
        )
        for _ in range(3):  # for a Stream: a call's response is made while it is sent, and would fit
            answer = next(server.stub.Stream(iter([pb.StreamRequest(id=1, dequantize=request)]), timeout=60))
            assert answer.error.code == grpc.StatusCode.RESOURCE_EXHAUSTED.value[0], answer.error
        assert server.stub.Quantize(quantize([1.0]), timeout=5).y.raw_data == b"\x02"
    finally:
        assert server.stop() == 0


def test_clients_may_ping_as_often_as_they_like(start):
    """gRPC's own server answers this with "too many pings"."""
    server = start()
    options = [("grpc.keepalive_time_ms", 1000), ("grpc.keepalive_permit_without_calls", 1), ("grpc.http2.max_pings_without_data", 0)]
    channel = grpc.insecure_channel(server.address, options=[*options, ("grpc.use_local_subchannel_pool", 1)])
    stub = pb_grpc.QuantizationServiceStub(channel)
    stub.Quantize(quantize([1.0]), timeout=5)
    with Peer(server.address) as peer:
        for _ in range(50):
            peer.send(frame(PING, 0, 0, b"12345678"))
            assert peer.until(PING)[1] == 1
            time.sleep(0.05)
    stub.Quantize(quantize([1.0]), timeout=5)
    channel.close()
    assert server.metrics()["quantd_connections_accepted_total"] == 2


def test_an_old_connection_is_sent_elsewhere(start):
    """Calls go on without an error: the client connects again."""
    server = start("--max_connection_age=1", "--max_connection_age_grace=5")
    end = time.monotonic() + 4
    while time.monotonic() < end:
        server.stub.Quantize(quantize([1.0]), timeout=5)
        time.sleep(0.005)
    assert server.metrics()['quantd_connections_ended_total{reason="age"}'] >= 2


def test_who_says_nothing_is_let_go(start):
    server = start()
    connection = connect(server)
    connection.settimeout(15)
    begin = time.monotonic()
    assert connection.recv(1) == b""
    assert 8 < time.monotonic() - begin < 14
    assert server.metrics()['quantd_connections_ended_total{reason="no_handshake"}'] == 1
