"""quantize_embeddings: shapes, streams, asyncio. Bits: tests/conformance; refusals: test_arguments.py."""

import asyncio

import numpy as np
import pytest

import quantd
from test_split import bits

RNG = np.random.default_rng(11)
X = RNG.uniform(-1.2, 1.2, (50, 133)).astype(np.float32)


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
