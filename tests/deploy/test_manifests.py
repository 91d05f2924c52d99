"""Renders the Kubernetes manifests with kubectl and checks their promises, and the compose file's: no root, nothing writable, probes that exist,
ports and sockets that agree with each other."""

import pathlib
import re
import shutil
import subprocess

import pytest
import yaml

DEPLOY = pathlib.Path(__file__).resolve().parents[2] / "deploy"
KUSTOMIZATIONS = ["base", "overlays/sidecar", "overlays/parameters"]


def render(path):
    """The objects of a kustomization, by (kind, name)."""
    if shutil.which("kubectl") is None:
        pytest.skip("no kubectl on this machine")
    text = subprocess.run(
        ["kubectl", "kustomize", DEPLOY / "kubernetes" / path], check=True, capture_output=True, text=True
    ).stdout
    return {(item["kind"], item["metadata"]["name"]): item for item in yaml.safe_load_all(text)}


def pod_specs(objects):
    return [item["spec"]["template"]["spec"] for (kind, _), item in objects.items() if kind == "Deployment"]


def containers(pod):
    return pod.get("initContainers", []) + pod["containers"]


def quantd_container(pod):
    (found,) = [c for c in containers(pod) if c["name"] == "quantd"]
    return found


def environment(container):
    return {entry["name"]: entry["value"] for entry in container.get("env", [])}


@pytest.mark.parametrize("path", KUSTOMIZATIONS)
def test_restricted_pod_security(path):
    """The rules of Kubernetes' Pod Security Standard 'restricted', and a read-only root file system."""
    specs = pod_specs(render(path))
    assert specs
    for pod in specs:
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] > 0
        assert pod["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault"
        assert pod["automountServiceAccountToken"] is False
        for container in containers(pod):
            context = container["securityContext"]
            assert context["allowPrivilegeEscalation"] is False
            assert context["readOnlyRootFilesystem"] is True
            assert context["capabilities"]["drop"] == ["ALL"]
            assert "memory" in container["resources"]["limits"]
            assert {"cpu", "memory"} <= container["resources"]["requests"].keys()


@pytest.mark.parametrize("path", KUSTOMIZATIONS)
def test_probes_point_at_ports_that_the_server_listens_on(path):
    for pod in pod_specs(render(path)):
        container = quantd_container(pod)
        env = environment(container)
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        http_port = int(env["QUANTD_HTTP_LISTEN"].rsplit(":", 1)[1])
        for probe, url in (("readinessProbe", "/readyz"), ("livenessProbe", "/livez")):
            target = container[probe]["httpGet"]
            assert target["path"] == url
            assert ports[target["port"]] == http_port
        startup = container["startupProbe"]
        if "grpc" in startup:
            assert env["QUANTD_LISTEN"].endswith(f":{startup['grpc']['port']}")
        else:
            assert f"--address={env['QUANTD_LISTEN']}" in startup["exec"]["command"]


@pytest.mark.parametrize("path", KUSTOMIZATIONS)
def test_image_has_a_version(path):
    """The version of the project, so that a roll-back has a target."""
    version = re.search(r"project\(quantd VERSION ([\d.]+)", (DEPLOY.parent / "CMakeLists.txt").read_text()).group(1)
    for pod in pod_specs(render(path)):
        assert quantd_container(pod)["image"].endswith(f"quantd:{version}")


def test_grace_period_outlasts_the_drain():
    (pod,) = pod_specs(render("base"))
    env = environment(quantd_container(pod))
    drain = float(env["QUANTD_LAME_DUCK_SECONDS"]) + float(env["QUANTD_DRAIN_SECONDS"])
    assert pod["terminationGracePeriodSeconds"] > drain + 10


def test_services_reach_the_pods():
    objects = render("base")
    template = objects["Deployment", "quantd"]["spec"]["template"]
    ports = {port["name"] for port in template["spec"]["containers"][0]["ports"]}
    for name in ("quantd", "quantd-headless"):
        service = objects["Service", name]["spec"]
        assert service["selector"].items() <= template["metadata"]["labels"].items()
        assert {port["targetPort"] for port in service["ports"]} <= ports
    assert objects["Service", "quantd-headless"]["spec"]["clusterIP"] == "None"
    budget = objects["PodDisruptionBudget", "quantd"]["spec"]
    assert budget["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()


def test_scrape_annotations_name_the_metrics_port():
    template = render("base")["Deployment", "quantd"]["spec"]["template"]
    annotations = template["metadata"]["annotations"]
    ports = {port["name"]: port["containerPort"] for port in template["spec"]["containers"][0]["ports"]}
    assert annotations["prometheus.io/port"] == str(ports["http"])
    assert annotations["prometheus.io/path"] == "/metrics"


def test_sidecar_shares_the_socket_by_a_memory_volume_and_one_user():
    (pod,) = pod_specs(render("overlays/sidecar"))
    quantd = quantd_container(pod)
    (application,) = pod["containers"]
    socket = environment(quantd)["QUANTD_LISTEN"]
    assert socket.startswith("unix:/")
    assert environment(application)["QUANTD_ADDRESS"] == socket
    folder = str(pathlib.PurePosixPath(socket.removeprefix("unix:")).parent)
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    for container in (quantd, application):
        (mount,) = [mount for mount in container["volumeMounts"] if mount["mountPath"] == folder]
        assert "emptyDir" in volumes[mount["name"]]
    assert quantd["restartPolicy"] == "Always"


def test_sidecar_shares_tensors_by_a_memory_volume_that_the_application_can_pay_for():
    (pod,) = pod_specs(render("overlays/sidecar"))
    (application,) = pod["containers"]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    for container in (quantd_container(pod), application):
        folder = environment(container)["QUANTD_SHARED_MEMORY_DIR"]
        (mount,) = [mount for mount in container["volumeMounts"] if mount["mountPath"] == folder]
        volume = volumes[mount["name"]]["emptyDir"]
        assert volume["medium"] == "Memory"
    mebibytes = [int(size.removesuffix("Mi")) for size in (volume["sizeLimit"], application["resources"]["limits"]["memory"])]
    assert mebibytes[0] < mebibytes[1]


def test_compose_publishes_on_loopback_only_and_writes_nothing():
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    for service in services.values():
        assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert services["quantd"]["read_only"] is True
    assert services["quantd"]["cap_drop"] == ["ALL"]
