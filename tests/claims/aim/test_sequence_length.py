"""aim.sequence-length: lengths collapse on one curve, in theory and in simulation."""

import re

import numpy as np
import pytest

from attlas import aim
from attlas.claims import Measurement, Outcome
from attlas.claims.aim import sequence_length
from attlas.claims.aim.kit import theory

from .worlds import missed, near, outcome, with_seeds, with_sizes, world

CLAIM = sequence_length.CLAIM


def made(ratio=lambda T: 1.0, scatter=0.3, **changes):
    """Message passing tends to `ratio(T)` times the common curve."""

    def result(point, rng):
        V, own = theory(aim.Softmax(2), point.A / 4, point.rho)[0], near(ratio(point.tokens), point.d, rng, scatter)
        return {"theory": V, "common": V, "ratio": own, "error": own * V, "converged": True} | changes

    return world(CLAIM, result)


def test_every_length_must_come_to_the_curve():
    assert outcome(CLAIM, made()) is Outcome.SUPPORTED
    longest = max(point.tokens for point in CLAIM.tiers["quick"].points)
    for off in (1 + 2 * sequence_length.EPS, 1 - 2 * sequence_length.EPS):
        assert outcome(CLAIM, made(lambda T, off=off: off)) is Outcome.REFUTED
        assert outcome(CLAIM, made(lambda T, off=off: off if longest == T else 1.0)) is Outcome.REFUTED


def test_what_it_must_refute():
    assert missed(CLAIM, made()) == {}


@pytest.mark.parametrize("few", [with_seeds(made(), 1), with_sizes(made(), 3), made(scatter=60), made(theory=0.0)])
def test_too_little_decides_nothing(few):
    assert outcome(CLAIM, few) is Outcome.INCONCLUSIVE


def test_lengths_collapse_only_on_the_right_count():
    """At A = alpha (T^2 + T), the count of the linear channel, the theory of two lengths differs."""
    rows = made()
    wrong = [
        Measurement(
            m.point, m.seed,
            m.result | {"common": theory(aim.Softmax(m.point.tokens), m.point.A / (m.point.tokens**2 + m.point.tokens),
                                         m.point.rho)[0]},
        )
        for m in rows
    ]  # fmt: skip
    verdict = CLAIM.verdict(wrong)
    assert verdict.outcome is Outcome.REFUTED
    assert "spread of V over lengths" in verdict.reason
    points = {point.tokens: point for point in CLAIM.tiers["quick"].points}.values()
    assert np.ptp([theory(aim.Softmax(p.tokens), p.alpha, p.rho)[0] for p in points]) < sequence_length.ROUNDING


def test_finding():
    said = CLAIM.found(CLAIM.verdict(made(scatter=0.001)))
    assert re.search(r"the error is 1.00 \(± \S+\) times that of the common curve", said)
    numbers = {"T = 2 at d = infinity": 0.974, "T = 6 at d = infinity": 1.02, "T = 2 at d = infinity ±": 0.3}
    assert "the error is 0.97 to 1.02 (± 0.30) times that of the common curve" in sequence_length.finding(numbers)


def test_series():
    """Lengths apart, at the alpha of each: A/4 for two tokens, A/10 for three."""
    rows = [
        Measurement(sequence_length.Point(tokens=T, A=A, d=30), seed, {"error": 10 * A + T + seed, "theory": A})
        for T in (2, 3) for A in (0.6, 0.4) for seed in (0, 1)
    ]  # fmt: skip
    two, three = sequence_length.series(rows)
    assert two.x == pytest.approx((0.1, 0.15))
    assert three.x == pytest.approx((0.04, 0.06))
    assert two.mean == pytest.approx((6.5, 8.5))
    assert two.standard_error == pytest.approx((0.5, 0.5))
    assert two.theory == (0.4, 0.6)
    assert [s.settings["tokens"] for s in (two, three)] == [2, 3]


def test_measure():
    point = sequence_length.Point(tokens=3, d=14)
    result = sequence_length.measure(point, 0)
    assert 0 < result["error"] < 1.5
    assert result["ratio"] > 0
    assert result["common"] == theory(aim.Softmax(3), point.alpha, point.rho)[0]
    assert result["theory"] == pytest.approx(result["common"], rel=0.1)  # that of the n which was drawn
    assert isinstance(result["converged"], bool)
    assert sequence_length.draw([Measurement(point, 0, result)]).axes
