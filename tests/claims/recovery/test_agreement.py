"""recovery.agreement holds at small size; agreement that does not fade refutes it."""

import numpy as np

from attlas.claims import Measurement, Outcome
from attlas.claims.recovery.agreement import CLAIM, Point

from .small import holds, worded


def test_it_holds_at_small_size():
    results = holds(CLAIM, [Point(heads=m, k=k, examples=4000) for m in (2, 3, 4) for k in (2, 3)], 4)
    (series,) = CLAIM.series(results)
    assert series.x == (1, 2, 3, 4, 6)
    assert series.mean[0] > series.mean[-1]
    worded(CLAIM, results, "divides the share")


def counts(slope):
    return [
        Measurement(
            Point(heads=m, k=k),
            seed,
            {"agree": 1e4 * np.exp(slope * (m - 1) * (k - 1) + 0.01 * seed), "rows": 1e5},
        )
        for m in (2, 3, 4)
        for k in (2, 3)
        for seed in range(3)
    ]


def test_agreement_that_does_not_fade_refutes():
    assert CLAIM.verdict(counts(-1.0)).outcome is Outcome.SUPPORTED
    assert CLAIM.verdict(counts(0.3)).outcome is Outcome.REFUTED
    assert CLAIM.verdict(counts(-5.0)).outcome is Outcome.INCONCLUSIVE  # too rare to be counted
