import numpy as np
import pytest

from attlas import aim
from attlas.claims import Measurement, Outcome
from attlas.claims.aim import sequence_length


def test_lengths_collapse_only_on_the_right_count():
    """Measured at A = alpha (T^2 + T), the count of the linear channel, the theory of two lengths differs."""
    points = [sequence_length.Point(tokens=T, A=0.4, d=20) for T in (2, 3)]

    def at_wrong_alpha(point):
        wrong = point.A / (point.tokens**2 + point.tokens)
        return {"theory": aim.state_evolution(aim.Softmax(point.tokens), wrong, 0.5).value, "ratio": 1.0}

    verdict = sequence_length.judge([Measurement(p, s, at_wrong_alpha(p)) for p in points for s in range(3)])
    assert verdict.outcome is Outcome.REFUTED
    assert "does not collapse" in verdict.reason
    theory = {aim.state_evolution(aim.Softmax(p.tokens), p.alpha, 0.5).value for p in points}
    assert np.ptp(list(theory)) < 1e-12


def test_finding():
    numbers = {"T=2 at d = infinity": 0.974, "T=6 at d = infinity": 1.02, "T=2 at d = 200": 1.3}
    assert "the error is 0.97 to 1.02 times that of the common curve" in sequence_length.finding(numbers)


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
    result = sequence_length.measure(sequence_length.Point(tokens=3, d=16), 0)
    assert 0.2 < result["error"] < 1
    assert result["converged"] in (True, False)
