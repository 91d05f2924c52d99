"""The runbook has a section for each alert, and mentions only flags, metrics and panels that exist."""

import re

from support import MONITORING, ROOT, alerts, dashboard, golden, recorded

TEXT = (MONITORING / "RUNBOOK.md").read_text()
SECTIONS = re.findall(r"^## (\w+)$", TEXT, re.M)


def test_a_section_an_alert():
    names = list(dict.fromkeys(alert["alert"] for alert in alerts()))
    assert SECTIONS == names
    for section in TEXT.split("\n## ")[1:]:
        assert re.search(r"^- ", section, re.M), f"nothing to do: {section.split()[0]}"


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)]+)\)", TEXT):
        if target.startswith("#"):
            headings = [heading.lower().replace(" ", "-") for heading in re.findall(r"^## (.+)$", TEXT, re.M)]
            assert target[1:] in headings, target
        else:
            assert (MONITORING / target.split("#")[0]).is_file(), target


def test_flags_are_the_servers():
    """The flags in the table of deploy/OPERATIONS.md, which e2e compares with the server's help."""
    known = set(re.findall(r"^\| `(--\w+)` \|", (ROOT / "deploy" / "OPERATIONS.md").read_text(), re.M))
    assert len(known) >= 30
    assert set(re.findall(r"`(--\w+)", TEXT)) - known == set()


def test_lines_of_the_log_are_the_servers():
    """Panels with names of two or more words; and panels with one word, if the text calls them lines."""
    source = "".join(path.read_text() for path in (ROOT / "server").rglob("*.cc"))
    named = (set(re.findall(r"`([a-z]+(?: [a-z]+)+)`", TEXT)) | {"configuration", "draining", "drained"}) - {"kubectl describe pod"}
    assert len(named) >= 8
    assert {line for line in named if f'"{line}"' not in source} == set()


def test_metrics_and_reasons_are_the_servers():
    metrics = golden()
    histograms = {name.removesuffix("_bucket") for name in metrics}
    values = {value for labels in metrics.values() for found in labels.values() for value in found}
    words = set(re.findall(r"`([a-z_]+(?::[a-z_:]+)?)`", TEXT))
    outside = {"instance", "window", "le", "job", "gdb", "draining", "drained", "configuration", "for", "rule_files"}
    outside |= {"runbook_url", "container_cpu_cfs_throttled_periods_total"}
    assert words - set(metrics) - histograms - values - recorded() - outside == set()


def test_panels_are_the_dashboards():
    titles = {panel["title"] for panel in dashboard()["panels"]}
    named = ["Calls by method", "Bytes of tensors", "Calls that did not end with OK", "Rejects by reason", "Cores that compute"]
    named += ["Budgets in use", "Handling time", "Kernel time", "Queue time", "Deadlines missed and calls cancelled", "Accepted connections"]
    named += ["Running versions", "Resident memory", "Kept for the next requests", "Reserved bytes", "Guards", "CPU"]
    named += ["Connections ended by the server"]
    for name in named:
        assert name in TEXT, name
        assert any(title.startswith(name) for title in titles), name
