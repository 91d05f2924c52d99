#!/usr/bin/env python3
"""Prints the cases of a JUnit report as lines 'pass|fail|skip NAME WHY SECONDS', separated by tabs: junit.py FILE."""
import sys
import xml.etree.ElementTree as tree


def verdict(case):
    """(kind, reason) of one case. ctest writes status="run|fail|notrun|disabled", pytest child elements only."""
    for tag in ("failure", "error"):
        for element in case.iter(tag):
            return "fail", element.get("message") or (element.text or "").strip() or gtest_reason(case)
    for element in case.iter("skipped"):
        why = element.get("message") or (element.text or "").strip()
        if case.get("status") != "notrun":
            return "skip", why or "no reason given"
        if why.startswith("SKIP_"):
            return "skip", gtest_reason(case) or why
        return "fail", why or "not run"
    if case.get("status") in ("fail", "notrun"):
        return "fail", case.get("status")
    return "pass", ""


def gtest_reason(case):
    """The text of a test that was skipped, or of its first failure: with its values and trace, which contain the seed."""
    lines = (case.findtext("system-out") or "").splitlines()
    for number, line in enumerate(lines, 1):
        if line.endswith(": Skipped"):
            return " ".join(lines[number : number + 1])
        if line.endswith(": Failure"):
            return " ".join(lines[number : number + 8])
    return ""


def main():
    try:
        cases = list(tree.parse(sys.argv[1]).getroot().iter("testcase"))
    except (OSError, tree.ParseError) as error:
        sys.exit(str(error))
    if not cases:
        sys.exit(f"{sys.argv[1]} has no case")
    for case in cases:
        kind, reason = verdict(case)
        name = ".".join(part for part in (case.get("classname"), case.get("name")) if part)
        if case.get("classname") == case.get("name"):
            name = case.get("name")
        print(kind, " ".join(name.split()), " ".join(reason.split())[:600], case.get("time", ""), sep="\t")


if __name__ == "__main__":
    main()
