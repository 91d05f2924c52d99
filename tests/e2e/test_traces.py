"""Spans over OTLP, to a collector that reads them with OpenTelemetry's own messages, and to dead, silent or broken ones."""

import gzip
import http.server
import re
import socket
import ssl
import threading
import time

import grpc
import numpy as np
import pytest
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from prometheus_client.openmetrics.parser import text_string_to_metric_families

import urllib.request

from certificates import Authority
from support import INT8, pb, quantize, run, tensor, wait_for

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
SAMPLED = f"00-{TRACE_ID}-00f067aa0ba902b7-01"
UNSAMPLED = SAMPLED[:-1] + "0"


class Collector:
    """The OTLP receiver of a collector: POST /v1/traces. `answer`: the status that it returns. `tls`: certificate and key;
    `client_ca`: the authority of clients that may connect."""

    def __init__(self, answer=200, tls=None, client_ca=None):
        self.spans, self.resources, self.posts, self.answer, self.headers, self.peers = [], [], 0, answer, [], []
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers["Content-Encoding"] == "gzip":
                    body = gzip.decompress(body)
                collector.headers.append(dict(self.headers))
                collector.peers.append(self.connection.getpeercert() if tls else None)
                assert self.path == "/v1/traces" and self.headers["Content-Type"] == "application/x-protobuf"
                request = trace_service_pb2.ExportTraceServiceRequest.FromString(body)
                collector.posts += 1
                for of_resource in request.resource_spans if collector.answer == 200 else ():
                    collector.resources.append({a.key: a.value for a in of_resource.resource.attributes})
                    for of_scope in of_resource.scope_spans:
                        collector.spans.extend(of_scope.spans)
                self.send_response(collector.answer)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.handle_error = lambda *_: None  # clients that do not trust it
        self.port = self.server.server_address[1]
        self.endpoint = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            if client_ca:
                context.load_verify_locations(client_ca)
                context.verify_mode = ssl.CERT_REQUIRED
            # In the connection's thread, so that one that stands still does not delay others.
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def wait(self, count):
        return wait_for(lambda: len(self.spans) >= count and list(self.spans), 20, f"{count} spans")


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def collector():
    running = Collector()
    yield running
    running.close()


def attributes(span):
    return {a.key: a.value.string_value if a.value.HasField("string_value") else a.value.int_value for a in span.attributes}


def test_a_sampled_call_is_a_span(start, collector):
    server = start(f"--otlp_endpoint={collector.endpoint}")
    before = time.time_ns()
    server.stub.Quantize(quantize([1.0, 2.0, 3.0]), timeout=10, metadata=(("traceparent", SAMPLED),))
    (span,) = collector.wait(1)
    assert span.trace_id.hex() == TRACE_ID and span.parent_span_id.hex() == "00f067aa0ba902b7"
    assert len(span.span_id) == 8 and span.span_id != span.parent_span_id
    assert span.name == "quantd.v1.QuantizationService/Quantize" and span.kind == 2 and span.status.code == 0
    assert before - 10**9 < span.start_time_unix_nano < span.end_time_unix_nano < time.time_ns() + 10**9
    known = attributes(span)
    assert known["rpc.system"] == "grpc" and known["rpc.method"] == "Quantize" and known["rpc.grpc.status_code"] == 0
    assert (known["quantd.elements"], known["quantd.input_type"], known["quantd.output_type"]) == (3, "FLOAT", "UINT8")
    assert (known["quantd.bytes_in"], known["quantd.bytes_out"]) == (12, 3)
    assert re.fullmatch(r"decode=\d+,queue=\d+,kernel=\d+,encode=\d+", known["quantd.timing_us"])
    assert [event.name for event in span.events] == ["decoded", "kernel begins", "kernel ends"]
    times = [event.time_unix_nano for event in span.events]
    assert times == sorted(times) and times[-1] <= span.end_time_unix_nano
    assert collector.resources[0]["service.name"].string_value == "quantd"
    wait_for(lambda: server.metrics()["quantd_spans_exported_total"] == 1, 10, "it is counted")


def test_off_by_default_and_for_roots(start, collector):
    server = start(f"--otlp_endpoint={collector.endpoint}")
    for _ in range(10):
        server.stub.Quantize(quantize([1.0]), timeout=10)
    server.stub.Quantize(quantize([1.0]), timeout=10, metadata=(("traceparent", SAMPLED),))
    collector.wait(1)
    assert len(collector.spans) == 1


def test_errors_and_streams(start, collector):
    server = start(f"--otlp_endpoint={collector.endpoint}", "--log_format=json")
    meta = (("traceparent", SAMPLED),)
    server.stub.Quantize.future(quantize([1.0], scale=[1.0, 2.0]), timeout=10, metadata=meta).exception()
    items = [pb.StreamRequest(id=i, quantize=quantize([1.0, 2.0])) for i in range(5)]
    assert len(list(server.stub.Stream(iter(items), timeout=10, metadata=meta))) == 5
    server.stub.GetServerInfo(pb.GetServerInfoRequest(), timeout=10, metadata=meta)
    spans = {attributes(span)["rpc.method"]: span for span in collector.wait(3)}
    assert set(spans) == {"Quantize", "Stream", "GetServerInfo"}
    failed = attributes(spans["Quantize"])
    assert failed["rpc.grpc.status_code"] == 3 and "quantd.elements" not in failed
    assert spans["Quantize"].status.code == 0  # the client's fault
    assert attributes(spans["Stream"])["quantd.elements"] == 10
    line = wait_for(lambda: [line for line in server.log().splitlines() if "call failed" in line], 10, "a line")[0]
    assert f'"trace_id":"{TRACE_ID}"' in line


def test_a_calibration_has_the_sums_of_its_messages(start, collector):
    server = start(f"--otlp_endpoint={collector.endpoint}")
    first = pb.CalibrateRequest(options=dict(axis=1, output_type=INT8, return_state=True), x=tensor(np.ones((4, 3))))
    messages = [first, pb.CalibrateRequest(x=tensor(np.ones((2, 3))))]
    answer = server.stub.Calibrate(iter(messages), timeout=10, metadata=(("traceparent", SAMPLED),))
    (span,) = collector.wait(1)
    known = attributes(span)
    assert known["rpc.method"] == "Calibrate" and known["rpc.grpc.status_code"] == 0
    assert (known["quantd.elements"], known["quantd.input_type"], known["quantd.output_type"]) == (18, "FLOAT", "INT8")
    assert (known["quantd.bytes_in"], known["quantd.bytes_out"]) == (72, 3 * (4 + 8 + 1) + len(answer.state))
    assert re.fullmatch(r"decode=\d+,queue=\d+,kernel=\d+,encode=\d+", known["quantd.timing_us"])
    assert [event.name for event in span.events] == ["decoded", "kernel begins", "kernel ends"]
    times = [event.time_unix_nano for event in span.events]
    assert times == sorted(times) and times[-1] <= span.end_time_unix_nano


def openmetrics(server):
    headers = {"Accept": "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"}
    request = urllib.request.Request(f"http://{server.http}/metrics", headers=headers)
    with urllib.request.urlopen(request, timeout=5) as response:
        return response.headers["Content-Type"], response.read().decode()


def test_exemplars_lead_to_the_trace(start):
    server = start()  # the caller's sampling is enough
    fresh = openmetrics(server)[1]
    assert "trace_id" not in fresh
    for value in [UNSAMPLED.replace("4b", "5c"), SAMPLED]:
        server.stub.Quantize(quantize([1.0]), timeout=10, metadata=(("traceparent", value),))
    wait_for(lambda: "trace_id" in openmetrics(server)[1], 10, "the call is over")
    kind, page = openmetrics(server)
    assert kind == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    families = {family.name: family for family in text_string_to_metric_families(page)}
    samples = [sample for sample in families["grpc_server_handling_seconds"].samples if sample.exemplar]
    assert len(samples) == 1 and samples[0].labels["grpc_method"] == "Quantize"
    exemplar = samples[0].exemplar
    assert exemplar.labels == {"trace_id": TRACE_ID} and 0 < exemplar.value <= float(samples[0].labels["le"])
    # The same series in either format.
    text = server.get("/metrics")[1]
    names = {line.rsplit(" ", 1)[0] for line in text.splitlines() if not line.startswith("#")}
    assert names == {re.sub(r" # .*", "", line).rsplit(" ", 1)[0] for line in page.splitlines() if not line.startswith("#")}
    assert "trace_id" not in text


@pytest.mark.parametrize("kind", ["never answers", "says 503"])
def test_a_collector_that_fails_costs_spans_only(start, kind):
    collector = Collector(answer=503)
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        endpoint = collector.endpoint if kind == "says 503" else "http://127.0.0.1:%d" % deaf.getsockname()[1]
        server = start(f"--otlp_endpoint={endpoint}", "--trace_sample_ratio=1")
        for _ in range(300):
            server.stub.Quantize(quantize([1.0]), timeout=10)
        begin = time.monotonic()
        assert server.stop(30) == 0
        assert time.monotonic() - begin < 15
    assert "spans not exported spans=" in server.log()
    collector.close()


@pytest.mark.parametrize("flag", ["--otlp_endpoint=a:1", "--trace_sample_ratio=nan"])
def test_wrong_flags(flag):
    code, _, error = run(flag)
    assert code == 2 and flag.split("=")[0] in error and len(error.splitlines()) == 1


def test_spans_that_find_no_room_are_counted(start):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = start("--otlp_endpoint=http://127.0.0.1:%d" % listener.getsockname()[1], "--trace_sample_ratio=1")
        calls = 0
        while server.metrics()['quantd_spans_dropped_total{reason="full"}'] == 0:
            assert calls < 20_000
            futures = [server.stub.Quantize.future(quantize([1.0]), timeout=30) for _ in range(200)]
            assert all(future.exception() is None for future in futures)
            calls += 200
        assert server.stop(30) == 0


def test_the_status_of_a_refused_call(start, collector):
    server = start(f"--otlp_endpoint={collector.endpoint}", "--max_message_bytes=1024")
    big = quantize([0.0] * 4096)
    error = server.stub.Quantize.future(big, timeout=10, metadata=(("traceparent", SAMPLED),)).exception()
    assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    (span,) = collector.wait(1)
    assert span.status.code == 2 and attributes(span)["quantd.reason"] == "MESSAGE_TOO_LARGE"


OTLP = "OTEL_EXPORTER_OTLP_"


def traced(server, count=1):
    for _ in range(count):
        server.stub.Quantize(quantize([1.0]), timeout=10, metadata=(("traceparent", SAMPLED),))


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_by_tls_to_a_name_and_to_an_address(start, authority, host):
    collector = Collector(tls=authority.sign("collector"))
    try:
        server = start(f"--otlp_endpoint=https://{host}:{collector.port}", environment={OTLP + "CERTIFICATE": str(authority.file)})
        traced(server)
        (span,) = collector.wait(1)
        assert span.trace_id.hex() == TRACE_ID and collector.headers[0]["Host"] == f"{host}:{collector.port}"
        wait_for(lambda: server.metrics()["quantd_spans_exported_total"] == 1, 10, "it is counted")
        # Each batch has its own connection, long after the first.
        for count in (2, 3):
            traced(server)
            collector.wait(count)
    finally:
        collector.close()


def test_the_systems_authorities_unless_told_others(start, authority):
    collector = Collector(tls=authority.sign("collector"))
    try:
        server = start(f"--otlp_endpoint={collector.endpoint}", environment={"SSL_CERT_FILE": str(authority.file)})
        traced(server)
        collector.wait(1)
    finally:
        collector.close()


def test_a_client_certificate_for_a_collector_that_asks_for_one(start, authority):
    collector = Collector(tls=authority.sign("collector"), client_ca=authority.file)
    certificate, key = authority.sign("quantd-client", hosts=(), usage="clientAuth")
    common = {OTLP + "ENDPOINT": collector.endpoint, OTLP + "CERTIFICATE": str(authority.file)}
    try:
        server = start(environment={**common, OTLP + "CLIENT_CERTIFICATE": str(certificate), OTLP + "CLIENT_KEY": str(key)})
        traced(server)
        collector.wait(1)
        assert collector.peers[0]["subject"] == ((("commonName", "quantd-client"),),)
        refused = start(environment=common)
        traced(refused)
        wait_for(lambda: refused.metrics()['quantd_spans_dropped_total{reason="failed"}'] == 1, 30, "nobody took it")
        assert len(collector.spans) == 1
    finally:
        collector.close()


@pytest.mark.parametrize(
    "wrong, said",
    [
        ("authority", "is not trusted: unable to get local issuer certificate"),
        ("name", "is not trusted: IP address mismatch"),
        ("expired", "is not trusted: certificate has expired"),
        ("plain", "cannot be reached over TLS"),
    ],
)
def test_a_collector_that_is_not_trusted_gets_nothing(start, authority, tmp_path, wrong, said):
    signer = Authority(tmp_path / "other", name="another") if wrong == "authority" else authority
    hosts = ("DNS:elsewhere",) if wrong == "name" else ("DNS:localhost", "IP:127.0.0.1")
    tls = None if wrong == "plain" else signer.sign("collector", hosts=hosts, expired=wrong == "expired")
    collector = Collector(tls=tls)
    try:
        server = start(f"--otlp_endpoint=https://127.0.0.1:{collector.port}", environment={OTLP + "CERTIFICATE": str(authority.file)})
        traced(server)
        wait_for(lambda: server.metrics()['quantd_spans_dropped_total{reason="failed"}'] == 1, 30, "nobody took it")
        wait_for(lambda: said in server.log(), 10, said)
        assert collector.posts == 0
        assert server.stop() == 0
    finally:
        collector.close()


def test_a_renewed_authority_is_read_without_a_restart(start, authority, tmp_path):
    """As the files of cert-manager change in a volume."""
    file = tmp_path / "ca.crt"
    file.write_bytes(Authority(tmp_path / "other", name="another").file.read_bytes())
    collector = Collector(tls=authority.sign("collector"))
    try:
        server = start(f"--otlp_endpoint={collector.endpoint}", environment={OTLP + "CERTIFICATE": str(file)})
        traced(server)
        wait_for(lambda: server.metrics()['quantd_spans_dropped_total{reason="failed"}'] == 1, 30, "not trusted")
        file.write_bytes(authority.file.read_bytes())
        traced(server)
        collector.wait(1)
    finally:
        collector.close()


def test_a_file_that_is_not_there_is_said_at_the_start(start, authority):
    server = start("--otlp_endpoint=https://127.0.0.1:1", environment={OTLP + "CERTIFICATE": "/nowhere/ca.crt"})
    (line,) = [line for line in server.log().splitlines() if "spans cannot be exported" in line]
    assert "OTEL_EXPORTER_OTLP_CERTIFICATE" in line and "/nowhere/ca.crt" in line
    server.stub.Quantize(quantize([1.0]), timeout=10)
    assert server.stop() == 0


def test_the_variables_that_everybody_sets(start, collector):
    server = start(
        environment={
            OTLP + "ENDPOINT": collector.endpoint,
            OTLP + "HEADERS": "api-key=s3cret%20key,x-tenant=a",
            OTLP + "COMPRESSION": "gzip",
            OTLP + "PROTOCOL": "http/protobuf",
            "OTEL_SERVICE_NAME": "tensors",
            "OTEL_RESOURCE_ATTRIBUTES": "k8s.pod.name=quantd-0,k8s.namespace.name=prod,service.name=loses",
            "OTEL_TRACES_SAMPLER": "parentbased_always_on",
        }
    )
    server.stub.Quantize(quantize([1.0]), timeout=10)
    (span,) = collector.wait(1)
    assert not span.parent_span_id
    resource = {key: value.string_value or value.int_value for key, value in collector.resources[0].items()}
    assert resource["service.name"] == "tensors" and resource["service.version"].count(".") == 2
    assert (resource["k8s.pod.name"], resource["k8s.namespace.name"]) == ("quantd-0", "prod")
    assert resource["process.pid"] == server.process.pid and resource["host.name"]
    headers = collector.headers[0]
    assert (headers["api-key"], headers["x-tenant"], headers["Content-Encoding"]) == ("s3cret key", "a", "gzip")
    (line,) = [line for line in server.log().splitlines() if " tracing " in line]
    assert f"endpoint={collector.endpoint}/v1/traces" in line and "k8s.pod.name" in line and "s3cret" not in server.log()


def test_variables_of_others_that_can_not_be_followed_stop_nothing(start):
    """They are set for a whole cluster, where most programs send OTLP over gRPC."""
    server = start(environment={OTLP + "ENDPOINT": "http://127.0.0.1:4317", OTLP + "PROTOCOL": "grpc", "OTEL_TRACES_SAMPLER": "xray"})
    server.stub.Quantize(quantize([1.0]), timeout=10)
    (line,) = [line for line in server.log().splitlines() if "variable ignored" in line]
    assert "variable=OTEL_EXPORTER_OTLP_PROTOCOL" in line and "must be http/protobuf" in line
    assert server.stop() == 0
