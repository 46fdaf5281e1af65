"""features.positions: errors at four weights of the codes and the steps between them decide."""

import numpy as np
import pytest

from attlas.claims import Measurement, Outcome
from attlas.claims.features import positions as claim
from attlas.tokens import sphere

POINT = claim.Point()


def world(change=lambda theory: theory, seeds=12, scatter=0.03):
    """Results as if the truth were a change of the theory."""
    rng = np.random.default_rng(0)
    theory = claim._theory(POINT)[0]
    truth = change(theory)
    return [
        Measurement(
            POINT,
            seed,
            {
                "errors": truth * np.exp(rng.normal(0, scatter, theory.shape)),
                "theory": theory,
                "permuted": 1 + 0.01 * seed,
                "converged": True,
            },
        )
        for seed in range(seeds)
    ]


def outcome(measurements):
    return claim.CLAIM.verdict(measurements).outcome


def one_changed(theory, weight, target, factor):
    found = theory.copy()
    found[weight, target] *= factor
    return found


def test_errors_and_steps_decide():
    assert outcome(world()) is Outcome.SUPPORTED
    assert outcome(world(lambda t: 1.2 * t)) is Outcome.REFUTED
    assert outcome(world(lambda t: one_changed(t, 1, 3, 1.4))) is Outcome.REFUTED  # one step that goes the other way
    assert outcome(world(lambda t: one_changed(t, 0, 2, 0.8))) is Outcome.REFUTED  # learns the order without codes
    assert outcome(world(seeds=1)) is Outcome.INCONCLUSIVE


def test_the_theory_is_that_of_the_table():
    """Section 4 of the note this claim comes from; the grid of penalties costs less than one per cent."""
    table = [
        [0.023, 0.016, 0.789, 0.896, 0.911],
        [0.057, 0.038, 0.213, 0.817, 0.248],
        [0.149, 0.090, 0.075, 0.585, 0.087],
        [0.474, 0.220, 0.037, 0.472, 0.043],
    ]
    assert claim._theory(POINT)[0] == pytest.approx(np.array(table), rel=0.04)


def test_what_is_blind_to_the_order_leaves_this_much():
    """Averaged over orders of the keys, a target becomes what an order-blind function can know of it."""
    X = sphere(20_000, 9, 8, 2)
    orders = [np.concatenate([[0], 1 + np.roll(np.arange(8), shift)]) for shift in range(8)]  # every key, every place
    for name, f in zip(claim.TARGETS, claim._functions(POINT, 3), strict=True):
        y, known = f(X), np.mean([f(X[:, order]) for order in orders], axis=0)
        assert np.var(y - known) / np.var(y) == pytest.approx(claim._blind(name, 8), abs=0.03)


@pytest.mark.parametrize("mutation", claim.CLAIM.mutations, ids=lambda m: m.name)
def test_mutations_refute_it(mutation):
    found = claim.CLAIM.verdict(mutation.applied(world(), mutation.sizes[-1], claim.CLAIM.own_seed))
    assert found.outcome is Outcome.REFUTED


def test_measures_theory_beside_simulation():
    result = claim.measure(claim.Point(d=4, keys=4, n=64), 0)
    assert result["errors"].shape == result["theory"].shape == (4, 5)
    assert result["converged"]
    assert result["permuted"] > 0.8


def test_its_words_and_points():
    assert "divides the error on one key by " in claim.CLAIM.found(claim.CLAIM.verdict(world()))
    found = claim.series(world())
    assert [s.settings["target"] for s in found] == list(claim.TARGETS)
    assert found[0].x == claim.WEIGHTS
    assert found[0].mean == pytest.approx(found[0].theory, rel=0.05)
    assert len(claim.draw(world()).axes) == 2
