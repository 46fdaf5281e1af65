"""aim.deep: which layer is learned first, and how near the diagonal theory is."""

import re

import numpy as np
import pytest

from attlas.claims import Measurement, Outcome
from attlas.claims.aim import deep

from .worlds import missed, near, outcome, with_seeds, with_sizes, world

CLAIM = deep.CLAIM
THEORY = np.array([0.6, 0.2])


def layers(first=THEORY[0], second=THEORY[1], scatter=0.3, **changes):
    """Both layers' errors tend to these, when the theory says 0.6 and 0.2."""

    def result(point, rng):
        errors = [near(1, point.d, rng, scatter) * error for error in (first, second)]
        own = {"errors": np.array(errors), "theory": THEORY, "theory_error": 0.01 * THEORY, "correlation": -0.05}
        return own | {"converged": True} | changes

    return world(CLAIM, result)


def test_the_order_and_the_errors_of_the_layers_decide():
    verdict = CLAIM.verdict(layers())
    assert verdict.outcome is Outcome.SUPPORTED
    assert verdict.numbers["correlation that the theory drops"] == 0.05
    assert outcome(CLAIM, layers(*THEORY[::-1])) is Outcome.REFUTED
    assert outcome(CLAIM, layers(0.4, 0.4)) is Outcome.REFUTED  # at these numbers of seeds a gap of nothing shows
    assert outcome(CLAIM, layers(*THEORY * (1 + 2 * deep.EPS))) is Outcome.REFUTED
    assert outcome(CLAIM, layers(*THEORY * (1 - 2 * deep.EPS))) is Outcome.REFUTED


def test_what_it_must_refute():
    assert missed(CLAIM, layers()) == {}


@pytest.mark.parametrize("few", [with_seeds(layers(), 1), with_sizes(layers(), 3), layers(scatter=30)])
def test_too_little_decides_nothing(few):
    assert outcome(CLAIM, few) is Outcome.INCONCLUSIVE


def test_a_theory_that_is_not_known_well_supports_nothing():
    assert outcome(CLAIM, layers(theory_error=2 * deep.BLURRED * THEORY)) is not Outcome.SUPPORTED


def test_two_widths_are_not_mixed():
    rows = layers()
    other = [Measurement(m.point.model_copy(update={"rho": 0.7 * m.point.rho}), m.seed, m.result) for m in rows]
    assert outcome(CLAIM, rows + other) is Outcome.INCONCLUSIVE


def test_a_slow_run_is_used_and_counted():
    verdict = CLAIM.verdict(layers(converged=False))
    assert verdict.outcome is Outcome.SUPPORTED
    assert verdict.numbers["runs that did not converge"] == len(layers())


def test_two_layers_are_measured():
    point = deep.Point(d=12, samples=64)
    result = deep.measure(point, 0)
    assert result["errors"].shape == result["theory"].shape == result["theory_error"].shape == (2,)
    assert result["course"][-1] / result["course"][0] == pytest.approx(result["errors"])
    assert isinstance(result["converged"], bool)
    assert len(deep.draw([Measurement(point, 0, result)]).axes) == 2


def test_finding():
    said = deep.finding(deep.judge(layers(scatter=0.001)).numbers)
    assert "the error of the first is larger by 0.40 (± 0.0" in said
    assert "guessing the prior mean gives 1" in said
    assert re.search(r"both layers have 1.00 \(± \S+\) times the error of the diagonal theory", said)


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
