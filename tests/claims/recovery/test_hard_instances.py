"""recovery.hard-instances: the parity must be exact and unlearned, its control learned."""

import numpy as np

from attlas.claims import Measurement, Outcome
from attlas.claims.recovery.hard_instances import CLAIM, Point, judge
from attlas.claims.recovery.kit.tasks import LEARNERS

from .small import turned, worded


def parities(accuracy=0.5, control=0.97, deviation=1e-15, error=0.1, seeds=7):
    rng = np.random.default_rng(0)
    return [
        Measurement(
            Point(learner=name),
            seed,
            {
                "parity": accuracy + rng.normal(0, 0.01),
                "control": control + rng.normal(0, 0.01),
                "parity_error": 0.9,
                "control_error": error,
                "deviation": deviation,
                "converged": False,
            },
        )
        for name in LEARNERS
        for seed in range(seeds)
    ]


def test_a_parity_must_be_exact_unlearned_and_its_control_learned():
    turned(CLAIM, parities())
    assert CLAIM.verdict(parities(accuracy=0.9)).outcome is Outcome.REFUTED
    assert CLAIM.verdict(parities(accuracy=0.3)).outcome is Outcome.REFUTED
    assert CLAIM.verdict(parities(deviation=1e-3)).outcome is Outcome.REFUTED
    assert CLAIM.verdict(parities(control=0.6)).outcome is Outcome.REFUTED
    assert CLAIM.verdict(parities(error=0.0)).outcome is Outcome.REFUTED
    assert CLAIM.verdict(parities(seeds=1)).outcome is Outcome.INCONCLUSIVE
    assert len(CLAIM.draw(parities()).axes) == 2


def test_budgets_that_were_spent_are_measurements():
    assert CLAIM.verdict(parities()).numbers["runs that did not converge"] == 21


def test_it_is_told_beside_chance():
    worded(CLAIM, parities(), "at least 0.97 ± 0.01 of the time", "(chance is 0.50)", "recovery.lower-bound")
    for series in CLAIM.series(parities()):
        assert (series.x, series.theory, series.seeds) == ((5,), (0.5,), (7,))


def test_a_parity_is_measured():
    for name in LEARNERS:
        point = Point(heads=3, d=8, n=100, learner=name, adam_steps=20, lbfgs_steps=10, steps=2)
        result = CLAIM.measure(point, 0)
        assert result["deviation"] < 1e-12
        assert 0 < result["parity"] < 1
        assert CLAIM.cost(point).seconds > 0
    assert judge(parities()).outcome is Outcome.SUPPORTED
