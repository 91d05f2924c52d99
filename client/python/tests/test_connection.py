"""Where a client connects and how: addresses, the environment, TLS, retries."""

import json
import time
from pathlib import Path

import grpc
import numpy as np
import pytest

import quantd
from quantd import address, messages
from certificates import Authority
from raw_server import RawServer

X = np.ones(4, np.float32)
ANSWER = messages.QuantizeResponse(
    y=messages.Tensor(data_type=2, shape=[4], raw_data=b"\1\1\1\1")).SerializeToString()


@pytest.mark.parametrize("given,expected", [
    ("localhost", "localhost:50051"), ("localhost:1", "localhost:1"), ("localhost:65535", "localhost:65535"), ("example.org:", "example.org:50051"),
    ("10.0.0.1", "10.0.0.1:50051"), ("::1", "[::1]:50051"), ("fe80::1%eth0", "[fe80::1%eth0]:50051"),
    ("[::1]", "[::1]:50051"), ("[::1]:7", "[::1]:7"), (" host ", "host:50051"),
    ("unix:/run/q.sock", "unix:/run/q.sock"), ("unix:///run/q.sock", "unix:///run/q.sock"), ("unix-abstract:q", "unix-abstract:q"),
    ("dns:host", "dns:host:50051"), ("dns:host:9", "dns:host:9"), ("dns:///host", "dns:///host:50051"),
    ("dns:///host:9", "dns:///host:9"), ("dns://1.1.1.1/host", "dns://1.1.1.1/host:50051"),
    ("ipv4:10.0.0.1", "ipv4:10.0.0.1:50051"), ("ipv4:10.0.0.1:2,10.0.0.2", "ipv4:10.0.0.1:2,10.0.0.2:50051"),
    ("ipv6:[::1]", "ipv6:[::1]:50051"), ("ipv6:::1", "ipv6:[::1]:50051"), ("ipv6:[::1]:9", "ipv6:[::1]:9"),
    ("xds:///service", "xds:///service"), ("other://host", "other://host")])
def test_addresses(given, expected):
    assert address.target(given) == expected


@pytest.mark.parametrize("given", [
    "", "  ", ":50051", "http://host:1", "https://host", "[::1", "[::1]x", "host:65536", "host:0", "host:a", "host:-1", "host:\u0661",
    "[::1]:99999", "dns:///host:x", "ipv4:10.0.0.1:1,10.0.0.2:x"])
def test_wrong_addresses(given):
    with pytest.raises(ValueError, match="address"):
        quantd.Client(given)


def test_the_environment_names_the_server(monkeypatch, address):
    with quantd.Client() as client:
        assert client.address == "127.0.0.1:50051"
    monkeypatch.setenv("QUANTD_ADDRESS", address)
    with quantd.Client() as client:
        assert client.address == address and client.info().version
    monkeypatch.setenv("QUANTD_ADDRESS", "")
    assert quantd.Client("localhost").address == "localhost:50051"
    with pytest.raises(TypeError, match="address"):
        quantd.Client(50051)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """An authority's file, and a certificate with its key for the server and for a client."""
    authority = Authority(tmp_path_factory.mktemp("tls"))
    return authority.file, authority.sign("server"), authority.sign("client", usage="clientAuth")


@pytest.fixture(params=[False, True], ids=["server's certificate", "both"])
def tls_server(request, certificates):
    authority, (certificate, key), _ = certificates
    pair = [(key.read_bytes(), certificate.read_bytes())]
    credentials = grpc.ssl_server_credentials(pair, authority.read_bytes() if request.param else None, request.param)
    with RawServer(credentials, Quantize=lambda *_: ANSWER) as server:
        server.mutual = request.param
        yield server


def test_tls_by_files_and_by_environment(tls_server, certificates, monkeypatch):
    where = f"localhost:{tls_server.port}"
    authority, _, (certificate, key) = certificates
    files = {"tls_ca": str(authority), "tls_cert": str(certificate), "tls_key": str(key)}
    only_ca = {"tls_ca": files["tls_ca"]}
    with quantd.Client(where, timeout=20, **files) as client:
        assert client.quantize(X, 1.0).y.tolist() == [1, 1, 1, 1]
    with quantd.Client(where, timeout=5, retry=False, **only_ca) as client:
        if tls_server.mutual:
            with pytest.raises(quantd.UnavailableError):
                client.quantize(X, 1.0)
        else:
            client.quantize(X, 1.0)
    for name, path in files.items():
        monkeypatch.setenv(f"QUANTD_{name.upper()}", path)
    with quantd.Client(where, timeout=20) as client:
        client.quantize(X, 1.0)
    monkeypatch.delenv("QUANTD_TLS_CA")
    with quantd.Client(where, timeout=5, retry=False) as client, pytest.raises(quantd.UnavailableError):
        client.quantize(X, 1.0)  # an authority that this machine does not know


def retry_info(seconds):
    delay = {"seconds": int(seconds), "nanos": int((seconds % 1) * 1e9)}
    detail = {"type_url": "type.googleapis.com/google.rpc.RetryInfo",
              "value": messages.RetryInfo(retry_delay=delay).SerializeToString()}
    return ("grpc-status-details-bin", messages.Status(code=14, details=[detail]).SerializeToString())


def failing(times, *trailers, code=grpc.StatusCode.UNAVAILABLE):
    """Fails `times` times, then answers."""
    left = [times]

    def answer(request, context):
        if left[0]:
            left[0] -= 1
            context.set_trailing_metadata(trailers)
            context.abort(code, "not now")
        return ANSWER

    return answer


def test_the_documented_config_is_that_of_deploy():
    deployed = json.loads((Path(__file__).resolve().parents[3] / "deploy" / "service_config.json").read_text())
    assert quantd.SERVICE_CONFIG == deployed


def test_unavailable_is_tried_again():
    with RawServer(Quantize=failing(4)) as server, quantd.Client(server.address) as client:
        assert client.quantize(X, 1.0).y.tolist() == [1, 1, 1, 1]
        assert len(server.calls) == 5
    with RawServer(Quantize=failing(5)) as server, quantd.Client(server.address) as client:
        with pytest.raises(quantd.UnavailableError, match="not now"):
            client.quantize(X, 1.0)
        assert len(server.calls) == 5


@pytest.mark.parametrize("options", [
    {"retry": False}, {"options": [("grpc.service_config", json.dumps({"loadBalancingConfig": [{"pick_first": {}}]}))]}], ids=str)
def test_retries_can_be_turned_off(options):
    with RawServer(Quantize=failing(1)) as server, quantd.Client(server.address, **options) as client:
        with pytest.raises(quantd.UnavailableError):
            client.quantize(X, 1.0)
        assert len(server.calls) == 1


def test_only_unavailable_is_tried_again():
    with RawServer(Quantize=failing(1, code=grpc.StatusCode.INTERNAL)) as server, quantd.Client(server.address) as client:
        with pytest.raises(quantd.QuantdError, match="INTERNAL"):
            client.quantize(X, 1.0)
        assert len(server.calls) == 1


@pytest.mark.parametrize("trailer", [retry_info(0.4), ("grpc-retry-pushback-ms", "400")], ids=["RetryInfo", "pushback"])
def test_the_servers_word_about_when_is_kept(trailer):
    with RawServer(Quantize=failing(2, trailer)) as server, quantd.Client(server.address) as client:
        client.quantize(X, 1.0)
        times = [when for _, when in server.calls]
        assert [b - a >= 0.4 for a, b in zip(times, times[1:])] == [True, True]


@pytest.mark.parametrize("trailer,options", [
    (("grpc-retry-pushback-ms", "-1"), {}), (("grpc-retry-pushback-ms", "soon"), {}), (retry_info(31), {}),
    (("grpc-retry-pushback-ms", "99999999999999"), {}), (retry_info(3), {"timeout": 2})])
def test_no_other_try_when_the_server_or_the_time_says_so(trailer, options):
    with RawServer(Quantize=failing(1, trailer)) as server, quantd.Client(server.address) as client:
        begin = time.monotonic()
        with pytest.raises(quantd.UnavailableError):
            client.quantize(X, 1.0, **options)
        assert time.monotonic() - begin < 2 and len(server.calls) == 1
