"""quantize_embeddings: presets against their formulas in numpy, streams, and errors."""

import asyncio

import ml_dtypes
import numpy as np
import pytest

import quantd
from test_split import bits, same

RNG = np.random.default_rng(11)
X = RNG.uniform(-1.2, 1.2, (50, 133)).astype(np.float32)
X[3, :7] = [0, -0.0, 1, -1, 2, 1e-40, -1e-40]
RANGES = np.stack([X.min(axis=0), X.max(axis=0)])


def by_numpy(preset, x, ranges):
    """The preset's formula, written with numpy."""
    if preset.startswith("sentence-transformers") and preset.endswith("int8"):
        low, high = ranges
        step = (high - low) / np.float32(255)
        step[step == 0] = 1
        q = np.clip(np.floor((x - low) / step), 0, 255)
        return q.astype(np.uint8) if preset.endswith("uint8") else (q - 128).astype(np.int8)
    if preset == "sqlite-vec-int8":
        v = (x.astype(np.float64) + 1) / np.float64(np.float32(2.0 / 255)) - 128
        return np.trunc(np.clip(v, -128, 127)).astype(np.int8)
    if preset == "usearch-i8":
        x = x.astype(np.float64)
        length = np.sqrt((x * x).sum(axis=1, keepdims=True))
        return np.trunc(np.clip(x * 127 / length, -127, 127)).astype(np.int8)
    order = "little" if preset == "sqlite-vec-binary" else "big"
    packed = np.packbits(x >= 0 if preset == "vllm-binary" else x > 0, axis=1, bitorder=order)
    if preset == "vespa":
        return packed.view(np.int8)
    return (packed.astype(np.int16) - 128).astype(np.int8) if preset.endswith("-binary") and preset != "sqlite-vec-binary" else packed


def needs_ranges(preset):
    return quantd.EMBEDDING_PRESETS[preset]["recipe"] == "ranges"


@pytest.mark.parametrize("preset", quantd.EMBEDDING_PRESETS)
def test_presets_are_what_numpy_says(large, preset):
    found = large.quantize_embeddings(X, preset=preset, ranges=RANGES if needs_ranges(preset) else None)
    wanted = by_numpy(preset, X, RANGES.copy())
    assert bits(found.y) == bits(wanted)
    assert found.error is None


def test_what_is_refused_names_the_field(large):
    def refused(field, *words, **options):
        with pytest.raises(quantd.InvalidArgumentError) as error:
            large.quantize_embeddings(X, **options)
        assert [v.field for v in error.value.field_violations] == [field]
        for word in words:
            assert word in str(error.value)

    refused("recipe", "unset")
    refused("ranges", "required", "[2, 133]", recipe="ranges")
    refused("ranges", "[2, 5]", "[2, 133]", recipe="ranges", ranges=RANGES[:, :5])
    refused("ranges", "RANGES", recipe="unit", ranges=RANGES)
    refused("dimensions", "134", "133", recipe="unit", dimensions=134)
    refused("dimensions", "-1", recipe="unit", dimensions=-1)
    refused("output_type", "UINT8", "UNIT", recipe="unit", output_type="uint8")
    refused("bit_order", recipe="unit", bit_order="lsb_first")
    refused("signed_bits", recipe="bits", signed_bits="offset")
    refused("report_error", preset="vespa", report_error=True)


def test_arguments_that_mean_nothing():
    with quantd.Client("127.0.0.1:1") as client:
        with pytest.raises(ValueError, match="preset is 'faiss'; one of 'sentence-transformers-int8'"):
            client.quantize_embeddings(X, preset="faiss")
        with pytest.raises(TypeError, match="preset is 'vespa', which says recipe and signed_bits"):
            client.quantize_embeddings(X, preset="vespa", recipe="bits", signed_bits="offset")
        with pytest.raises(ValueError, match="recipe is 'nearest'"):
            client.quantize_embeddings(X, recipe="nearest")
        with pytest.raises(TypeError, match="float64"):
            client.quantize_embeddings(X.astype(np.float64), recipe="unit")


@pytest.mark.parametrize("shape", [(0,), (0, 7), (7, 0), (2, 0, 3), (9,), (1, 1, 1, 17)], ids=str)
@pytest.mark.parametrize("recipe", ["unit", "bits"])
def test_shapes(large, shape, recipe):
    found = large.quantize_embeddings(np.ones(shape, np.float32), recipe=recipe)
    last = shape[-1] if recipe == "unit" else (shape[-1] + 7) // 8
    assert found.y.shape == (*shape[:-1], last)


def test_streams_carry_them(large):
    with large.stream() as stream:
        futures = [stream.quantize_embeddings(X[i : i + 1], preset="pgvector") for i in range(20)]
        bad = stream.quantize_embeddings(X, recipe="ranges")
        other = stream.dynamic_quantize(X)
        found = np.concatenate([future.result().y for future in futures])
        with pytest.raises(quantd.InvalidArgumentError, match="ranges are required"):
            bad.result()
        assert other.result().y.shape == X.shape
    assert bits(found) == bits(large.quantize_embeddings(X[:20], preset="pgvector").y)


def test_asyncio_gives_the_same(large):
    async def ask():
        async with quantd.AsyncClient(large.address) as client:
            return await client.quantize_embeddings(X, preset="usearch-i8", report_error=True)

    whole = asyncio.run(ask())
    wanted = large.quantize_embeddings(X, preset="usearch-i8", report_error=True)
    assert bits(whole.y) == bits(wanted.y)
    assert whole.error == wanted.error


def test_in_process_gives_the_same(large):
    pytest.importorskip("quantd_core", reason="quantd-core is not installed: ./tests/run.sh engine builds it")
    for kind in (np.float32, np.float16, ml_dtypes.bfloat16):
        for preset in quantd.EMBEDDING_PRESETS:
            for options in ({}, {"normalize": True, "dimensions": 64}):
                ranges = RANGES[:, : options.get("dimensions", 133)] if needs_ranges(preset) else None
                with quantd.local() as local:
                    same(local, large, "quantize_embeddings", X.astype(kind), preset=preset, ranges=ranges, **options)
