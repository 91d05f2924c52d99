"""The dashboard as a file: in Grafana's schema, complete, and with the server's names."""

import json

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from support import dashboard, panels, wrong_names

BOARD = dashboard()
PANELS = list(panels(BOARD))
# Variables that Grafana replaces in a query.
VARIABLES = {"$__rate_interval": "5m", "$namespace": ".*", "$job": ".*", "$pod": ".*", "$instance": ".*"}


def substituted(expression):
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    assert "$" not in expression, expression
    return expression


def lost(before, after, path=""):
    """Parts of `before` that are missing in `after`: fields that Grafana's schema does not have, or of another type."""
    if isinstance(before, dict) and isinstance(after, dict):
        return [field for key, value in before.items() for field in lost(value, after.get(key), f"{path}.{key}")]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return [field for i, (one, other) in enumerate(zip(before, after)) for field in lost(one, other, f"{path}[{i}]")]
    return [] if before == after else [path]


def test_grafanas_schema_has_every_field():
    """Reads it into the types that Grafana generates from its schema, and writes it again. Those of annotations leave out what
    belongs to a kind of data source."""
    again = json.loads(json.dumps(Dashboard.from_json(json.loads(json.dumps(BOARD))), cls=JSONEncoder))
    missing = [field for field in lost(BOARD, again) if not is_default(field)]
    assert [field for field in missing if not field.endswith((".titleFormat", ".textFormat"))] == []


def is_default(field):
    """An empty value that need not be written."""
    value = BOARD
    for part in field.replace("[", ".[").split(".")[1:]:
        value = value[int(part[1:-1])] if part.startswith("[") else value[part]
    return value in (None, [], {}, "", False)


def test_variables():
    names = [item["name"] for item in BOARD["templating"]["list"]]
    assert names == ["datasource", "namespace", "job", "pod", "instance"]
    for item in BOARD["templating"]["list"][1:]:
        assert item["includeAll"] and item["multi"] and "quantd_build_info" in item["query"]["query"]
    used = json.dumps(BOARD["panels"])
    assert all(f"${{{name}}}" in used or f"${name}" in used for name in names)


def test_every_query_asks_for_what_was_chosen():
    """Except those of recorded series, which are by namespace and job, and of alerts."""
    for panel in PANELS:
        for target in panel["targets"]:
            expression = target["expr"]
            if "ALERTS" in expression:
                continue
            assert 'namespace=~"$namespace",job=~"$job"' in expression, panel["title"]
            assert ("quantd:" in expression) != ('pod=~"$pod",instance=~"$instance"' in expression), panel["title"]


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_names_are_the_servers(panel):
    for target in panel["targets"]:
        assert wrong_names(substituted(target["expr"])) == []


def test_names_in_annotations_are_the_servers():
    for item in BOARD["annotations"]["list"]:
        assert wrong_names(substituted(item["expr"])) == []
