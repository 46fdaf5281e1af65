"""recovery.queries holds at small size; one query more or less, an error, or none at all refutes it."""

import pytest

from attlas.claims import Measurement, Outcome
from attlas.claims.recovery.queries import CLAIM, Point

from .small import holds, worded


def test_it_holds_at_small_size():
    results = holds(CLAIM, [Point(d=d) for d in (2, 6)], 2)
    queries, errors = CLAIM.series(results)
    assert queries.mean == pytest.approx(queries.theory)
    assert errors.theory is None
    worded(CLAIM, results, "exactly d² + d queries in all 4 runs")


def run(seed=0, **changed):
    return Measurement(Point(d=5), seed, {"queries": 30.0, "error": 1e-15, "certificate": 1e-15} | changed)


@pytest.mark.parametrize("changed", [{"queries": 31.0}, {"queries": 29.0}, {"error": 1e-3}, {"error": float("nan")}])
def test_wrong_counts_and_errors_refute(changed):
    assert CLAIM.verdict([run(), run(1, error=0.0)]).outcome is Outcome.SUPPORTED  # a single entry may come out exactly
    assert CLAIM.verdict([run(), run(1, **changed)]).outcome is Outcome.REFUTED


def test_a_size_without_any_error_has_seen_the_answer():
    assert CLAIM.verdict([run(0, error=0.0), run(1, error=0.0)]).outcome is Outcome.REFUTED


def test_answers_with_noise_refute():
    noisy = next(mutation for mutation in CLAIM.mutations if mutation.measure)
    assert CLAIM.verdict(noisy.applied([run()], 1e-11, CLAIM.own_seed)).outcome is Outcome.REFUTED
