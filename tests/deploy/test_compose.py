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


def test_with_its_comments_taken_away_it_is_one_too():
    """The lines for shared memory, uncommented as a user would do it."""
    example = r"^( *)# (environment:|  QUANTD_\w+:.*|volumes:|  - shared-memory.*|shared-memory:|  driver_opts:|    \w+: .*)$"
    text = re.sub(example, r"\1\2", TEXT, flags=re.MULTILINE)
    service = yaml.safe_load(text)
    assert "shared-memory:/run/quantd-memory" in service["services"]["quantd"]["volumes"]
    assert service["volumes"]["shared-memory"]["driver_opts"]["type"] == "tmpfs"
    parse(text)


@pytest.mark.parametrize(
    "right, wrong",
    [("mem_limit: 2g", "mem_limt: 2g"), ("cpus: 2.0", "cpus: [2]"), ("service_healthy", "service_happy")],
)
def test_a_mistake_is_found(right, wrong):
    """Shows that the test above can fail."""
    assert right in TEXT
    with pytest.raises(ValueError):
        parse(TEXT.replace(right, wrong))


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


def test_grafana_finds_its_dashboards_and_prometheus():
    mounts = dict(volume.split(":")[:2] for volume in SERVICES["grafana"]["volumes"])
    provisioning = DEPLOY / "monitoring/grafana/provisioning"
    (provider,) = yaml.safe_load((provisioning / "dashboards/quantd.yaml").read_text())["providers"]
    assert mounts["./monitoring/grafana/dashboards"] == provider["options"]["path"]
    (source,) = yaml.safe_load((provisioning / "datasources/prometheus.yaml").read_text())["datasources"]
    assert source["url"] == "http://prometheus:9090" and "127.0.0.1:9090:9090" in SERVICES["prometheus"]["ports"]
    scrape = yaml.safe_load((DEPLOY / "monitoring/prometheus.yml").read_text())
    assert source["jsonData"]["timeInterval"] == scrape["global"]["scrape_interval"]


def test_prometheus_scrapes_the_service():
    scrape = yaml.safe_load((DEPLOY / "monitoring/prometheus.yml").read_text())
    targets = [target for job in scrape["scrape_configs"] for static in job.get("static_configs", []) for target in static["targets"]]
    assert "quantd:9464" in targets


def test_the_dev_container_installs_what_packages_sh_lists():
    container = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())
    groups = re.search(r"deploy/packages.sh install ([\w ]+)$", container["onCreateCommand"])[1].split()
    table = re.findall(r"^(\w+) [a-z]", re.search(r"<<'TABLE'\n(.*?)\nTABLE", (DEPLOY / "packages.sh").read_text(), re.DOTALL)[1], re.MULTILINE)
    assert {"build", "test"} <= set(groups) <= set(table)
    presets = json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]
    assert container["postCreateCommand"].removeprefix("cmake --preset ") in [preset["name"] for preset in presets]
