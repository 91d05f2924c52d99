"""The seed of this run, and the random numbers of a test case, which depend on the seed and the case's
name."""

import os

from quantd_conformance import values

SEED = int(os.environ.get("QUANTD_SEED", values.SEED))


def rng(*what) -> values.Random:
    return values.rng(*what, seed=SEED)
