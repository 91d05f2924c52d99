"""Cases of the kit (quantd_conformance), run on the client under test, bit for bit."""

from compare import count
from quantd_conformance import engines, verify


def check(client, cases, source: str) -> None:
    """Every answer is the oracle's: bits, error report, or a refusal that names the field."""
    ask = engines.of_client(client)
    for case in cases:
        outcome = verify.judge(case, ask, exact=True)
        assert outcome.status == verify.PASSED, f"{case.family}/{case.group}/{case.name}, {case.attributes}: {outcome.why}"
        if outcome.found.refused is not None:
            assert outcome.found.refused, f"{case.name}: the server refuses without naming a field"
        count(source, case.inputs["x"].size)
