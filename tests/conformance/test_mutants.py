"""The kit notices changed rules: a random selection of changes. All of them: python tests/conformance/mutants.py."""

import mutants


def test_changes_of_the_oracle_are_caught():
    caught, survived = mutants.run(count=40, seed=mutants.SEED, processes=1)
    assert caught >= 0.95 * (caught + len(survived)), survived
