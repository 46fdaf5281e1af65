"""aim.width: thresholds, the limit of vanishing width, and message passing at widths of order one."""

import re

import pytest

from attlas import aim
from attlas.claims import Measurement, Outcome
from attlas.claims.aim import width

from .worlds import missed, near, outcome, with_seeds, with_sizes, world

CLAIM = width.CLAIM


def made(ratio=1.0, scatter=0.3, **changes):
    """The theory as it is; message passing tends to this ratio to it."""

    def result(point, rng):
        if not point.d:
            return width.measure(point, 0)
        return {"ratio": near(ratio, point.d, rng, scatter), "theory": 0.5, "converged": True} | changes

    return world(CLAIM, result)


def test_message_passing_decides():
    assert outcome(CLAIM, made()) is Outcome.SUPPORTED
    assert outcome(CLAIM, made(1 + 2 * width.EPS)) is Outcome.REFUTED
    assert outcome(CLAIM, made(1 - 2 * width.EPS)) is Outcome.REFUTED


def test_what_it_must_refute():
    assert missed(CLAIM, made()) == {}


@pytest.mark.parametrize(
    "few",
    [
        with_seeds(made(), 1),
        with_sizes(made(), 3),
        with_sizes(made(), 0),
        [m for m in made() if m.point.d],
        [m for m in made() if m.point.rho > 1e-4],
        made(scatter=60),
        made(theory=0.0),
    ],
    ids=["one seed", "three sizes", "theory alone", "simulation alone", "no small widths", "noise", "recovered"],
)
def test_too_little_decides_nothing(few):
    assert outcome(CLAIM, few) is Outcome.INCONCLUSIVE


def test_the_theory_of_widths():
    numbers = CLAIM.verdict(made()).numbers
    assert numbers["threshold over formula, less 1, at most"] < width.EDGE / 3
    for A in {point.A_over_rho for point in CLAIM.tiers["quick"].points if not point.d}:
        assert numbers[f"A' = {A:g}: power of rho"] == pytest.approx(1, abs=0.03)


@pytest.mark.parametrize("wrong", ["limit", "formula"])
def test_a_wrong_limit_or_formula_refutes_it(monkeypatch, wrong):
    if wrong == "limit":
        monkeypatch.setattr(width, "_limit", lambda A: 1.0 if A <= 1 else 2 - A)
    else:
        monkeypatch.setattr(aim, "recovery_threshold", lambda channel, rho: min(2 * rho, 1) / channel.count)
    assert outcome(CLAIM, made()) is Outcome.REFUTED


def test_a_point_says_whether_all_of_it_converged():
    """The theory alone does; message passing at a small d may not."""
    theory, simulated = (width.measure(width.Point(rho=1.0, A_over_rho=0.4, d=d), 0) for d in (0, 12))
    assert theory["converged"] is True
    assert isinstance(simulated["converged"], bool)
    assert simulated["ratio"] > 0


def test_finding():
    said = CLAIM.found(CLAIM.verdict(made(scatter=0.001)))
    assert re.search(r"message passing has 1.00 \(± \S+\) times the predicted error", said)
    numbers = {"threshold over formula, less 1, at most": 2e-5, "rho = 1, A = 0.4, T = 2 at d = infinity": 1.04,
               "rho = 1, A = 0.4, T = 2 at d = infinity ±": 0.02}  # fmt: skip
    said = width.finding(numbers)
    assert "agree with the formula to 2e-05" in said
    assert "has 1.04 (± 0.02) times the predicted error" in said


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
