"""The oracle for layouts of checkpoints against what the packages make, and quantd.checkpoints against the oracle.

tests/golden/layouts.txt: checksums of what the packages make of hard weights, and of their decodings (tests/checkpoints/golden.py writes it).
"""

import collections
import hashlib
import importlib.util
import zlib
from pathlib import Path

import numpy as np
import pytest

from compare import count
from quantd_conformance import engines, oracle, oracle_layouts, verify
from quantd_conformance import oracle_layouts_bnb as bnb
from quantd_conformance import oracle_types as ot
from quantd_conformance.case import LAYOUT_OPERATIONS
from quantd_conformance.cases import layouts

TESTS = Path(__file__).resolve().parents[1]
DTYPES = {"F32": ot.FLOAT, "F16": ot.FLOAT16, "BF16": ot.BFLOAT16}


def golden():
    """By layout: (dtype, index of the weight, words)."""
    found = collections.defaultdict(list)
    for line in (TESTS / "golden/layouts.txt").read_text().splitlines():
        layout, dtype, index, *words = line.split()
        found[layout].append((dtype, int(index), words))
    return found


GOLDEN = golden()


@pytest.fixture(scope="module")
def hard():
    """The weights, as in the suite that has the packages."""
    spec = importlib.util.spec_from_file_location("hard", TESTS / "checkpoints/hard.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def crc(array):
    return f"{zlib.crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8).tobytes()):08x}"


def crc_of_floats(array):
    """Makes every NaN the same."""
    codes = ot.codes(array).copy()
    codes[np.isnan(ot.to_float(array))] = ot.codes(ot.round_to(np.float32([np.nan]), ot.of(array)))[0]
    return crc(codes)


def backs(parts, layout, wanted):
    return [crc_of_floats(oracle_layouts.decode(parts, layout, t)) if word != "-" else "-" for t, word in zip(ot.FLOATS, wanted)]


def words_of(hard, layout, dtype, index, wanted):
    weight = hard.weight(dtype, index, hard.shape_of(index, oracle_layouts.columns_of(layout)))
    try:
        parts = oracle_layouts.encode(weight, layout)
    except oracle.Invalid:
        return ["refused"]
    words = []
    if layout.endswith("-double"):  # the package sums in another order
        offset, x = np.uint32(int(wanted[0], 16)).view(np.float32), ot.to_float(weight)
        with np.errstate(all="ignore"):
            assert abs(bnb.offset_of(bnb.absmax_of(x)) - offset) <= abs(offset) * np.float32(1e-6)
            parts = bnb.four_bits(x, ot.of(weight), layout[len("bnb:") :], offset)
        words.append(wanted[0])
    words += [crc(part) for name, part in parts.items() if "quant_state" not in name]
    return words + backs(parts, layout, wanted[len(words) :])


@pytest.mark.parametrize("layout", oracle_layouts.LAYOUTS)
def test_weights_become_what_the_packages_make(hard, layout):
    assert len(GOLDEN[layout]) >= 60
    for dtype, index, wanted in GOLDEN[layout]:
        assert words_of(hard, layout, dtype, index, wanted) == wanted, f"{layout} {dtype} {index}"


@pytest.mark.parametrize("layout", oracle_layouts.DECODED_ALONE)
def test_k_types_are_read_as_the_package_reads_them(hard, layout):
    size, halves = oracle_layouts.gguf.K_TYPES[layout[5:]], layouts.HALVES[layout[5:]]
    assert len(GOLDEN[layout]) == 4
    for _, index, wanted in GOLDEN[layout]:
        assert backs({"weight": hard.blocks(index, 5, size, halves)}, layout, wanted) == wanted, f"{layout} {index}"


def test_every_layout_is_there():
    assert set(GOLDEN) == {*oracle_layouts.LAYOUTS, *oracle_layouts.DECODED_ALONE} and len(oracle_layouts.LAYOUTS) == 25


def test_the_map_of_double_codes():
    """As bitsandbytes computes it with FMA."""
    assert hashlib.sha256(bnb.NESTED.tobytes()).hexdigest() == MAP
    assert bnb.NESTED.size == 256 and (np.diff(bnb.NESTED) > 0).all()


MAP = "e732639a65f497b4ad684bb166a4467708255edd5207757de8b8f0c7e1fda89c"


@pytest.fixture(scope="module")
def every():
    return list(layouts.cases())


def test_cases_do_not_depend_on_an_order(every):
    """The means of absmax do not depend on the order of summation; no smallest element is a zero of either sign."""
    number = 0
    for c in (c for c in every if c.operation == "encode_layout" and c.rule != "layout-refused"):
        x = ot.to_float(c.inputs["x"])
        if c.attributes["layout"].endswith("-double"):
            absmax, number = bnb.absmax_of(x), number + 1
            sums = {float(np.add.accumulate(order, dtype=np.float32)[-1]) for order in (absmax, absmax[::-1], np.sort(absmax))}
            sums.add(float(absmax.sum(dtype=np.float64)))
            assert len(sums) == 1, c.name
            assert np.float32(sums.pop()) / np.float32(absmax.size) == bnb.offset_of(absmax)
        elif c.group in ("gguf-q4_1", "gguf-q5_1"):
            assert not (np.signbit(x) & (x == 0)).any(), c.name
    assert number > 60


def test_every_layout_has_cases_of_every_type(every):
    found = collections.Counter((c.attributes["layout"], ot.of(c.inputs["x"]).name) for c in every if c.operation == "encode_layout")
    assert set(found) == {(layout, t.name) for layout in oracle_layouts.LAYOUTS for t in ot.FLOATS}
    assert min(found.values()) >= 10
    assert all(c.operation in LAYOUT_OPERATIONS for c in every)


def test_quantd_converts_as_the_oracle_says(every):
    pytest.importorskip("quantd_core")
    with engines.engine("quantd-local") as (name, ask):
        result = verify.verify(every, ask, name, exact=True)
    assert result.count(verify.PASSED) == len(every), verify.table(result)
    count("layouts of checkpoints", sum(v.size for c in every for v in c.inputs.values()), len(every))
