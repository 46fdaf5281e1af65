import numpy as np
import pytest

from attlas.claims import Measurement, Outcome
from attlas.claims.aim import hardmax


def made(ratio, error, seeds=12):
    """Results of message passing as if they had been measured."""
    rng, theory = np.random.default_rng(0), {"theory": 0.3291}
    return [
        Measurement(hardmax.Point(d=d), s, {"ratio": ratio + 1 / d + rng.normal(0, 0.02), "error": error} | theory)
        for d in (40, 70, 100) for s in range(seeds)
    ]  # fmt: skip


def test_message_passing_decides_between_the_curves():
    assert hardmax.judge(made(1.0, 0.33)).outcome is Outcome.SUPPORTED
    assert hardmax.judge(made(0.593 / 0.3291, 0.593)).outcome is Outcome.REFUTED


def test_message_passing_lies_below_the_published_curve():
    result = hardmax.measure(hardmax.Point(d=60), 0)
    assert result["theory"] == pytest.approx(0.3291, abs=1e-4)
    assert result["error"] < 0.45 < hardmax.PUBLISHED_ERROR


def test_words():
    """What was found, and where it differs from the literature, in the numbers of the verdict."""
    numbers = hardmax.judge(made(1.0, 0.3377)).numbers
    assert "an error of 0.34, the published curve 0.59" in hardmax.finding(numbers)
    (difference,) = hardmax.CLAIM.differs
    assert "is 0.593 at alpha = 0.3417" in difference.statement
    ours = difference.ours(numbers)
    assert "has 0.338 (0.338 to 0.338)" in ours
    assert "gives 0.3291" in ours


def test_series():
    point = hardmax.Point(d=40)
    rows = [Measurement(point, seed, {"error": error, "theory": 0.329}) for seed, error in enumerate((0.3, 0.5))]
    (series,) = hardmax.series(rows)
    assert series.settings == {"channel": "hardmax", "tokens": 2, "noise": 0.0, "rho": 0.5, "decay": None, "d": 40}
    assert (series.x, series.theory) == ((0.3417,), (0.329,))
    assert series.mean == pytest.approx((0.4,))
    assert series.standard_error == pytest.approx((0.1,))
