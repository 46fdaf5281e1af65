import types

import numpy as np
import pytest

from attlas import aim
from attlas.claims import Measurement, Outcome
from attlas.claims.aim import kit, state_evolution

from ..broken import verdict_of

SOFTMAX = [state_evolution.Point(channel="softmax", tokens=2, alpha=0.1, d=d) for d in (30, 60, 90)]


def test_message_passing_follows_the_state_evolution():
    verdict = verdict_of(state_evolution.CLAIM, SOFTMAX, seeds=12)
    assert verdict.outcome is not Outcome.REFUTED
    assert 0.85 < verdict.numbers[f"{state_evolution._label(SOFTMAX[0])} at d = infinity"] < 1.15


def test_a_learner_without_its_scores_refutes_it(monkeypatch):
    """Message passing that stops after one step does not reach V."""

    def impatient(*arguments, **options):
        return aim.message_passing(*arguments, **(options | {"max_steps": 2}))

    monkeypatch.setattr(kit, "aim", _with(message_passing=impatient))
    assert verdict_of(state_evolution.CLAIM, SOFTMAX, seeds=8).outcome is Outcome.REFUTED


def test_a_theory_with_a_wrong_count_refutes_it(monkeypatch):
    """State evolution that forgets the factor two between G2 and qhat."""

    def wrong(channel, alpha, rho, **options):
        return aim.state_evolution(channel, alpha / 2, rho, **options)

    monkeypatch.setattr(kit, "aim", _with(state_evolution=wrong))
    assert verdict_of(state_evolution.CLAIM, SOFTMAX, seeds=8).outcome is Outcome.REFUTED


def _with(**changes):
    """The room `aim`, with some of its functions replaced."""
    room = types.SimpleNamespace(**{name: getattr(aim, name) for name in dir(aim) if not name.startswith("_")})
    for name, value in changes.items():
        setattr(room, name, value)
    return room


def test_nothing_is_decided_above_perfect_recovery():
    points = [state_evolution.Point(channel="softmax", tokens=2, alpha=0.25, d=d) for d in (10, 14)]
    assert verdict_of(state_evolution.CLAIM, points, seeds=2).outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize(("steps", "converged"), [(3, False), (60, True)])
def test_a_run_says_whether_it_converged(steps, converged):
    """With much noise message passing settles in some twenty steps; after three it has not."""
    result = kit.amp_error(aim.Linear(1, 1.0), 20, 0.4, 0.5, 1, max_steps=steps)
    assert result["converged"] is converged
    assert result["steps"] <= steps


def test_a_run_that_did_not_converge_is_used_and_counted():
    """Runs that cycle about their fixed point: the verdict is what it would be, and says how many there are."""
    rng = np.random.default_rng(0)
    rows = [
        Measurement(point, seed, {"theory": 0.4, "ratio": 1 + rng.normal(0, 0.02), "converged": seed % 2 == 0})
        for point in SOFTMAX for seed in range(12)
    ]  # fmt: skip
    plain, verdict = state_evolution.judge(rows), state_evolution.CLAIM.verdict(rows)
    assert verdict.outcome is plain.outcome is Outcome.SUPPORTED
    assert verdict.numbers == plain.numbers | {"runs that did not converge": 18.0}
    assert "18 of 36 runs did not converge" in verdict.reason


def test_finding():
    numbers = {"softmax at d = infinity": 0.98, "softmax at d = infinity ±": 0.3, "linear at d = infinity": 1.013}
    assert "its error is 0.98 to 1.01 times the predicted one" in state_evolution.finding(numbers)


def test_series():
    point = state_evolution.Point(channel="linear", tokens=1, noise=0.25, alpha=0.4, d=50)
    rows = [
        Measurement(point, seed, {"error": error, "ratio": error / 0.2, "theory": 0.2,
                                  "course": np.array([1, error]), "believed": np.array([1, 0.3])})
        for seed, error in enumerate((0.2, 0.3, 0.4, 0.7))
    ]  # fmt: skip
    errors, ratios, course = state_evolution.series(rows)
    assert (errors.name, errors.x_name, errors.y_name) == ("amp", "alpha", "mse")
    assert errors.settings == {"channel": "linear", "tokens": 1, "noise": 0.25, "rho": 0.5, "decay": None, "d": 50}
    assert (errors.x, errors.theory, errors.seeds) == ((0.4,), (0.2,), (4,))
    assert errors.mean == pytest.approx((0.4,))
    assert errors.standard_error == pytest.approx((np.sqrt(0.14 / 3 / 4),))  # deviations -0.2, -0.1, 0, 0.3
    assert (ratios.x, ratios.theory) == ((1 / 50,), (1.0,))
    assert ratios.mean == pytest.approx((2,))
    assert (course.x, course.theory) == ((0, 1), (1, 0.3))
    assert course.mean == pytest.approx((1, 0.4))


def test_noise_counts_for_linear_outputs_only():
    point = state_evolution.Point(channel="softmax", tokens=2, noise=0.25, alpha=0.1, d=50)
    (series,) = kit.errors([Measurement(point, 0, {"error": 0.4})], "amp", "error")
    assert series.settings["noise"] == 0.0
