"""recovery.identifiability holds at small size; different functions, or a form that tells nothing apart, refute it."""

import pytest

from attlas.claims import Measurement, Outcome
from attlas.claims.power import detect
from attlas.claims.recovery.identifiability import CLAIM, PAIRS, Point

from .small import holds, worded


def measured(seeds=2):
    return [Measurement(p, s, CLAIM.measure(p, s)) for p in (Point(pair=pair) for pair in PAIRS) for s in range(seeds)]


def test_it_holds_at_small_size():
    results = holds(CLAIM, [Point(pair=pair) for pair in PAIRS], 2)
    worded(CLAIM, results, "have the same canonical form")


def test_all_mutations_are_refuted():
    assert all(
        found.outcome is Outcome.REFUTED for found in detect(CLAIM, measured(), remeasure=True) if found.required
    )


@pytest.mark.parametrize("key", ["functions", "canonical", "kept"])
def test_a_difference_that_is_not_a_number_refutes(key):
    first, *others = measured(1)
    assert CLAIM.verdict([Measurement(first.point, 0, first.result | {key: float("nan")}), *others]).outcome is (
        Outcome.REFUTED
    )


def test_pairs_of_one_kind_leave_it_undecided():
    """No number stands for what was not measured."""
    verdict = CLAIM.verdict([m for m in measured(1) if m.point.pair == "order"])
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert "inf" not in verdict.reason
