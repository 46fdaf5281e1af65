"""recovery.lower-bound: parities are learned for few coordinates only, controls for all."""

import numpy as np

from attlas.claims import Measurement, Outcome
from attlas.claims.recovery.lower_bound import CLAIM, Point

from .small import turned, worded

ACCURACY = {2: 0.85, 3: 0.6}


def accuracies(hard=0.5, control=0.97, easy=None, seeds=5):
    rng = np.random.default_rng(0)
    return [
        Measurement(
            p,
            seed,
            {
                "parity": (easy or ACCURACY).get(p.hidden, hard) + rng.normal(0, 0.01),
                "control": control + rng.normal(0, 0.01),
                "parity_error": 0.9,
                "control_error": 0.1,
                "deviation": 1e-15,
            },
        )
        for p, _ in CLAIM.tiers["quick"]
        for seed in range(seeds)
    ]


def test_learners_must_fall_to_chance_on_parities_alone():
    turned(CLAIM, accuracies())
    assert CLAIM.verdict(accuracies(hard=0.7)).outcome is Outcome.REFUTED
    assert CLAIM.verdict(accuracies(control=0.6)).outcome is Outcome.REFUTED
    assert CLAIM.verdict(accuracies(easy={2: 0.5})).outcome is Outcome.REFUTED
    assert CLAIM.verdict(accuracies(seeds=1)).outcome is Outcome.INCONCLUSIVE
    assert CLAIM.verdict([m for m in accuracies() if m.point.hidden < 4]).outcome is Outcome.INCONCLUSIVE
    assert len(CLAIM.draw(accuracies()).axes) == 1
    assert {series.settings["task"] for series in CLAIM.series(accuracies())} == {"parity", "control"}
    worded(CLAIM, accuracies(), "(chance is 0.50)", "asymptotic")


def test_a_parity_of_two_is_learned_better_than_one_of_five():
    two, five = (CLAIM.measure(Point(hidden=m, d=9, n=100, lbfgs_steps=60), 0) for m in (2, 5))
    assert two["parity"] > 0.6 > five["parity"]
    assert max(two["deviation"], five["deviation"]) < 1e-12
    assert all(CLAIM.cost(Point(hidden=5, learner=name)).seconds > 0 for name in ("lbfgs", "adam"))
