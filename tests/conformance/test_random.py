"""Random requests: rank, shape, granularity, types, options, right ones and wrong ones, against the oracle.

What the specification refuses must be refused, what it accepts must be answered bit for bit. A failure names its case;
QUANTD_SEED repeats the run.
"""

import pytest

from generate import SEED
from judge import check
from quantd_conformance.cases import random_calls

EACH = 100


@pytest.mark.parametrize("chunk", range(10))
@pytest.mark.parametrize("operation", random_calls.MADE)
def test_requests(client, operation, chunk):
    made = random_calls.MADE[operation]
    check(client, (made(i, seed=SEED) for i in range(chunk * EACH, (chunk + 1) * EACH)), f"numerics oracle, random {operation}")
