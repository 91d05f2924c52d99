"""python -m quantd.arrow: converts a Parquet file with embeddings to one with codes."""

import argparse
import sys
from typing import Optional, Sequence

import numpy as np

import quantd

from . import quantize_parquet
from .columns import NULLS


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Exit code 0, or 1 with a line that says what is wrong; argparse's own code is 2."""
    parser = argparse.ArgumentParser(prog="python -m quantd.arrow", description=__doc__.split(": ", 1)[1])
    parser.add_argument("source", help="the Parquet file that is read")
    parser.add_argument("target", help="the one that is written; it must not exist")
    parser.add_argument("--column", required=True, help="name of the column of embeddings")
    parser.add_argument("--preset", required=True, choices=list(quantd.EMBEDDING_PRESETS), help="vector database whose format to use", metavar="NAME")
    ranges = parser.add_mutually_exclusive_group()
    ranges.add_argument("--ranges", metavar="FILE", help="a .npy of two rows, the lowest and the highest value of each dimension")
    ranges.add_argument("--calibrate", action="store_true", help="take the ranges from the file, and store them in the new one")
    parser.add_argument("--dimensions", type=int, default=0, help="use only this number of values of each embedding, the first ones")
    parser.add_argument("--normalize", action="store_true", help="divide each embedding by its length first")
    parser.add_argument("--non_finite", choices=("reject", "ignore"), help="NaN and infinities: an error (default), or as the codes have them")
    parser.add_argument("--nulls", choices=NULLS, default="refuse", help="rows without embedding: an error (default), or without codes")
    parser.add_argument("--binary", action="store_true", help="codes as fixed_size_binary in place of lists")
    parser.add_argument("--address", help="send the embeddings to this server instead of computing here")
    parser.add_argument("--threads", type=int, help="threads to compute with here")
    given = parser.parse_args(arguments)
    try:
        client = quantd.Client(given.address) if given.address else quantd.local(given.threads)
        with client:
            quantize_parquet(
                given.source,
                given.target,
                column=given.column,
                preset=given.preset,
                ranges=None if given.ranges is None else np.load(given.ranges, allow_pickle=False),
                calibrate=given.calibrate,
                client=client,
                nulls=given.nulls,
                binary=given.binary,
                dimensions=given.dimensions,
                normalize=given.normalize,
                non_finite=given.non_finite,
            )
    except (OSError, TypeError, ValueError, ImportError, quantd.QuantdError) as error:
        print(f"python -m quantd.arrow: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
