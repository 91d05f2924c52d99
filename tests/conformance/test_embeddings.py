"""quantize_embeddings: every recipe and switch against the numpy oracle, every preset against its package.

Each preset is compared on more than a million values: random ones of several widths, the edges of buckets and their neighbours,
denormals, huge ones, zeros of both signs. The summary counts them (compare.py)."""

import numpy as np
import pytest

import packages
from compare import count
from generate import SEED, rng
from judge import check
from quantd_conformance.cases import embeddings

SOURCE = "numpy, written from core/EMBEDDINGS.md"


def test_the_examples_of_the_document_and_edges(client):
    check(client, [*embeddings.documented(), *embeddings.edges()], SOURCE)


@pytest.mark.parametrize("chunk", range(8))
def test_random_calls_beside_the_oracle(client, chunk):
    cases = [embeddings.a_call(i, seed=SEED) for i in range(chunk * 60, (chunk + 1) * 60)]
    assert sum(case.expected().refused is not None for case in cases) < 30
    check(client, cases, SOURCE)


# ---- packages -------------------------------------------------------------------------------------


def data(width, rows, seed=1):
    return embeddings.some_values(rng("data", seed), (rows, width))


def compare(client, preset, package, x, wanted, may_differ=0, **options):
    found = client.quantize_embeddings(x, preset=preset, **options).y
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    different = int(np.count_nonzero(found != wanted))
    count(f"{package}, preset {preset}, {different} bytes differ", x.size)
    assert different <= may_differ, f"{different} of {found.size} codes differ from {package}"
    return found


@pytest.mark.parametrize("preset", ["int8", "uint8", "binary", "ubinary"])
@pytest.mark.parametrize("kind", ["float32", "float16"])
def test_sentence_transformers(client, preset, kind):
    st = packages.sentence_transformers()
    if st is None:
        pytest.skip("sentence-transformers is not installed")
    for width, rows in ((384, 2000), (769, 400), (8, 3000)):
        x = np.clip(data(width, rows), -1e4, 1e4).astype(kind)
        if preset.endswith("int8"):
            calibration = np.random.default_rng(3).uniform(-1, 1, (50, width)).astype(np.float32)
            ranges = np.stack([calibration.min(axis=0), calibration.max(axis=0)])
            ranges[:, 2] = 0.25  # a dimension with a single value
            ranges[:, 3] = -1, 1
            wanted = st.quantize_embeddings(x, preset, ranges=ranges)
            compare(client, f"sentence-transformers-{preset}", "sentence-transformers 6.2.0", x, wanted, ranges=ranges)
        else:
            wanted = st.quantize_embeddings(x, preset)
            compare(client, f"sentence-transformers-{preset}", "sentence-transformers 6.2.0", x, wanted)


@pytest.mark.parametrize("preset", ["sqlite-vec-int8", "sqlite-vec-binary"])
def test_sqlite_vec(client, preset):
    if packages.find("sqlite_vec") is None or packages.find("apsw") is None:
        pytest.skip("sqlite-vec and apsw are not installed")
    vec = packages.SqliteVec()
    for width, rows in ((512, 2000), (16, 1000)):
        x = data(width, rows)
        wanted = vec.int8(x) if preset.endswith("int8") else vec.binary(x)
        compare(client, preset, "sqlite-vec 0.1.9", x, wanted)


def test_usearch_i8(client):
    """Its wheel multiplies by a reciprocal (-ffast-math): a quotient that is a whole number may come out one lower."""
    if packages.find("usearch") is None:
        pytest.skip("usearch is not installed")
    for width, rows in ((384, 3000), (100, 500)):
        x = np.random.default_rng(width).standard_normal((rows, width)).astype(np.float32)
        x[:20] *= np.float32(1e-25)
        x[20:40] *= np.float32(1e12)
        compare(client, "usearch-i8", "usearch 2.26.6", x, packages.usearch_i8(x))
    one = np.zeros((20, 64), np.float32)
    one[np.arange(20), np.arange(20)] = np.arange(20) + 1
    found = client.quantize_embeddings(one, preset="usearch-i8").y.astype(int)
    apart = found - packages.usearch_i8(one)
    assert (found.max(axis=1) == 127).all() and set(np.unique(apart)) <= {0, 1}


def test_pgvector(client):
    if packages.find("pgvector") is None:
        pytest.skip("pgvector is not installed")
    for width in (512, 77):
        x = data(width, 2000)
        compare(client, "pgvector", "pgvector 0.5.1", x, packages.pgvector_bits(x))


def test_vllm_restated(client):
    """From its source: >= 0, the first value in the highest bit, minus 128."""
    x = data(512, 2000)
    wanted = (np.packbits(x >= 0, axis=1).astype(np.int16) - 128).astype(np.int8)
    compare(client, "vllm-binary", "vLLM, restated", x, wanted)
    zero = np.zeros((1, 8), np.float32)
    assert client.quantize_embeddings(zero, preset="vllm-binary").y[0, 0] == 127
    assert client.quantize_embeddings(zero, preset="cohere-binary").y[0, 0] == -128


def test_vespa_restated(client):
    """pack_bits of binarize: the bits themselves as int8."""
    x = data(512, 2000)
    compare(client, "vespa", "Vespa, restated", x, np.packbits(x > 0, axis=1).view(np.int8))
    assert client.quantize_embeddings(np.ones((1, 8), np.float32), preset="vespa").y[0, 0] == -1


def test_known_answers(client):
    x = np.float32([[-1, 1, 0, -2, 2]])
    ranges = np.float32([[-1] * 5, [1] * 5])
    assert client.quantize_embeddings(x, recipe="unit").y.tolist() == [[-128, 126, 0, -128, 127]]
    assert client.quantize_embeddings(x, recipe="ranges", ranges=ranges).y.tolist() == [[0, 254, 127, 0, 255]]
    signed = client.quantize_embeddings(x, recipe="ranges", ranges=ranges, output_type="int8").y
    assert signed.tolist() == [[-128, 126, -1, -128, 127]]
    assert client.quantize_embeddings(np.float32([3, -4, 0, 0]), recipe="direction").y.tolist() == [76, -101, 0, 0]
    assert client.quantize_embeddings(np.float32([-1e-30] * 5), recipe="direction").y.tolist() == [-56] * 5
    nine = np.float32([1] * 8 + [-1])
    assert client.quantize_embeddings(nine, recipe="bits").y.tolist() == [255, 0]
    assert client.quantize_embeddings(nine, preset="cohere-binary").y.tolist() == [127, -128]
    assert client.quantize_embeddings(nine, preset="vespa").y.tolist() == [-1, 0]
    five = np.float32([1, 0, -1, 2, -0.0])
    assert client.quantize_embeddings(five, recipe="bits").y.tolist() == [0x90]
    assert client.quantize_embeddings(five, recipe="bits", bit_order="lsb_first").y.tolist() == [0x09]
    assert client.quantize_embeddings(five, recipe="bits", bit_threshold="greater_or_equal").y.tolist() == [0xD8]
