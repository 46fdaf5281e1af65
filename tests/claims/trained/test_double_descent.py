import pytest

from attlas.claims import Measurement, Outcome
from attlas.claims.trained import double_descent

from .made import made

POINTS = tuple(double_descent.Point(alpha=a, d=20) for a in (0.2, 0.3236, 0.5))


@pytest.mark.parametrize(
    ("heights", "best", "outcome"),
    [((0.7, 1.2, 0.4), (0.7, 0.4, 0.2), Outcome.SUPPORTED), ((0.7, 0.5, 0.4), (0.7, 0.4, 0.2), Outcome.REFUTED),
     ((0.7, 1.2, 0.4), (3.0, 2.0, 0.2), Outcome.REFUTED)],
)  # fmt: skip
def test_judge(heights, best, outcome):
    def of(point, seed, rng, theirs=best):
        small = dict(zip((0.2, 0.3236, 0.5), heights, strict=True))[point.alpha]
        best = dict(zip((0.2, 0.3236, 0.5), theirs, strict=True))[point.alpha]
        return {"small": small + 0.02 * rng.standard_normal(), "best": best + 0.02 * rng.standard_normal(),
                "theory_small": small, "theory_best": best, "limit": small, "bayes": best}  # fmt: skip

    verdict = double_descent.judge(made(POINTS, 6, of))
    assert verdict.outcome is outcome
    assert verdict.numbers["threshold of interpolation, alpha"] == pytest.approx(0.3236, abs=1e-4)


def test_measure():
    found = double_descent.measure(double_descent.Point(alpha=0.5, d=20, decay=1e-3), 0)
    assert 0 < found["best"] < found["small"]
    assert isinstance(found["converged"], bool)
    assert found["theory_best"] < found["theory_small"]


def test_sizes_are_not_mixed():
    """A seed is a teacher only together with a size: pairing two sizes would widen every interval, or cancel a peak."""

    def of(point, seed, rng):
        size = point.d / 20
        small = {0.2: 0.7, 0.3236: 1.2, 0.5: 0.4}[point.alpha] * size
        best = {0.2: 0.7, 0.3236: 0.4, 0.5: 0.2}[point.alpha] * size
        return {"small": small * (1 + 0.01 * rng.standard_normal()), "best": best, "theory_small": small,
                "theory_best": best, "limit": small, "bayes": best}  # fmt: skip

    points = [double_descent.Point(alpha=a, d=d) for d in (20, 200) for a in (0.2, 0.3236, 0.5)]
    verdict = double_descent.judge(made(points, 4, of))
    assert verdict.outcome is Outcome.SUPPORTED
    assert verdict.numbers["rise to the peak, logarithm ±"] < 0.05
    mixed = made([*points, points[0].model_copy(update={"noise": 1.0})], 4, of)
    assert double_descent.judge(mixed).outcome is Outcome.INCONCLUSIVE


def test_a_run_that_did_not_converge_is_no_zero():
    """Its status is no number; it leaves the claim undecided, and does not refute it."""

    def of(point, seed, rng):
        small = {0.2: 0.7, 0.3236: 1.2, 0.5: 0.4}[point.alpha] + 0.02 * rng.standard_normal()
        best = {0.2: 0.7, 0.3236: 0.4, 0.5: 0.2}[point.alpha] + 0.02 * rng.standard_normal()
        return {"small": small, "best": best, "theory_small": small, "theory_best": best, "limit": small, "bayes": best,
                "converged": seed > 0}  # fmt: skip

    rows = made(POINTS, 6, of)
    assert double_descent.judge(rows).outcome is Outcome.SUPPORTED
    assert double_descent.CLAIM.verdict(rows).outcome is Outcome.INCONCLUSIVE


def test_finding():
    numbers = {"rise to the peak, logarithm": 0.47, "the best decay removes the peak, logarithm": 1.1}
    said = double_descent.finding(numbers)
    assert "the error grows 1.6 times" in said
    assert "divides it by 3.0" in said


def test_series():
    rows = [
        Measurement(double_descent.Point(alpha=a, d=20), seed,
                    {"small": x, "best": x / 2, "theory_small": 1.1, "theory_best": 0.6})
        for a in (0.5, 0.2) for seed, x in enumerate((1.0, 2.0))
    ]  # fmt: skip
    small, best = double_descent.series(rows)
    assert (small.name, small.y_name, small.x, small.theory) == ("trained", "mse", (0.2, 0.5), (1.1, 1.1))
    assert small.settings == {"channel": "linear", "tokens": 1, "noise": 0.25, "rho": 0.5, "decay": 1e-4, "d": 20}
    assert small.mean == pytest.approx((1.5, 1.5))
    assert small.standard_error == pytest.approx((0.5, 0.5))
    assert (best.settings["decay"], best.y_name) == (None, "mse at the best decay")
    assert best.mean == pytest.approx((0.75, 0.75))
