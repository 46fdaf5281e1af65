"""What the framework makes of a judge's verdict: runs that did not converge, and the words."""

import dataclasses

import numpy as np
import pytest

from attlas.claims import Measurement, Outcome, Unfinished, Verdict, find
from attlas.claims.series import gather


@pytest.fixture
def claim(fast):
    (found,) = find(["test.fast"])
    verdict = Verdict(Outcome.SUPPORTED, "the ratio is 1.01", 3.0, "standard errors", {"ratio": 1.01})
    return dataclasses.replace(found, judge=lambda _: verdict)


def runs(claim, *converged):
    point = claim.tiers["quick"].points[0]
    return [
        Measurement(point, seed, {"x": 1.0} if end is None else {"x": 1.0, "converged": end})
        for seed, end in enumerate(converged)
    ]


def test_results_without_a_status_are_judged_as_they_were(claim):
    """Stores of before this word existed."""
    assert claim.verdict(runs(claim, None, None)) == claim.judge([])
    assert claim.verdict(runs(claim, True, np.True_)) == claim.judge([])


def test_a_run_that_did_not_converge_leaves_a_claim_undecided(claim):
    found = claim.verdict(runs(claim, True, False, True))
    assert found.outcome is Outcome.INCONCLUSIVE
    assert found.reason == "the ratio is 1.01; 1 of 3 runs did not converge"
    assert found.numbers == {"ratio": 1.01, "runs that did not converge": 1.0}


def test_a_claim_may_say_beforehand_that_it_uses_them(claim):
    tolerant = dataclasses.replace(claim, unfinished=Unfinished.USED)
    found = tolerant.verdict(runs(claim, True, False, False))
    assert found.outcome is Outcome.SUPPORTED
    assert found.reason.endswith("2 of 3 runs did not converge; the judge uses what they reached")


def test_a_run_that_did_not_converge_refutes_nothing_either(claim):
    against = Verdict(Outcome.REFUTED, "the ratio is 2", -4.0, "standard errors")
    strict = dataclasses.replace(claim, judge=lambda _: against)
    assert strict.verdict(runs(claim, False)).outcome is Outcome.INCONCLUSIVE
    tolerant = dataclasses.replace(strict, unfinished=Unfinished.USED)
    assert tolerant.verdict(runs(claim, False)).outcome is Outcome.REFUTED


def test_several_iterations_of_a_run_must_all_converge(claim):
    assert claim.verdict(runs(claim, np.array([True, True]))) == claim.judge([])
    assert claim.verdict(runs(claim, [True, False])).outcome is Outcome.INCONCLUSIVE
    for nonsense in (float("nan"), "no", 1):
        found = claim.verdict(runs(claim, nonsense))
        assert found.outcome is Outcome.DAMAGED
        assert "converged must be true or false" in found.reason


def test_the_finding_is_told_where_the_claim_holds_and_the_reason_elsewhere(claim):
    speaking = dataclasses.replace(claim, finding=lambda numbers: f"They agree to {numbers['ratio'] - 1:.0%}")
    verdict = claim.judge([])
    assert claim.found(verdict) == "the ratio is 1.01"
    assert speaking.found(verdict) == "They agree to 1%"
    assert speaking.found(dataclasses.replace(verdict, outcome=Outcome.REFUTED)) == "the ratio is 1.01"
    assert speaking.found(dataclasses.replace(verdict, numbers={})) == "the ratio is 1.01"


def test_series_are_means_with_standard_errors():
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, 5))
    rows = [("amp", {"d": 8}, 2.0, value, 0.5) for value in second]
    rows += [("amp", {"d": 8}, 1.0, value, 0.25) for value in [*first, np.nan]]
    rows += [("amp", {"d": 9}, 1.0, 3.0, None), ("single", {"d": 8}, 1.0, np.inf, 1.0)]
    small, large = gather(rows, "alpha", "mse")
    assert (small.x, small.seeds, small.theory) == ((1.0, 2.0), (5, 5), (0.25, 0.5))
    assert small.mean == pytest.approx((first.mean(), second.mean()))
    assert small.standard_error == pytest.approx([own.std(ddof=1) / np.sqrt(5) for own in (first, second)])
    assert (large.settings, large.mean, large.standard_error, large.theory) == ({"d": 9}, (3.0,), (0.0,), None)


def test_results_that_are_not_numbers_support_nothing(claim):
    """Comparisons with NaN are silent: a judge that takes the smallest of some values need not notice one."""
    point = claim.tiers["quick"].points[0]
    results = [Measurement(point, seed, {"x": x, "y": [1.0, 2.0]}) for seed, x in enumerate((1.0, float("nan"), 1.0))]
    found = claim.verdict(results)
    assert found.outcome is Outcome.INCONCLUSIVE
    assert found.reason == "1 of 3 results hold values that are not numbers; the ratio is 1.01"
    assert dataclasses.replace(claim, absent=("x",)).verdict(results).outcome is Outcome.SUPPORTED
    against = Verdict(Outcome.REFUTED, "the ratio is 2", -4.0, "standard errors")
    assert dataclasses.replace(claim, judge=lambda _: against).verdict(results).outcome is Outcome.REFUTED
