"""features.bias-correlation: exponents and ratios of costs decide, at three levels."""

import numpy as np
import pytest

from attlas.claims import Measurement, Outcome
from attlas.claims.features import bias_correlation as claim

from .worlds import SIZES, reaching


def world(plain=1.8, biased=1.2, loss=1.8, seeds=5, sizes=SIZES):
    """Results as if costs grew with these exponents, and a tenth cost `loss` times as much with bias at d = 8."""
    rng = np.random.default_rng(0)
    rows = []
    for d in (6, 8, 12):
        for seed in range(seeds):
            costs = np.array([100, 180, 250]) * (d / 8) ** plain
            with_bias = np.array([75, 190, 250 * loss]) * (d / 8) ** biased
            result = {"plain": reaching(costs, rng, sizes)[:, None], "biased": reaching(with_bias, rng, sizes)[:, None]}
            rows.append(
                Measurement(claim.Point(d=d, keys=4), seed, result | {"permuted": 1 + 0.01 * seed, "sizes": sizes})
            )
    return rows


def outcome(measurements):
    return claim.CLAIM.verdict(measurements).outcome


def test_exponents_and_ratios_decide():
    assert outcome(world()) is Outcome.SUPPORTED
    assert outcome(world(biased=2.3)) is Outcome.REFUTED  # a larger exponent
    assert outcome(world(plain=3.4)) is Outcome.REFUTED
    assert outcome(world(loss=0.9)) is Outcome.REFUTED  # a bias that pays at every level
    assert outcome(world(seeds=1)) is Outcome.INCONCLUSIVE


def test_costs_that_were_not_reached():
    assert outcome(world(sizes=SIZES[SIZES < 600])) is not Outcome.SUPPORTED
    constant = [Measurement(m.point, m.seed, m.result | {"biased": np.ones_like(m.result["biased"])}) for m in world()]
    assert outcome(constant) is Outcome.REFUTED


def test_degree_two_is_judged_at_a_half_only():
    rng = np.random.default_rng(1)
    rows = [
        Measurement(
            claim.Point(d=d, keys=4, power=2),
            seed,
            {
                "plain": reaching(np.array([100, 1e5, 2e5]) * (d / 4) ** 3.4, rng)[:, None],
                "biased": reaching(np.array([80, 1e5, 2e5]) * (d / 4) ** 2.3, rng)[:, None],
                "permuted": 1 + 0.01 * seed,
                "sizes": SIZES,
            },
        )
        for d in (4, 5, 6)
        for seed in range(4)
    ]
    found = claim.CLAIM.verdict([*world(), *rows])
    assert found.outcome is Outcome.SUPPORTED
    assert not any(name.startswith("degree 2") and "a tenth" in name for name in found.numbers)


@pytest.mark.parametrize("mutation", claim.CLAIM.mutations, ids=lambda m: m.name)
def test_mutations_refute_it(mutation):
    found = claim.CLAIM.verdict(mutation.applied(world(), mutation.sizes[-1], claim.CLAIM.own_seed))
    assert found.outcome is Outcome.REFUTED


def test_measures_both_on_the_same_data():
    result = claim.measure(claim.Point(d=3, keys=2, n=64), 0)
    assert result["plain"].shape == result["biased"].shape == (len(result["sizes"]), 1)
    assert result["permuted"] > 0.8


def test_its_words_and_points():
    found = claim.CLAIM.verdict(world())
    assert all(part in claim.CLAIM.found(found) for part in ("d^1.", "d^1.", "1.8 times as many samples at d = 8"))
    series = claim.series(world())
    costs = [s for s in series if s.y_name == claim.HALVING]
    assert [(s.name, s.x) for s in costs] == [("kernel", (6, 8, 12)), ("biased", (6, 8, 12))]
    assert costs[0].mean[1] == pytest.approx(100, rel=0.15)
    assert len(claim.draw(world()).axes) == 2
