"""The Helm chart: every mode and a matrix of values against Kubernetes' schemas and the restricted profile; the kustomize base says the same; wrong
or misspelt values are refused by name."""

import json
import re
import shutil
import subprocess

import chart
import jsonschema
import pytest

# The chart sets these itself, from other values.
OWN_FLAGS = {
    "listen", "http_listen", "ready_file", "lame_duck_seconds", "drain_seconds", "shared_memory_dir",
    "tls_cert", "tls_key", "tls_client_ca", "auth_token_file", "socket_mode",
}  # fmt: skip
QUANTD = chart.ROOT / "build/release/server/quantd"
DIGEST = "sha256:" + "0123456789abcdef" * 4
MATRIX = {
    "default": {},
    "daemonset": {"mode": "daemonset"},
    "sidecar": {"mode": "sidecar"},
    "sidecar with monitor": {"mode": "sidecar", "metrics": {"podMonitor": {"enabled": True}}},
    "digest": {"image": {"repository": "registry.example:5000/a/quantd", "tag": "ignored", "digest": DIGEST}},
    "tls": {"tls": {"secretName": "quantd-tls"}},
    "mtls and tokens": {
        "tls": {"secretName": "quantd-tls", "clientCaKey": "ca.crt"},
        "auth": {"secretName": "quantd-auth", "key": "list"},
        "metrics": {"podMonitor": {"enabled": True, "endpoint": {"tlsConfig": {"serverName": "quantd"}}}},
    },
    "autoscaling": {"autoscaling": {"enabled": True, "behavior": {"scaleDown": {"stabilizationWindowSeconds": 600}}}},
    "autoscaling on a metric": {"autoscaling": {"enabled": True, "metric": "quantd_busy_share", "cpuUtilization": 0}},
    "everything": {
        "nameOverride": "q",
        "imagePullSecrets": [{"name": "registry"}],
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "50%", "maxUnavailable": 0}},
        "ports": {"grpc": 6000, "http": 6001},
        "flags": {"max_message_bytes": 134217728, "memory_budget_bytes": "1.5GiB", "queue_timeout": "500ms", "threads": 2},
        "extraEnv": [{"name": "QUANTD_SIMD", "value": "avx2"}],
        "sharedMemory": {"enabled": True, "sizeLimit": "1Gi", "mountPath": "/run/tensors"},
        "service": {"type": "LoadBalancer", "annotations": {"a": "b"}, "internalTrafficPolicy": "Local", "headless": False},
        "networkPolicy": {
            "enabled": True, "clients": [{"podSelector": {}}],
            "metrics": [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}],
            "egress": [{"ports": [{"port": 4317, "protocol": "TCP"}]}],
        },
        "metrics": {"scrapeAnnotations": False, "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}}},
        "serviceAccount": {"create": False, "name": "theirs"},
        "labels": {"team": "a"}, "podLabels": {"pod": "b"}, "podAnnotations": {"note": "c"},
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule",
             "labelSelector": {"matchLabels": {"app.kubernetes.io/name": "q"}}}],
        "nodeSelector": {"kubernetes.io/arch": "arm64"},
        "tolerations": [{"operator": "Exists"}],
        "affinity": {"podAntiAffinity": {}},
        "priorityClassName": "high",
        "extraVolumes": [{"name": "more", "emptyDir": {}}],
        "extraVolumeMounts": [{"name": "more", "mountPath": "/more"}],
    },
    "nothing": {
        "podDisruptionBudget": {"enabled": False}, "serviceAccount": {"create": False}, "spreadOverNodes": False,
        "metrics": {"scrapeAnnotations": False}, "service": {"headless": False}, "replicas": 0,
    },
    "as a dependency": {"enabled": True, "global": {"registry": "x"}},
}  # fmt: skip


def test_lint():
    done = chart.helm("lint", "--strict", chart.CHART)
    assert "0 chart(s) failed" in done.stdout and "[WARNING]" not in done.stdout


@pytest.mark.parametrize("name", MATRIX)
@pytest.mark.parametrize("cluster", chart.CLUSTERS)
def test_every_kind_of_values(render, name, cluster):
    rendered = render(MATRIX[name], cluster=cluster)
    assert bool(rendered) == (name != "sidecar")


@pytest.mark.parametrize("release", ["quantd", "a", "my-quantd", "x" * 53])
def test_names_of_every_length(render, release):
    rendered = render(release=release)
    names = {name for _, name in rendered}
    assert all(name.startswith(release[:40]) for name in names)


def test_the_kustomizations_are_what_the_charts_render(tmp_path):
    """deploy/kubernetes/render.sh writes them."""
    if shutil.which("helm") is None:
        pytest.skip("no helm on this machine")
    kubernetes = chart.ROOT / "deploy/kubernetes"
    subprocess.run([kubernetes / "render.sh", tmp_path], check=True, capture_output=True)
    rendered = [path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()]
    assert len(rendered) == 2
    for path in rendered:
        assert (kubernetes / path).read_text() == (tmp_path / path).read_text(), "run deploy/kubernetes/render.sh"


def test_the_sidecar_overlay_keeps_the_rules():
    if shutil.which("kubectl") is None:
        pytest.skip("no kubectl on this machine")
    overlay = subprocess.run(
        ["kubectl", "kustomize", chart.ROOT / "deploy/kubernetes/overlays/sidecar"], check=True, capture_output=True, text=True
    ).stdout
    for item in chart.objects(overlay).values():
        chart.kubernetes_validate.validate(item, chart.CLUSTERS[1].rsplit(".", 1)[0], strict=True)
    for pod in chart.pods(chart.objects(overlay)):
        chart.check_restricted(pod)


def test_numbers_of_a_values_file_stay_numbers(render):
    _, _, container = chart.server(render(MATRIX["everything"]))
    env = chart.environment(container)
    assert env["QUANTD_MAX_MESSAGE_BYTES"] == "134217728"
    assert env["QUANTD_LISTEN"] == "[::]:6000" and env["QUANTD_THREADS"] == "2" and env["QUANTD_SIMD"] == "avx2"
    for flag, number, text in (
        ("stall_timeout", 0.5, "0.5"), ("stall_timeout", "750ms", "750ms"), ("queue_timeout", 0, "0"),
        ("memory_budget_bytes", 2**40, "1099511627776"), ("memory_budget_bytes", "1.5GiB", "1.5GiB"),
    ):  # fmt: skip
        _, _, container = chart.server(render({"flags": {flag: number}}))
        assert chart.environment(container)[f"QUANTD_{flag.upper()}"] == text


def test_the_image_is_that_of_the_digest(render):
    _, _, container = chart.server(render(MATRIX["digest"]))
    assert container["image"] == f"registry.example:5000/a/quantd@{DIGEST}"


def test_with_tls_nothing_asks_in_plain_text(render):
    rendered = render(MATRIX["mtls and tokens"])
    _, pod, container = chart.server(rendered)
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"]["scheme"] == "HTTPS"
    env, mounts = chart.environment(container), {m["name"]: m["mountPath"] for m in container["volumeMounts"]}
    assert env["QUANTD_TLS_CLIENT_CA"] == mounts["quantd-tls"] + "/ca.crt"
    assert env["QUANTD_TLS_CERT"] == mounts["quantd-tls"] + "/tls.crt" and env["QUANTD_TLS_KEY"].endswith("/tls.key")
    assert env["QUANTD_AUTH_TOKEN_FILE"] == mounts["quantd-auth"] + "/list"
    # Only its own user can read them, because of the group that the kubelet gives the files.
    assert {v["secret"]["defaultMode"] for v in pod["volumes"]} == {0o440} and pod["securityContext"]["fsGroup"] == 65532
    assert rendered["PodMonitor", "quantd"]["spec"]["podMetricsEndpoints"] == [
        {"port": "http", "path": "/metrics", "scheme": "https", "interval": "15s", "tlsConfig": {"serverName": "quantd"}}]  # fmt: skip
    assert all("appProtocol" not in port for port in rendered["Service", "quantd"]["spec"]["ports"])


def test_a_daemonset_serves_its_own_node(render):
    rendered = render({"mode": "daemonset"})
    assert rendered["Service", "quantd"]["spec"]["internalTrafficPolicy"] == "Local"
    kinds = {kind for kind, _ in rendered}
    assert kinds == {"DaemonSet", "Service", "ServiceAccount", "Pod"}
    assert rendered["DaemonSet", "quantd"]["spec"]["updateStrategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}


APPLICATION = chart.ROOT / "deploy/helm/application"


@pytest.mark.parametrize("shared", [False, True])
def test_a_chart_that_includes_the_sidecar(tmp_path, shared):
    """The example beside the chart; README.md has the same lines."""
    parent = tmp_path / "application"
    shutil.copytree(APPLICATION, parent)
    shutil.copytree(chart.CHART, parent / "charts/quantd")
    values = {"quantd": {
        "sharedMemory": {"enabled": shared}, "metrics": {"podMonitor": {"enabled": True}}}}  # fmt: skip
    text = chart.template(values, folder=tmp_path, chart=parent, release="shop").stdout
    rendered = chart.objects(text)
    assert set(rendered) == {("Deployment", "application"), ("PodMonitor", "shop-quantd")}
    chart.kubernetes_validate.validate(rendered["Deployment", "application"], chart.CLUSTERS[1].rsplit(".", 1)[0], strict=True)
    chart.check_agreement(rendered)
    template = rendered["Deployment", "application"]["spec"]["template"]
    pod = template["spec"]
    chart.check_restricted(pod)
    assert pod["securityContext"]["fsGroup"] == pod["securityContext"]["runAsGroup"]
    (quantd,), (application,) = pod["initContainers"], pod["containers"]
    assert quantd["restartPolicy"] == "Always"
    env = chart.environment(quantd)
    assert chart.environment(application)["QUANTD_ADDRESS"] == env["QUANTD_LISTEN"] == "unix:/run/quantd/quantd.sock"
    assert f"--address={env['QUANTD_LISTEN']}" in quantd["startupProbe"]["exec"]["command"]
    theirs = {(m["name"], m["mountPath"]) for m in application["volumeMounts"]}
    assert theirs == {(m["name"], m["mountPath"]) for m in quantd["volumeMounts"]}
    assert dict(theirs)["quantd-socket"] == "/run/quantd"
    for container in (quantd, application):
        assert chart.environment(container).get("QUANTD_SHARED_MEMORY_DIR") == dict(theirs).get("quantd-memory")
    assert all(volume["emptyDir"]["medium"] == "Memory" for volume in pod["volumes"]) and len(pod["volumes"]) == 1 + shared
    selector = rendered["PodMonitor", "shop-quantd"]["spec"]["selector"]["matchLabels"]
    assert selector.items() <= template["metadata"]["labels"].items()
    readme = (chart.CHART / "README.md").read_text()
    lines = (APPLICATION / "templates/deployment.yaml").read_text().splitlines()
    lines = [line for line in lines if "include" in line] + (APPLICATION / "Chart.yaml").read_text().splitlines()[-2:]
    assert len(lines) == 8 and all(line.strip() in readme for line in lines)


WRONG = [
    ({"repliacs": 3}, "repliacs"),
    ({"image": {"tga": "1"}}, "tga"),
    ({"image": {"digest": "sha256:123"}}, "image.digest"),
    ({"mode": "statefulset"}, "mode"),
    ({"replicas": -1}, "replicas"),
    ({"replicas": "two"}, "replicas"),
    ({"replicas": 1.5}, "replicas"),
    ({"ports": {"grpc": 80}}, "ports.grpc"),
    ({"ports": {"grpc": 70000}}, "ports.grpc"),
    ({"ports": {"grpc": 9464}}, "ports.grpc and ports.http are both 9464"),
    ({"extraEnv": [{"name": "A", "value": 1}]}, "extraEnv.0.value"),
    ({"extraEnv": [{"value": "1"}]}, "extraEnv.0: name is required"),
    ({"extraEnv": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}, "extraEnv has A twice"),
    ({"dnsPolicy": "None"}, "dnsConfig.nameservers is empty"),
    ({"metrics": {"prometheusRule": {"disabledAlerts": ["QuantdNope"]}}}, "disabledAlerts has QuantdNope"),
    ({"flags": {"max_mesage_bytes": 1}}, "max_mesage_bytes"),
    ({"flags": {"listen": "0.0.0.0:1"}}, "listen"),
    ({"flags": {"threads": [1]}}, "flags.threads"),
    ({"flags": {"threads": "abc"}}, "flags.threads"),
    ({"flags": {"log_level": "loud"}}, "flags.log_level"),
    ({"tls": {"secret": "x"}}, "secret"),
    ({"tls": {"clientCaKey": "ca.crt"}}, "tls.clientCaKey is given, tls.secretName is not"),
    ({"terminationGracePeriodSeconds": 30}, "terminationGracePeriodSeconds is 30, must be 50 or more"),
    ({"autoscaling": {"enabled": True, "minReplicas": 5, "maxReplicas": 4}}, "autoscaling.minReplicas is 5, autoscaling.maxReplicas is 4"),
    ({"autoscaling": {"enabled": True, "cpuUtilization": 0}}, "nothing to scale on"),
    ({"autoscaling": {"enabled": True}, "mode": "daemonset"}, "mode is daemonset"),
    ({"metrics": {"podMonitor": {"enabled": True}, "serviceMonitor": {"enabled": True}}}, "scraped twice"),
    ({"metrics": {"serviceMonitor": {"enabled": True}}, "mode": "sidecar"}, "metrics.serviceMonitor.enabled"),
    ({"metrics": {"podMonitor": {"interval": "often"}}}, "interval"),
    ({"resources": {"limits": {"memory": "2 GB"}}}, "resources.limits.memory"),
    ({"resources": {"limit": {}}}, "limit"),
    ({"podDisruptionBudget": {"unhealthyPodEvictionPolicy": "Never"}}, "unhealthyPodEvictionPolicy"),
    ({"sharedMemory": {"mountPath": "relative"}}, "sharedMemory.mountPath"),
    ({"sidecar": {"socketMode": "rw"}}, "sidecar.socketMode"),
    ({"sidecar": {"socketMode": "0444"}}, "sidecar.socketMode"),
    ({"sidecar": {"socketPath": "/quantd.sock"}}, "sidecar.socketPath"),
    ({"fullnameOverride": "my.quantd"}, "fullnameOverride"),
    ({"lifecycle": {"preStop": {"sleep": {"seconds": 30}}}}, "terminationGracePeriodSeconds is 60, must be 80 or more"),
    ({"extraEnv": {"A": "b"}}, "extraEnv"),
    ({"labels": {"a": 1}}, "labels.a"),
]  # fmt: skip


@pytest.mark.parametrize("values, named", WRONG, ids=[named for _, named in WRONG])
def test_what_is_wrong_is_refused_by_its_name(tmp_path, values, named):
    done = chart.template(values, folder=tmp_path, check=False)
    assert done.returncode != 0 and done.stdout == ""
    assert named in done.stderr, done.stderr


def samples(schema):
    """Values at the borders of what a flag's schema allows, and beyond them."""
    low, high, choices = schema.get("minimum"), schema.get("maximum"), schema.get("enum", [])
    borders = [] if low is None else [low, low - 1, high, high + 1, 2 * high]
    return [*borders, *choices, "abc", "", "64MiB", "1.5GB", "128Ki", "64MiBytes", "500ms", "2m", "1d", "-1", "1h30m"]


def test_the_charts_flags_are_the_servers():
    """The same names, and values: `quantd --check` judges as the schema does, but that only it knows the range of a text."""
    schema = json.loads((chart.CHART / "values.schema.json").read_text())["properties"]["flags"]["properties"]
    flags = set(re.findall(r"^  --(\w+)  \(", subprocess.run([QUANTD, "--help"], capture_output=True, text=True, check=True).stdout, re.M))
    assert set(schema) == flags - OWN_FLAGS
    for name, of in schema.items():
        for value in samples(of) if of.get("type") != "string" else []:
            text = value if isinstance(value, str) else json.dumps(value)
            taken = subprocess.run([QUANTD, "--check", f"--{name}={text}"], capture_output=True).returncode == 0
            valid = jsonschema.Draft7Validator(of).is_valid(value)
            assert valid == taken or (valid and isinstance(value, str) and "enum" not in of), (name, value)
        assert of.get("type") == "string" or not jsonschema.Draft7Validator(of).is_valid("abc")


def test_the_charts_version_is_the_projects():
    named = re.search(r"version: ([\d.]+)\nappVersion|^version: ([\d.]+)", (chart.CHART / "Chart.yaml").read_text(), re.M)
    project = re.search(r"project\(quantd VERSION ([\d.]+)", (chart.ROOT / "CMakeLists.txt").read_text()).group(1)
    assert (named.group(1) or named.group(2)) == project
    assert f'appVersion: "{project}"' in (chart.CHART / "Chart.yaml").read_text()
