"""The rules under promtool: their files, and the cases of cases.yml."""

import re
import shutil
import subprocess

import pytest
import yaml

from cases import BURNS, TABLE, is_burn, write
from support import MONITORING, RULE_FILES, alerts, rules, wrong_names


def promtool(*arguments, folder=None, timeout=500):
    if shutil.which("promtool") is None:
        pytest.skip("no promtool on this machine")
    return subprocess.run(["promtool", *arguments], cwd=folder, capture_output=True, text=True, timeout=timeout)


def test_promtool_accepts_the_configuration_and_every_rule():
    done = promtool("check", "config", MONITORING / "prometheus.yml")
    assert done.returncode == 0, done.stdout + done.stderr
    loaded = yaml.safe_load((MONITORING / "prometheus.yml").read_text())["rule_files"]
    assert sorted(loaded) == sorted(RULE_FILES)


@pytest.mark.parametrize("alert", TABLE)
def test_cases(alert, tmp_path):
    done = promtool("test", "rules", *write(tmp_path, alert))
    assert done.returncode == 0, done.stdout + done.stderr


def kind(alert):
    return alert["alert"], alert["labels"]["severity"], alert["labels"].get("window")


def test_every_alert_fires_in_one_case_and_does_not_in_another():
    """Each window of a burn alert is tested: cases.py has both sides of its thresholds."""
    assert list(TABLE) == list(dict.fromkeys(alert["alert"] for alert in alerts()))
    for alert, entry in TABLE.items():
        assert {"fires", "quiet"} <= {word for fields in entry["cases"].values() for word in fields}, alert
        assert not is_burn(alert) or [one["labels"]["window"] for one in alerts() if one["alert"] == alert] == list(BURNS)


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.get("record") or "-".join(filter(None, kind(rule))))
def test_names_are_the_servers(rule):
    assert wrong_names(rule["expr"]) == []


def test_every_alert_says_whom_it_calls_and_what_to_do():
    for alert in alerts():
        assert alert["labels"]["severity"] in ("page", "ticket"), alert["alert"]
        assert alert["annotations"].keys() == {"summary", "description", "runbook_url"}, alert["alert"]
        assert alert["annotations"]["runbook_url"] == f"deploy/monitoring/RUNBOOK.md#{alert['alert'].lower()}"


def test_burn_rates_of_all_windows_are_the_same_but_for_the_window():
    shapes = {}
    for rule in rules("burn.yml"):
        name, window = re.fullmatch(r"(.*):rate(\w+)", rule["record"]).groups()
        shapes.setdefault(name, {})[window] = rule["expr"].replace(f"[{window}]", "[W]").replace(f":rate{window}", ":rateW")
    for name, expressions in shapes.items():
        assert expressions.keys() == {"5m", "30m", "1h", "2h", "6h", "1d", "3d"}, name
        assert len(set(expressions.values())) == 1, name


def test_the_readme_makes_objects_for_the_operator(tmp_path):
    """Its shell block, with a kubectl that stores its input."""
    (block,) = re.findall(r"```sh\n(.*?)```", (MONITORING / "README.md").read_text(), re.S)
    fake = tmp_path / "kubectl"
    fake.write_text(f'#!/bin/sh\n[ "$1" != apply ] || {{ cat; echo ---; }} >>{tmp_path / "objects"}\n')
    fake.chmod(0o755)
    path = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    subprocess.run(["bash", "-euo", "pipefail", "-c", block], cwd=MONITORING.parents[1], env=path, check=True, timeout=60)
    objects = [item for item in yaml.safe_load_all((tmp_path / "objects").read_text()) if item]
    assert [item["metadata"]["name"] for item in objects] == ["quantd-" + file.removesuffix(".yml") for file in RULE_FILES]
    assert [rule for item in objects for group in item["spec"]["groups"] for rule in group["rules"]] == rules()
