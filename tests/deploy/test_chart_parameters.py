"""Stored parameters in a cluster: the chart's value, and the overlay with a ConfigMap."""

import base64
import hashlib
import re
import shutil
import subprocess

import chart
import pytest

DIGEST = "0123456789abcdef" * 4
CONFIG_MAP = {"parameters": {"configMapName": "sets", "items": [{"key": "a.quantd", "path": f"a@{DIGEST}.quantd"}]}}
CLAIM = {"parameters": {"claimName": "sets", "mountPath": "/var/lib/quantd"}}


def test_stored_parameters_come_from_a_volume(render):
    _, pod, container = chart.server(render(CONFIG_MAP))
    (volume,), (mount,) = pod["volumes"], container["volumeMounts"]
    assert chart.environment(container)["QUANTD_PARAMETERS_DIR"] == mount["mountPath"] == "/etc/quantd/parameters"
    assert mount["name"] == volume["name"] and mount["readOnly"] is True
    assert volume["configMap"]["items"][0]["path"].startswith("a@") and volume["configMap"]["defaultMode"] == 0o444
    _, pod, container = chart.server(render(CLAIM))
    (volume,), (mount,) = pod["volumes"], container["volumeMounts"]
    assert chart.environment(container)["QUANTD_PARAMETERS_DIR"] == mount["mountPath"] == "/var/lib/quantd"
    assert volume["persistentVolumeClaim"] == {"claimName": "sets", "readOnly": False} and mount["readOnly"] is False
    # Its group may write there.
    assert pod["securityContext"]["fsGroup"] == 65532


def test_the_parameters_overlay_keeps_the_rules():
    if shutil.which("kubectl") is None:
        pytest.skip("no kubectl on this machine")
    text = subprocess.run(
        ["kubectl", "kustomize", chart.ROOT / "deploy/kubernetes/overlays/parameters"], check=True, capture_output=True, text=True
    ).stdout
    rendered = chart.check_all(text)
    _, pod, container = chart.server(rendered)
    (volume,), (mount,) = pod["volumes"], container["volumeMounts"]
    assert chart.environment(container)["QUANTD_PARAMETERS_DIR"] == mount["mountPath"]
    files = rendered["ConfigMap", volume["configMap"]["name"]]["binaryData"]
    for item in volume["configMap"]["items"]:
        name, digest = re.fullmatch(r"([a-z0-9][a-z0-9._-]{0,63})@([0-9a-f]{64})\.quantd", item["path"]).groups()
        data = base64.b64decode(files[item["key"]], validate=True)
        assert name and hashlib.sha256(data).hexdigest() == digest
        assert re.fullmatch(r"[-._a-zA-Z0-9]+", item["key"])
