"""tests/golden/layouts.txt is what the packages make of the hard weights: every layout and type, there and back. tests/core/layouts_golden_test.cc
compares our bits with it; test_loading.py compares whole folders and files."""

import golden
import hard
import packages
import pytest

KNOWN = {tuple(row[:2]): row[2:] for row in map(str.split, golden.GOLDEN.read_text().splitlines())}


@pytest.mark.parametrize("dtype", hard.TYPES)
@pytest.mark.parametrize("layout", golden.LAYOUTS)
def test_the_bits_are_those_of_the_package(layout, dtype):
    if layout in ("gguf:q4_1", "gguf:q5_1") and not packages.ZEROS_AS_OURS:
        pytest.skip("numpy chooses among zeros of both signs by the CPU")
    assert [golden.word_of(layout, dtype, index) for index in range(golden.WEIGHTS)] == KNOWN[layout, dtype]


@pytest.mark.parametrize("name", golden.K_TYPES)
def test_blocks_of_k_types_are_decoded_as_the_package_does(name):
    assert [golden.k_word(name, index) for index in range(4)] == KNOWN[f"gguf:{name}", "-"]
