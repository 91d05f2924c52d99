"""Renders the Kubernetes manifests with kubectl: the base keeps the chart's rules (also where there is no helm), and what the server is told agrees
with its ports, probes, time and memory. test_chart.py and test_chart_options.py have the other rules of the overlays."""

import re
import shutil
import subprocess

import chart
import pytest

KUSTOMIZATIONS = ["base", "overlays/sidecar"]


def kustomize(path):
    if shutil.which("kubectl") is None:
        pytest.skip("no kubectl on this machine")
    folder = chart.ROOT / "deploy/kubernetes" / path
    return subprocess.run(["kubectl", "kustomize", folder], check=True, capture_output=True, text=True).stdout


def pod_and_server(path):
    """The pod's spec, and quantd's container in it."""
    (pod,) = chart.pods(chart.objects(kustomize(path)))
    (found,) = [container for container in chart.containers(pod) if container["name"] == "quantd"]
    return pod, found


def test_the_base_keeps_the_rules():
    objects = chart.check_all(kustomize("base"))
    assert objects["Service", "quantd-headless"]["spec"]["clusterIP"] == "None"
    assert ("PodDisruptionBudget", "quantd") in objects


@pytest.mark.parametrize("path", KUSTOMIZATIONS)
def test_probes_point_at_ports_that_the_server_listens_on(path):
    _, container = pod_and_server(path)
    env = chart.environment(container)
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    http_port = int(env["QUANTD_HTTP_LISTEN"].rsplit(":", 1)[1])
    for probe, url in (("readinessProbe", "/readyz"), ("livenessProbe", "/livez")):
        target = container[probe]["httpGet"]
        assert target["path"] == url
        assert ports[target["port"]] == http_port
    if path != "overlays/sidecar":  # which has a socket
        assert env["QUANTD_LISTEN"].endswith(f":{container['startupProbe']['grpc']['port']}")


@pytest.mark.parametrize("path", KUSTOMIZATIONS)
def test_the_user_and_the_image_are_given(path):
    """The restricted profile would also allow the image's user. The version is the project's, so that a roll-back has a target."""
    pod, container = pod_and_server(path)
    context = pod["securityContext"]
    assert context["runAsUser"] > 0 and context["seccompProfile"]["type"] == "RuntimeDefault"
    version = re.search(r"project\(quantd VERSION ([\d.]+)", (chart.ROOT / "CMakeLists.txt").read_text()).group(1)
    assert container["image"].endswith(f"quantd:{version}")


def test_grace_period_outlasts_the_drain():
    pod, container = pod_and_server("base")
    env = chart.environment(container)
    drain = float(env["QUANTD_LAME_DUCK_SECONDS"]) + float(env["QUANTD_DRAIN_SECONDS"])
    assert pod["terminationGracePeriodSeconds"] > drain + 10


def test_scrape_annotations_name_the_metrics_port():
    template = chart.objects(kustomize("base"))["Deployment", "quantd"]["spec"]["template"]
    ports = {port["name"]: port["containerPort"] for port in template["spec"]["containers"][0]["ports"]}
    wanted = {"prometheus.io/port": str(ports["http"]), "prometheus.io/path": "/metrics"}
    assert wanted.items() <= template["metadata"]["annotations"].items()


def test_the_application_can_pay_for_the_tensors_in_shared_memory():
    pod, _ = pod_and_server("overlays/sidecar")
    (volume,) = [volume["emptyDir"] for volume in pod["volumes"] if volume["name"] == "quantd-memory"]
    limit = pod["containers"][0]["resources"]["limits"]["memory"]
    assert int(volume["sizeLimit"].removesuffix("Mi")) < int(limit.removesuffix("Mi"))
