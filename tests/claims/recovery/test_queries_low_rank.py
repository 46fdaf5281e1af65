"""recovery.queries-low-rank holds at small size; other counts, an error, or a learner that sees the layer refute it."""

import pytest

from attlas.claims import Measurement, Outcome
from attlas.claims.recovery.queries_low_rank import CLAIM, Point

from .small import holds, worded


def test_it_holds_at_small_size():
    results = holds(CLAIM, [Point(d=8, rank=2), Point(d=10, rank=1)], 3)
    queries = CLAIM.series(results)[0]
    assert queries.mean == pytest.approx(queries.theory)
    worded(CLAIM, results, "exactly 2rd + d queries in all 6 runs")


def run(d=8, **changed):
    return Measurement(
        Point(d=d, rank=2), 0, {"queries": 5.0 * d, "error": 1e-12, "short": 0.5, "short_limit": 0.4} | changed
    )


@pytest.mark.parametrize(
    "wrong", [{"queries": 41.0}, {"queries": 39.0}, {"error": 1e-3}, {"error": 0.0}, {"short": 0.3}]
)
def test_other_counts_and_errors_refute(wrong):
    assert CLAIM.verdict([run(), run(9)]).outcome is Outcome.SUPPORTED
    assert CLAIM.verdict([run(**wrong), run(9)]).outcome is Outcome.REFUTED


def test_one_size_decides_nothing():
    assert CLAIM.verdict([run()]).outcome is Outcome.INCONCLUSIVE


def test_a_head_of_higher_rank_is_not_recovered():
    wider = next(mutation for mutation in CLAIM.mutations if mutation.measure)
    assert CLAIM.verdict(wider.applied([run(), run(9)], 1e-6, CLAIM.own_seed)).outcome is Outcome.REFUTED
