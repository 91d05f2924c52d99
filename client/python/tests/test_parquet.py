"""quantd.arrow.quantize_parquet: files against tables with the same rows, hostile files, what is left after a failure, and memory."""

import os
import subprocess
import sys

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
import quantd.arrow  # noqa: E402
from quantd.arrow.columns import values  # noqa: E402
from test_arrow import RANGES, X, Watching, array, fixed, lists, options, tensors  # noqa: E402

MIB = 1 << 20


def table(column, **more):
    rows = len(column)
    columns = {"id": pa.array(np.arange(rows)), "embedding": column, "text": pa.array([f"row {i}" for i in range(rows)])}
    return pa.table({**columns, **more})


@pytest.fixture()
def files(tmp_path):
    """Where to read and to write; in the end there must be nothing but these two."""
    source, target = tmp_path / "source.parquet", tmp_path / "target.parquet"
    yield source, target
    assert set(os.listdir(tmp_path)) <= {"source.parquet", "target.parquet"}


def check(engine, source, target, **named):
    """The target equals the source except for the codes, which are those of the whole column at once."""
    before, after = pq.read_table(source), pq.read_table(target)
    after.validate(full=True)
    assert after.column_names == before.column_names
    for name in before.column_names:
        if name != "embedding":
            assert after[name].equals(before[name]), name
    wanted = quantd.arrow.quantize_embeddings(engine, before["embedding"], **named)
    assert after["embedding"].type == wanted.type
    assert after["embedding"].to_pylist() == wanted.to_pylist()
    return after


@pytest.mark.parametrize("make", [fixed, lists, tensors])
@pytest.mark.parametrize("group", [1, 7, 100])
@pytest.mark.parametrize("preset", ["sentence-transformers-int8", "pgvector"])
def test_other_columns_are_copied(engine, files, make, group, preset):
    source, target = files
    pq.write_table(table(make(X)).replace_schema_metadata({"mine": "stays"}), source, row_group_size=group)
    for binary in (False, True) if make is not tensors else (False,):
        if target.exists():
            target.unlink()
        quantd.arrow.quantize_parquet(source, target, column="embedding", client=engine, binary=binary, **options(preset))
        after = check(engine, source, target, binary=binary, **options(preset))
        assert pq.ParquetFile(target).num_row_groups == -(-100 // group)
        assert after.schema.metadata[b"mine"] == b"stays"


def test_float16(engine, files):
    source, target = files
    pq.write_table(table(fixed(X.astype(np.float16))), source)
    quantd.arrow.quantize_parquet(source, target, column="embedding", client=engine, preset="usearch-i8")
    check(engine, source, target, preset="usearch-i8")


def test_metadata_say_how(engine, files, tmp_path):
    source, target = files
    pq.write_table(table(fixed(X), other=fixed(X[:, :16])), source)
    named = dict(preset="sentence-transformers-int8", dimensions=32, normalize=True)
    quantd.arrow.quantize_parquet(source, target, column="embedding", client=engine, calibrate=True, **named)
    again = tmp_path / "again"
    again.mkdir()
    both = again / "both.parquet"
    quantd.arrow.quantize_parquet(target, both, column="other", client=engine, preset="vespa")
    found = quantd.arrow.codes_metadata(both)
    assert list(found) == ["embedding", "other"]
    ranges = found["embedding"].pop("ranges")
    assert len(found["embedding"].pop("ranges_sha256")) == 64
    assert found["embedding"] == {**named, "recipe": "ranges", "output_type": "int8", "type": str(pa.list_(pa.int8(), 32))}
    assert found["other"]["signed_bits"] == "twos_complement" and "ranges" not in found["other"]
    # With these ranges a query gets the codes of the file.
    query = engine.quantize_embeddings(X[5], ranges=ranges, **named).y
    assert query.tolist() == pq.read_table(both)["embedding"][5].as_py()
    assert quantd.arrow.codes_metadata(source) == {}
    both.unlink()
    again.rmdir()


@pytest.mark.parametrize("named,said", [
    (dict(output_type=np.int8, dimensions=np.int64(24), normalize=np.bool_(True), recipe="ranges"), {"dimensions": 24, "normalize": True}),
    (dict(output_type=np.dtype("int8"), dimensions=np.uint8(0), normalize=np.bool_(False), recipe="RANGES", non_finite="IGNORE"),
     {"non_finite": "ignore"}),
    (dict(recipe="ranges", output_type=quantd.DataType.INT8, normalize=None, timeout=100, report_error=False), {}),
    (dict(recipe="ranges", output_type="INT8", timeout=100.5, bit_order=None), {}),
])  # fmt: skip
def test_metadata_of_options_in_any_form(engine, files, named, said):
    """They are JSON, in one form, and contain nothing on which no code depends."""
    source, target = files
    pq.write_table(table(fixed(X)), source)
    quantd.arrow.quantize_parquet(source, target, column="embedding", client=engine, calibrate=True, **named)
    found = quantd.arrow.codes_metadata(target)["embedding"]
    ranges = found.pop("ranges")
    assert found.pop("ranges_sha256") and found.pop("type") == str(pa.list_(pa.int8(), ranges.shape[1]))
    assert found.pop("recipe", "ranges") == "ranges" and found == {"output_type": "int8", **said}
    query = engine.quantize_embeddings(X[5], ranges=ranges, **{"recipe": "ranges", **found, **said}).y
    assert query.tolist() == pq.read_table(target)["embedding"][5].as_py()


def test_metadata_name_the_stored_set(real, files):
    source, target = files
    pq.write_table(table(fixed(X)), source)
    stored = real.put_parameters("of-a-column", recipe="ranges", ranges=RANGES)
    quantd.arrow.quantize_parquet(source, target, column="embedding", client=real, parameters=stored)
    assert quantd.arrow.codes_metadata(target)["embedding"]["parameters"] == stored.reference
    wanted = real.quantize_embeddings(X, parameters=stored).y
    assert array(pq.read_table(target)["embedding"]).tolist() == wanted.tolist()


@pytest.mark.parametrize("wrong", [dict(recipe="range"), dict(output_type="int3"), dict(dimensions=1.5), dict(normalize="no"),
                                   dict(preset="pgvector", recipe="bits"), dict(preset="faiss"), dict(parameters=3)])  # fmt: skip
def test_wrong_options_are_refused_before_any_work(engine, files, wrong):
    source, target = files
    pq.write_table(table(fixed(X)), source)
    client = Watching(engine)
    with pytest.raises((TypeError, ValueError)) as caught:
        quantd.arrow.quantize_parquet(source, target, column="embedding", client=client, **wrong)
    assert caught.value.field in wrong and not client.shapes and not target.exists()


def test_damaged_metadata_are_refused_before_any_work(engine, files):
    source, target = files
    pq.write_table(table(fixed(X)).replace_schema_metadata({"quantd": "{"}), source)
    client = Watching(engine)
    with pytest.raises(ValueError, match="'quantd' are not this package's"):
        quantd.arrow.quantize_parquet(source, target, column="embedding", client=client, preset="pgvector")
    assert not client.shapes


def test_ranges_are_an_array_like(engine, files):
    source, target = files
    pq.write_table(table(fixed(X)), source)
    for ranges in (RANGES.tolist(), [RANGES[0], RANGES[1]], tuple(map(tuple, RANGES.tolist())), np.asfortranarray(RANGES)):
        quantd.arrow.quantize_parquet(source, target, column="embedding", client=engine, preset="sentence-transformers-int8", ranges=ranges)
        check(engine, source, target, **options("sentence-transformers-int8"))
        np.testing.assert_array_equal(quantd.arrow.codes_metadata(target)["embedding"]["ranges"], RANGES)
        target.unlink()
    client = Watching(engine)
    with pytest.raises(TypeError, match="ranges: quantd has no type for float64"):
        quantd.arrow.quantize_parquet(source, target, column="embedding", client=client, recipe="ranges", ranges=RANGES.astype(np.float64))
    assert not client.shapes


@pytest.mark.parametrize(
    "make", [fixed, lists, tensors, lambda x: tensors(x.reshape(-1, 5, 4, 48))], ids=["fixed", "list", "tensor", "3-D tensor"])
def test_pieces_are_of_so_many_bytes(engine, files, monkeypatch, make):
    """Also for tensors, whose rows have several embeddings."""
    source, target = files
    pq.write_table(table(make(X)), source)
    monkeypatch.setattr(quantd.arrow.files, "_PIECE_BYTES", 5 * 4 * 48 * 4)
    read = []
    monkeypatch.setattr(quantd.arrow.files, "values", lambda *a: read.append(values(*a)) or read[-1])
    client = Watching(engine)
    quantd.arrow.quantize_parquet(source, target, column="embedding", client=client, preset="sentence-transformers-int8", calibrate=True)
    check(engine, source, target, **options("sentence-transformers-int8"))
    for sizes in ([np.prod(shape) for shape in client.shapes], [x.size for x, _ in read]):
        assert sizes == [5 * 4 * 48] * 5


@pytest.mark.parametrize("damage", [b"{", b'{"version": 2, "columns": {}}', b'{"version": 1}', b'{"version": 1, "columns": {"a": 1}}', b"[]", b"\xff",
                                    b'{"version": 1, "columns": {"a": {"ranges": "AAAAAAAAAAA=", "ranges_sha256": "00"}}}'])  # fmt: skip
def test_metadata_that_are_damaged(damage):
    with pytest.raises(ValueError, match="'quantd' are not this package's|damaged"):
        quantd.arrow.codes_metadata(pa.schema([("a", pa.int8())], {b"quantd": damage}))


@pytest.mark.parametrize("group", [1, 9, 100])
def test_calibration_takes_all_of_the_column(engine, files, group):
    source, target = files
    pq.write_table(table(lists(X)), source, row_group_size=group)
    quantd.arrow.quantize_parquet(source, target, column="embedding", client=engine, calibrate=True, preset="sentence-transformers-uint8")
    np.testing.assert_array_equal(quantd.arrow.codes_metadata(target)["embedding"]["ranges"], RANGES)
    np.testing.assert_array_equal(engine.calibrate(X, method="min_max", axis=1).range, RANGES)
    after = check(engine, source, target, **options("sentence-transformers-uint8"))
    assert array(after["embedding"]).min() == 0


def test_what_calibration_refuses(engine, files):
    source, target = files
    named = dict(column="embedding", client=engine, calibrate=True)
    pq.write_table(table(fixed(X)), source)
    with pytest.raises(TypeError, match="one or the other"):
        quantd.arrow.quantize_parquet(source, target, preset="sentence-transformers-int8", ranges=RANGES, **named)
    with pytest.raises(ValueError, match="recipe 'bits' does not take"):
        quantd.arrow.quantize_parquet(source, target, preset="pgvector", **named)
    x = X.copy()
    x[9, 3] = np.nan
    pq.write_table(table(fixed(x)), source, row_group_size=4)
    with pytest.raises(ValueError, match="dimension 3 of column 'embedding' has no finite range"):
        quantd.arrow.quantize_parquet(source, target, preset="sentence-transformers-int8", **named)
    quantd.arrow.quantize_parquet(source, target, preset="sentence-transformers-int8", non_finite="ignore", **named)
    found = quantd.arrow.codes_metadata(target)["embedding"]["ranges"]
    np.testing.assert_array_equal(found, np.stack([np.nanmin(x, axis=0), np.nanmax(x, axis=0)]))
    target.unlink()
    pq.write_table(table(fixed(X[:0])), source)
    with pytest.raises(ValueError, match="no embeddings to take ranges of"):
        quantd.arrow.quantize_parquet(source, target, preset="sentence-transformers-int8", **named)
    assert not target.exists()


@pytest.mark.parametrize("make", [fixed, lists, tensors])
def test_a_file_of_no_row(engine, files, make):
    source, target = files
    pq.write_table(table(make(X[:0])), source)
    quantd.arrow.quantize_parquet(source, target, column="embedding", client=engine, preset="pgvector")
    check(engine, source, target, preset="pgvector")
    assert quantd.arrow.codes_metadata(target)["embedding"]["preset"] == "pgvector"


def test_row_groups_of_nulls_before_the_first_embedding(engine, files):
    source, target = files
    rows = [None] * 5 + X[:3].tolist() + [None]
    pq.write_table(table(pa.array(rows, pa.list_(pa.float32()))), source, row_group_size=2)
    with pytest.raises(ValueError, match="row 0 is null"):
        quantd.arrow.quantize_parquet(source, target, column="embedding", client=engine, preset="pgvector")
    quantd.arrow.quantize_parquet(source, target, column="embedding", client=engine, preset="pgvector", nulls="keep")
    check(engine, source, target, preset="pgvector", nulls="keep")
    target.unlink()
    quantd.arrow.quantize_parquet(source, target, column="embedding", client=engine, preset="sentence-transformers-int8", nulls="keep",
                                  calibrate=True)  # fmt: skip
    np.testing.assert_array_equal(quantd.arrow.codes_metadata(target)["embedding"]["ranges"], [X[:3].min(axis=0), X[:3].max(axis=0)])


@pytest.mark.parametrize("wrong,words", [
    (lambda rows: rows[77].append(1.0), "row 77 has 49 values, those before it have 48"),
    (lambda rows: rows[77].clear(), "row 77 has 0 values"),
    (lambda rows: rows.__setitem__(77, None), "row 77 is null"),
    (lambda rows: rows[77].__setitem__(3, None), "row 77 has a null, value 3"),
    (lambda rows: rows[77].__setitem__(3, float("nan")), "row 77: value 3 of the embedding is nan"),
], ids=["longer", "empty", "null", "null within", "nan"])  # fmt: skip
@pytest.mark.parametrize("group", [1, 10, 100])
def test_errors_name_the_row_of_the_file_and_leave_nothing(engine, files, wrong, words, group):
    source, target = files
    rows = X.tolist()
    wrong(rows)
    pq.write_table(table(pa.array(rows, pa.list_(pa.float32()))), source, row_group_size=group)
    with pytest.raises(ValueError, match=words):
        quantd.arrow.quantize_parquet(source, target, column="embedding", client=engine, preset="pgvector")
    assert not target.exists()


def test_columns_that_are_not_there_or_no_embeddings(engine, files):
    source, target = files
    pq.write_table(table(fixed(X)), source)
    with pytest.raises(ValueError, match="column is 'vector'; the file has 'id', 'embedding', 'text'"):
        quantd.arrow.quantize_parquet(source, target, column="vector", client=engine, preset="pgvector")
    with pytest.raises(TypeError, match="the column is string"):
        quantd.arrow.quantize_parquet(source, target, column="text", client=engine, preset="pgvector")
    assert not target.exists()


def test_an_output_that_exists_stays(engine, files):
    source, target = files
    pq.write_table(table(fixed(X)), source)
    target.write_bytes(b"precious")
    with pytest.raises(FileExistsError):
        quantd.arrow.quantize_parquet(source, target, column="embedding", client=engine, preset="pgvector")
    before = source.read_bytes()
    with pytest.raises(FileExistsError):
        quantd.arrow.quantize_parquet(source, source, column="embedding", client=engine, preset="pgvector")
    assert target.read_bytes() == b"precious" and source.read_bytes() == before


def test_files_that_are_cut_off_or_damaged(engine, files):
    source, target = files
    pq.write_table(table(fixed(np.tile(X, (20, 1)))), source, row_group_size=200, compression="none", use_dictionary=False)
    whole = source.read_bytes()
    for data in (b"", b"PAR1", whole[: len(whole) // 2], whole[:-1], whole[1:], b"not parquet at all" * 50):
        source.write_bytes(data)
        with pytest.raises(ValueError, match="source.parquet"):
            quantd.arrow.quantize_parquet(source, target, column="embedding", client=engine, preset="pgvector")
        assert not target.exists()
    # The footer is intact, pages in the middle are not: an error, and no output is left.
    middle = len(whole) // 2
    source.write_bytes(whole[:200] + b"\xff" * (middle - 200) + whole[middle:])
    with pytest.raises(ValueError, match="source.parquet"):
        quantd.arrow.quantize_parquet(source, target, column="embedding", client=engine, preset="pgvector")
    assert not target.exists()
    with pytest.raises(FileNotFoundError):
        quantd.arrow.quantize_parquet(source.parent / "none", target, column="embedding", client=engine, preset="pgvector")


def shell(*arguments, **more):
    return subprocess.run([sys.executable, "-m", "quantd.arrow", *map(str, arguments)], capture_output=True, text=True, timeout=120, **more)


def test_from_a_shell(large, files, tmp_path):
    source, target = files
    pq.write_table(table(fixed(X)), source)
    numbers = tmp_path / "ranges.npy"
    np.save(numbers, RANGES)
    found = shell(source, target, "--column=embedding", "--preset=sentence-transformers-int8", f"--ranges={numbers}", f"--address={large.address}")
    assert (found.returncode, found.stderr) == (0, "")
    check(large, source, target, **options("sentence-transformers-int8"))
    again = shell(source, target, "--column=embedding", "--preset=pgvector", f"--address={large.address}")
    assert again.returncode == 1 and "exists already" in again.stderr and again.stderr.count("\n") == 1
    other = shell(source, tmp_path / "other", "--column=none", "--preset=pgvector", f"--address={large.address}")
    assert other.returncode == 1 and "the file has 'id', 'embedding', 'text'" in other.stderr and other.stderr.count("\n") == 1
    assert shell(source, target, "--column=embedding", "--preset=faiss").returncode == 2
    assert shell(source, target, "--column=embedding", "--preset=pgvector", "--calibrate", "--ranges=x").returncode == 2
    numbers.unlink()


MEASURE = """
import sys
import quantd, quantd.arrow
client = quantd.Client(sys.argv[3], timeout=300) if sys.argv[3] else quantd.local(1)
quantd.arrow.quantize_parquet(sys.argv[1], sys.argv[2], column="embedding", client=client, calibrate=True, preset="sentence-transformers-int8")
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def write_large(path, mib, group_rows):
    """A file of `mib` MiB of embeddings, in row groups of `group_rows` rows."""
    block = np.random.default_rng(3).standard_normal((256, 1024)).astype(np.float32)
    schema = pa.schema([("id", pa.int64()), ("embedding", pa.list_(pa.float32(), 1024))])
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for first in range(0, mib * 256, group_rows):
            rows = np.arange(first, first + group_rows)
            values = np.tile(block, (group_rows // 256, 1))
            writer.write_table(pa.table([pa.array(rows), fixed(values)], schema=schema), row_group_size=group_rows)


def test_memory_does_not_grow_with_the_file(large, files):
    """256 MiB of embeddings in row groups of 64, read twice, against 64 MiB: the peaks of two processes.

    With the engine in the process if it is installed.
    """
    address = large.address
    try:
        import quantd_core  # noqa: F401

        address = ""
    except ImportError:
        pass
    source, target = files
    peaks = []
    for mib in (64, 256):
        write_large(source, mib, 1 << 14)
        assert source.stat().st_size > mib * MIB
        found = subprocess.run([sys.executable, "-c", MEASURE, source, target, address], capture_output=True, text=True, timeout=300)
        assert found.returncode == 0, found.stderr
        peaks.append(int(found.stdout) << 10)
        assert pq.ParquetFile(target).metadata.num_rows == mib * 256
        source.unlink()
        target.unlink()
    print(f"peaks: {[peak // MIB for peak in peaks]} MiB")
    assert peaks[1] < peaks[0] + 64 * MIB and peaks[1] < 400 * MIB, peaks
