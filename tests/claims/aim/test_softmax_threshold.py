import numpy as np
import pytest

from attlas.claims import Measurement, Outcome
from attlas.claims.aim import softmax_threshold


def crossings(place, gd_below=0.2, gd_above=1e-9):
    """Measurements as if message passing began to recover at `place` + 1/d, give or take 0.01."""
    rng = np.random.default_rng(0)
    rows = []
    for d in (30, 60, 90):
        for seed in range(8):
            edge = place + 1 / d + rng.normal(0, 0.01)
            for ratio in (0.85, 0.95, 1.0, 1.05, 1.1, 1.2, 1.4):
                gd = gd_below if ratio <= 0.9 else gd_above if ratio >= 1.25 else np.nan
                result = {"amp": 1e-3 * np.exp(-40 * (ratio - edge)), "gd": gd, "loss": 1e-9}
                rows.append(Measurement(softmax_threshold.Point(ratio=ratio, d=d), seed, result))
    return rows


def test_the_place_of_the_transition_decides():
    judge = softmax_threshold.judge
    verdict = judge(crossings(1.0))
    assert verdict.outcome is Outcome.SUPPORTED
    assert verdict.numbers["T=2 rho=0.5 transition over formula"] == pytest.approx(1, abs=0.02)
    assert judge(crossings(1.05)).outcome is Outcome.REFUTED
    assert judge(crossings(0.96)).outcome is Outcome.REFUTED
    assert judge(crossings(1.5)).outcome is Outcome.INCONCLUSIVE  # outside the range


def test_divergence_is_no_recovery():
    """Message passing that ends in NaN above the formula leaves its data sets without a transition."""
    rows = crossings(1.0)
    for m in rows:
        if m.point.ratio > 1.1:
            m.result["amp"] = np.nan
    assert softmax_threshold.judge(rows).outcome is Outcome.INCONCLUSIVE


def test_descent_must_fail_below_and_succeed_above():
    judge = softmax_threshold.judge
    assert judge(crossings(1.0, gd_below=1e-9)).outcome is Outcome.REFUTED
    assert judge(crossings(1.0, gd_above=0.1)).outcome is Outcome.INCONCLUSIVE


def test_descent_finds_another_solution_below_the_threshold_and_the_teacher_above():
    below, above = (softmax_threshold.measure(softmax_threshold.Point(ratio=x, d=24), 0) for x in (0.8, 1.5))
    assert below["loss"] < 1e-5
    assert below["gd"] > 0.05
    assert 0 < above["gd"] < 1e-6
    near = softmax_threshold.measure(softmax_threshold.Point(ratio=1.2, d=24), 0)
    assert 0 < near["amp"] < 1e-6
    assert all(isinstance(result["converged"], bool) for result in (below, above, near))


def test_a_slow_run_is_used_and_counted():
    """Message passing near the threshold has not converged after its steps, and that is no reason to decide nothing."""
    rows = [Measurement(m.point, m.seed, m.result | {"converged": m.point.ratio > 1.05}) for m in crossings(1.0)]
    verdict = softmax_threshold.CLAIM.verdict(rows)
    assert verdict.outcome is Outcome.SUPPORTED
    assert verdict.numbers["runs that did not converge"] == sum(m.point.ratio <= 1.05 for m in rows)


def test_words():
    numbers = softmax_threshold.judge(crossings(1.0)).numbers | {"found above": 23}
    where = numbers["T=2 rho=0.5 transition over formula"]
    said = softmax_threshold.finding(numbers)
    assert f"at {where:.2f} times the number of samples" in said
    assert "a wrong matrix in 24 of 24 runs" in said
    assert "the right one in 23 of 24" in said
    (difference,) = softmax_threshold.CLAIM.differs
    assert "an error of 0.0042" in difference.statement
    assert difference.ours(numbers).startswith("The error there is 0: ")  # exactly: the formula at alpha = 0.1875
    assert f"at {where:.3f} ±" in difference.ours(numbers)


def test_series():
    rows = crossings(1.0)
    *errors, located = softmax_threshold.series(rows)
    assert {(s.name, s.y_name) for s in errors} == {("amp", "mse"), ("single", "mse")}
    amp = next(s for s in errors if (s.name, s.settings["d"]) == ("amp", 60))
    mine = [m.result["amp"] for m in rows if (m.point.d, m.point.ratio) == (60, 1.05)]
    place = amp.x.index(pytest.approx(1.05 * 0.1875))
    assert amp.mean[place] == pytest.approx(np.mean(mine))
    assert amp.standard_error[place] == pytest.approx(np.std(mine, ddof=1) / np.sqrt(8))
    assert amp.theory[place] == 0  # above the threshold
    assert amp.theory[0] > 0.01
    descent = next(s for s in errors if (s.name, s.settings["d"]) == ("single", 60))
    assert descent.x == pytest.approx((0.85 * 0.1875, 1.4 * 0.1875))
    assert located.x == pytest.approx((1 / 90, 1 / 60, 1 / 30))
    assert located.mean == pytest.approx([1 + x for x in located.x], abs=0.02)
    assert located.seeds == (8, 8, 8)
