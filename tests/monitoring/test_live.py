"""A real quantd with all kinds of traffic under a real Prometheus with the real rules: every panel and every rule has data, and a server that is
killed becomes an alert."""

import http.server
import json
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

import grpc
import numpy as np
import promql_parser
import pytest
import yaml

from support import MONITORING, ROOT, RULE_FILES, alerts, dashboard, nodes, panels, rules
from test_dashboard import substituted

sys.path.insert(0, str(ROOT / "tests" / "e2e"))
# Both folders have a support.py.
_own = sys.modules.pop("support")
from support import Server, pb, quantize, tensor, tensor_pb2, wait_for  # noqa: E402

sys.modules["support"] = _own

PANELS = list(panels(dashboard()))
# So that traffic() finds it full.
LIMITS = ("--max_message_bytes=16000000", "--threads=2", "--max_connections=64", "--max_inflight_requests=1", "--max_queued_requests=1")


# The labels that a pod's target has in a cluster.
POD = {"namespace": "here", "pod": "quantd-0"}


class Kubelet(http.server.BaseHTTPRequestHandler):
    """What a kubelet exports about a container, with cAdvisor's names; the rules read one series of it."""

    def do_GET(self):
        labels = ",".join(f'{name}="{value}"' for name, value in {**POD, "container": "quantd"}.items())
        body = f"container_memory_working_set_bytes{{{labels}}} 1e8\n".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Prometheus:
    """Debian's Prometheus, with deploy/monitoring's rules, scraping these servers every second."""

    def __init__(self, folder, targets, kubelet=None):
        if shutil.which("prometheus") is None:
            pytest.skip("no prometheus on this machine")
        self.folder = pathlib.Path(folder)
        for file in RULE_FILES:
            loaded = yaml.safe_load((MONITORING / file).read_text())
            for group in loaded["groups"]:
                group["interval"] = "1s"  # two minutes take the place of windows of days
                for rule in group["rules"]:
                    if rule.get("record") in ("quantd:rejects:tolerated", "quantd:burn:least_requests"):
                        rule["expr"] = "vector(0.001)"  # a slow machine has little traffic
            (self.folder / file).write_text(yaml.safe_dump(loaded))
        config = yaml.safe_load((MONITORING / "prometheus.yml").read_text())
        config["global"] = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
        config["scrape_configs"][0]["static_configs"] = [{"targets": targets, "labels": POD}]
        if kubelet is not None:
            config["scrape_configs"].append({"job_name": "kubelet", "honor_labels": True, "static_configs": [{"targets": [kubelet]}]})
        (self.folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.address = "127.0.0.1:%d" % probe.getsockname()[1]
        command = ["prometheus", f"--config.file={self.folder / 'prometheus.yml'}", f"--storage.tsdb.path={self.folder / 'data'}"]
        with open(self.folder / "log", "w") as log:
            self.process = subprocess.Popen([*command, f"--web.listen-address={self.address}"], stdout=log, stderr=log)
        wait_for(self._ready, 60, "Prometheus is ready")

    def _ready(self):
        assert self.process.poll() is None, (self.folder / "log").read_text()[-2000:]
        try:
            return urllib.request.urlopen(f"http://{self.address}/-/ready", timeout=2).status == 200
        except OSError:
            return False

    def ask(self, path, **parameters):
        url = f"http://{self.address}/api/v1/{path}?" + urllib.parse.urlencode(parameters)
        try:
            with urllib.request.urlopen(url, timeout=20) as response:
                return json.load(response)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from error

    def query(self, expression):
        """Series whose value is a number."""
        return [series for series in self.ask("query", query=expression)["result"] if series.get("value", [0, "1"])[1] != "NaN"]

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def end(calls):
    """Waits for each, however it ends: the server is sometimes full, and some are cancelled."""
    for call in calls:
        try:
            call.exception()
        except grpc.FutureCancelledError:
            pass


def read(answers):
    try:
        return list(answers)
    except grpc.RpcError:
        return []


def traffic(server):
    """A little of everything: good, bad, dynamic, with a report, saturated, a stream, more than fits, cancelled, late, too large,
    and a peer with another protocol."""
    stub = server.stub
    some = pb.DynamicQuantizeRequest(x=tensor(np.linspace(-1, 1, 5000)))
    raw = tensor_pb2.Tensor(data_type=2, shape=[3], raw_data=b"\x01\x02\x03")
    for _ in range(5):
        end([stub.Quantize.future(quantize([[0.0, 1.0, 300.0]], report_error=True), timeout=60)])
        end([stub.DynamicQuantize.future(some, timeout=60)])
    end([stub.Dequantize.future(pb.DequantizeRequest(x=raw, scale=tensor(0.5)), timeout=60)])
    end([stub.GetServerInfo.future(pb.GetServerInfoRequest(), timeout=60)])
    end([stub.Quantize.future(quantize([1.0], scale=0), timeout=60)])
    read(stub.Stream(iter([pb.StreamRequest(id=i, quantize=quantize([1.0] * 100, scale=i % 2)) for i in range(6)]), timeout=60))
    # Unread answers keep the only permit, and one request may wait.
    item = pb.StreamRequest(id=1, dynamic_quantize=pb.DynamicQuantizeRequest(x=tensor(np.ones(3_500_000))))
    unread = stub.Stream(iter([item] * 4), timeout=60)
    for _ in range(100):  # until it has arrived, which takes time on a slow machine
        time.sleep(0.1)
        if server.metrics()["quantd_inflight_requests"] > 0:
            break
    waiting = [stub.Quantize.future(quantize([1.0]), timeout=60) for _ in range(8)]
    time.sleep(0.5)
    read(unread)
    end(waiting)
    large = pb.DynamicQuantizeRequest(x=tensor(np.ones(2_000_000)))
    calls = [stub.DynamicQuantize.future(large, timeout=60) for _ in range(8)]
    calls[-1].cancel()
    end([*calls, stub.DynamicQuantize.future(large, timeout=0.02)])
    end([stub.DynamicQuantize.future(pb.DynamicQuantizeRequest(x=tensor(np.ones(6_000_000))), timeout=60)])
    with socket.create_connection(server.address.rsplit(":", 1), timeout=10) as peer:
        peer.sendall(b"GET / HTTP/1.1\r\nHost: quantd\r\n\r\n")
        peer.recv(100)


@pytest.fixture(scope="module")
def busy(tmp_path_factory):
    """(server, Prometheus), with traffic that goes on until the last test."""
    server = Server(tmp_path_factory.mktemp("server"), *LIMITS, f"--shared_memory_dir={tmp_path_factory.mktemp('memory')}")
    kubelet = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Kubelet)
    threading.Thread(target=kubelet.serve_forever).start()
    prometheus = Prometheus(tmp_path_factory.mktemp("prometheus"), [server.http], "127.0.0.1:%d" % kubelet.server_port)
    over = threading.Event()
    failures = []

    def run():
        while not over.is_set():
            try:
                traffic(server)
            except Exception as error:  # noqa: BLE001  # told below
                failures.append(error)
                return
            over.wait(0.5)

    thread = threading.Thread(target=run)
    thread.start()
    yield server, prometheus
    over.set()
    thread.join()
    prometheus.stop()
    kubelet.shutdown()
    kubelet.server_close()
    assert server.stop() == 0
    assert failures == []


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_every_panel_has_data(panel, busy):
    _, prometheus = busy
    for target in panel["targets"]:
        expression = substituted(target["expr"])
        found = wait_for(lambda: prometheus.query(expression), 60, f"{panel['title']}: {expression}")
        # A legend names labels that the series have.
        labels = {label for series in found for label in series["metric"]}
        named = {word.split("}}")[0] for word in target["legendFormat"].split("{{")[1:]}
        assert named <= labels, f"{panel['title']}: {named} of {labels}"


def test_the_traffic_was_of_every_kind(busy):
    """Otherwise, the panels above might have shown only zeros."""
    _, prometheus = busy
    for reason in ("queue_full", "message_too_large"):
        wait_for(lambda: prometheus.query(f'quantd_rejected_total{{reason="{reason}"}} > 0'), 60, reason)
    for code in ("OK", "InvalidArgument", "Unavailable", "ResourceExhausted"):
        wait_for(lambda: prometheus.query(f'sum(grpc_server_handled_total{{grpc_code="{code}"}}) > 0'), 60, code)
    wait_for(lambda: prometheus.query('sum(grpc_server_handled_total{grpc_code=~"Canceled|DeadlineExceeded"}) > 0'), 60, "given up")
    wait_for(lambda: prometheus.query('quantd_connections_ended_total{reason=~"protocol_error|no_handshake"} > 0'), 60, "a stranger")
    wait_for(lambda: prometheus.query("quantd:requests_failed:rate1h > 0"), 60, "failures that count")


def test_a_full_server_becomes_an_alert(busy):
    """Pending: it waits for minutes before it fires. A burn also waits for a number of failures, which slow machines may not
    reach here; a part of them shows that the number is counted."""
    _, prometheus = busy
    full = 'ALERTS{alertname="QuantdRejects",reason="queue_full"}'
    wait_for(lambda: prometheus.query(full), 120, "rejects")
    burn = "quantd:availability_burn:rate5m > 14.4 and quantd:availability_burn:rate1h > 14.4"
    wait_for(lambda: prometheus.query(burn), 120, "the burn")
    assert not prometheus.query('ALERTS{alertname=~"QuantdAbsent|QuantdDown|QuantdCrashLoop|QuantdRulesIncomplete|QuantdStuck"}')


def test_the_variables_have_values(busy):
    _, prometheus = busy
    wait_for(lambda: prometheus.query("quantd_build_info"), 60, "a scrape")
    assert prometheus.ask("label/job/values", **{"match[]": "quantd_build_info"}) == ["quantd"]
    assert len(prometheus.ask("label/instance/values", **{"match[]": 'quantd_build_info{job=~"quantd"}'})) == 1


@pytest.mark.parametrize("rule", [rule for rule in rules() if "record" in rule], ids=lambda rule: rule["record"])
def test_every_recorded_series_has_data(rule, busy):
    _, prometheus = busy
    wait_for(lambda: prometheus.query(rule["record"]), 60, rule["record"])


def terms(expression):
    """The parts of an alert that must have series before the comparison: its selectors, with their ranges."""
    for node in nodes(expression):
        if isinstance(node, promql_parser.VectorSelector):
            yield str(node)


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: alert["alert"] + alert["labels"].get("window", ""))
def test_every_series_of_an_alert_exists(alert, busy):
    _, prometheus = busy
    for term in terms(alert["expr"]):
        wait_for(lambda: prometheus.query(term), 60, f"{alert['alert']}: {term}")


def chart_example(word):
    """A block of YAML in the chart's README."""
    text = (ROOT / "deploy/helm/quantd/README.md").read_text()
    (block,) = [block for block in re.findall(r"```yaml\n(.*?)```", text, re.S) if word in block]
    return yaml.safe_load(block)


def test_autoscalers_get_a_number(busy):
    """KEDA asks Prometheus for one number, and refuses several; prometheus-adapter asks for one per pod. KEDA's number divided by its threshold is
    the number of pods; the threshold is the share of busy cores at which a pod is full."""
    _, prometheus = busy
    (trigger,) = chart_example("ScaledObject")["spec"]["triggers"]
    query = trigger["metadata"]["query"].replace("tensors", POD["namespace"])
    (found,) = wait_for(lambda: prometheus.query(query), 60, query)
    assert found["metric"] == {} and 0 <= float(found["value"][1]) <= 1 and 0 < float(trigger["metadata"]["threshold"]) < 1
    (rule,) = chart_example("seriesQuery")["rules"]["custom"]
    assert prometheus.query(rule["seriesQuery"])
    matchers = ",".join(f'{name}="{value}"' for name, value in POD.items())
    expression = rule["metricsQuery"].replace("<<.LabelMatchers>>", matchers).replace("<<.GroupBy>>", "pod")
    (found,) = wait_for(lambda: prometheus.query(expression), 60, expression)
    assert found["metric"] == {"pod": POD["pod"]} and 0 <= float(found["value"][1]) <= 1


def test_rules_are_evaluated_without_an_error(busy):
    _, prometheus = busy
    wait_for(lambda: prometheus.query("quantd:latency_burn:rate3d"), 60, "the last rule")
    groups = prometheus.ask("rules")["groups"]
    loaded = [rule for group in groups for rule in group["rules"]]
    assert len(loaded) == len(rules())
    assert [(rule["name"], rule["lastError"]) for rule in loaded if rule["health"] == "err"] == []


def test_a_server_that_is_killed_becomes_an_alert(tmp_path_factory):
    servers = [Server(tmp_path_factory.mktemp("server")) for _ in range(2)]
    prometheus = Prometheus(tmp_path_factory.mktemp("prometheus"), [server.http for server in servers])

    def pending(name):
        return prometheus.query(f'ALERTS{{alertname="{name}"}}')

    try:
        wait_for(lambda: len(prometheus.query("quantd_build_info")) == 2, 60, "both are scraped")
        time.sleep(3)
        assert not pending("QuantdDown") and not pending("QuantdAbsent") and not pending("QuantdRulesIncomplete")
        servers[0].process.kill()
        servers[0].process.wait()
        (found,) = wait_for(lambda: pending("QuantdDown"), 60, "one is down")
        assert found["metric"]["instance"] == servers[0].http
        assert not pending("QuantdAbsent")
        servers[1].process.kill()
        servers[1].process.wait()
        wait_for(lambda: pending("QuantdAbsent"), 60, "none is left")
        assert len(pending("QuantdDown")) == 2
    finally:
        prometheus.stop()
        for server in servers:
            server.process.kill()
            server.process.wait()
