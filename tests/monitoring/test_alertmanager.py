"""The example for Alertmanager: amtool accepts it, and every alert goes where its severity says."""

import shutil
import subprocess

import pytest
import yaml

from support import MONITORING, alerts

FILE = MONITORING / "alertmanager.yml"


def amtool(*arguments):
    if shutil.which("amtool") is None:
        pytest.skip("no amtool on this machine")
    return subprocess.run(["amtool", *arguments], capture_output=True, text=True, timeout=60)


def test_amtool_accepts_it():
    done = amtool("check-config", FILE)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: alert["alert"] + alert["labels"].get("window", ""))
def test_pages_wake_somebody_and_tickets_do_not(alert):
    labels = [f"alertname={alert['alert']}", *(f"{name}={value}" for name, value in alert["labels"].items())]
    done = amtool("config", "routes", "test", f"--config.file={FILE}", *labels)
    assert done.stdout.split() == [{"page": "pager", "ticket": "tickets"}[alert["labels"]["severity"]]], done.stderr


def test_inhibitions_name_alerts_that_exist():
    names = {alert["alert"] for alert in alerts()}
    for rule in yaml.safe_load(FILE.read_text())["inhibit_rules"]:
        for matcher in rule["source_matchers"] + rule["target_matchers"]:
            if matcher.startswith("alertname"):
                assert set(matcher.split('"')[1].split("|")) <= names, matcher
