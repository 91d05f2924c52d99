"""Codes of the embeddings in a Parquet file, one row group after the other: memory for a row group, not for the file.

    python parquet_embeddings.py in.parquet out.parquet [--column=embedding] [--preset=sqlite-vec-int8] [--address=HOST:PORT]

`codes` also serves where columns come from elsewhere, as in ray.data's map_batches(batch_format="pyarrow").
"""

import argparse

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import quantd


def codes(client, column, **options):
    """A column of codes for a column of embeddings: lists of float32 or float16, all of one length, which are read in place."""
    lists = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    values = lists.flatten()
    if lists.null_count or values.null_count:
        raise ValueError(f"{lists.null_count} embeddings and {values.null_count} of their values are null; drop or fill them first")
    lengths = pc.unique(pc.list_value_length(lists)).to_pylist()
    if len(lengths) != 1:
        raise ValueError(f"the embeddings have lengths {lengths}, must have one")
    y = client.quantize_embeddings(values.to_numpy().reshape(len(lists), lengths[0]), **options).y
    return pa.FixedSizeListArray.from_arrays(pa.array(y.reshape(-1)), y.shape[1])


def convert(client, source, target, column, **options):
    """Copies a file, with codes in place of the column's embeddings."""
    file, writer = pq.ParquetFile(source), None
    for group in range(file.num_row_groups):
        table = file.read_row_group(group)
        table = table.set_column(table.column_names.index(column), column, codes(client, table[column], **options))
        writer = writer or pq.ParquetWriter(target, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("--column", default="embedding")
    parser.add_argument("--preset", default="sqlite-vec-int8")
    parser.add_argument("--address", help="a server; default: compute in this process")
    given = parser.parse_args()
    with quantd.Client(given.address) if given.address else quantd.local() as client:
        convert(client, given.source, given.target, given.column, preset=given.preset)


if __name__ == "__main__":
    main()
