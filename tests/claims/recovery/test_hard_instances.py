"""recovery.hard-instances: the parity must be exact and unlearned, its control solved."""

import numpy as np

from attlas.claims import Measurement, Outcome
from attlas.claims.recovery.hard_instances import CLAIM, Point, judge
from attlas.claims.recovery.kit.tasks import LEARNERS

from .small import worded


def parities(accuracy=0.5, control=1e-9, deviation=1e-15, **more):
    rng = np.random.default_rng(0)
    rows = []
    for seed in range(10):
        result = {"deviation": deviation} | more
        for name in LEARNERS:
            result |= {f"accuracy_{name}": accuracy + rng.normal(0, 0.01), f"control_{name}": control}
            result[f"parity_{name}"] = 0.7
        rows.append(Measurement(Point(), seed, result))
    return rows


def test_a_parity_must_be_exact_unlearned_and_its_control_solved():
    assert judge(parities()).outcome is Outcome.SUPPORTED
    assert judge(parities(accuracy=0.9)).outcome is Outcome.REFUTED
    assert judge(parities(deviation=1e-3)).outcome is Outcome.REFUTED
    assert judge(parities(deviation=np.nan)).outcome is Outcome.REFUTED
    assert judge(parities(control=0.3)).outcome is Outcome.INCONCLUSIVE
    assert len(CLAIM.draw(parities()).axes) == 2


def test_budgets_that_were_spent_are_measurements():
    found = CLAIM.verdict(parities(converged=False))
    assert found.outcome is Outcome.SUPPORTED
    assert found.numbers["runs that did not converge"] == 10


def test_it_is_told_beside_chance():
    worded(CLAIM, parities(), "in 10 of 10 runs", "(chance is 0.50)", "It holds from 5 heads on")
    for series in CLAIM.series(parities()):
        assert (series.x, series.theory, series.seeds) == ((5,), (0.5,), (10,))


def test_a_parity_is_measured():
    point = Point(heads=3, d=6, n=100, adam_steps=50, starts=1, steps=3)
    result = CLAIM.measure(point, 0)
    assert result["deviation"] < 1e-12
    assert 0 <= result["accuracy_varpro"] <= 1
    assert result["converged"] is False  # fifty batches of Adam are a schedule, not an end
