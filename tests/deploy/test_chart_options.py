"""The Helm chart's options for operators: monitoring objects, routes, certificates, hooks, tests, upgrades from older values."""

import json
import re
import shutil
import subprocess

import chart
import pytest
import yaml


POD = {
    "annotations": {"reloader": "true"}, "revisionHistoryLimit": 3, "dnsPolicy": "None",
    "dnsConfig": {"nameservers": ["10.0.0.10"]}, "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["collector"]}],
    "extraEnvFrom": [{"secretRef": {"name": "more", "optional": True}}],
    "lifecycle": {"preStop": {"exec": {"command": ["/quantctl", "--version"]}}},
    "probes": {"liveness": {"failureThreshold": 9, "initialDelaySeconds": 4}},
    "extraInitContainers": [{
        "name": "first", "image": "first", "securityContext": {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}},
        "resources": {
            "requests": {"cpu": "1m", "memory": "1Mi", "ephemeral-storage": "1Mi"},
            "limits": {"memory": "1Mi", "ephemeral-storage": "1Mi"}}}],
}  # fmt: skip


@pytest.mark.parametrize("mode", ["deployment", "daemonset"])
def test_what_pods_can_be_given(render, mode):
    item, pod, container = chart.server(render({**POD, "mode": mode}))
    assert item["metadata"]["annotations"] == {"reloader": "true"} and item["spec"]["revisionHistoryLimit"] == 3
    assert pod["dnsPolicy"] == "None" and pod["dnsConfig"] and pod["hostAliases"] and pod["initContainers"][0]["name"] == "first"
    assert container["envFrom"] == POD["extraEnvFrom"] and container["lifecycle"] == POD["lifecycle"]
    probe = container["livenessProbe"]
    assert (probe["failureThreshold"], probe["initialDelaySeconds"], probe["timeoutSeconds"]) == (9, 4, 5)


@pytest.mark.parametrize("kind", ["LoadBalancer", "NodePort"])
def test_metrics_are_not_published_outside(tmp_path, kind):
    service = {"type": kind, "externalTrafficPolicy": "Local", "trafficDistribution": "PreferClose"}
    if kind == "LoadBalancer":
        service.update(loadBalancerClass="example.com/lb", loadBalancerSourceRanges=["10.0.0.0/8"])
    text = chart.template({"service": service, "metrics": {"serviceMonitor": {"enabled": True}}}, folder=tmp_path, cluster=chart.CLUSTERS[1]).stdout
    rendered = chart.objects(text)
    chart.check_agreement(rendered)
    chart.kubernetes_validate.validate(rendered["Service", "quantd"], chart.CLUSTERS[1].rsplit(".", 1)[0], strict=True)
    spec = rendered["Service", "quantd"]["spec"]
    assert [port["name"] for port in spec["ports"]] == ["grpc"]
    assert {key: spec[key] for key in service} == service
    inner = rendered["Service", "quantd-metrics"]["spec"]
    assert inner["type"] == "ClusterIP" and [port["name"] for port in inner["ports"]] == ["http"]


def test_the_network_policy_lets_helm_test_in_and_nothing_out(render):
    spec = render({"networkPolicy": {"enabled": True, "clients": [{"podSelector": {}}]}})["NetworkPolicy", "quantd"]["spec"]
    test = {"app.kubernetes.io/name": "quantd-test", "app.kubernetes.io/instance": "quantd"}
    assert {"podSelector": {"matchLabels": test}} in spec["ingress"][0]["from"] and spec["egress"] == []


def test_helm_test_asks_the_service_and_is_not_selected_by_it(render):
    rendered = render({"tls": {"secretName": "s"}})
    pod = rendered["Pod", "quantd-test"]
    assert not rendered["Service", "quantd"]["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    arguments = pod["spec"]["containers"][0]["args"]
    assert "--address=quantd.tensors.svc:50051" in arguments and "--tls_ca=/etc/quantd/tls/ca.crt" in arguments
    mutual = {"tls": {"secretName": "s", "clientCaKey": "ca.crt"}}
    assert ("Pod", "quantd-test") not in render(mutual)
    with_client = render({**mutual, "test": {"clientSecretName": "client"}})["Pod", "quantd-test"]["spec"]
    assert "--tls_cert=/etc/quantd/client/tls.crt" in with_client["containers"][0]["args"]


def test_a_certificate_has_the_headless_names(render):
    rendered = render({"certificate": {"enabled": True, "issuerRef": {"name": "ours"}, "dnsNames": ["quantd.example"]}})
    spec = rendered["Certificate", "quantd"]["spec"]
    wanted = {"quantd", "quantd.tensors.svc", "quantd-headless.tensors.svc", "quantd-headless.tensors.svc.cluster.local", "quantd.example"}
    assert wanted <= set(spec["dnsNames"])
    assert len(spec["dnsNames"]) == 9 and spec["issuerRef"] == {"name": "ours", "kind": "ClusterIssuer", "group": "cert-manager.io"}
    _, pod, container = chart.server(rendered)
    assert [v["secret"]["secretName"] for v in pod["volumes"]] == [spec["secretName"]] == ["quantd-tls"]
    assert chart.environment(container)["QUANTD_TLS_CERT"] == "/etc/quantd/tls/tls.crt"


def test_a_grpc_route_leads_to_the_service(render):
    rendered = render({"grpcRoute": {"enabled": True, "parentRefs": [{"name": "gateway"}], "hostnames": ["q.example"]}})
    spec = rendered["GRPCRoute", "quantd"]["spec"]
    (reference,) = spec["rules"][0]["backendRefs"]
    assert reference["port"] in [port["port"] for port in rendered["Service", reference["name"]]["spec"]["ports"]]


def test_extra_objects_are_templates(render):
    values = {"extraObjects": [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "{{ .Release.Name }}-a"}},
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ include \"quantd.fullname\" . }}-b\n"]}  # fmt: skip
    assert {("ConfigMap", "quantd-a"), ("ConfigMap", "quantd-b")} <= set(render(values))


MONITORING = chart.ROOT / "deploy/monitoring"


def test_rules_are_those_of_the_monitoring_folder(render, tmp_path):
    values = {"metrics": {"prometheusRule": {
        "enabled": True, "labels": {"release": "prometheus"}, "alertLabels": {"team": "t", "severity": "ignored"},
        "runbookUrl": "https://wiki.example/quantd", "objectives": {"quantd:availability:objective": 0.995},
        "disabledAlerts": ["QuantdVersionSkew"]}}}  # fmt: skip
    rendered = render(values)
    found = {}
    for name in ("objectives", "recording", "burn", "alerts"):
        item = rendered["PrometheusRule", f"quantd-{name}"]
        assert item["metadata"]["labels"]["release"] == "prometheus"
        found[name] = [rule for group in item["spec"]["groups"] for rule in group["rules"]]
        source = yaml.safe_load((MONITORING / f"{name}.yml").read_text())["groups"]
        wanted = [rule for group in source for rule in group["rules"] if rule.get("alert") != "QuantdVersionSkew"]
        assert [r.get("alert", r.get("record")) for r in found[name]] == [r.get("alert", r.get("record")) for r in wanted]
        changed = "quantd:availability:objective"
        assert all(a["expr"].split() == b["expr"].split() for a, b in zip(found[name], wanted) if a.get("record") != changed)
        file = tmp_path / f"{name}.yml"
        file.write_text(yaml.safe_dump({"groups": item["spec"]["groups"]}))
        if shutil.which("promtool"):
            subprocess.run(["promtool", "check", "rules", file], check=True, capture_output=True)
    assert found["objectives"][0]["expr"] == "vector(0.995)"
    for alert in found["alerts"]:
        assert alert["labels"]["team"] == "t" and alert["labels"]["severity"] in ("page", "ticket")
        assert re.fullmatch(r"https://wiki\.example/quantd#quantd[a-z]+", alert["annotations"]["runbook_url"])


def test_an_objective_that_no_rule_records_is_refused(tmp_path):
    values = {"metrics": {"prometheusRule": {"enabled": True, "objectives": {"quantd:availability:goal": 1}}}}
    done = chart.template(values, folder=tmp_path, check=False)
    assert done.returncode != 0 and "quantd:availability:goal" in done.stderr


def test_the_dashboard_is_that_of_the_monitoring_folder(render):
    item = render({"metrics": {"dashboard": {"enabled": True}}})["ConfigMap", "quantd-dashboard"]
    assert item["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert json.loads(item["data"]["quantd.json"]) == json.loads((MONITORING / "grafana/dashboards/quantd.json").read_text())
