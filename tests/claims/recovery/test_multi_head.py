"""recovery.multi-head: successes are counted; a layer that is not found is a measurement; sculpting is judged, too."""

import numpy as np

from attlas import recovery
from attlas.claims import Measurement, Outcome
from attlas.claims.recovery.kit.learners import determined
from attlas.claims.recovery.kit.tasks import planted
from attlas.claims.recovery.multi_head import CLAIM, MORE, Point, scarce

from .small import turned, worded


def runs(found=1e-13, adam=0.2, few=0.9, seeds=1.0, carved=1e-12, beside=1e-13, lost=0.8):
    def result(p, seed):
        if p.learner == "sculpt":
            missed = scarce(p) and seed % 10 < 10 * lost
            return {"error": 0.9 if missed else carved, "random": beside, "converged": False}
        return {"error": (adam if p.learner == "adam" else found) if determined(p) else few, "converged": False}

    return [
        Measurement(p, seed, result(p, seed)) for p, count in CLAIM.tiers["quick"] for seed in range(int(count * seeds))
    ]


def test_successes_are_counted():
    turned(CLAIM, runs())
    assert CLAIM.verdict(runs(seeds=0.2)).outcome is Outcome.INCONCLUSIVE
    assert CLAIM.verdict(runs(found=0.5)).outcome is Outcome.REFUTED
    assert CLAIM.verdict(runs(found=0.0)).outcome is Outcome.REFUTED
    assert CLAIM.verdict(runs(few=1e-9)).outcome is Outcome.REFUTED  # the truth was known before there were data
    assert CLAIM.verdict(runs(adam=1e-9)).outcome is Outcome.REFUTED
    assert len(CLAIM.draw(runs()).axes) == 5
    assert {series.name for series in CLAIM.series(runs())} == {"varpro", "lbfgs", "adam", "sculpt"}
    worded(
        CLAIM,
        runs(),
        "finds 160 of 160 layers, 100% (97% to 100%); where logits are sharp, Adam finds 0% (0% to",
        "; one sculpted start finds 60 of 60",
        "0 that random starts miss. With few examples random starts find 80 points more",
    )


def test_sculpting_is_judged_beside_random_starts():
    assert CLAIM.verdict(runs(carved=0.5)).outcome is Outcome.REFUTED
    assert CLAIM.verdict(runs(carved=0.0)).outcome is Outcome.REFUTED
    assert CLAIM.verdict(runs(beside=0.5)).outcome is Outcome.REFUTED  # sculpting finds what random starts do not
    assert CLAIM.verdict(runs(lost=0.0)).outcome is Outcome.REFUTED  # it needs no more examples than they
    assert CLAIM.verdict(runs(lost=0.2)).outcome is Outcome.INCONCLUSIVE
    without = [m for m in runs() if m.point.learner != "sculpt"]
    assert CLAIM.verdict(without).outcome is Outcome.INCONCLUSIVE  # a part of the statement was not measured
    (more,) = (
        value for name, value in CLAIM.verdict(runs()).numbers.items() if name.startswith(MORE) and "±" not in name
    )
    assert np.isclose(more, 0.8)


def test_every_learner_gets_the_same_data():
    errors = {
        name: CLAIM.measure(Point(heads=1, d=4, k=3, n=200, learner=name, adam_steps=1500), 0)["error"]
        for name in ("varpro", "lbfgs", "adam")
    }
    assert 0 < errors["varpro"] < 1e-9
    assert 0 < errors["lbfgs"] < 1e-4
    assert 0 < errors["adam"] < 0.5


def test_a_sculpted_start_is_polished_beside_random_ones_on_the_same_data():
    point = Point(heads=2, k=2, n=400, learner="sculpt")
    result = CLAIM.measure(point, 0)
    assert result["random"] == CLAIM.measure(point.model_copy(update={"learner": "varpro"}), 0)["error"]
    _, data, fresh = planted("boolean", 2, 6, 2, 3.0, 400, 0)
    start = recovery.sculpt(data.X, data.Y, 2, seed=0)
    assert 0 < result["error"] < 1e-9 < fresh.residual(start.Theta, start.W)


def test_where_the_heads_agree_too_rarely_sculpting_finds_nothing():
    point = Point(heads=2, n=5, learner="sculpt")
    assert scarce(point)
    assert CLAIM.measure(point, 0)["error"] == 1.0


def test_too_few_examples_hide_the_layer():
    point = Point(heads=2, d=4, n=3)
    assert not determined(point)
    assert min(CLAIM.measure(point, seed)["error"] for seed in range(3)) > 1e-3
    assert np.isfinite(CLAIM.cost(point).seconds)
