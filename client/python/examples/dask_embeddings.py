"""Dask makes codes of the embeddings in Parquet files, one file per task, with the engine in the worker's process.

    python dask_embeddings.py embeddings/ codes/ [--column=embedding] [--preset=sqlite-vec-int8]
"""

import argparse
from pathlib import Path

import dask.bag

import quantd
import quantd.arrow


def convert(paths, target, column, preset):
    """The files of one partition; map_partitions calls this in a worker. It needs memory for a piece, not for a
    file."""
    engine = quantd.local(threads=1)  # one worker per CPU
    written = [(path, Path(target) / path.name) for path in paths]
    for source, codes in written:
        quantd.arrow.quantize_parquet(source, codes, column=column, preset=preset, client=engine)
    return [codes for _, codes in written]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path, help="a folder of Parquet files")
    parser.add_argument("target", type=Path, help="the folder that is made")
    parser.add_argument("--column", default="embedding")
    parser.add_argument("--preset", default="sqlite-vec-int8")
    given = parser.parse_args()
    given.target.mkdir()
    files = dask.bag.from_sequence(sorted(given.source.glob("*.parquet")), partition_size=1)
    done = files.map_partitions(convert, given.target, given.column, given.preset).compute(scheduler="processes")
    print(f"{len(done)} files in {given.target}")


if __name__ == "__main__":
    main()
