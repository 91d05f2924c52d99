"""The conformance kit's cases of layouts, run on the packages: the oracle's answers are theirs, except for what is not followed."""

from kit_engine import answer

from quantd_conformance import verify
from quantd_conformance.case import Answer, NotSupported
from quantd_conformance.cases import layouts


def ask(case):
    try:
        return Answer(answer(case))
    except NotImplementedError as error:
        raise NotSupported(str(error)) from error


def test_the_packages_pass():
    result = verify.verify(layouts.cases(), ask, "the packages")
    for count in result.rules():
        if count.rule == "layout-refused":
            assert count.not_supported > 0 and not count.passed
        elif count.rule == "layout-not-followed":
            assert count.failed > 0 and not count.passed, "the package has been mended: follow it"
        else:
            assert count.passed > 0 and not count.failed, verify.table(result)
    unread = [o.case for o in result.outcomes if o.status == verify.NOT_SUPPORTED and o.case.operation == "decode_layout"
              and o.case.rule != "layout-refused"]
    assert {c.attributes["layout"] for c in unread} == {"compressed-tensors:int4-g128-asym", "compressed-tensors:int4-g32-asym"}
