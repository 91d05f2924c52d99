"""The seed of this run, and the numbers of one test case: of the seed, and of the case's own name."""

import os

from quantd.conformance import values

SEED = int(os.environ.get("QUANTD_SEED", values.SEED))


def rng(*what) -> values.Random:
    return values.rng(*what, seed=SEED)
