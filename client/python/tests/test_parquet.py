"""examples/parquet_embeddings.py: columns and files give the same codes as arrays."""

import sys
from pathlib import Path

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402

sys.path.append(str(Path(__file__).resolve().parents[1] / "examples"))
import parquet_embeddings  # noqa: E402

X = np.random.default_rng(12).uniform(-1, 1, (100, 48)).astype(np.float32)


def lists(x, kind):
    return pa.array(list(x), kind(pa.from_numpy_dtype(x.dtype)))


def fixed(x):
    return pa.FixedSizeListArray.from_arrays(pa.array(x.reshape(-1)), x.shape[1])


@pytest.mark.parametrize("column", [
    fixed(X), fixed(X.astype(np.float16)), lists(X, pa.list_), lists(X, pa.large_list), fixed(X)[3:71], lists(X, pa.list_)[3:71],
    pa.chunked_array([fixed(X[:1]), fixed(X[1:])]),
], ids=lambda c: str(c.type))  # fmt: skip
@pytest.mark.parametrize("preset", ["pgvector", "usearch-i8"])
def test_codes_are_those_of_the_array(engine, column, preset):
    x = np.array(column.to_pylist(), column.type.value_type.to_pandas_dtype())
    found = parquet_embeddings.codes(engine, column, preset=preset)
    found.validate(full=True)
    assert np.array(found.to_pylist()).tolist() == engine.quantize_embeddings(x, preset=preset).y.tolist()


@pytest.mark.parametrize("rows, match", [
    ([[1.0, 2.0], None], "1 embeddings"), ([[1.0, None]], "1 of their values"), ([[1.0], [1.0, 2.0, 3.0]], r"lengths \[1, 3\]"),
])  # fmt: skip
def test_nulls_and_lists_of_several_lengths_are_refused(engine, rows, match):
    with pytest.raises(ValueError, match=match):
        parquet_embeddings.codes(engine, pa.array(rows, pa.list_(pa.float32())), preset="pgvector")


def test_a_file_keeps_its_other_columns_and_row_groups(engine, tmp_path):
    table = pa.table({"id": range(100), "embedding": fixed(X), "text": [str(i) for i in range(100)]})
    pq.write_table(table, tmp_path / "in.parquet", row_group_size=7)
    parquet_embeddings.convert(engine, tmp_path / "in.parquet", tmp_path / "out.parquet", "embedding", preset="pgvector")
    found = pq.read_table(tmp_path / "out.parquet")
    assert pq.ParquetFile(tmp_path / "out.parquet").num_row_groups == 15
    assert found.drop(["embedding"]).equals(table.drop(["embedding"]))
    wanted = engine.quantize_embeddings(X, preset="pgvector").y
    assert np.array(found["embedding"].to_pylist(), np.uint8).tobytes() == wanted.tobytes()
