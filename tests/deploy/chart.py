"""deploy/helm/quantd as helm renders it, and Kubernetes' rules for the result."""

import functools
import pathlib
import re
import shutil
import subprocess

import jsonschema
import kubernetes_validate
import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy/helm/quantd"
# The oldest version that the chart supports, and the newest whose schemas are here.
CLUSTERS = ("1.27.0", ".".join(kubernetes_validate.latest_version().split(".")[:2]) + ".0")
# Objects of the Prometheus operator, cert-manager, the Gateway API and KEDA, and their definitions (tests/suites/deploy.sh).
CUSTOM = {"monitoring.coreos.com/v1", "cert-manager.io/v1", "gateway.networking.k8s.io/v1", "keda.sh/v1alpha1"}
DEFINITIONS = ROOT / "build/tools/crds"


class Strict(yaml.SafeLoader):
    """YAML in which no mapping has a key twice."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        assert len(keys) == len(set(keys)), f"a key stands twice: {keys}"
        return super().construct_mapping(node, deep)


def helm(*arguments, check=True):
    if shutil.which("helm") is None:
        pytest.skip("no helm on this machine, and none could be built from the Go module proxy")
    done = subprocess.run(["helm", *map(str, arguments)], capture_output=True, text=True)
    assert not check or done.returncode == 0, done.stderr
    return done


def template(values=None, *, folder=None, chart=CHART, release="quantd", cluster="1.30.0", check=True, show=()):
    """helm template with these values. `folder`: writes them to a values file there, which treats numbers as users' files
    do."""
    arguments = ["template", release, chart, "--namespace=tensors", f"--api-versions=v{cluster}"]
    if values is not None:
        file = folder / "values.yaml"
        file.write_text(yaml.safe_dump(values))
        arguments += ["--values", file]
    return helm(*arguments, f"--kube-version={cluster}", *(f"--show-only={name}" for name in show), check=check)


def objects(text):
    """By (kind, name). A duplicate key in a mapping is an error, as for kustomize and kubeconform."""
    found = [item for item in yaml.load_all(text, Loader=Strict) if item]
    by_name = {(item["kind"], item["metadata"]["name"]): item for item in found}
    assert len(by_name) == len(found), "two objects have one name"
    return by_name


def pods(rendered):
    """The specs of pod templates and of pods."""
    templates = [item["spec"]["template"]["spec"] for item in rendered.values() if "template" in item.get("spec", {})]
    return templates + [item["spec"] for (kind, _), item in rendered.items() if kind == "Pod"]


def server(rendered):
    """The workload, its pod's spec and the server's container."""
    ((_, item),) = [(key, item) for key, item in rendered.items() if key[0] in ("Deployment", "DaemonSet")]
    pod = item["spec"]["template"]["spec"]
    return item, pod, next(container for container in pod["containers"] if container["name"] == "quantd")


def containers(pod):
    return pod.get("initContainers", []) + pod["containers"]


def environment(container):
    return {entry["name"]: entry.get("value") for entry in container.get("env", [])}


def strict(schema):
    """The definition as an API server reads it that refuses unknown fields."""
    if schema.get("x-kubernetes-int-or-string"):
        schema.pop("type", None)
    elif "properties" in schema and not schema.get("x-kubernetes-preserve-unknown-fields"):
        schema.setdefault("additionalProperties", False)
    for inner in [*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")]:
        if isinstance(inner, dict):
            strict(inner)
    return schema


@functools.cache
def custom_schemas():
    """By (apiVersion, kind). Empty if the definitions are not available."""
    found = {}
    for file in DEFINITIONS.glob("*.yaml"):
        for item in yaml.load_all(file.read_text(), Loader=yaml.CSafeLoader):
            for version in item["spec"]["versions"]:
                schema = version["schema"]["openAPIV3Schema"]
                schema["properties"]["metadata"] = {"type": "object"}
                name = f"{item['spec']['group']}/{version['name']}", item["spec"]["names"]["kind"]
                found[name] = jsonschema.Draft4Validator(strict(schema))
    return found


def check_schema(item):
    """Every field is known to the API server and has its type: strictly, so that misspelt fields are found."""
    if item["apiVersion"] in CUSTOM:
        if custom_schemas():
            custom_schemas()[item["apiVersion"], item["kind"]].validate(item)
        return
    for version in ("1.27", CLUSTERS[1].rsplit(".", 1)[0]):
        kubernetes_validate.validate(item, version, strict=True)


def check_restricted(pod):
    """Kubernetes' Pod Security Standard "restricted", rule by rule (in the order of its documentation), and what quantd
    adds."""
    context = pod["securityContext"]
    for field in ("hostNetwork", "hostPID", "hostIPC"):
        assert not pod.get(field)
    allowed = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}
    for volume in pod.get("volumes", []):
        assert set(volume) - {"name"} <= allowed, volume
    assert not context.get("sysctls") and "windowsOptions" not in context
    for container in containers(pod):
        own = container["securityContext"]
        assert not own.get("privileged") and own["allowPrivilegeEscalation"] is False
        assert own["capabilities"]["drop"] == ["ALL"]
        assert set(own["capabilities"].get("add", [])) <= {"NET_BIND_SERVICE"}
        assert not any("hostPort" in port for port in container.get("ports", []))
        assert own.get("procMount", "Default") == "Default" and "seLinuxOptions" not in own
        assert own.get("runAsNonRoot", context.get("runAsNonRoot")) is True
        assert own.get("runAsUser", context.get("runAsUser", 1)) != 0
        assert own.get("seccompProfile", context.get("seccompProfile"))["type"] in ("RuntimeDefault", "Localhost")
        # Beyond the standard.
        assert own["readOnlyRootFilesystem"] is True
        assert {"memory", "ephemeral-storage"} <= container["resources"]["limits"].keys()
        assert {"cpu", "memory", "ephemeral-storage"} <= container["resources"]["requests"].keys()
    assert pod["automountServiceAccountToken"] is False and pod["enableServiceLinks"] is False


def check_agreement(rendered):
    """What the objects expect of each other: ports, selectors, mounts and names that exist."""
    templates = [item["spec"]["template"] for item in rendered.values() if "template" in item.get("spec", {})]
    for (kind, name), item in rendered.items():
        assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", name) and len(name) <= 63
        if kind in ("Deployment", "DaemonSet"):
            template = item["spec"]["template"]
            assert item["spec"]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
            account = template["spec"]["serviceAccountName"]
            assert account == "default" or ("ServiceAccount", account) in rendered or account == "theirs"
        selector = {
            "Service": lambda spec: spec["selector"],
            "PodDisruptionBudget": lambda spec: spec["selector"]["matchLabels"],
            "NetworkPolicy": lambda spec: spec["podSelector"]["matchLabels"],
        }.get(kind)
        if selector:
            assert all(selector(item["spec"]).items() <= template["metadata"]["labels"].items() for template in templates)
    for pod in pods(rendered):
        volumes = [volume["name"] for volume in pod.get("volumes", [])]
        assert len(volumes) == len(set(volumes))
        for container in containers(pod):
            assert {mount["name"] for mount in container.get("volumeMounts", [])} <= set(volumes)
            names = [entry["name"] for entry in container.get("env", [])]
            assert len(names) == len(set(names))
            ports = {port["name"] for port in container.get("ports", [])}
            for probe in ("readinessProbe", "livenessProbe"):
                if "httpGet" in container.get(probe, {}):
                    assert container[probe]["httpGet"]["port"] in ports
    served = {port["name"] for pod in pods(rendered) for container in containers(pod) for port in container.get("ports", [])}
    for (kind, _), item in rendered.items():
        if kind == "Service":
            assert {port["targetPort"] for port in item["spec"]["ports"]} <= served
        if kind == "NetworkPolicy":
            assert {port["port"] for rule in item["spec"]["ingress"] for port in rule["ports"]} <= served
        if kind == "PodMonitor" and served:
            assert {endpoint["port"] for endpoint in item["spec"]["podMetricsEndpoints"]} <= served
        if kind == "ServiceMonitor":
            wanted = item["spec"]["selector"]["matchLabels"].items()
            (service,) = [s for (k, _), s in rendered.items() if k == "Service" and wanted <= s["metadata"]["labels"].items()]
            ports = {port["name"] for port in service["spec"]["ports"]}
            assert {endpoint["port"] for endpoint in item["spec"]["endpoints"]} <= ports
        if kind == "HorizontalPodAutoscaler":
            target = item["spec"]["scaleTargetRef"]
            assert (target["kind"], target["name"]) in rendered
            assert "replicas" not in rendered[target["kind"], target["name"]]["spec"]


def check_all(text):
    rendered = objects(text)
    for item in rendered.values():
        check_schema(item)
    for pod in pods(rendered):
        check_restricted(pod)
    check_agreement(rendered)
    return rendered
