"""recovery.queries-low-rank holds at small size; more queries, or an error, refute it."""

import pytest

from attlas.claims import Measurement, Outcome
from attlas.claims.recovery.queries_low_rank import CLAIM, Point

from .small import holds, worded


def test_it_holds_at_small_size():
    results = holds(CLAIM, [Point(d=8, rank=2)], 3)
    queries, _ = CLAIM.series(results)
    assert queries.mean == pytest.approx(queries.theory)
    worded(CLAIM, results, "exactly 2rd + d queries")


def run(queries=40.0, error=1e-12):
    return Measurement(Point(d=8, rank=2), 0, {"queries": queries, "error": error})


@pytest.mark.parametrize("wrong", [{"queries": 45.0}, {"error": 1e-3}, {"error": 0.0}])
def test_more_queries_and_errors_refute(wrong):
    assert CLAIM.verdict([run(), run(queries=43.0)]).outcome is Outcome.SUPPORTED
    assert "1.07 times" in CLAIM.finding(CLAIM.judge([run(), run(queries=43.0)]).numbers)
    assert CLAIM.verdict([run(), run(**wrong)]).outcome is Outcome.REFUTED
