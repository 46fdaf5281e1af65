"""features.bias-correlation: costs, gains and exponents must be the predicted ones, at three levels."""

import numpy as np
import pytest

from attlas.claims import Measurement, Outcome
from attlas.claims.features import bias_correlation as claim

from .worlds import SIZES, reaching

PLAIN, BIASED = np.array([100.0, 180, 250]), np.array([75.0, 190, 450])  # predicted at d = 8, to the three levels


def world(plain=1.0, biased=1.0, steeper=0.0, slower=0.0, power=1, sizes=SIZES, seeds=8, scatter=0.03):
    """Results as if costs were these factors off, and their exponents larger by these."""
    rng = np.random.default_rng(0)
    rows = []
    for d in (6, 8, 14):
        expected = np.stack([PLAIN * (d / 8) ** 1.8, BIASED * (d / 8) ** 1.2])
        found = expected * np.array([[plain * (d / 8) ** steeper], [biased * (d / 8) ** (steeper + slower)]])
        for seed in range(seeds):
            curves = [reaching(costs, rng, sizes, scatter)[:, None] for costs in found]
            result = {"plain": curves[0], "biased": curves[1], "plain_theory": curves[0], "biased_theory": curves[1]}
            result |= {"permuted": 1 + 0.01 * seed, "sizes": sizes, "costs": expected}
            rows.append(Measurement(claim.Point(d=d, keys=4, power=power), seed, result))
    return rows


def outcome(measurements):
    return claim.CLAIM.verdict(measurements).outcome


def test_costs_gains_and_exponents_are_compared_with_the_predicted_ones():
    assert outcome(world()) is Outcome.SUPPORTED
    assert outcome(world(plain=1.3, biased=1.3)) is Outcome.REFUTED
    assert outcome(world(biased=1.4)) is Outcome.REFUTED
    assert outcome(world(biased=0.7)) is Outcome.REFUTED
    assert outcome(world(steeper=0.6)) is Outcome.REFUTED
    assert outcome(world(slower=-0.6)) is Outcome.REFUTED
    assert outcome(world(scatter=0.4)) is Outcome.INCONCLUSIVE
    assert outcome(world(seeds=1)) is Outcome.INCONCLUSIVE


def test_costs_that_were_not_reached():
    assert outcome(world(sizes=SIZES[SIZES < 600])) is not Outcome.SUPPORTED
    constant = [Measurement(m.point, m.seed, m.result | {"biased": np.ones_like(m.result["biased"])}) for m in world()]
    assert outcome(constant) is Outcome.REFUTED


def test_an_infinite_error_supports_nothing():
    rows = world()
    rows[0].result["plain"] = np.full_like(rows[0].result["plain"], np.inf)
    assert outcome(rows) is Outcome.INCONCLUSIVE


def test_degree_two_is_judged_at_a_half_only():
    found = claim.CLAIM.verdict([*world(), *world(power=2)])
    assert found.outcome is Outcome.SUPPORTED
    assert not any(name.startswith("degree 2") and "a tenth:" in name for name in found.numbers)


@pytest.mark.parametrize("mutation", claim.CLAIM.mutations, ids=lambda m: m.name)
def test_mutations_refute_it(mutation):
    found = claim.CLAIM.verdict(mutation.applied(world(), mutation.sizes[-1], claim.CLAIM.own_seed))
    assert found.outcome is Outcome.REFUTED


def test_measures_both_on_the_same_data_and_has_the_theory_of_its_settings():
    from attlas import features

    result = claim.measure(claim.Point(d=5, keys=2, n=64), 0)
    assert result["plain"].shape == result["biased"].shape == result["biased_theory"].shape == (len(result["sizes"]), 1)
    assert result["permuted"] > 0.8
    assert result["costs"][1, 1] == features.theory(5, 2, 1.0).sample_cost("correlation 1", 0.2).value


def test_its_words_and_points():
    found = claim.CLAIM.verdict(world())
    words = claim.CLAIM.found(found)
    assert all(
        part in words for part in ("without bias (1.80)", "with bias (1.20)", "takes 1.8 (", " times as many samples")
    )
    series = claim.series(world())
    costs = [s for s in series if s.y_name == claim.HALVING]
    assert [(s.name, s.x) for s in costs] == [("kernel", (6, 8, 14)), ("biased", (6, 8, 14))]
    assert costs[0].mean[1] == pytest.approx(100, rel=0.15)
    assert costs[0].theory[1] == 100
    assert len(claim.draw(world()).axes) == 3
