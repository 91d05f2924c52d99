"""Metrics: names and labels as in the golden file; the numbers; Prometheus reads them."""

import re
import shutil
import subprocess
import threading
import time

import numpy as np
import pytest

from http2 import DATA, Peer, frame, message
from support import ROOT, SERVICE, pb, quantize, tensor, wait_for
from test_overload import upload_somehow

GOLDEN = ROOT / "tests" / "golden" / "metrics.txt"


def names_and_labels(page):
    """HELP and TYPE lines and the samples without their numbers; values that depend on build or machine are words."""
    lines = []
    for line in page.splitlines():
        if not line.startswith("#"):
            line = line.rsplit(" ", 1)[0]
        build = r'version="[^"]+",target="[^"]+",http2="nghttp2/[0-9.]+"'
        lines.append(re.sub(build, 'version="VERSION",target="TARGET",http2="HTTP2"', line))
    return "\n".join(lines) + "\n"


def test_names_and_labels_are_those_of_the_golden_file(start, request):
    server = start()

    def page():
        return names_and_labels(server.get("/metrics")[1])

    fresh = page()
    # Elements by type, and codes that are the client's fault, appear on first use. Other traffic, however strange, adds no series.
    server.stub.Quantize(quantize([1.0]), timeout=10)
    server.stub.Quantize.future(quantize([1.0], scale=0), timeout=10).exception()
    server.channel().unary_unary("/made/Up").future(b"", timeout=10).exception()
    list(server.stub.Stream(iter([pb.StreamRequest(id=1)]), timeout=10))
    added = {
        f'grpc_server_handled_total{{{labels("Quantize")},grpc_code="InvalidArgument"}}',
        'quantd_elements_total{operation="quantize",input_type="FLOAT",output_type="UINT8"}',
    }
    wait_for(lambda: set(page().splitlines()) - set(fresh.splitlines()) == added, 10, "the calls are over, and added these series")
    if request.config.getoption("--update"):
        GOLDEN.write_text(page())
    assert page() == GOLDEN.read_text(), "run pytest with --update if that is meant"


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
    }
    assert {name: now[name] for name in expected} == expected
    assert now["process_cpu_seconds_total"] >= before["process_cpu_seconds_total"]
    assert abs(now["process_start_time_seconds"] - time.time()) < 300


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


def test_gauges_show_what_is_there_and_go_back(start):
    """Unread answers, a call that waits behind them, an upload that stands still: each is counted, and later gone."""
    server = start("--memory_budget_bytes=20000000", "--stall_timeout=60", "--queue_timeout=60")
    names = ["calls", "connections", "inflight_requests", "inflight_bytes", "receiving_bytes", "queued_requests"]

    def gauges():
        now = server.metrics()
        return {name: now[f"quantd_{name}"] for name in names}

    before = gauges()
    big = pb.DynamicQuantizeRequest(x=tensor(np.ones(2 << 20))).SerializeToString()
    peers = [Peer(server.address, window=0) for _ in range(12)]
    threads = [threading.Thread(target=upload_somehow, args=(peer, big), daemon=True) for peer in peers]
    for thread in threads:
        thread.start()
    peers.append(Peer(server.address))
    peers[-1].send(frame(DATA, 0, peers[-1].open("Quantize"), message(bytes(1 << 20))[:5000]))

    def all_there():
        now = gauges()
        return (
            now["queued_requests"] > 0
            and now["receiving_bytes"] > 0
            and now["inflight_bytes"] >= 2 << 20
            and now["calls"] >= before["calls"] + 3
            and now["connections"] >= before["connections"] + 13
        )

    wait_for(all_there, 60, "one waits, one holds memory, one comes in, and the last connection is taken")
    for peer in peers:
        peer.close()
    wait_for(lambda: gauges() == before, 30, "nothing of it is left")


def test_promtool_finds_nothing_to_complain_about(server):
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed")
    done = subprocess.run(["promtool", "check", "metrics"], input=server.get("/metrics")[1], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
