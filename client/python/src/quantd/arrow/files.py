"""Parquet files of embeddings: copied row group by row group into a file with codes instead of embeddings."""

import base64
import contextlib
import hashlib
import json
import os
from typing import Any, Dict, Iterator, Mapping, Optional, Tuple, Union

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..choices import flag, integer
from ..embeddings import PRESETS, numbers
from ..foreign import Array
from ..parameter_set import reference_of
from ..safetensors import replaced
from ..types import DataType, as_array, data_type
from .columns import check_options, chunk_codes, empty, first_width, row_shape, said_width, values

KEY = b"quantd"  # in the schema's metadata
_VERSION = 1
_PIECE_BYTES = 16 << 20  # of embeddings in memory at a time
_READ_BYTES = 1 << 20
_NAMED = ("recipe", "output_type", "bit_order", "bit_threshold", "signed_bits")

Path = Union[str, "os.PathLike[str]"]


def _pieces(file: pq.ParquetFile, width: int, columns=None) -> Iterator[Tuple[int, pa.Table]]:
    """The file's rows in pieces, each with the number of its first row: row groups; large ones are split."""
    rows, row = max(1, _PIECE_BYTES // max(4, 4 * width)), 0
    for group in range(file.num_row_groups):
        for batch in file.iter_batches(rows, row_groups=[group], columns=columns):
            yield row, pa.Table.from_batches([batch])
            row += len(batch)


def _width(file: pq.ParquetFile, column: str) -> int:
    """The values per row of the column, from the file's counts, to choose the size of pieces."""
    rows = file.metadata.num_rows
    paths = [file.schema.column(i).path for i in range(len(file.schema.names))]
    leaves = [i for i, path in enumerate(paths) if path == column or path.startswith(column + ".")]
    counts = [file.metadata.row_group(group).column(leaf).num_values for group in range(file.num_row_groups) for leaf in leaves]
    return sum(counts) // rows if rows else 0


def _first_width(file: pq.ParquetFile, column: str, about: int) -> Optional[int]:
    for _, table in _pieces(file, about, [column]):
        width = first_width(table[column])
        if width is not None:
            return width
    return None


def _used(x: Array, dimensions: int, normalize: bool) -> Array:
    """Embeddings as the recipe reads them: truncated, and divided by their lengths."""
    x = x[:, : dimensions or None].astype(np.float32, copy=False)
    if not normalize:
        return x
    lengths = np.sqrt(np.square(x, dtype=np.float64).sum(axis=1, keepdims=True))
    return (x / np.where((lengths > 0) & np.isfinite(lengths), lengths, 1)).astype(np.float32)


def _extremes(x: Array, finite_only: bool) -> Array:
    if not finite_only:
        return np.stack([x.min(axis=0), x.max(axis=0)])
    finite = np.isfinite(x)
    return np.stack([np.where(finite, x, np.inf).min(axis=0), np.where(finite, x, -np.inf).max(axis=0)])


def _calibrated(file: pq.ParquetFile, column: str, width: int, nulls: str, dimensions: int, normalize: bool, finite_only: bool):
    """The lowest and the highest value of each dimension that is used, over the whole column."""
    ranges = length = None
    for first_row, table in _pieces(file, width, [column]):
        for chunk in table[column].chunks:
            x, _ = values(chunk, length, nulls, first_row)
            first_row += len(chunk)
            if not len(x):
                continue
            length = x.shape[-1]
            found = _extremes(_used(x.reshape(-1, length), dimensions, normalize), finite_only)
            ranges = found if ranges is None else np.stack([np.minimum(ranges[0], found[0]), np.maximum(ranges[1], found[1])])
    if ranges is None:
        raise ValueError(f"calibrate: column {column!r} has no embeddings to take ranges of")
    if not np.isfinite(ranges).all():
        dimension = int(np.argmin(np.isfinite(ranges).all(axis=0)))
        raise ValueError(f"calibrate: dimension {dimension} of column {column!r} has no finite range; NaN and infinities have none")
    return ranges + np.float32(0)  # makes 0 of -0: equal columns have equal ranges


def _description(options: Mapping[str, Any]) -> Dict[str, Any]:
    """The options as JSON, complete enough to make the codes of a query. Refuses wrong options."""
    preset, named = options.get("preset"), {name: options.get(name) for name in (*_NAMED, "non_finite")}
    numbers(preset, **named)
    entry = {name: str(value).lower() for name, value in named.items() if value is not None}
    if "output_type" in entry:
        entry["output_type"] = data_type(options["output_type"], "output_type").dtype.name
    if preset is not None:
        entry.update(PRESETS[preset], preset=str(preset))
    entry["dimensions"] = integer(options.get("dimensions") or 0, "dimensions")
    entry["normalize"] = flag(options.get("normalize"), "normalize", False)
    if options.get("parameters") is not None:
        entry["parameters"] = reference_of(options["parameters"])
    return {name: value for name, value in entry.items() if value}


def _json_of_ranges(ranges: Array) -> Dict[str, str]:
    data = np.ascontiguousarray(ranges, "<f4").tobytes()
    return {"ranges": base64.b64encode(data).decode(), "ranges_sha256": hashlib.sha256(data).hexdigest()}


def codes_metadata(source: Union[Path, pa.Schema]) -> Dict[str, Dict[str, Any]]:
    """Read how the columns of codes of a file were made.

    Parameters
    ----------
    source : str, os.PathLike or pyarrow.Schema
        A Parquet file, or the schema of a table that was read from it.

    Returns
    -------
    dict
        For each column by name: preset, recipe and the other options, and `ranges`, an array of float32 [2, d], which is
        checked against its SHA-256. Empty for a file without codes.

    Raises
    ------
    ValueError
        When the metadata are damaged.
    """
    schema = source if isinstance(source, pa.Schema) else pq.read_schema(source)
    columns = _stored(schema.metadata)
    for name, entry in columns.items():
        if "ranges" not in entry:
            continue
        data = base64.b64decode(entry["ranges"])
        if hashlib.sha256(data).hexdigest() != entry.get("ranges_sha256") or len(data) % 8:
            raise ValueError(f"the ranges of column {name!r} are damaged: their SHA-256 does not match")
        entry["ranges"] = np.frombuffer(data, "<f4").reshape(2, -1)
    return columns


def _stored(metadata: Optional[Dict[bytes, bytes]]) -> Dict[str, Dict[str, Any]]:
    text = (metadata or {}).get(KEY)
    if text is None:
        return {}
    try:
        found = json.loads(text)
        columns = found["columns"]
        if found["version"] != _VERSION or not all(isinstance(entry, dict) for entry in columns.values()):
            raise ValueError("it has another version")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"the metadata {KEY.decode()!r} are not this package's: {error}") from None
    return columns


def quantize_parquet(
    source: Path,
    target: Path,
    *,
    column: str,
    ranges: Any = None,
    calibrate: bool = False,
    client: Any = None,
    nulls: str = "refuse",
    binary: bool = False,
    **options: Any,
) -> None:
    """Write a Parquet file with codes instead of a column of embeddings, and everything else unchanged.

    The file is read and written row group by row group, large ones in pieces of 16 MiB, in memory that does not grow with it.
    `target` is complete or does not exist. Its metadata say how the codes were made: `codes_metadata` reads them.

    Parameters
    ----------
    source : str or os.PathLike
        The file that is read.
    target : str or os.PathLike
        The file that is written; it must not exist.
    column : str
        Name of the column of embeddings, one of the schema's own (not of a struct).
    ranges : array_like of shape (2, d), optional
        As in Client.quantize_embeddings.
    calibrate : bool, optional
        Take the lowest and the highest value of each dimension from the file itself, which is then read twice.
    client : quantd.Client or quantd.Local, optional
        Does the computation; quantd.local() by default.
    nulls : {"refuse", "keep"}, optional
        As in quantize_embeddings.
    binary : bool, optional
        As in quantize_embeddings.
    **options : dict
        As in quantize_embeddings: preset, dimensions, normalize ...

    Raises
    ------
    FileExistsError
        When `target` exists.
    TypeError, ValueError
        As quantize_embeddings; and for an unknown column, and a file that is not Parquet or is truncated.
    QuantdError
        When a call fails.
    OSError
        When a file can't be read or written; nothing new is left at `target` then.
    """
    check_options(nulls, options)
    if calibrate and ranges is not None:
        raise TypeError("ranges are given, and to be calibrated; give one or the other")
    if client is None:
        from ..local import local

        client = local()
    source, target = os.fspath(source), os.fspath(target)
    with contextlib.ExitStack() as stack:
        out = stack.enter_context(replaced(target, False))
        try:
            file = stack.enter_context(pq.ParquetFile(source, buffer_size=_READ_BYTES, pre_buffer=False))
            _convert(file, out, column, ranges, calibrate, client, nulls, binary, options)
        except (pa.ArrowException, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:  # from the system; others are pyarrow's errors for bad pages
                raise
            raise ValueError(f"{source}: {error}") from None


def _convert(file, out, column, ranges, calibrate, client, nulls, binary, options) -> None:
    schema = file.schema_arrow
    if schema.names.count(column) != 1:
        raise ValueError(f"column is {column!r}; the file has {', '.join(map(repr, schema.names)) or 'none'}")
    row_shape(schema.field(column).type)
    # Before any work: errors in the options, and in what the file says about other columns.
    said, columns = _description(options), _stored(schema.metadata)
    if ranges is not None:
        ranges = as_array(ranges, "ranges", DataType.FLOAT)
    place, about = schema.get_field_index(column), _width(file, column)
    if calibrate:
        recipe = said.get("recipe", "ranges")
        if recipe != "ranges":
            raise ValueError(f"calibrate makes ranges, which recipe {recipe!r} does not take")
        ranges = _calibrated(file, column, about, nulls, said.get("dimensions", 0), "normalize" in said, said.get("non_finite") == "ignore")
    call = options if ranges is None else dict(options, ranges=ranges)
    width = _first_width(file, column, about)
    width = said_width(call) if width is None else width
    writer = None

    def converted(table: pa.Table, first_row: int) -> pa.Table:
        codes = []
        for chunk in table[column].chunks or [empty(table[column].type)]:
            codes.append(chunk_codes(client, chunk, call, width=width, nulls=nulls, binary=binary, first_row=first_row))
            first_row += len(chunk)
        return table.set_column(place, schema.field(column).with_type(codes[0].type), pa.chunked_array(codes))

    def described(result: pa.Schema) -> pa.Schema:
        entry = {**said, "type": str(result.field(column).type), **({} if ranges is None else _json_of_ranges(ranges))}
        text = json.dumps({"version": _VERSION, "columns": {**columns, column: entry}}, separators=(",", ":"))
        return result.with_metadata({**(schema.metadata or {}), KEY: text.encode()})

    try:
        for first_row, table in _pieces(file, max(about, width)):  # rows of tensors have several embeddings of `width`
            table = converted(table, first_row)
            if writer is None:
                writer = pq.ParquetWriter(out, described(table.schema))
            writer.write_table(table, row_group_size=len(table) or None)
        if writer is None:
            writer = pq.ParquetWriter(out, described(converted(file.read(), 0).schema))
    finally:
        if writer is not None:
            writer.close()
