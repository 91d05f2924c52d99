"""Restarts under load: no call is lost."""

import collections
import re
import signal
import threading
import time

import grpc
import pytest

from support import ROOT, Server, pb_grpc, quantize, wait_for

# The configuration that the README recommends to clients.
SERVICE_CONFIG = (ROOT / "deploy/service_config.json").read_text()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_what_was_sent_before_the_client_knew_is_answered(start, number):
    """Small calls from many threads on many connections: none is cancelled, whenever the signal arrives."""
    server = start()
    codes = collections.Counter()
    stop = threading.Event()

    def client():
        # A client that neither waits nor retries, and so sees every lost call.
        options = [("grpc.enable_retries", 0), ("grpc.use_local_subchannel_pool", 1)]
        with grpc.insecure_channel(server.address, options=options) as channel:
            stub = pb_grpc.QuantizationServiceStub(channel)
            while not stop.is_set():
                error = stub.Quantize.future(quantize([1.0]), timeout=10).exception()
                if error is None:
                    codes["answered"] += 1
                    continue
                refused = error.code() == grpc.StatusCode.UNAVAILABLE and "failed to connect" in error.details().lower()
                # gRPC had assigned the call to a connection, and learned before sending a byte that the connection ends.
                unsent = error.code() == grpc.StatusCode.UNAVAILABLE and "GOAWAY received; Error code: 0" in error.details()
                kind = "no server any more" if refused else "never sent" if unsent else f"{error.code().name}: {error.details()}"
                codes[kind] += 1
                return

    clients = [threading.Thread(target=client) for _ in range(8)]
    for each in clients:
        each.start()
    wait_for(lambda: codes["answered"] > 200, 20, "calls are answered")
    server.signal(number)
    assert server.process.wait(20) == 0
    stop.set()
    for each in clients:
        each.join()
    print(dict(codes))
    assert set(codes) <= {"answered", "no server any more", "never sent"}
    assert re.search(r" drained .* calls_cut=0 ", server.log()), "of those that were sent it cut some"


def test_a_rolling_restart_of_three_servers_loses_nothing(tmp_path_factory):
    """10,000 calls by clients with the documented service config, while each server is replaced."""

    def begin(address="127.0.0.1:0"):
        return Server(tmp_path_factory.mktemp("server"), "--lame_duck_seconds=0.3", listen=(address,))

    servers = [begin() for _ in range(3)]
    addresses = [server.address for server in servers]
    failed, answered = [], [0] * 4

    def client(index):
        options = [("grpc.service_config", SERVICE_CONFIG), ("grpc.enable_retries", 1), ("grpc.use_local_subchannel_pool", 1)]
        with grpc.insecure_channel("ipv4:" + ",".join(addresses), options=options) as channel:
            stub = pb_grpc.QuantizationServiceStub(channel)
            for _ in range(2500):
                try:
                    stub.Quantize(quantize([1.0]), timeout=20, wait_for_ready=True)
                    answered[index] += 1
                except grpc.RpcError as error:
                    failed.append(f"{error.code().name}: {error.details()}")
                time.sleep(0.001)

    clients = [threading.Thread(target=client, args=(index,)) for index in range(4)]
    for each in clients:
        each.start()
    try:
        for index, address in enumerate(addresses):
            wait_for(lambda: sum(answered) + len(failed) >= 2000 * (index + 1), 60, "calls are answered")
            assert servers[index].stop() == 0
            servers[index] = begin(address)
        for each in clients:
            each.join()
    finally:
        for server in servers:
            server.stop()
    assert failed == []
    assert sum(answered) == 10_000
