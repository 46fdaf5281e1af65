"""recovery.gaussian-tokens: successes are counted, on tokens of another law than those of recovery.multi-head."""

from attlas.claims import Measurement, Outcome
from attlas.claims.recovery import multi_head
from attlas.claims.recovery.gaussian_tokens import CLAIM, Point
from attlas.claims.recovery.kit.learners import determined

from .small import turned, worded


def runs(found=1e-13, adam=0.2, few=0.9, seeds=1.0):
    return [
        Measurement(
            p,
            seed,
            {"error": (adam if p.learner == "adam" else found) if determined(p) else few, "converged": False},
        )
        for p, count in CLAIM.tiers["quick"]
        for seed in range(int(count * seeds))
    ]


def test_successes_are_counted():
    turned(CLAIM, runs())
    assert CLAIM.verdict(runs(seeds=0.2)).outcome is Outcome.INCONCLUSIVE
    assert CLAIM.verdict(runs(found=0.5)).outcome is Outcome.REFUTED
    assert CLAIM.verdict(runs(found=0.0)).outcome is Outcome.REFUTED
    assert CLAIM.verdict(runs(few=1e-9)).outcome is Outcome.REFUTED  # the truth was known before there were data
    assert CLAIM.verdict(runs(adam=1e-9)).outcome is Outcome.REFUTED
    assert len(CLAIM.draw(runs()).axes) == 3
    assert {series.name for series in CLAIM.series(runs())} == {"varpro", "lbfgs", "adam"}
    worded(
        CLAIM,
        runs(),
        "finds 150 of 150 layers, 100% (97% to 100%); where logits are sharp, Adam finds 0% (0% to",
    )


def test_the_tokens_are_gaussian():
    point = Point(heads=1, d=3, k=2, n=60, learner="adam", adam_steps=10)
    assert CLAIM.measure(point, 0)["error"] != multi_head.measure(point, 0)["error"]
    assert 0 < CLAIM.measure(Point(heads=1, d=3, k=2, n=60), 0)["error"] < 1e-9
