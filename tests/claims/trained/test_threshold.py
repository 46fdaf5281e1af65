import numpy as np
import pytest

from attlas import aim
from attlas.claims import Measurement, Outcome
from attlas.claims.trained import kit, threshold

from .made import made

POINTS = tuple(threshold.Point(d=d) for d in (10, 15, 20, 30))
THEORY = {"trace": 0.511, "psd": 0.68}


def result(moved=1.0, scatter=0.01, which="trace"):
    def of(point, seed, rng):
        found = {f"theory_{kind}": value for kind, value in THEORY.items()} | {"stopped": 0.5}
        for kind, value in THEORY.items():
            found[kind] = value * (moved if kind == which else 1.0) + 0.3 / point.d + scatter * rng.standard_normal()
        return found

    return of


@pytest.mark.parametrize(
    ("options", "outcome"),
    [({}, Outcome.SUPPORTED), ({"moved": 1.2}, Outcome.REFUTED), ({"moved": 0.8, "which": "psd"}, Outcome.REFUTED),
     ({"scatter": 0.2}, Outcome.INCONCLUSIVE)],
)  # fmt: skip
def test_judge(options, outcome):
    verdict = threshold.judge(made(POINTS, 10, result(**options)))
    assert verdict.outcome is outcome
    assert verdict.numbers["share of problems that ran out of steps"] == 0.5


def test_one_formula_for_both_is_refuted():
    rows = made(POINTS, 10, result())
    (swap,) = (m for m in threshold.CLAIM.mutations if "no better" in m.name)
    assert threshold.judge(swap.applied(rows, 1.0, int)).outcome is Outcome.REFUTED
    assert threshold.CLAIM.verdict(rows[:2]).outcome is Outcome.INCONCLUSIVE


def test_measure():
    found = threshold.measure(threshold.Point(d=12), 0)
    assert 0.3 < found["trace"] < found["psd"] < 1.1
    assert 0 <= found["stopped"] <= 1


def test_constraints_hold_for_the_teacher():
    channel = aim.Softmax(2)
    task = aim.sample(channel, 8, 0.2, 0.3, 0)
    rows, values = kit.constraints(task, channel)
    assert rows @ task.S.ravel() == pytest.approx(values, abs=1e-8)


def test_the_smallest_trace_is_that_of_the_convex_problem():
    """And the largest is not; both fit."""
    channel = aim.Softmax(2)
    task = aim.sample(channel, 16, 0.12, 0.5, 1)
    rows, values = kit.constraints(task, channel)
    least, ended = kit.extreme_trace(rows, values, 1.0, 20_000, 1e-6)
    assert ended
    decayed = aim.minimise(task.X, task.y, channel, 1e-3, tol=1e-5)
    assert np.trace(least) == pytest.approx(np.trace(decayed.value), rel=0.02)
    assert np.linalg.norm(least - decayed.value) < 0.1 * np.linalg.norm(least)
    assert rows @ least.ravel() == pytest.approx(values, abs=1e-3)
    assert np.linalg.eigvalsh(least)[0] > -1e-9
    most, _ = kit.extreme_trace(rows, values, -1.0, 2000)
    assert np.trace(most) > np.trace(task.S) > np.trace(least)


def test_recovery_is_noticed_before_it_is_perfect():
    """The error of the theory at that share of A* is what counts as recovery."""
    for rho in (0.2, 0.5):
        alpha = threshold.noticed(rho) * aim.trained_threshold(rho).minimum_trace / 4
        assert aim.trained(aim.Softmax(2), alpha, rho, 0.0).value == pytest.approx(1e-3 * (1 + rho), rel=0.02)


def test_finding():
    said = threshold.finding(threshold.judge(made(POINTS, 10, result())).numbers)
    assert "by the smallest trace from 1.0" in said or "by the smallest trace from 0.9" in said
    with pytest.raises(LookupError):
        threshold.finding({"smallest trace at rho=0.2 over the formula": 1.0})


def test_series_and_figure():
    rows = [
        Measurement(threshold.Point(d=d), seed, {"trace": x + 1 / d, "theory_trace": 0.5, "psd": x, "theory_psd": 0.7})
        for d in (20, 10) for seed, x in enumerate((0.8, 1.0))
    ]  # fmt: skip
    trace, psd = threshold.series(rows)
    assert (trace.name, psd.name) == ("smallest trace", "S >= 0 alone")
    assert trace.x == (1 / 20, 1 / 10)
    assert trace.mean == pytest.approx((0.95, 1.0))
    assert trace.standard_error == pytest.approx((0.1, 0.1))
    assert (trace.theory, psd.theory) == ((0.5, 0.5), (0.7, 0.7))
    assert len(threshold.draw(rows).axes) == 1
