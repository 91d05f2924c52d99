"""quantd.arrow: columns and Parquet files of embeddings give the same as arrays; wrong rows are named."""

import subprocess
import sys

import numpy as np
import pytest

import quantd

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
import quantd.arrow  # noqa: E402

WIDTH = 48
RNG = np.random.default_rng(12)
X = RNG.uniform(-1, 1, (100, WIDTH)).astype(np.float32)
RANGES = np.stack([X.min(axis=0), X.max(axis=0)])


def fixed(x):
    return pa.FixedSizeListArray.from_arrays(pa.array(x.reshape(-1)), x.shape[1])


def lists(x, kind=None):
    kind = kind or pa.ListArray
    offsets = np.arange(len(x) + 1, dtype=np.int64 if kind is pa.LargeListArray else np.int32) * x.shape[1]
    return kind.from_arrays(pa.array(offsets), pa.array(x.reshape(-1)))


def tensors(x):
    if not len(x):
        return tensors(np.zeros((1, *x.shape[1:]), x.dtype))[:0]
    return pa.FixedShapeTensorArray.from_numpy_ndarray(x)


def array(column):
    """The rows of a column of codes; none may be missing."""
    assert column.null_count == 0
    return np.array(column.to_pylist())


def options(preset):
    ranges = RANGES if quantd.EMBEDDING_PRESETS[preset]["recipe"] == "ranges" else None
    return dict(preset=preset, ranges=ranges)


class Watching:
    """A client that records the addresses of the arrays that it is given."""

    def __init__(self, engine):
        self.engine, self.places, self.shapes = engine, [], []

    def quantize_embeddings(self, x, **named):
        self.places.append(x.__array_interface__["data"][0])
        self.shapes.append(x.shape)
        self.answer = self.engine.quantize_embeddings(x, **named)
        return self.answer


@pytest.mark.parametrize("preset", quantd.EMBEDDING_PRESETS)
@pytest.mark.parametrize("make", [fixed, lists, lambda x: lists(x, pa.LargeListArray), tensors], ids=["fixed", "list", "large_list", "tensor"])
def test_codes_are_those_of_the_array(engine, preset, make):
    for x in (X, X.astype(np.float16)):
        wanted = engine.quantize_embeddings(x, **options(preset)).y
        found = quantd.arrow.quantize_embeddings(engine, make(x), **options(preset))
        found.validate(full=True)
        storage = found.storage if make is tensors else found
        assert storage.type == pa.list_(pa.from_numpy_dtype(wanted.dtype), wanted.shape[1])
        assert array(storage).tolist() == wanted.tolist()
        raw = quantd.arrow.quantize_embeddings(engine, make(x), binary=True, **options(preset))
        assert raw.type == pa.binary(wanted.shape[1])
        assert b"".join(raw.to_pylist()) == wanted.tobytes()


@pytest.mark.parametrize("make", [fixed, lists, tensors])
@pytest.mark.parametrize("begin,end", [(0, 100), (1, 100), (37, 38), (99, 100), (50, 50)])
def test_values_are_read_where_they_are(engine, make, begin, end):
    column = make(X)
    storage = column.storage if make is tensors else column
    address = storage.values.buffers()[1].address + begin * WIDTH * 4
    watching = Watching(engine)
    codes = quantd.arrow.quantize_embeddings(watching, column.slice(begin, end - begin), preset="sqlite-vec-int8")
    if begin < end:
        assert watching.shapes == [(end - begin, WIDTH)]
        assert watching.places == [address]
        # The column of codes uses the memory of the answer.
        found = (codes.storage if make is tensors else codes).values.buffers()[1].address
        assert found == watching.answer.y.__array_interface__["data"][0]
    assert len(codes) == end - begin


def test_tensors_of_several_dimensions_stay_such(engine):
    x = X[:96].reshape(8, 12, WIDTH)
    found = quantd.arrow.quantize_embeddings(engine, tensors(x), preset="pgvector")
    assert found.type == pa.fixed_shape_tensor(pa.uint8(), (12, WIDTH // 8))
    np.testing.assert_array_equal(found.to_numpy_ndarray(), engine.quantize_embeddings(x, preset="pgvector").y)
    turned = pa.fixed_shape_tensor(pa.float32(), (12, WIDTH), permutation=[1, 0])
    with pytest.raises(TypeError, match="permuted"):
        quantd.arrow.quantize_embeddings(engine, pa.ExtensionArray.from_storage(turned, tensors(x).storage), preset="pgvector")


@pytest.mark.parametrize("make", [fixed, lists])
def test_a_thousand_chunks(engine, make):
    x = RNG.uniform(-1, 1, (1000, 16)).astype(np.float32)
    column = pa.chunked_array([make(x[i : i + 1]) for i in range(1000)])
    found = quantd.arrow.quantize_embeddings(engine, column, preset="usearch-i8", normalize=True)
    assert found.num_chunks == 1000
    assert array(found).tolist() == engine.quantize_embeddings(x, preset="usearch-i8", normalize=True).y.tolist()


@pytest.mark.parametrize("make", [fixed, lists])
def test_chunks_of_no_row_and_columns_of_no_chunk(engine, make):
    none = make(X[:0])
    wanted = pa.list_(pa.uint8(), WIDTH // 8)
    found = quantd.arrow.quantize_embeddings(engine, pa.chunked_array([none, make(X[:3]), none]), preset="pgvector")
    assert (found.type, [len(chunk) for chunk in found.chunks]) == (wanted, [0, 3, 0])
    for column in (none, pa.chunked_array([], none.type), pa.chunked_array([none])):
        found = quantd.arrow.quantize_embeddings(engine, column, preset="pgvector")
        assert len(found) == 0
        assert found.type == (wanted if make is fixed else pa.list_(pa.uint8(), 0))
    said = quantd.arrow.quantize_embeddings(engine, lists(X[:0]), preset="pgvector", dimensions=16)
    assert said.type == pa.list_(pa.uint8(), 2)
    said = quantd.arrow.quantize_embeddings(engine, lists(X[:0]), **options("sentence-transformers-int8"))
    assert said.type == pa.list_(pa.int8(), WIDTH)


def with_nulls(kind):
    rows = [None if i in (0, 4, 9) else row.tolist() for i, row in enumerate(X[:10])]
    return pa.array(rows, kind)


@pytest.mark.parametrize("kind", [pa.list_(pa.float32(), WIDTH), pa.list_(pa.float32()), pa.large_list(pa.float32())], ids=str)
def test_nulls(engine, kind):
    column = with_nulls(kind)
    with pytest.raises(ValueError, match="row 0 is null; nulls='keep'"):
        quantd.arrow.quantize_embeddings(engine, column, preset="pgvector")
    with pytest.raises(ValueError, match="row 7 is null"):
        quantd.arrow.quantize_embeddings(engine, pa.chunked_array([column[1:4], column[1:4], column[3:]]), preset="pgvector")
    wanted = engine.quantize_embeddings(X[:10], preset="pgvector").y
    for begin in (0, 1, 3):
        for binary in (False, True):
            found = quantd.arrow.quantize_embeddings(engine, column[begin:], preset="pgvector", nulls="keep", binary=binary)
            found.validate(full=True)
            assert found.null_count == len(column[begin:].filter(column[begin:].is_null()))
            for i, row in enumerate(found.to_pylist(), begin):
                assert row == (None if i in (0, 4, 9) else wanted[i].tobytes() if binary else wanted[i].tolist())
    every = pa.nulls(5, kind)
    found = quantd.arrow.quantize_embeddings(engine, every, preset="pgvector", nulls="keep", dimensions=WIDTH)
    assert (found.null_count, found.type) == (5, pa.list_(pa.uint8(), WIDTH // 8))


def test_a_null_row_that_hides_values_of_another_length(engine):
    """A list array may have values where its bitmap says null."""
    offsets, mask = pa.array([0, 4, 7, 11], pa.int32()), pa.array([False, True, False])
    column = pa.ListArray.from_arrays(offsets, pa.array(np.r_[X[0, :4], [np.nan] * 3, X[1, :4]].astype(np.float32)), mask=mask)
    found = quantd.arrow.quantize_embeddings(engine, column, preset="sqlite-vec-int8", nulls="keep").to_pylist()
    wanted = engine.quantize_embeddings(X[:2, :4], preset="sqlite-vec-int8").y.tolist()
    assert found == [wanted[0], None, wanted[1]]


def test_values_that_are_null_or_not_finite_name_their_row(engine):
    rows = X[:6].tolist()
    rows[4][7] = None
    column = pa.array(rows, pa.list_(pa.float32(), WIDTH))
    for whole in (column, pa.chunked_array([column[:2], column[2:]])):
        with pytest.raises(ValueError, match="row 4 has a null, value 7"):
            quantd.arrow.quantize_embeddings(engine, whole, preset="pgvector", nulls="keep")
    x = X.copy()
    x[63, 5], x[64, 0] = np.nan, np.inf
    column = pa.chunked_array([fixed(x[:60]), fixed(x[60:])])
    with pytest.raises(ValueError, match="row 63: value 5 of the embedding is nan") as error:
        quantd.arrow.quantize_embeddings(engine, column, preset="pgvector", dimensions=4)
    assert isinstance(error.value.__cause__, quantd.InvalidArgumentError)
    found = quantd.arrow.quantize_embeddings(engine, column, preset="pgvector", non_finite="ignore")
    assert array(found).tolist() == engine.quantize_embeddings(x, preset="pgvector", non_finite="ignore").y.tolist()


def test_lists_of_several_lengths(engine):
    rows = [[1.0, 2.0], [3.0, 4.0], [5.0], [6.0, 7.0]]
    column = pa.array(rows, pa.list_(pa.float32()))
    for whole in (column, pa.chunked_array([column[:1], column[1:]])):
        with pytest.raises(ValueError, match="row 2 has 1 values, those before it have 2"):
            quantd.arrow.quantize_embeddings(engine, whole, recipe="unit")
    assert len(quantd.arrow.quantize_embeddings(engine, column[:2], recipe="unit")) == 2


@pytest.mark.parametrize("column", [
    pa.array(["a", "b"]), pa.array([1.0, 2.0]), pa.array([["a"], ["b"]]), pa.array([[1, 2]]), pa.array([[[1.0]]]),
    pa.array([{"a": 1.0}]), pa.nulls(3), pa.array([[1.0, 2.0]]), pa.array(["a"]).dictionary_encode(),
], ids=lambda c: str(c.type))  # fmt: skip
def test_columns_that_are_no_embeddings(engine, column):
    with pytest.raises(TypeError, match="the column is .*(must be lists|must be float32)"):
        quantd.arrow.quantize_embeddings(engine, column, preset="pgvector")


def test_arguments_that_mean_nothing(engine):
    column = fixed(X)
    with pytest.raises(TypeError, match="ndarray, must be a pyarrow"):
        quantd.arrow.quantize_embeddings(engine, X, preset="pgvector")
    with pytest.raises(ValueError, match="nulls is 'drop'; one of 'refuse', 'keep'"):
        quantd.arrow.quantize_embeddings(engine, column, preset="pgvector", nulls="drop")
    with pytest.raises(TypeError, match="no place for report_error"):
        quantd.arrow.quantize_embeddings(engine, column, recipe="unit", report_error=True)
    with pytest.raises(ValueError, match="preset is 'faiss'"):
        quantd.arrow.quantize_embeddings(engine, column, preset="faiss")
    with pytest.raises(quantd.InvalidArgumentError, match="ranges"):
        quantd.arrow.quantize_embeddings(engine, column, preset="sentence-transformers-int8")


def test_without_pyarrow_it_says_what_to_install(tmp_path):
    (tmp_path / "pyarrow.py").write_text("raise ImportError('not here')\n")
    path = [str(tmp_path), *sys.path]
    code = f"import sys; sys.path[:] = {path!r}\nimport quantd\ntry:\n    import quantd.arrow\nexcept ImportError as e:\n    print(e)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert "pip install 'quantd[arrow]'" in found.stdout, found.stderr
