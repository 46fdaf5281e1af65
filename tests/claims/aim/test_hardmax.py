"""aim.hardmax: message passing decides between two curves, and the error vanishes at no alpha."""

import pytest

from attlas.claims import Measurement, Outcome
from attlas.claims.aim import hardmax
from attlas.claims.aim.kit import LIMIT

from .worlds import missed, near, outcome, with_seeds, with_sizes, world

CLAIM = hardmax.CLAIM
V = 0.329  # at the published alpha


def made(ratio=1.0, scatter=0.3, power=-2.0, **changes):
    """Message passing tends to this ratio to V, and V falls as this power of alpha."""

    def result(point, rng):
        if not point.d:
            return {"V": 0.3 * point.alpha**power, "converged": True}
        own = near(ratio, point.d, rng, scatter)
        return {"ratio": own, "error": own * V, "theory": V, "converged": True} | changes

    return world(CLAIM, result)


def test_message_passing_decides_between_the_curves():
    verdict = CLAIM.verdict(made())
    assert verdict.outcome is Outcome.SUPPORTED
    assert verdict.numbers["power of alpha with which V falls"] == pytest.approx(-2)
    assert outcome(CLAIM, made(hardmax.PUBLISHED_ERROR / V)) is Outcome.REFUTED
    assert outcome(CLAIM, made(1 + 2 * hardmax.EPS)) is Outcome.REFUTED
    assert outcome(CLAIM, made(1 - 2 * hardmax.EPS)) is Outcome.REFUTED


def test_the_theory_decides_whether_the_error_vanishes():
    assert outcome(CLAIM, made(power=-1.0)) is Outcome.REFUTED
    assert outcome(CLAIM, made(theory=0.0)) is Outcome.REFUTED


def test_what_it_must_refute():
    assert missed(CLAIM, made()) == {}


@pytest.mark.parametrize(
    "few",
    [
        with_seeds(made(), 1),
        with_sizes(made(), 3),
        with_sizes(made(), 0),
        [m for m in made() if m.point.d],
        made(scatter=60),
    ],
    ids=["one seed", "three sizes", "theory alone", "no theory alone", "noise"],
)
def test_too_little_decides_nothing(few):
    assert outcome(CLAIM, few) is Outcome.INCONCLUSIVE


def test_runs_that_do_not_converge_are_counted():
    assert outcome(CLAIM, made(converged=False)) is Outcome.REFUTED  # none settles
    rows = made()
    rows[-1] = Measurement(rows[-1].point, rows[-1].seed, rows[-1].result | {"converged": False})
    verdict = CLAIM.verdict(rows)
    assert verdict.outcome is not Outcome.REFUTED
    assert verdict.numbers["runs that did not converge"] == 1


def test_message_passing_and_the_theory_are_measured():
    result = hardmax.measure(hardmax.Point(d=16), 0)
    assert result["theory"] == pytest.approx(0.329, abs=0.01)
    assert 0 < result["error"] < 1
    alone = hardmax.measure(hardmax.Point(), 0)
    assert alone["V"] == pytest.approx(0.3291, abs=1e-4)
    assert alone["converged"] is True
    assert alone["V"] < hardmax.PUBLISHED_ERROR


def test_words():
    """What was found, and where it differs from the literature, in the numbers of the verdict."""
    numbers = hardmax.judge(made(scatter=0.001)).numbers
    error, limit = numbers[hardmax.THERE], next(x for name, x in numbers.items() if name.endswith(LIMIT))
    said = hardmax.finding(numbers)
    assert f"has an error of {error:.3f} ± 0.000, the published curve 0.593" in said
    assert f"it has {limit:.2f} (± " in said
    (difference,) = CLAIM.differs
    assert "is 0.593 at alpha = 0.3417" in difference.statement
    ours = difference.ours(numbers)
    assert f"has {error:.3f} ± 0.000" in ours
    assert f"gives {hardmax.measure(hardmax.Point(), 0)['V']:.4f}" in ours


def test_series():
    point = hardmax.Point(d=40)
    rows = [Measurement(point, seed, {"error": error, "theory": 0.329}) for seed, error in enumerate((0.3, 0.5))]
    (series,) = hardmax.series([Measurement(hardmax.Point(), 0, {"V": 0.3}), *rows])
    settings = {"channel": "hardmax", "tokens": 2, "noise": 0.0, "rho": point.rho, "decay": None, "d": 40}
    assert series.settings == settings
    assert (series.x, series.theory) == ((point.alpha,), (0.329,))
    assert series.mean == pytest.approx((0.4,))
    assert series.standard_error == pytest.approx((0.1,))
