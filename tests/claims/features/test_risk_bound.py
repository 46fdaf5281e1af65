"""features.risk-bound: one risk above the bound refutes it."""

import numpy as np
import pytest

from attlas.claims import Measurement, Outcome
from attlas.claims.features import risk_bound as claim


def test_risks_above_the_bound_refute_it():
    point = claim.Point(target="keys 1", n=40, heads=10, d=3, keys=4)
    results = [Measurement(point, s, claim.measure(point, s)) for s in range(2)]
    found = claim.judge(results)
    assert found.outcome is Outcome.SUPPORTED
    assert 0 < results[0].result["risk"] < results[0].result["constant"]
    assert len(claim.draw(results).axes) == 1
    results[0].result["risk"] = 2 * results[0].result["bound"]
    assert claim.judge(results).outcome is Outcome.REFUTED
    results[0].result["risk"] = np.nan
    assert claim.judge(results).outcome is Outcome.INCONCLUSIVE


def test_a_run_that_stopped_early_is_counted():
    """Its risk is within its duality gap of the least, which the bound does not see."""
    point = claim.Point(target="keys 1", n=40, heads=10, d=3, keys=4)
    result = claim.measure(point, 0)
    assert result["converged"]
    stopped = [Measurement(point, 0, result), Measurement(point, 1, result | {"converged": False})]
    assert claim.CLAIM.verdict(stopped[:1]).outcome is Outcome.SUPPORTED
    verdict = claim.CLAIM.verdict(stopped)
    assert verdict.outcome is Outcome.SUPPORTED
    assert verdict.numbers["runs that did not converge"] == 1


def test_its_words_and_points():
    (difference,) = claim.CLAIM.differs
    numbers = {"a bound/risk, smallest": 12.0, "a bound/risk, largest": 1860.0}
    numbers["bound / risk of a constant, smallest"] = 5.3
    assert all(part in difference.ours(numbers) for part in ("vacuous", "12 to 1,860", "5.3 times"))
    assert "informative" in difference.ours(numbers | {"bound / risk of a constant, smallest": 0.5})
    assert "broken" in difference.ours(numbers | {"a bound/risk, smallest": 0.5})
    with pytest.raises(LookupError):
        difference.ours({"a bound/risk, smallest": 12.0, "a bound/risk, largest": 1860.0})
    point = claim.Point(target="keys 1", n=40, heads=10, d=3, keys=4)
    result = {"risk": 1.0, "bound": 3.0, "constant": 2.0}
    risk, constant = claim.series([Measurement(point, 0, result)])
    assert (risk.mean, risk.theory, constant.mean, constant.theory) == ((1.0,), (3.0,), (2.0,), None)
