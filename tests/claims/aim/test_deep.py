import numpy as np
import pytest

from attlas.claims import Measurement, Outcome
from attlas.claims.aim import deep


def layers(first, second, scatter=0.05):
    rng = np.random.default_rng(0)
    rows = []
    for d in (24, 40):
        for seed in range(6):
            result = {"errors": np.array([first, second]) + rng.normal(0, scatter, 2), "correlation": 0.05}
            result |= {"theory": np.array([0.5, 0.2]), "theory_error": np.array([0.01, 0.01])}
            rows.append(Measurement(deep.Point(d=d), seed, result))
    return rows


def test_the_order_of_the_layers_decides():
    assert deep.judge(layers(0.6, 0.2)).outcome is Outcome.SUPPORTED
    assert deep.judge(layers(0.2, 0.6)).outcome is Outcome.REFUTED
    assert deep.judge(layers(0.4, 0.4)).outcome is Outcome.INCONCLUSIVE
    assert deep.judge(layers(0.6, 0.2)[:2]).outcome is Outcome.INCONCLUSIVE


def test_two_layers_are_measured():
    point = deep.Point(d=12, samples=64)
    result = deep.measure(point, 0)
    assert result["errors"].shape == (2,)
    assert isinstance(result["converged"], bool)
    figure = deep.draw([Measurement(point, 0, result)])
    assert len(figure.axes) == 2


def test_finding():
    numbers = deep.judge(layers(0.6, 0.2, scatter=0.001)).numbers
    assert "the first has more error, by 0.40 (guessing the prior mean gives 1)" in deep.finding(numbers)


def test_series():
    course = np.array([[1.0, 1.0], [0.8, 0.4]])
    rows = [
        Measurement(
            deep.Point(d=20), seed, {"errors": np.array([a, 0.3]), "theory": np.array([0.5, 0.2]), "course": course}
        )
        for seed, a in enumerate((0.5, 0.6))
    ]
    first, second, first_course, second_course = deep.series(rows)
    assert [s.name for s in (first, second)] == ["first layer", "second layer"]
    assert (first.x, first.theory) == ((1 / 20,), (1.0,))
    assert first.mean == pytest.approx((1.1,))
    assert first.standard_error == pytest.approx((0.1,))
    assert second.mean == pytest.approx((1.5,))
    assert (first_course.mean, second_course.mean) == ((1.0, 0.8), (1.0, 0.4))
