"""Runs all cases of a kit on an engine and counts by rule: what passed, what failed, what it does not support."""

import json
import time
import xml.etree.ElementTree as xml
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterable, List, Optional

import numpy as np

from . import oracle_types as ot
from .case import Answer, Case, NotSupported, different, mismatches
from .engines_onnx import Engine

PASSED, FAILED, NOT_SUPPORTED, ANSWERED = "passed", "failed", "not supported", "answered"


@dataclass
class Outcome:
    """The result of a case. An open one has the status ANSWERED, and `answer` names the known answer; "": none of them."""

    case: Case
    status: str
    why: str = ""
    answer: str = ""
    found: Optional[Answer] = None


@dataclass
class RuleCount:
    rule: str
    open: bool
    passed: int = 0
    failed: int = 0
    not_supported: int = 0
    first: str = ""  # the first case that failed: its name, and the element
    answers: Dict[str, int] = field(default_factory=dict)


@dataclass
class Result:
    engine: str
    outcomes: List[Outcome]
    seconds: float

    def rules(self) -> List[RuleCount]:
        counts: Dict[str, RuleCount] = {}
        for outcome in self.outcomes:
            case = outcome.case
            count = counts.setdefault(case.rule, RuleCount(case.rule, case.open))
            if outcome.status == NOT_SUPPORTED:
                count.not_supported += 1
            elif outcome.status == ANSWERED:
                name = outcome.answer or "another"
                count.answers[name] = count.answers.get(name, 0) + 1
            elif outcome.status == PASSED:
                count.passed += 1
            else:
                count.failed += 1
                count.first = count.first or f"{case.name}: {outcome.why}"
        return list(counts.values())

    def count(self, status: str) -> int:
        return sum(o.status == status for o in self.outcomes)

    @property
    def failed(self) -> bool:
        return any(o.status == FAILED for o in self.outcomes)


def judge(case: Case, ask: Engine, exact: bool = False) -> Outcome:
    """One case. exact: compares NaNs of FLOAT8 bit for bit, and accepts only the oracle's answer to open questions."""
    try:
        found = ask(case)
    except NotSupported as error:
        return Outcome(case, NOT_SUPPORTED, str(error))
    except Exception as error:  # any other error of an engine is a failure of the case
        return Outcome(case, FAILED, f"{type(error).__name__}: {error}")
    if case.open and not exact:
        for name, known in case.answers.items():
            if not mismatches(found, known, exact_nan=True):
                return Outcome(case, ANSWERED, answer=name, found=found)
        return Outcome(case, ANSWERED, first_difference(case, found, case.expected()), found=found)
    wanted = next(iter(case.answers.values())) if case.answers else case.expected()
    wrong = mismatches(found, wanted, exact_nan=exact)
    if not wrong:
        return Outcome(case, PASSED, found=found)
    return Outcome(case, FAILED, f"{'; '.join(wrong)}. {first_difference(case, found, wanted)}".strip(), found=found)


def verify(cases: Iterable[Case], ask: Engine, name: str, exact: bool = False, progress: Optional[Callable[[int], None]] = None) -> Result:
    began, outcomes = time.monotonic(), []
    cases = list(cases)
    if hasattr(ask, "prepare"):  # for engines that are faster with many cases at once
        ask.prepare(cases)
    for case in cases:
        outcomes.append(judge(case, ask, exact))
        if progress is not None:
            progress(len(outcomes))
    return Result(name, outcomes, time.monotonic() - began)


# ---------------------------------------------------------------- text


def value(array: np.ndarray, index: Any) -> str:
    """An element as a number, and its bits if the number alone does not identify it."""
    element = np.asarray(array[index])
    t = ot.of(array)
    if t.kind == "int":
        return str(int(ot.to_int(element)))
    number = float(ot.to_float(element))
    text = "-nan" if number != number and np.signbit(number) else f"{number:.9g}"
    return text if t.kind == "float" and number == number else f"{text} (code {int(ot.codes(element)):0{2 if t.bits <= 8 else 4}X})"


def first_difference(case: Case, found: Answer, wanted: Answer) -> str:
    """The first element that differs: its position, its input, the actual and the expected value."""
    for name, expected in wanted.tensors.items():
        got = found.tensors.get(name)
        if got is None or got.dtype != expected.dtype or got.shape != expected.shape:
            continue
        where = different(got, expected)
        if not where.any():
            continue
        index = tuple(int(i) for i in np.argwhere(np.atleast_1d(where))[0])[: got.ndim]
        x = case.inputs.get("x")
        of = f", x {value(x, index)}" if x is not None and x.shape == got.shape else ""
        scale = case.inputs.get("scale")
        of += f", scale {value(scale, ())}" if scale is not None and scale.ndim == 0 else ""
        zero = case.inputs.get("zero_point")
        of += f", zero point {value(zero, ())}" if zero is not None and zero.ndim == 0 else ""
        return f"{name}{list(index)}{of}: got {value(got, index)}, must be {value(expected, index)}"
    return ""


def table(result: Result, width: int = 110) -> str:
    """Results by rule, for a terminal."""
    lines = [f"{'rule':38} {'passed':>7} {'failed':>7} {'unsupported':>11}  first failed case"]
    for count in result.rules():
        if not count.open:
            lines.append(f"{count.rule:38} {count.passed:7} {count.failed:7} {count.not_supported:11}  {count.first[: 2 * width]}".rstrip())
    answers = [count for count in result.rules() if count.open]
    if answers:
        lines += ["", f"{'left open by the specification':48} {'unsupported':>11}  answers"]
        for count in answers:
            each = ", ".join(f"{name} {number}" for name, number in sorted(count.answers.items(), key=lambda item: -item[1]))
            lines.append(f"{count.rule:48} {count.not_supported:11}  {each}".rstrip())
    lines += [
        "",
        f"{result.engine}: {result.count(PASSED)} passed, {result.count(FAILED)} failed, {result.count(ANSWERED)} open questions answered, "
        f"{result.count(NOT_SUPPORTED)} unsupported, in {result.seconds:.1f} s",
    ]
    return "\n".join(lines)


def as_json(result: Result) -> str:
    document = {
        "engine": result.engine,
        "seconds": round(result.seconds, 3),
        "passed": result.count(PASSED),
        "failed": result.count(FAILED),
        "not_supported": result.count(NOT_SUPPORTED),
        "answered": result.count(ANSWERED),
        "rules": [vars(count) for count in result.rules()],
        "failures": [
            {"case": o.case.name, "rule": o.case.rule, "family": o.case.family, "why": o.why} for o in result.outcomes if o.status == FAILED
        ],
    }
    return json.dumps(document, indent=1)


def as_junit(result: Result) -> bytes:
    """JUnit's XML: one test case per case; unsupported ones are skipped, and an open question passes with any answer."""
    suite = xml.Element(
        "testsuite",
        name=result.engine,
        tests=str(len(result.outcomes)),
        failures=str(result.count(FAILED)),
        skipped=str(result.count(NOT_SUPPORTED)),
        time=f"{result.seconds:.3f}",
    )
    for outcome in result.outcomes:
        entry = xml.SubElement(suite, "testcase", classname=f"{outcome.case.family}.{outcome.case.rule}", name=outcome.case.name)
        if outcome.status == FAILED:
            xml.SubElement(entry, "failure", message=_printable(outcome.why))
        elif outcome.status == NOT_SUPPORTED:
            xml.SubElement(entry, "skipped", message=_printable(outcome.why))
    return xml.tostring(suite, encoding="utf-8", xml_declaration=True)


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)
