"""Columns of embeddings: reads floats in Arrow's memory, makes columns of codes."""

from typing import Any, Mapping, Optional, Tuple, Union

import numpy as np
import pyarrow as pa

from ..errors import InvalidArgumentError
from ..foreign import Array

Column = Union[pa.Array, pa.ChunkedArray]

NULLS = ("refuse", "keep")


def row_shape(column_type: pa.DataType) -> Optional[Tuple[int, ...]]:
    """The shape of a column's rows, None where it depends on the lists; TypeError for a column without embeddings."""
    shape = None
    if isinstance(column_type, pa.FixedShapeTensorType):
        permutation = column_type.permutation
        if permutation is not None and list(permutation) != sorted(permutation):
            raise TypeError(f"the column is {column_type}, whose dimensions are permuted; store the tensors in their order")
        shape, kind = tuple(column_type.shape), column_type.value_type
    elif pa.types.is_fixed_size_list(column_type):
        shape, kind = (column_type.list_size,), column_type.value_type
    elif pa.types.is_list(column_type) or pa.types.is_large_list(column_type):
        kind = column_type.value_type
    else:
        raise TypeError(
            f"the column is {column_type}, must be lists of float32 or float16: fixed_size_list, list, large_list or fixed_shape_tensor"
        )
    if not (pa.types.is_float32(kind) or pa.types.is_float16(kind)):
        hint = "; cast it, as in column.cast(pyarrow.list_(pyarrow.float32()))" if pa.types.is_float64(kind) else ""
        raise TypeError(f"the column is {column_type}, its values must be float32 or float16{hint}")
    return shape


def _width(lists: pa.Array, width: Optional[int], valid: Optional[Array], first_row: int) -> int:
    """The number of values of each list of a chunk: `width` if that is known already."""
    lengths = np.diff(lists.offsets.to_numpy())
    if valid is not None:
        lengths = lengths[valid]
    if width is None:
        width = int(lengths[0]) if len(lengths) else 0
    wrong = np.flatnonzero(lengths != width)
    if wrong.size:
        row = wrong[0] if valid is None else np.flatnonzero(valid)[wrong[0]]
        raise ValueError(f"row {first_row + row} has {lengths[wrong[0]]} values, those before it have {width}")
    return width


def values(
    chunk: pa.Array, width: Optional[int], nulls: str, first_row: int
) -> Tuple[Array, Optional[Array]]:
    """A chunk's embeddings as an array [valid rows, ...], and which rows these are; None means all."""
    shape = row_shape(chunk.type)
    lists = chunk.storage if isinstance(chunk, pa.ExtensionArray) else chunk
    valid = None
    if lists.null_count:
        valid = lists.is_valid().to_numpy(zero_copy_only=False)
        if nulls != "keep":
            raise ValueError(f"row {first_row + int(np.argmin(valid))} is null; nulls='keep' makes its codes null, too")
    if shape is None:
        shape = (_width(lists, width, valid, first_row),)
    # Flattening drops the values of null rows, and values outside of a slice; it copies only if there are nulls.
    found = (lists if valid is None else lists.drop_null()).flatten()
    if found.null_count:
        place = int(np.argmin(found.is_valid().to_numpy(zero_copy_only=False)))
        row, index = divmod(place, int(np.prod(shape)))
        row = row if valid is None else np.flatnonzero(valid)[row]
        raise ValueError(f"row {first_row + row} has a null, value {index} of the embedding")
    rows = len(chunk) if valid is None else int(valid.sum())
    return found.to_numpy(zero_copy_only=True).reshape((rows, *shape)), valid


def _bad_value(x: Array, valid: Optional[Array], first_row: int) -> Optional[str]:
    """The first value that is not finite, with its row."""
    finite = np.isfinite(x.reshape(-1))
    if finite.all():
        return None
    place = int(np.argmin(finite))
    row, index = divmod(place, x[0].size)
    row = row if valid is None else np.flatnonzero(valid)[row]
    return f"row {first_row + row}: value {index} of the embedding is {x.reshape(-1)[place]}"


def _codes(y: Array, valid: Optional[Array], binary: bool, tensor: bool) -> pa.Array:
    """A column of codes in y's memory; if rows are null, a copy of it."""
    rows, bitmap, null_count = len(y), None, 0
    if valid is not None:
        rows, null_count = len(valid), int(len(valid) - len(y))
        whole = np.zeros((rows, *y.shape[1:]), y.dtype)
        whole[valid] = y
        y = whole
        bitmap = pa.array(valid).buffers()[1]
    size = int(np.prod(y.shape[1:]))
    flat = np.ascontiguousarray(y).reshape(-1)
    if binary:
        return pa.Array.from_buffers(pa.binary(size), rows, [bitmap, pa.py_buffer(flat.view(np.uint8))], null_count)
    stored = pa.array(flat)
    codes = pa.Array.from_buffers(pa.list_(stored.type, size), rows, [bitmap], null_count, children=[stored])
    if not tensor:
        return codes
    return pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(stored.type, y.shape[1:]), codes)


def check_options(nulls: str, options: Mapping[str, Any]) -> None:
    """Checks the options before anything is read."""
    if nulls not in NULLS:
        raise ValueError(f"nulls is {nulls!r}; one of {', '.join(map(repr, NULLS))}")
    for name in ("report_error", "out"):
        if options.get(name):
            raise TypeError(f"a column of codes has no place for {name}; client.quantize_embeddings has")


def quantize_embeddings(client: Any, column: Column, *, nulls: str = "refuse", binary: bool = False, **options: Any) -> Column:
    """Make the codes of a column of embeddings: a column with the same number of rows.

    Parameters
    ----------
    client : quantd.Client or quantd.Local
        Does the computation: quantd.local() in this process, or the client of a server, which gets each chunk in one call.
    column : pyarrow.Array or pyarrow.ChunkedArray
        fixed_size_list, list or large_list of float32 or float16, with rows of equal length, or fixed_shape_tensor, whose last
        dimension is the embedding. Slices and any number of chunks are allowed. It is read in place.
    nulls : {"refuse", "keep"}, optional
        What a row without an embedding becomes: a ValueError with its number, or a row without codes. A null within an embedding
        is always an error.
    binary : bool, optional
        Whether a row of codes is fixed_size_binary instead of a fixed_size_list.
    **options : dict
        As in Client.quantize_embeddings: preset, ranges, dimensions, normalize ...; except report_error and out.

    Returns
    -------
    pyarrow.Array or pyarrow.ChunkedArray
        fixed_size_list of int8 or uint8, or fixed_size_binary; for a fixed_shape_tensor the same type. It has the column's chunks. A
        column of lists without any list (no row, or only null rows) has codes with the length of `dimensions` or `ranges`, or of length 0.

    Raises
    ------
    TypeError, ValueError
        For a column without embeddings, lists of different lengths, nulls, NaN and infinities, each with its row, counted
        from the beginning of the column; and as Client.quantize_embeddings.
    QuantdError
        When the call fails.
    """
    check_options(nulls, options)
    if not isinstance(column, (pa.Array, pa.ChunkedArray)):
        raise TypeError(f"column is a {type(column).__name__}, must be a pyarrow.Array or pyarrow.ChunkedArray")
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    width = first_width(column)
    width = said_width(options) if width is None else width
    codes, row = [], 0
    for chunk in chunks or [empty(column.type)]:
        codes.append(chunk_codes(client, chunk, options, width=width, nulls=nulls, binary=binary, first_row=row))
        row += len(chunk)
    return codes[0] if isinstance(column, pa.Array) else pa.chunked_array(codes)


def empty(column_type: pa.DataType) -> pa.Array:
    """A chunk without rows."""
    if isinstance(column_type, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(column_type, pa.array([], column_type.storage_type))
    return pa.array([], column_type)


def first_width(column: Column) -> Optional[int]:
    """The length of the first embedding that is not null."""
    shape = row_shape(column.type)
    if shape is not None:
        return shape[-1]
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        lists = chunk.drop_null() if chunk.null_count else chunk
        if len(lists):
            return int(lists.offsets[1].as_py() - lists.offsets[0].as_py())
    return None


def said_width(options: Mapping[str, Any]) -> int:
    """The length of an embedding if there is none: according to the options, or 0."""
    ranges = options.get("ranges")
    return options.get("dimensions") or (0 if ranges is None else np.shape(ranges)[-1])


def chunk_codes(
    client: Any, chunk: pa.Array, options: Mapping[str, Any], *, width: int, nulls: str, binary: bool, first_row: int
) -> pa.Array:
    """The codes of one chunk; `first_row` is its first row's number for errors, and its embeddings have `width` values."""
    x, valid = values(chunk, width, nulls, first_row)
    try:
        result = client.quantize_embeddings(x, **options)
    except InvalidArgumentError as error:
        where = _bad_value(x, valid, first_row) if any(v.field == "x" for v in error.field_violations) else None
        if where is None:
            raise
        raise ValueError(where) from error
    if not hasattr(result, "y"):
        raise TypeError(f"client is a {type(client).__name__}; columns need quantd.local() or a quantd.Client")
    return _codes(result.y, valid, binary, isinstance(chunk.type, pa.FixedShapeTensorType))
