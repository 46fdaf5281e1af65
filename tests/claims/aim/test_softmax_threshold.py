"""The claims on threshold, width and depth: what decides them, and what refutes them."""

import numpy as np
import pytest

from attlas import aim
from attlas.claims import Measurement, Outcome
from attlas.claims.aim import deep as aim_deep
from attlas.claims.aim import softmax_threshold as aim_softmax_threshold
from attlas.claims.aim import width as aim_width

from .broken import verdict_of


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
                rows.append(Measurement(aim_softmax_threshold.Point(ratio=ratio, d=d), seed, result))
    return rows


def test_the_place_of_the_transition_decides():
    judge = aim_softmax_threshold.judge
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
    assert aim_softmax_threshold.judge(rows).outcome is Outcome.INCONCLUSIVE


def test_descent_must_fail_below_and_succeed_above():
    judge = aim_softmax_threshold.judge
    assert judge(crossings(1.0, gd_below=1e-9)).outcome is Outcome.REFUTED
    assert judge(crossings(1.0, gd_above=0.1)).outcome is Outcome.INCONCLUSIVE


def test_descent_finds_another_solution_below_the_threshold_and_the_teacher_above():
    below, above = (aim_softmax_threshold.measure(aim_softmax_threshold.Point(ratio=x, d=24), 0) for x in (0.8, 1.5))
    assert below["loss"] < 1e-5
    assert below["gd"] > 0.05
    assert 0 < above["gd"] < 1e-6
    near = aim_softmax_threshold.measure(aim_softmax_threshold.Point(ratio=1.2, d=24), 0)
    assert 0 < near["amp"] < 1e-6


def test_the_theory_of_widths():
    """Its own part of the quick tier, with message passing at one width."""
    points = aim_width._THEORY + [aim_width.Point(rho=1.0, A_over_rho=0.4, d=d) for d in (24, 40, 56)]
    verdict = verdict_of(aim_width.CLAIM, points, seeds=8)
    assert verdict.outcome is not Outcome.REFUTED
    assert verdict.numbers["threshold over formula, less 1, at most"] < 3e-5
    for A in (0.5, 0.8, 1.5, 1.9):
        assert verdict.numbers[f"A'={A:g} power of rho"] == pytest.approx(1, abs=0.03)


@pytest.mark.parametrize("wrong", ["limit", "formula"])
def test_a_wrong_limit_or_formula_refutes_it(monkeypatch, wrong):
    if wrong == "limit":
        monkeypatch.setattr(aim_width, "_limit", lambda A: 1.0 if A <= 1 else 2 - A)
    else:
        monkeypatch.setattr(aim, "recovery_threshold", lambda channel, rho: min(2 * rho, 1) / channel.count)
    points = aim_width._THEORY + [aim_width.Point(rho=1.0, A_over_rho=0.4, d=d) for d in (16, 24)]
    assert verdict_of(aim_width.CLAIM, points, seeds=2).outcome is Outcome.REFUTED


def layers(first, second, scatter=0.05):
    rng = np.random.default_rng(0)
    rows = []
    for d in (24, 40):
        for seed in range(6):
            result = {"errors": np.array([first, second]) + rng.normal(0, scatter, 2), "correlation": 0.05}
            result |= {"theory": np.array([0.5, 0.2]), "theory_error": np.array([0.01, 0.01])}
            rows.append(Measurement(aim_deep.Point(d=d), seed, result))
    return rows


def test_the_order_of_the_layers_decides():
    assert aim_deep.judge(layers(0.6, 0.2)).outcome is Outcome.SUPPORTED
    assert aim_deep.judge(layers(0.2, 0.6)).outcome is Outcome.REFUTED
    assert aim_deep.judge(layers(0.4, 0.4)).outcome is Outcome.INCONCLUSIVE
    assert aim_deep.judge(layers(0.6, 0.2)[:2]).outcome is Outcome.INCONCLUSIVE


def test_two_layers_are_measured():
    point = aim_deep.Point(d=12, samples=64)
    result = aim_deep.measure(point, 0)
    assert result["errors"].shape == (2,)
    figure = aim_deep.draw([Measurement(point, 0, result)])
    assert len(figure.axes) == 2
