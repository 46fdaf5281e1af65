"""features.risk-bound: the rate in n and the order of targets decide."""

import numpy as np
import pytest

from attlas.claims import Measurement, Outcome
from attlas.claims.features import risk_bound as claim
from attlas.features import complexity, targets

B = {name: complexity(targets.named(name, 4, 0), 4) for names in claim.ORDER for name in names}


def world(rate=-1.0, order=0.5, seeds=5, scale=0.01):
    """Results as if risks were scale B^order n^rate."""
    rng = np.random.default_rng(0)
    return [
        Measurement(
            point,
            seed,
            {
                "risk": scale * B[point.target].B ** order * (point.n / 320) ** rate * np.exp(rng.normal(0, 0.05)),
                "constant": 0.1,
                "bound": B[point.target].risk_bound(point.n, point.heads, point.keys),
                "gap": 0.0,
                "kept": 9.0,
                "converged": True,
            },
        )
        for point in claim.CLAIM.tiers["quick"].points
        for seed in range(seeds)
    ]


def outcome(measurements):
    return claim.CLAIM.verdict(measurements).outcome


def test_rate_and_order_decide():
    assert outcome(world()) is Outcome.SUPPORTED
    assert outcome(world(rate=-0.3)) is Outcome.REFUTED
    assert outcome(world(rate=-2.5)) is Outcome.REFUTED
    assert outcome(world(order=-0.1)) is Outcome.REFUTED
    assert outcome(world(scale=10)) is Outcome.REFUTED  # above the bound
    assert outcome(world(seeds=1)) is Outcome.INCONCLUSIVE
    lost = world()
    lost[0].result["risk"] = np.nan
    assert outcome(lost) is Outcome.INCONCLUSIVE


@pytest.mark.parametrize("mutation", claim.CLAIM.mutations, ids=lambda m: m.name)
def test_mutations_refute_it(mutation):
    found = claim.CLAIM.verdict(mutation.applied(world(), mutation.sizes[-1], claim.CLAIM.own_seed))
    assert found.outcome is Outcome.REFUTED


def test_a_run_that_stopped_early_is_counted():
    """Its risk is within its duality gap of the least, which the bound does not see."""
    stopped = world()
    stopped[0].result["converged"] = False
    verdict = claim.CLAIM.verdict(stopped)
    assert verdict.outcome is Outcome.SUPPORTED
    assert verdict.numbers["runs that did not converge"] == 1


def test_it_learns():
    point = claim.Point(target="keys 1", n=40, heads=10, d=3, keys=4)
    result = claim.measure(point, 0)
    assert 0 < result["risk"] < result["constant"] < result["bound"]


def test_its_words_and_points():
    (difference,) = claim.CLAIM.differs
    numbers = {"bound over risk, smallest": 12.0, "bound over risk, largest": 1860.0}
    numbers["bound over risk of a constant, smallest"] = 5.3
    assert all(part in difference.ours(numbers) for part in ("vacuous", "12 to 1,860", "5.3 times"))
    assert "informative" in difference.ours(numbers | {"bound over risk of a constant, smallest": 0.5})
    assert "broken" in difference.ours(numbers | {"bound over risk, smallest": 0.5})
    assert "Its order is that of B(f)" in claim.CLAIM.found(claim.CLAIM.verdict(world()))
    point = claim.Point(target="keys 1", n=40, heads=10, d=3, keys=4)
    risk, constant = claim.series([Measurement(point, 0, {"risk": 1.0, "bound": 3.0, "constant": 2.0})])
    assert (risk.mean, risk.theory, constant.mean, constant.theory) == ((1.0,), (3.0,), (2.0,), None)
    assert len(claim.draw(world()).axes) == 1
