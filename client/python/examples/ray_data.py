"""Ray Data makes codes of the embeddings in Parquet files, one batch per call of the engine in the worker's process.

    python ray_data.py embeddings.parquet codes/ [--column=embedding] [--preset=sqlite-vec-int8]
"""

import argparse

import ray

import quantd
import quantd.arrow


class Codes:
    """A Ray actor: an engine with one thread, because Ray starts one actor for each CPU."""

    def __init__(self, column, preset):
        self.engine, self.column, self.preset = quantd.local(threads=1), column, preset

    def __call__(self, table):
        codes = quantd.arrow.quantize_embeddings(self.engine, table[self.column], preset=self.preset)
        return table.set_column(table.column_names.index(self.column), self.column, codes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", help="a Parquet file, or a folder of them")
    parser.add_argument("target", help="the folder that Ray writes")
    parser.add_argument("--column", default="embedding")
    parser.add_argument("--preset", default="sqlite-vec-int8")
    given = parser.parse_args()
    data = ray.data.read_parquet(given.source)
    workers = ray.data.ActorPoolStrategy(min_size=1, max_size=8)
    codes = data.map_batches(Codes, fn_constructor_args=(given.column, given.preset), batch_format="pyarrow", compute=workers)
    codes.write_parquet(given.target)


if __name__ == "__main__":
    main()
