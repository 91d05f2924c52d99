"""Bit-for-bit comparison with a message that shows the first element that differs, and the counters of the summary."""

import collections

import numpy as np

from quantd_conformance import oracle_types as ot

CASES = collections.OrderedDict()


def name(p) -> str:
    """A parameter's text in the name of its case."""
    return getattr(p, "name", None) or str(p)


def count(source: str, elements: int, cases: int = 1) -> None:
    """Adds to the summary at the end of a run."""
    old = CASES.get(source, (0, 0))
    CASES[source] = (old[0] + cases, old[1] + int(elements))


def mismatch(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Where two arrays differ in any bit. NaNs of a FLOAT, FLOAT16 or BFLOAT16 result are considered equal: no source fixes
    their sign or payload."""
    different = ot.codes(ours) != ot.codes(theirs)
    if ot.of(ours).kind == "float":
        different &= ~(np.isnan(ot.to_float(ours)) & np.isnan(ot.to_float(theirs)))
    return different


def same(ours: np.ndarray, expected: np.ndarray, what: str = "", *context) -> None:
    """Fails unless types, shapes and bits are equal. context: arrays to show at the first difference."""
    assert ours.dtype == expected.dtype, f"{what}: type {ours.dtype}, expected {expected.dtype}"
    assert ours.shape == expected.shape, f"{what}: shape {ours.shape}, expected {expected.shape}"
    different = mismatch(ours, expected)
    if different.any():
        i = tuple(int(k) for k in np.argwhere(np.atleast_1d(different))[0])[: ours.ndim]
        shown = ", ".join(
            f"{ot.to_float(c[i])!r} (bits {int(ot.codes(c[i])):#x})" if c.shape == ours.shape else repr(c) for c in context)
        raise AssertionError(
            f"{what}: {int(different.sum())} of {different.size} differ, first at {list(i)}: {ours[i]!r} "
            f"(bits {int(ot.codes(ours[i])):#x}), expected {expected[i]!r} (bits {int(ot.codes(expected[i])):#x}); {shown}")
