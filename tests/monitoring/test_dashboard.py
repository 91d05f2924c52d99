"""The dashboard as a file: its variables, its queries, and the server's names in them."""

import json

import pytest

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
