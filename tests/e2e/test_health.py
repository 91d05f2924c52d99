"""grpc.health.v1, /livez and /readyz."""

import signal
import threading
import time

import grpc
import pytest

from support import SERVICE, health_pb2, pb_grpc, quantize, rounds, wait_for

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
SERVICE_UNKNOWN = health_pb2.HealthCheckResponse.SERVICE_UNKNOWN


@pytest.mark.parametrize("service", ["", SERVICE])
def test_check(server, service):
    assert server.health().Check(health_pb2.HealthCheckRequest(service=service), timeout=5).status == SERVING


def test_http(server):
    assert server.get("/livez")[0] == 200
    assert server.get("/readyz")[0] == 200
    assert server.get("/nothing")[0] == 404


def test_load_fails_no_probe(server):
    """While every thread quantizes, each probe is answered in time."""
    over = threading.Event()
    failed = []

    def load():
        stub = server.stub
        request = quantize([0.5] * 1_000_000)
        while not over.is_set():
            try:
                stub.Quantize(request, timeout=30)
            except grpc.RpcError as error:
                failed.append(error)

    workers = [threading.Thread(target=load) for _ in range(4)]
    for worker in workers:
        worker.start()
    health = server.health()
    probes = 0
    try:
        for _ in rounds(2, lambda: probes > 3):
            assert health.Check(health_pb2.HealthCheckRequest(), timeout=1).status == SERVING
            assert server.get("/livez")[0] == 200
            probes += 1
    finally:
        over.set()
        for worker in workers:
            worker.join()
    assert not failed and probes > 3


def test_a_drain_is_told_in_an_order_that_loses_nothing(start):
    """/readyz changes at once, for balancers; health half a lame duck later, for clients that ask; then the rest."""
    server = start("--lame_duck_seconds=4", "--drain_seconds=30")
    health = server.health()
    watch = health.Watch(health_pb2.HealthCheckRequest(), timeout=30)
    assert next(watch).status == SERVING
    begin = time.monotonic()
    server.signal(signal.SIGTERM)
    wait_for(lambda: server.get("/readyz")[0] == 503, 5, "/readyz says so")
    seen = time.monotonic() - begin
    told = health.Check(health_pb2.HealthCheckRequest(), timeout=5).status
    # A client that is still sent here is served, also on a new connection.
    late = server.channel()
    assert pb_grpc.QuantizationServiceStub(late).Quantize(quantize([1.0]), timeout=5).y.raw_data == b"\x02"
    if time.monotonic() - begin < 1.9:  # otherwise this machine is too slow to tell
        assert seen < 1.9 and told == SERVING
    assert next(watch).status == NOT_SERVING
    assert time.monotonic() - begin > 1.9
    assert server.stub.Quantize(quantize([1.0]), timeout=5).y.raw_data == b"\x02"
    assert server.process.wait(20) == 0
    assert time.monotonic() - begin > 3.9
