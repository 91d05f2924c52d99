"""quantize_embeddings: every recipe and switch beside the numpy oracle, every preset beside the package whose codes it makes.

Each preset is compared on more than a million values: random ones of several widths, the edges of buckets and their neighbours,
denormals, huge ones, zeros of both signs. The summary counts them (compare.py)."""

import numpy as np
import pytest

import oracle_embeddings as oracle
import packages
import quantd
from compare import count
from generate import rng

KINDS = ("float32", "float16", "bfloat16")


def some_values(r, shape):
    x = r.uniform(-1.2, 1.2, shape).astype(np.float32)
    flat = x.reshape(-1)
    special = np.float32([0, -0.0, 1, -1, 2, -2, 1e-40, -1e-40, 3e38, -3e38, 0.5, 1 / 255])
    if flat.size:
        places = r.integers(0, flat.size, flat.size // 20 + 1)
        flat[places] = r.choice(special, places.size)
        edges = r.integers(0, flat.size, flat.size // 10)
        flat[edges] = (r.integers(0, 256, edges.size) * np.float32(2 / 255) - 1).astype(np.float32)
        flat[edges] = (flat[edges].view(np.int32) + r.integers(-3, 4, edges.size).astype(np.int32)).view(np.float32)
    return x


def some_call(r):
    """Arguments of the client and of the oracle."""
    recipe = ("ranges", "unit", "direction", "bits")[int(r.integers(4))]
    shape = tuple(int(n) for n in r.integers(0, 9, int(r.integers(0, 3)))) + (int(r.choice([0, 1, 7, 8, 9, 33, 64, 130, 1500])),)
    dimensions = int(r.integers(0, shape[-1] + 1)) if r.random() < 0.4 else 0
    used = dimensions or shape[-1]
    theirs = dict(recipe=recipe, dimensions=dimensions, normalize=bool(r.random() < 0.3))
    ours = dict(theirs)
    if recipe == "ranges":
        low = np.where(r.random(used) < 0.5, np.float32(-1), r.uniform(-2, 0, used).astype(np.float32))
        width = np.where(r.random(used) < 0.1, 0, r.uniform(0, 2.5, used))
        theirs["ranges"] = ours["ranges"] = np.stack([low, low + width.astype(np.float32)]).astype(np.float32)
    if recipe in ("ranges", "bits") and r.random() < 0.5:
        ours["output_type"], theirs["signed"] = "int8", True
    if recipe == "bits":
        for name, word, other in (("lsb_first", "bit_order", "lsb_first"), ("greater_or_equal", "bit_threshold", "greater_or_equal")):
            if r.random() < 0.5:
                theirs[name], ours[word] = True, other
        if theirs.get("signed") and r.random() < 0.5:
            theirs["twos_complement"], ours["signed_bits"] = True, "twos_complement"
    elif r.random() < 0.3:
        theirs["report_error"] = ours["report_error"] = True
    if r.random() < 0.5:
        theirs["ignore"], ours["non_finite"] = True, "ignore"
    return shape, ours, theirs


def same_report(ours, theirs):
    if theirs is None:
        assert ours is None
        return
    assert (ours.saturated_elements, ours.non_finite_elements) == (theirs.saturated_elements, theirs.non_finite_elements)
    for name in ("max_absolute_error", "mean_squared_error", "sqnr_db"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-6, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("chunk", range(8))
def test_random_calls_beside_the_oracle(client, chunk):
    refused = 0
    for i in range(chunk * 60, (chunk + 1) * 60):
        r = rng("embeddings", i)
        shape, ours, theirs = some_call(r)
        kind = KINDS[int(r.integers(3))]
        x = some_values(r, shape)
        x = (np.clip(x, -6e4, 6e4) if kind == "float16" else x).astype(kind)
        if x.size and r.random() < 0.3:
            x.reshape(-1)[int(r.integers(x.size))] = r.choice([np.nan, np.inf, -np.inf])
        try:
            wanted, report = oracle.quantize_embeddings(x, **theirs)
        except oracle.Invalid:
            with pytest.raises(quantd.InvalidArgumentError, match=r"x\[\d+\] is"):
                client.quantize_embeddings(x, **ours)
            refused += 1
            continue
        found = client.quantize_embeddings(x, **ours)
        assert (found.y.dtype, found.y.shape) == (wanted.dtype, wanted.shape), (shape, ours)
        np.testing.assert_array_equal(found.y, wanted, err_msg=f"{shape} {x.dtype} {ours}")
        if np.isfinite(x.astype(np.float64)).all() and np.abs(x.astype(np.float64)).max(initial=0) < 1e30:
            same_report(found.error, report)
        count("numpy, written from core/EMBEDDINGS.md", found.y.size)
    assert refused < 30


# ---- packages -------------------------------------------------------------------------------------


def data(width, rows, seed=1):
    return some_values(np.random.default_rng(seed), (rows, width))


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
            ranges[:, 2] = 0.25  # a dimension of one value
            ranges[:, 3] = -1, 1
            wanted = st.quantize_embeddings(x, preset, ranges=ranges)
            compare(client, f"sentence-transformers-{preset}", "sentence-transformers 6.2.0", x, wanted, ranges=ranges)
        else:
            wanted = st.quantize_embeddings(x, preset)
            compare(client, f"sentence-transformers-{preset}", "sentence-transformers 6.2.0", x, wanted)


def test_sentence_transformers_until_5_6_had_other_int8(client):
    """Truncated after the subtraction: every negative code that is not whole is one higher."""
    x = np.random.default_rng(4).uniform(-1, 1, (1000, 1000)).astype(np.float32)
    ranges = np.stack([x.min(axis=0), x.max(axis=0)])
    steps = (ranges[1] - ranges[0]) / 255
    old = ((x - ranges[0]) / steps - 128).astype(np.int8)
    new = client.quantize_embeddings(x, preset="sentence-transformers-int8", ranges=ranges).y
    assert set(np.unique(old.astype(int) - new)) == {0, 1}
    assert 0.48 < np.mean(old != new) < 0.52


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
    """Its wheel divides by a reciprocal (-ffast-math): a quotient that is a whole number may come out one lower there."""
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
    """From its source: >= 0, the first value in the highest bit, less 128."""
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
