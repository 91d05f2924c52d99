"""TLS from outside: which clients may connect, at the start and while certificates change."""

import time

import grpc
import pytest

from support import health_pb2, health_pb2_grpc, pb, pb_grpc, quantize, wait_for
from tls import Files, TlsServer, files, hang_up, own_files, s_client, start_tls  # noqa: F401


@pytest.fixture(scope="module")
def server(files, tmp_path_factory):  # noqa: F811
    running = TlsServer(tmp_path_factory.mktemp("server"), files, *files.flags)
    yield running
    assert running.process.poll() is None, running.log()[-4000:]
    assert running.stop() == 0


@pytest.fixture(scope="module")
def mutual(files, tmp_path_factory):  # noqa: F811
    running = TlsServer(tmp_path_factory.mktemp("server"), files, *files.mutual, client=files.client)
    yield running
    assert running.process.poll() is None, running.log()[-4000:]
    assert running.stop() == 0


def failure(stub):
    with pytest.raises(grpc.RpcError) as caught:
        stub.Quantize(quantize([1.0]), timeout=10)
    return caught.value


# ---- Clients that may connect


def test_calls_of_every_kind(server):
    assert server.stub.Quantize(quantize([1.0, 2.0]), timeout=10).y.raw_data == b"\x02\x04"
    items = (pb.StreamRequest(id=i, quantize=quantize([float(i)], scale=1.0)) for i in range(1, 200))
    assert [answer.id for answer in server.stub.Stream(items, timeout=20)] == list(range(1, 200))
    error = failure(Bad(server.stub))
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT and "x is required" in error.details()


class Bad:
    """A stub whose calls lack their tensor."""

    def __init__(self, stub):
        self.stub = stub

    def Quantize(self, _, timeout):
        return self.stub.Quantize(pb.QuantizeRequest(), timeout=timeout)


@pytest.mark.parametrize("version", ["-tls1_2", "-tls1_3"])
def test_openssl(server, version):
    _, said = s_client(server, version, "-alpn", "h2", "-CAfile", server.files.servers.file, "-verify_return_error")
    assert "ALPN protocol: h2" in said and "Verify return code: 0 (ok)" in said


@pytest.mark.parametrize("version", ["-tls1", "-tls1_1"])
def test_old_versions_are_refused(server, version):
    code, said = s_client(server, version, "-cipher", "DEFAULT:@SECLEVEL=0", "-alpn", "h2")
    assert code != 0 and "Cipher is (NONE)" in said


def test_the_protocol_is_http2(server):
    before = len(server.refusals())
    code, said = s_client(server, "-alpn", "http/1.1")
    assert code != 0 and "no application protocol" in said
    s_client(server)  # names none
    wait_for(lambda: len(server.refusals()) >= before + 2, 10, "two lines")
    assert "does not offer HTTP/2" in server.refusals()[-1]


def test_health_and_probes(server):
    stub = health_pb2_grpc.HealthStub(server.channel())
    assert stub.Check(health_pb2.HealthCheckRequest(), timeout=10).status == 1
    assert server.get("/readyz") == (200, "ok\n")
    for _ in range(5):  # for longer than a loop may owe a beat
        assert server.get("/livez") == (200, "ok\n")
        time.sleep(1.1)
    assert not [line for line in server.refusals() if "livez" in line]


# ---- Clients that may not


def test_plain_text_is_refused(server):
    refused = 'quantd_tls_handshakes_refused_total{reason="plain_text"}'
    before = server.metrics()[refused]
    with grpc.insecure_channel(server.address) as channel:
        error = failure(pb_grpc.QuantizationServiceStub(channel))
    # gRPC's message for an answer that is not HTTP/2: at once, and not after one connection after the other until the deadline.
    assert error.code() == grpc.StatusCode.UNAVAILABLE and "HTTP status 400" in error.details()
    assert server.metrics()[refused] - before < 10
    with server.raw() as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"speaks gRPC over TLS" in connection.recv(1000)
        assert connection.recv(1) == b""
    assert any("plain text: this port speaks TLS" in line for line in server.refusals())
    with server.raw(http=True) as connection:
        connection.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"this port speaks TLS" in connection.recv(1000)


def test_mutual(mutual, files):  # noqa: F811
    assert mutual.stub.Quantize(quantize([1.0]), timeout=10).y.raw_data == b"\x02"
    stranger = files.strangers.sign("stranger", hosts=(), usage="clientAuth")
    late = files.clients.sign("late", hosts=(), usage="clientAuth", expired=True)
    of_a_server = files.clients.sign("server", usage="serverAuth")
    own = files.credentials()
    assert failure(mutual.new_stub(credentials=own)).code() == grpc.StatusCode.UNAVAILABLE
    mutual.wait_for_log("sent no certificate")
    for client, why in (
        (stranger, "unable to get local issuer certificate"), (late, "certificate has expired"), (of_a_server, "purpose"),
    ):  # fmt: skip
        stub = mutual.new_stub(credentials=files.credentials(client))
        assert failure(stub).code() == grpc.StatusCode.UNAVAILABLE
        try:
            mutual.wait_for_log(why, 5)
        except AssertionError:
            mutual.wait_for_log("more like it", 20)  # suppressed: the lines are limited
    assert mutual.metrics()['quantd_tls_handshakes_refused_total{reason="certificate"}'] >= 3
    assert mutual.metrics()['quantd_tls_handshakes_refused_total{reason="no_certificate"}'] >= 1


def test_mutual_http(mutual, files):  # noqa: F811
    assert mutual.get("/livez", client=None) == (200, "ok\n")
    assert mutual.get("/readyz", client=None) == (200, "ok\n")
    assert mutual.get("/metrics", client=None) == (403, "a client certificate is required\n")
    assert mutual.get("/metrics")[0] == 200
    stranger = files.strangers.sign("stranger", hosts=(), usage="clientAuth")
    with pytest.raises(OSError):
        mutual.get("/livez", client=stranger)


# ---- At start


@pytest.mark.parametrize("listen, warnings", [("0.0.0.0:0", 1), ("[::]:0", 1), ("127.0.0.1:0", 0)])
def test_more_than_loopback_without_tls(start, listen, warnings):
    server = start(listen=(listen, listen))
    assert server.log().count("reach this server without TLS") == warnings


def test_more_than_loopback_with_tls(files, start_tls):  # noqa: F811
    assert "reach this server without TLS" not in start_tls(files, *files.flags, listen=("0.0.0.0:0",)).log()
