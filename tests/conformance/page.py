#!/usr/bin/env python3
"""Makes the page: runs every case of ONNX's operators on every engine, and writes the results into README.md, reports/ and differences.json.

  python tests/conformance/page.py                                     all engines
  python tests/conformance/page.py --engines=onnx-reference,openvino   only these; the others' results stay as they are
  python tests/conformance/page.py --server=HOST:PORT                  quantd's server, in addition to quantd.local()

Needs the packages of the engines: pip install './client/python[onnx-reference,onnxruntime,openvino,local]'. shrink.py finds the inputs in the
tables and reports; they are not written by hand. test_page.py compares the files with what the engines answer.
"""

import argparse
import datetime
import json
from pathlib import Path

import numpy as np

import differences
import report
import shrink
from quantd.conformance import cases, engines, files, verify
from quantd.conformance import oracle_types as ot
from quantd.conformance.case import Case
from quantd.conformance.rules import RULES
from quantd.types import DataType, pack, unpack

ROOM = Path(__file__).resolve().parent
DATA = ROOM / "differences.json"
ENGINES = ("onnx-reference", "onnxruntime", "openvino", "quantd-local")
TITLES = {
    "onnx-reference": "ONNX reference",
    "onnxruntime": "ONNX Runtime",
    "openvino": "OpenVINO",
    "quantd-local": "quantd in process",
    "quantd-server": "quantd server",
}


# ---- a case as JSON


def array_json(array: np.ndarray):
    return {"type": ot.of(array).name, "shape": list(array.shape), "bytes": pack(array).hex()}


def array_of(value) -> np.ndarray:
    return unpack(bytes.fromhex(value["bytes"]), DataType[value["type"]], tuple(value["shape"]))


def case_json(case: Case):
    return {
        "name": case.name,
        "rule": case.rule,
        "operation": case.operation,
        "opset": case.opset,
        "attributes": case.attributes,
        "inputs": {k: array_json(v) for k, v in case.inputs.items()},
    }


def case_of(value) -> Case:
    inputs = {k: array_of(v) for k, v in value["inputs"].items()}
    return Case(value["name"], value["rule"], value["operation"], inputs, value["attributes"], "node", value["opset"])


# ---- running


def ask_engine(key: str, name: str, every):
    """What differences.json stores about an engine."""
    with engines.engine(name) as (version, ask):
        result = verify.verify(every, ask, version)
        counts = {}
        for count in result.rules():
            counts[count.rule] = {
                "passed": count.passed,
                "failed": count.failed,
                "not_supported": count.not_supported,
                "answers": count.answers,
            }
        rows, seen = [], {}
        for outcome in result.outcomes:
            if outcome.status == verify.FAILED:
                seen.setdefault(outcome.case.rule, []).append(outcome)
        for rule, outcomes in seen.items():
            rows.append(difference(rule, outcomes, ask))
        return {
            "engine": key,
            "version": version,
            "seconds": round(result.seconds, 1),
            "date": datetime.date.today().isoformat(),
            "rules": counts,
            "differences": [row for row in rows if row],
        }


def size(case: Case) -> tuple:
    """How hard a case is to read: elements, then digits."""
    return sum(v.size for v in case.inputs.values()), len(case.inputs), len(json.dumps(case_json(case)))


def difference(rule: str, outcomes, ask):
    """The smallest input for some of the failed cases, and the versions and types of all of them."""
    drawn = outcomes[:: max(1, len(outcomes) // 6)][:6]
    found = [shrink.smallest(o.case, ask, o.found) for o in drawn if o.found is not None]
    found = [c for c in found if shrink.fails(c, ask)]
    if not found:
        return None
    best = min(found, key=size)
    got, wanted = verify.judge(files.stored(best), ask).found, best.expected()
    types = sorted(
        {
            ot.of(o.case.expected().tensors["y"]).name if o.case.operation != "dequantize" else ot.of(o.case.inputs["x"]).name
            for o in outcomes
        }
    )
    return {
        "rule": rule,
        "cases": len(outcomes),
        "opsets": sorted({o.case.opset for o in outcomes}),
        "types": types,
        "case": case_json(best),
        "got": {k: array_json(v) for k, v in got.tensors.items()},
        "expected": {k: array_json(v) for k, v in wanted.tensors.items()},
    }


# ---- writing


def table_of_rules(data) -> str:
    present = [e for e in (*ENGINES, "quantd-server") if e in data]
    lines = ["| rule | cases | " + " | ".join(TITLES[e] for e in present) + " |", "|---|---|" + "---|" * len(present)]
    rules = [r for r in RULES if any(r in data[e]["rules"] for e in present)]
    for rule in (r for r in rules if not RULES[r].open):
        cells, total = [], 0
        for e in present:
            count = data[e]["rules"].get(rule)
            if count is None:
                cells.append("")
                continue
            total = max(total, count["passed"] + count["failed"] + count["not_supported"])
            had = count["passed"] + count["failed"]
            cells.append(
                "-" if not had else str(count["passed"]) if not count["failed"] else f"{count['passed']}, **{count['failed']} failed**"
            )
        lines.append(f"| {rule} | {total} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def table_of_answers(data) -> str:
    present = [e for e in (*ENGINES, "quantd-server") if e in data]
    lines = ["| question | " + " | ".join(TITLES[e] for e in present) + " |", "|---|" + "---|" * len(present)]
    for rule in (r for r in RULES if RULES[r].open and any(r in data[e]["rules"] for e in present)):
        cells = []
        for e in present:
            answers = data[e]["rules"].get(rule, {}).get("answers", {})
            cells.append(", ".join(f"{name} {n}" for name, n in sorted(answers.items(), key=lambda item: -item[1])) or "-")
        lines.append(f"| {RULES[rule].open} (`{rule}`) | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def table_of_differences(data) -> str:
    lines = ["| engine | rule | smallest input | answers | must answer | cases; versions; types |", "|---|---|---|---|---|---|"]
    for e in (x for x in ENGINES if x in data):
        for row in data[e]["differences"]:
            case = case_of(row["case"])
            name = report.first_difference(row)
            link = f"[{row['rule']}](reports/{report.file_name(e, row['rule'])})" if not e.startswith("quantd") else row["rule"]
            lines.append(
                f"| {TITLES[e]} | {link} | {case.operator} {case.opset}: {report.operands(case)} | {report.shown(array_of(row['got'][name]))} | "
                f"{report.shown(array_of(row['expected'][name]))} | {row['cases']}; {', '.join(map(str, row['opsets']))}; {', '.join(row['types'])} |"
            )
    return "\n".join(lines)


def page(data) -> str:
    present = [e for e in (*ENGINES, "quantd-server") if e in data]
    lines = [
        "| engine | version | asked on | passed | failed | unsupported | open questions answered | seconds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for e in present:
        rules = data[e]["rules"].values()
        sums = [sum(r[k] for r in rules) for k in ("passed", "failed", "not_supported")]
        answered = sum(sum(r["answers"].values()) for r in rules)
        lines.append(
            f"| {TITLES[e]} | {data[e]['version']} | {data[e]['date']} | {' | '.join(map(str, sums))} | {answered} | {data[e]['seconds']} |"
        )
    summary = "\n".join(lines)
    return f"""{summary}

"Not had": types or versions of the operators that the engine has no kernel for. A dash: it has none of the rule's cases.

### What the specification fixes

{table_of_rules(data)}

### Where they differ from it

Each row links to a report as its maintainers could be given it.

{table_of_differences(data)}

### What the specification leaves open

How often each of the known answers came; "another": none of them. quantd's own is the first that a case names.

{table_of_answers(data)}

### Microscaling and NVFP4 beside torchao {differences.TORCHAO_VERSION}

Held by `test_torchao.py`, where torchao is installed.

{differences.torchao_table()}
"""


def with_page(text: str, data) -> str:
    head, rest = text.split("<!-- page -->\n", 1)
    tail = rest.split("<!-- end of page -->", 1)[1]
    return f"{head}<!-- page -->\n{page(data)}<!-- end of page -->{tail}"


def reports(data):
    """(file name, text) of every report."""
    return [
        (report.file_name(e, row["rule"]), report.text(TITLES[e], data[e], row, case_of(row["case"])))
        for e in ENGINES
        if e in data and not e.startswith("quantd")
        for row in data[e]["differences"]
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--server", metavar="HOST:PORT")
    parser.add_argument("--write-only", action="store_true", help="from differences.json, as it is")
    arguments = parser.parse_args()
    data = json.loads(DATA.read_text()) if DATA.exists() else {}
    if not arguments.write_only:
        every = [files.stored(c) for c in cases.onnx_cases()]
        asked = [(e, e) for e in arguments.engines.split(",") if e] + (
            [("quantd-server", f"quantd={arguments.server}")] if arguments.server else []
        )
        for key, name in asked:
            data[key] = ask_engine(key, name, every)
            print(f"{key}: {len(data[key]['differences'])} rules differ, {data[key]['seconds']} s", flush=True)
            data[key]["version"] = data[key]["version"].split(" at ")[0]  # without a server's address
            DATA.write_text(json.dumps({e: data[e] for e in (*ENGINES, "quantd-server") if e in data}, indent=1) + "\n")
    folder = ROOM / "reports"
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.md"):
        old.unlink()
    for name, text in reports(data):
        (folder / name).write_text(text)
    readme = ROOM / "README.md"
    readme.write_text(with_page(readme.read_text(), data))


if __name__ == "__main__":
    main()
