"""Renders the Kubernetes manifests with kubectl: the base keeps the chart's rules, also where there is no helm. test_chart.py says that both
are what the charts render, and has the other rules."""

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
    assert ("PodDisruptionBudget", "quantd") in objects


@pytest.mark.parametrize("path", KUSTOMIZATIONS)
def test_the_user_and_the_image_are_given(path):
    """The restricted profile would also allow the image's user. The version is the project's, so that a roll-back has a target."""
    pod, container = pod_and_server(path)
    context = pod["securityContext"]
    assert context["runAsUser"] > 0 and context["seccompProfile"]["type"] == "RuntimeDefault"
    version = re.search(r"project\(quantd VERSION ([\d.]+)", (chart.ROOT / "CMakeLists.txt").read_text()).group(1)
    assert container["image"].endswith(f"quantd:{version}")


def test_the_application_can_pay_for_the_tensors_in_shared_memory():
    pod, _ = pod_and_server("overlays/sidecar")
    (volume,) = [volume["emptyDir"] for volume in pod["volumes"] if volume["name"] == "quantd-memory"]
    limit = pod["containers"][0]["resources"]["limits"]["memory"]
    assert int(volume["sizeLimit"].removesuffix("Mi")) < int(limit.removesuffix("Mi"))
