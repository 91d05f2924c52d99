"""The compose file: valid by the compose specification, with limits, and everything that it mounts exists."""

import json
import pathlib
import re

import compose_spec
import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
TEXT = (DEPLOY / "compose.yaml").read_text()
SERVICES = yaml.safe_load(TEXT)["services"]


def parse(text):
    compose = compose_spec.PyCompose.from_yaml(text)
    compose.validate()
    return compose


def test_it_is_a_compose_file():
    assert set(parse(TEXT).service_names()) == {"quantd", "prometheus", "grafana"}


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_has_limits_and_writes_only_to_volumes(name):
    service = SERVICES[name]
    for limit in ("mem_limit", "cpus", "pids_limit"):
        assert limit in service
    assert service["read_only"] is True and service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    for volume in service.get("volumes", []):
        source, _, options = volume.split(":", 1)[0], None, volume.rsplit(":", 1)[-1]
        if source.startswith("."):
            assert (DEPLOY / source).is_dir() and options == "ro"
        else:
            assert source in yaml.safe_load(TEXT)["volumes"]


def test_only_quantd_starts_without_the_profile():
    assert [name for name, service in SERVICES.items() if "profiles" not in service] == ["quantd"]


def test_the_health_check_is_the_images():
    dockerfile = (ROOT / "Dockerfile").read_text()
    image = re.search(r"^HEALTHCHECK --interval=(\w+) --timeout=(\w+) --start-period=(\w+) CMD (.*)$", dockerfile, re.MULTILINE)
    check = SERVICES["quantd"]["healthcheck"]
    assert (check["interval"], check["timeout"], check["start_period"]) == image.groups()[:3]
    assert check["test"] == ["CMD", *json.loads(image[4])]
