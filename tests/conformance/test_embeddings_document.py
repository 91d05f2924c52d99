"""client/EMBEDDINGS.md against the code: its presets, both sides of its table of disagreements, and the rows of its costs."""

import importlib.metadata
import re
import sys
from pathlib import Path

import numpy as np
import packages
import pytest

import quantd

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "client" / "EMBEDDINGS.md"


def rows(text):
    """The cells of a table's rows, without the two lines of its heading."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[2:]]


def marked(name):
    found = re.search(rf"<!-- {name} -->\n(.*?)<!-- end of {name} -->", DOCUMENT.read_text(), re.DOTALL)
    return rows(found.group(1))


def section(name):
    return rows(re.search(rf"^## {name}\n(.*?)^## ", DOCUMENT.read_text(), re.DOTALL | re.MULTILINE).group(1))


def numbers(text):
    return [float(word) for word in text.split()]


# ---- disagreements ------------------------------------------------------------------------------------------


def values(cell):
    """The values in a cell, and their ranges."""
    words = re.sub(r", ranges \[.*", "", cell)
    ranges = re.search(r"ranges \[(.*), (.*)\]", cell)
    counts = {"eight times": 8, "seven times": 7}
    x = []
    for part in words.split(", then "):
        times = next((count for name, count in counts.items() if part.startswith(name)), 0)
        x += numbers(part.split("times")[-1]) * (times or 1)
    x = np.float32([x])
    return x, None if ranges is None else np.repeat(np.float32([[ranges[1]], [ranges[2]]]), x.shape[1], axis=1)


def vllm(x, ranges):
    """Reimplemented from its source."""
    return (np.packbits(x >= 0, axis=1).astype(np.int16) - 128).astype(np.int8)


def vespa(x, ranges):
    """Reimplemented from its source."""
    return np.packbits(x > 0, axis=1).view(np.int8)


def sqlite_vec(x, ranges):
    for name in ("sqlite_vec", "apsw"):
        pytest.importorskip(name)
    return packages.SqliteVec().binary(x)


def old_int8(x, ranges):
    """Reimplemented from sentence-transformers 5.6.1; the wrapping is numpy's conversion on x86-64 and arm64."""
    steps = (ranges[1] - ranges[0]) / 255
    return np.trunc((x - ranges[0]) / steps - 128).astype(np.int64).astype(np.int8)


def old_uint8(x, ranges):
    steps = (ranges[1] - ranges[0]) / 255
    return np.trunc((x - ranges[0]) / steps).astype(np.int64).astype(np.uint8)


def faiss(x, ranges):
    """Reimplemented, and the package itself if it is installed."""
    restated = (255 * np.clip((x - ranges[0]) / (ranges[1] - ranges[0]), 0, 1)).astype(np.uint8)
    package = packages.find("faiss")
    if package is not None:
        quantizer = package.ScalarQuantizer(x.shape[1], package.ScalarQuantizer.QT_8bit)
        quantizer.train(ranges)
        assert quantizer.compute_codes(x).tolist() == restated.tolist()
    return restated


def usearch(x, ranges):
    pytest.importorskip("usearch")
    return packages.usearch_i8(x)


THEIRS = {
    "vLLM `binary`": vllm,
    "Vespa `pack_bits`": vespa,
    "sqlite-vec 0.1.9 `vec_quantize_binary`": sqlite_vec,
    "sentence-transformers 5.6.1 `int8`": old_int8,
    "sentence-transformers 5.6.1 `uint8`": old_uint8,
    "faiss 1.15.1 `QT_8bit`": faiss,
    "usearch 2.26.6 `i8`, its x86-64 wheel": usearch,
}
DISAGREEMENTS = marked("disagreements")
EACH = pytest.mark.parametrize("row", DISAGREEMENTS, ids=lambda row: row[1])


def test_every_disagreement_is_tried():
    assert [row[1] for row in DISAGREEMENTS] == list(THEIRS)


@EACH
def test_they_answer_that(row):
    x, ranges = values(row[0])
    found = THEIRS[row[1]](x, ranges)
    if "usearch" in row[1]:  # the CPU decides which kernel of its wheel computes
        assert np.abs(found.astype(float)[0] - numbers(row[2])).max() <= 1
    else:
        assert found[0].astype(float).tolist() == numbers(row[2])


@EACH
def test_here_it_is_that(client, row):
    x, ranges = values(row[0])
    assert row[2] != row[4]
    found = client.quantize_embeddings(x, preset=row[3].strip("`"), ranges=ranges).y
    assert found[0].astype(float).tolist() == numbers(row[4])
    # If the text names a preset with their codes, it has them.
    other = re.search(r"`([\w-]+)` is \w", row[5])
    if other:
        assert client.quantize_embeddings(x, preset=other[1]).y[0].astype(float).tolist() == numbers(row[2])


def test_versions_are_those_that_are_run():
    for package, version in re.findall(r"(sqlite-vec|usearch) (\d+\.\d+\.\d+)", " ".join(THEIRS)):
        try:
            assert importlib.metadata.version(package) == version
        except importlib.metadata.PackageNotFoundError:
            pytest.skip(f"{package} is not installed")


# ---- presets and costs --------------------------------------------------------------------------------------


def test_the_presets(client):
    found = section("Presets")
    assert [row[0].strip("`") for row in found] == list(quantd.EMBEDDING_PRESETS)
    x = np.random.default_rng(0).uniform(-1, 1, (2, 384)).astype(np.float32)
    for name, _, width, dtype, needs in found:
        name = name.strip("`")
        assert needs == ("yes" if quantd.EMBEDDING_PRESETS[name]["recipe"] == "ranges" else "no")
        ranges = np.stack([x.min(axis=0), x.max(axis=0)]) if needs == "yes" else None
        y = client.quantize_embeddings(x, preset=name, ranges=ranges).y
        assert (y.shape, str(y.dtype)) == ((2, int(width)), dtype)


def test_the_costs_have_the_rows_of_the_bench(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "bench"))
    sys.modules.pop("recall", None)
    import recall

    found = marked("recall")
    assert [(row[0], row[1]) for row in found] == [tuple(row) for row in recall.ROWS.values()]
    recalls = {key: numbers(" ".join(row[5:])) for key, row in zip(recall.ROWS, found)}
    assert all(len(row) == len(recall.TITLES) and 0 < min(row) <= max(row) <= 1 for row in recalls.values())
    assert recalls["float32"] == [1, 1, 1]


def test_the_costs_of_a_small_set():
    """What recall.py computes, for 12,000 embeddings: nothing is better than the floats, and the order is that of the page."""
    pytest.importorskip("quantd_core", reason="quantd-core is not installed: ./tests/run.sh engine builds it")
    sys.path.insert(0, str(ROOT / "tests" / "bench"))
    try:
        import recall
        import recall_sets
    finally:
        sys.path.pop(0)
    documents, queries = recall_sets.mixture(documents=12_000, queries=40, width=72)
    found, truth = {}, None
    for key, rows_found, searched, beside in recall.searches(quantd.local(1), documents, queries):
        truth = rows_found if truth is None else truth
        found[key] = (rows_found[:, :, None] == truth[:, None, :]).any(axis=2).mean()
        assert all(len(set(row)) == 10 for row in rows_found.tolist()), key
        assert searched == {"float32": 288, "float16": 144}.get(key, 9 if key.startswith("bits") else 72), key
    assert list(sorted(found)) == list(sorted(recall.ROWS))
    assert found["int8-query"] > 0.9 > found["bits"]
    assert found["bits"] <= found["bits-int8-40"] <= found["bits-int8-100"]
    recall.check_bits(quantd.local(1), documents[:100])


def test_the_picture_is_small_and_has_no_date():
    picture = (ROOT / "client" / "recall.svg").read_text()
    assert picture.lstrip().startswith("<?xml") and len(picture) < 60 << 10
    assert "<dc:date>" not in picture
