import pytest

from attlas import aim
from attlas.claims import Measurement, Outcome
from attlas.claims.aim import width

from ..broken import verdict_of


def test_the_theory_of_widths():
    """Its own part of the quick tier, with message passing at one width."""
    points = width._THEORY + [width.Point(rho=1.0, A_over_rho=0.4, d=d) for d in (24, 40, 56)]
    verdict = verdict_of(width.CLAIM, points, seeds=8)
    assert verdict.outcome is not Outcome.REFUTED
    assert verdict.numbers["threshold over formula, less 1, at most"] < 3e-5
    for A in (0.5, 0.8, 1.5, 1.9):
        assert verdict.numbers[f"A'={A:g} power of rho"] == pytest.approx(1, abs=0.03)


@pytest.mark.parametrize("wrong", ["limit", "formula"])
def test_a_wrong_limit_or_formula_refutes_it(monkeypatch, wrong):
    if wrong == "limit":
        monkeypatch.setattr(width, "_limit", lambda A: 1.0 if A <= 1 else 2 - A)
    else:
        monkeypatch.setattr(aim, "recovery_threshold", lambda channel, rho: min(2 * rho, 1) / channel.count)
    points = width._THEORY + [width.Point(rho=1.0, A_over_rho=0.4, d=d) for d in (16, 24)]
    assert verdict_of(width.CLAIM, points, seeds=2).outcome is Outcome.REFUTED


def test_a_point_says_whether_all_of_it_converged():
    """The theory alone does; message passing at a small d may not."""
    theory, simulated = (width.measure(width.Point(rho=1.0, A_over_rho=0.4, d=d), 0) for d in (0, 12))
    assert theory["converged"] is True
    assert isinstance(simulated["converged"], bool)


def test_finding():
    numbers = {"threshold over formula, less 1, at most": 2e-5, "T=2 rho=1 A=0.4 at d = infinity": 1.04}
    said = width.finding(numbers)
    assert "agree with the formula to 2e-05" in said
    assert "has 1.04 times the predicted error" in said


def test_series():
    """Simulations alone: points at d = 0 are theory."""
    rows = [
        Measurement(width.Point(rho=0.5, A_over_rho=0.8, d=d), seed, {"ratio": 1 + seed + 1 / d})
        for d in (80, 40) for seed in (0, 1, 2)
    ]  # fmt: skip
    (series,) = width.series([Measurement(width.Point(rho=0.5, A_over_rho=0.8), 0, {"V": 0.3}), *rows])
    assert series.x == pytest.approx((1 / 80, 1 / 40))
    assert series.mean == pytest.approx((2 + 1 / 80, 2 + 1 / 40))
    assert series.standard_error == pytest.approx([1 / 3**0.5] * 2)
    assert series.theory == (1.0, 1.0)
