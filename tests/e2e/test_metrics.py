"""Metrics: every name and label as in the golden file, from the start; the numbers; Prometheus reads them."""

import json
import re
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request

import grpc
import numpy as np
import pytest

from support import ROOT, SERVICE, pb, quantize, tensor, wait_for

GOLDEN = ROOT / "tests" / "golden" / "metrics.txt"


def names_and_labels(page):
    """HELP and TYPE lines and the samples without their numbers; what a build or machine decides is a word."""
    lines = []
    for line in page.splitlines():
        if not line.startswith("#"):
            line = line.rsplit(" ", 1)[0]
        lines.append(re.sub(r'version="[^"]*",target="[^"]*"', 'version="VERSION",target="TARGET"', line))
    return "\n".join(lines) + "\n"


def test_names_and_labels_are_those_of_the_golden_file(start, request):
    server = start()
    fresh = names_and_labels(server.get("/metrics")[1])
    if request.config.getoption("--update"):
        GOLDEN.write_text(fresh)
    assert fresh == GOLDEN.read_text(), "run pytest with --update if that is meant"
    # Traffic, however strange, adds no series.
    server.stub.Quantize(quantize([1.0]), timeout=10)
    server.stub.Quantize.future(quantize([1.0], scale=0), timeout=10).exception()
    server.channel().unary_unary("/made/Up")  # no call yet
    server.channel().unary_unary("/made/Up").future(b"", timeout=10).exception()
    list(server.stub.Stream(iter([pb.StreamRequest(id=1)]), timeout=10))
    assert names_and_labels(server.get("/metrics")[1]) == fresh


def labels(method, kind="unary"):
    return f'grpc_type="{kind}",grpc_service="{SERVICE}",grpc_method="{method}"'


def test_what_is_counted(start):
    server = start()
    before = server.metrics()
    assert all(value == 0 for name, value in before.items() if name.startswith(("grpc_server", "quantd_elements")))
    for _ in range(3):
        server.stub.Quantize(quantize([[0.0, 300.0]], report_error=True), timeout=10)
    server.stub.Quantize.future(quantize([1.0], scale=0), timeout=10).exception()
    items = [pb.StreamRequest(id=i, dynamic_quantize=pb.DynamicQuantizeRequest(x=tensor([1.0] * 10))) for i in range(5)]
    list(server.stub.Stream(iter(items), timeout=10))

    def settled():
        now = server.metrics()
        return now if now[f'grpc_server_handled_total{{{labels("Stream", "bidi_stream")},grpc_code="OK"}}'] == 1 else None

    now = wait_for(settled, 5, "the stream is over")
    expected = {
        f'grpc_server_started_total{{{labels("Quantize")}}}': 4,
        f'grpc_server_handled_total{{{labels("Quantize")},grpc_code="OK"}}': 3,
        f'grpc_server_handled_total{{{labels("Quantize")},grpc_code="InvalidArgument"}}': 1,
        f'grpc_server_msg_received_total{{{labels("Quantize")}}}': 4,
        f'grpc_server_msg_sent_total{{{labels("Quantize")}}}': 3,
        f'grpc_server_handling_seconds_count{{{labels("Quantize")}}}': 4,
        f'grpc_server_msg_received_total{{{labels("Stream", "bidi_stream")}}}': 5,
        f'grpc_server_msg_sent_total{{{labels("Stream", "bidi_stream")}}}': 5,
        'quantd_elements_total{operation="quantize",input_type="FLOAT",output_type="UINT8"}': 6,
        'quantd_elements_total{operation="dynamic_quantize",input_type="FLOAT",output_type="UINT8"}': 50,
        'quantd_tensor_bytes_total{operation="quantize",direction="in"}': 24,
        'quantd_tensor_bytes_total{operation="quantize",direction="out"}': 6,
        'quantd_kernel_seconds_count{operation="quantize"}': 3,
        'quantd_kernel_seconds_count{operation="dynamic_quantize"}': 5,
        "quantd_queue_seconds_count": 8,
        "quantd_saturated_elements_total": 3,
        "quantd_inflight_requests": 0,
        "quantd_inflight_bytes": 0,
    }
    assert {name: now[name] for name in expected} == expected
    assert now["process_cpu_seconds_total"] >= before["process_cpu_seconds_total"]
    assert abs(now["process_start_time_seconds"] - time.time()) < 300


def test_a_stream_that_waits_for_its_client_is_not_a_queue(start):
    """The clock of an item runs from its own first bytes: what lies between two items is the client's time."""
    server = start()

    def items():
        for i in range(4):
            yield pb.StreamRequest(id=i, quantize=quantize([1.0]))
            time.sleep(0.5)

    begin = time.monotonic()
    assert len(list(server.stub.Stream(items(), timeout=30))) == 4
    waited = time.monotonic() - begin
    now = server.metrics()
    assert now["quantd_queue_seconds_count"] == 4
    # Three pauses of a client are 1.5 s; a busy machine may well add a wait of its own.
    assert now["quantd_queue_seconds_sum"] < waited / 4


def test_limits_are_beside_what_they_limit(start):
    server = start("--max_connections=70", "--memory_budget_bytes=50000000", "--receive_budget_bytes=40000000")
    now = server.metrics()
    expected = {
        "quantd_max_connections": 70,
        "quantd_memory_budget_bytes": 50_000_000,
        "quantd_receive_budget_bytes": 40_000_000,
        "quantd_draining": 0,
    }
    assert {name: now[name] for name in expected} == expected
    (limit,) = re.findall(r" memory_limit_bytes=(\d+)", server.log())
    assert now["quantd_memory_limit_bytes"] == float(limit)


def test_the_page_says_that_a_drain_has_begun(start):
    server = start("--lame_duck_seconds=5")
    server.signal()
    wait_for(lambda: server.metrics()["quantd_draining"] == 1, 4, "the drain is on the page")


def test_deadlines_and_cancellations_are_counted(start):
    server = start()
    big = pb.DynamicQuantizeRequest(x=tensor(np.ones(4_000_000)))
    for _ in range(5):
        assert server.stub.DynamicQuantize.future(big, timeout=0.004).exception().code() == grpc.StatusCode.DEADLINE_EXCEEDED

    def settled():
        now = server.metrics()
        started = now[f'grpc_server_started_total{{{labels("DynamicQuantize")}}}']
        handled = sum(v for k, v in now.items() if k.startswith("grpc_server_handled_total") and '"DynamicQuantize"' in k)
        return started == handled

    wait_for(settled, 5, "every call is over")


def test_promtool_finds_nothing_to_complain_about(server):
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed")
    done = subprocess.run(["promtool", "check", "metrics"], input=server.get("/metrics")[1], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_prometheus_scrapes_the_server_and_answers_a_query(server, tmp_path):
    if shutil.which("prometheus") is None:
        pytest.skip("prometheus is not installed")
    for _ in range(3):
        server.stub.Quantize(quantize([1.0, 2.0]), timeout=10)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        address = "127.0.0.1:%d" % probe.getsockname()[1]
    config = tmp_path / "prometheus.yml"
    config.write_text(
        "scrape_configs:\n- job_name: quantd\n  scrape_interval: 1s\n  scrape_timeout: 1s\n"
        f"  static_configs:\n  - targets: ['{server.http}']\n"
    )
    flags = [f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'data'}", f"--web.listen-address={address}"]
    with open(tmp_path / "log", "w") as log:
        prometheus = subprocess.Popen(["prometheus", *flags], stdout=log, stderr=log)

    def query(expression):
        url = f"http://{address}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
        try:
            with urllib.request.urlopen(url, timeout=2) as response:
                result = json.load(response)["data"]["result"]
        except OSError:
            return None
        return float(result[0]["value"][1]) if result else None

    try:
        elements = 'sum by (operation) (quantd_elements_total{operation="quantize",output_type="UINT8"})'
        wait_for(lambda: query(elements) == 6, 20, "the query is answered")
        assert query('up{job="quantd"}') == 1
        assert query('sum(grpc_server_handled_total{grpc_method="Quantize",grpc_code="OK"})') == 3
        assert query('histogram_quantile(0.5, sum by (le) (grpc_server_handling_seconds_bucket{grpc_method="Quantize"}))') < 1
    finally:
        prometheus.terminate()
        prometheus.wait(10)
