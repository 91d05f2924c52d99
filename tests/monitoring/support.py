"""What the tests of deploy/monitoring share: its files, the golden file of metrics, and the contents of PromQL
expressions."""

import json
import pathlib
import re

import promql_parser
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
MONITORING = ROOT / "deploy" / "monitoring"
RULE_FILES = ["objectives.yml", "recording.yml", "burn.yml", "alerts.yml"]
DASHBOARD = MONITORING / "grafana" / "dashboards" / "quantd.json"
# Labels that Prometheus or its discovery puts on every series.
TARGET_LABELS = {"job", "instance", "namespace", "pod", "container"}
# Of the kubelet, for each container.
KUBELET = {"container_memory_working_set_bytes"}


def rules(*files):
    """Every rule of these files, in order."""
    loaded = (yaml.safe_load((MONITORING / file).read_text()) for file in files or RULE_FILES)
    return [rule for file in loaded for group in file["groups"] for rule in group["rules"]]


def alerts():
    return [rule for rule in rules() if "alert" in rule]


def recorded():
    return {rule["record"] for rule in rules() if "record" in rule}


def golden():
    """The server's metrics: name -> label -> values."""
    metrics = {}
    for line in (ROOT / "tests" / "golden" / "metrics.txt").read_text().splitlines():
        if line.startswith("#"):
            continue
        name, _, rest = line.partition("{")
        labels = metrics.setdefault(name.strip(), {})
        for label, value in re.findall(r'(\w+)="([^"]*)"', rest):
            labels.setdefault(label, set()).add(value)
    return metrics


def nodes(expression):
    """Every node of the expression's tree."""
    waiting = [promql_parser.parse(expression) if isinstance(expression, str) else expression]
    while waiting:
        node = waiting.pop()
        yield node
        for name in ("lhs", "rhs", "expr", "param", "vector_selector"):
            child = getattr(node, name, None)
            if child is not None:
                waiting.append(child)
        waiting.extend(getattr(node, "args", None) or [])


def selectors(expression):
    """(metric, [(label, operator, value)]) of every selector in it."""
    for node in nodes(expression):
        if isinstance(node, promql_parser.VectorSelector):
            matchers = [(m.name, str(m.op).rsplit(".", 1)[-1], m.value) for m in node.matchers.matchers]
            yield node.name, [m for m in matchers if m[0] != "__name__"]


def grouping_labels(expression):
    """The labels that it groups or matches by."""
    for clause in re.findall(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)", expression):
        yield from (label.strip() for label in clause.split(",") if label.strip())


def wrong_names(expression):
    """Its names that the server does not export and no rule records, each with the reason."""
    metrics, known = golden(), recorded()
    every_label = {label for labels in metrics.values() for label in labels} | TARGET_LABELS
    wrong = []
    for name, matchers in selectors(expression):
        if name in known or name in ("up", "ALERTS") or name in KUBELET:
            continue
        if name not in metrics:
            wrong.append(f"no metric {name}")
            continue
        for label, operator, value in matchers:
            if label in TARGET_LABELS:
                continue
            values = metrics[name].get(label)
            if values is None:
                wrong.append(f"{name} has no label {label}")
                continue
            wanted = value.split("|") if operator in ("Re", "NotRe") else [value]
            wrong += [f'{name} has no {label}="{one}"' for one in wanted if one not in values and one != ""]
    wrong += [f"no label {label}" for label in grouping_labels(expression) if label not in every_label]
    return wrong


def dashboard():
    return json.loads(DASHBOARD.read_text())


def panels(board):
    """Every panel that shows something, also those in closed rows."""
    for panel in board["panels"]:
        yield from panel.get("panels", [])
        if panel["type"] != "row":
            yield panel
