"""The cases of cases.yml, and both sides of the burn alerts' thresholds, as files for `promtool test rules`."""

import itertools
import pathlib

import yaml

from support import MONITORING

# All scalars are strings: 0x60 is sixty times a zero.
TABLE = yaml.load((pathlib.Path(__file__).parent / "cases.yml").read_text(), yaml.BaseLoader)
WORDS = {"fires", "quiet", "as", "at", "gives"}
UNARY = {"grpc_service": "quantd.v1.QuantizationService", "grpc_method": "Quantize"}
USUAL = {
    "grpc_server_started_total": {**UNARY, "grpc_type": "unary"},
    "grpc_server_msg_received_total": {**UNARY, "grpc_type": "bidi_stream", "grpc_method": "Stream"},
    "grpc_server_handled_total": UNARY,
}
# For a burn alert, by its window: page or ticket, the short window, the rate, the window's seconds, the minutes that it waits.
BURNS = {
    "1h": ("page", "5m", 14.4, 3600, 2),
    "6h": ("page", "30m", 6, 21600, 5),
    "1d": ("ticket", "2h", 3, 86400, 15),
    "3d": ("ticket", "6h", 1, 259200, 60),
}


def is_burn(alert):
    return alert.endswith("Burn")


def promql(name, labels):
    return name + "{" + ",".join(f'{label}="{value}"' for label, value in labels.items()) + "}"


def variants(text):
    """`label=one|two other=value` as two sets of labels."""
    pairs = dict(pair.split("=", 1) for pair in text.split())
    return [dict(zip(pairs, values)) for values in itertools.product(*(value.split("|") for value in pairs.values()))]


def case_labels(case):
    return dict.fromkeys(("job", "instance", "namespace", "pod"), case)


def inputs(case, fields):
    for text, values in fields.items():
        if text not in WORDS and values != "-":
            name, _, given = text.partition(" ")
            for labels in variants(given):
                series = promql(name, {**case_labels(case), **USUAL.get(name, {}), **labels})
                yield {"series": series, "values": values}


def expectations(alert, entry, case, fields):
    """The alerts that fire in the case, and the recorded values."""
    kept = {label: case for label in entry.get("keeps", "job instance namespace pod").split()}
    scope = {} if "alone" in entry else {"namespace": case}
    firing = {"alertname": alert, "alertstate": "firing"}
    own = [labels for text in fields.get("as", "").split(";") for labels in variants(text)]
    severity = {"severity": entry["calls"]} if "calls" in entry else {}
    labels = [{**firing, **kept, **severity, **one} for one in own]
    for word, found in (("quiet", []), ("fires", labels)):
        for time in fields.get(word, "").split():
            samples = [{"labels": promql("ALERTS", one), "value": 1} for one in found]
            yield {"expr": promql("ALERTS", {**firing, **scope}), "eval_time": time, "exp_samples": samples}
    for name, value in fields.get("gives", {}).items():
        sample = {"labels": promql(name, kept), "value": float(value)}
        yield {"expr": promql(name, scope), "eval_time": fields["at"], "exp_samples": [sample]}


def thresholds(alert):
    """Both windows of a burn alert and its least number of requests, just above and just below; computed from the table."""
    kind, counted = ("availability", "failed") if alert == "QuantdAvailabilityBurn" else ("latency", "slow")
    cases = {}
    for window, (severity, short, rate, seconds, minutes) in BURNS.items():
        for what, factors in {"all": (1.02, 1.02, 1.02), "short": (0.98, 1.02, 1.02), "long": (1.02, 0.98, 1.02), "few": (1.02, 1.02, 0.98)}.items():
            names = (f"quantd:{kind}_burn:rate{short}", f"quantd:{kind}_burn:rate{window}", f"quantd:requests_{counted}:rate{window}")
            values = [factor * of for factor, of in zip(factors, (rate, rate, 10 / seconds))]
            fields = {name: f"{value:g}x{minutes + 20}" for name, value in zip(names, values)}
            fires = {"fires": f"{minutes + 1}m", "quiet": f"{minutes - 1}m", "as": f"severity={severity} window={window}"}
            cases[f"{window} {what}"] = {**fields, **(fires if what == "all" else {"quiet": f"{minutes + 1}m"})}
    return {"keeps": "job instance namespace pod", "cases": cases}


def promtool_tests(alert, entry):
    """All cases are in one file, except those that must be alone."""
    together = {"interval": "1m", "name": alert, "input_series": [], "promql_expr_test": []}
    for case, fields in entry["cases"].items():
        fields = {**entry.get("always", {}), **fields}
        test = {**together, "name": case, "input_series": [], "promql_expr_test": []}
        kept = test if "alone" in entry else together
        kept["input_series"] += inputs(case, fields)
        kept["promql_expr_test"] += expectations(alert, entry, case, fields)
        if "alone" in entry:
            yield test
    if together["input_series"]:
        yield together


def write(folder, alert):
    """Files in `folder` with the alert's cases over the rule files."""
    documents = [("objectives burn alerts" if is_burn(alert) else "objectives recording alerts", "2m" if is_burn(alert) else "1m", TABLE[alert])]
    if is_burn(alert):
        documents.append(("objectives alerts", "1m", thresholds(alert)))
    written = []
    for stems, interval, entry in documents:
        files = [MONITORING / f"{stem}.yml" for stem in stems.split()]
        document = {
            "rule_files": [str(file) for file in files],
            "evaluation_interval": interval,
            "group_eval_order": [group["name"] for file in files for group in yaml.safe_load(file.read_text())["groups"]],
            "tests": list(promtool_tests(alert, entry)),
        }
        written.append(folder / f"cases_{len(written)}.yml")
        written[-1].write_text(yaml.safe_dump(document))
    return written
