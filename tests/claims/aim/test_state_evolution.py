"""The claims about denoising and message passing: they hold, and a broken learner or formula refutes each."""

import numpy as np
import pytest

from attlas import aim
from attlas.claims import Measurement, Outcome, amp_error
from attlas.claims.aim import denoiser as aim_denoiser
from attlas.claims.aim import hardmax as aim_hardmax
from attlas.claims.aim import quadratic_networks as aim_quadratic_networks
from attlas.claims.aim import sequence_length as aim_sequence_length
from attlas.claims.aim import state_evolution as aim_state_evolution

from .broken import verdict_of

DENOISER = [aim_denoiser.Point(delta=0.3, rho=0.5, d=d) for d in (40, 80, 160)]
SOFTMAX = [aim_state_evolution.Point(channel="softmax", tokens=2, alpha=0.1, d=d) for d in (30, 60, 90)]


def test_the_denoiser_attains_its_error():
    assert verdict_of(aim_denoiser.CLAIM, DENOISER, seeds=20).outcome is Outcome.SUPPORTED


@pytest.mark.parametrize(
    "broken",
    [
        lambda R, delta, rho: R,  # no shrinkage
        lambda R, delta, rho: (R + delta * np.sqrt(rho) * np.eye(len(R))) / (1 + delta),  # linear shrinkage
        lambda R, delta, rho: aim.denoise(R, 2 * delta, rho),  # wrong noise
    ],
    ids=["identity", "linear", "noise"],
)
def test_a_worse_denoiser_refutes_it(monkeypatch, broken):
    monkeypatch.setattr(aim_denoiser, "denoise", broken)
    assert verdict_of(aim_denoiser.CLAIM, DENOISER, seeds=20).outcome is Outcome.REFUTED


def test_a_wrong_formula_refutes_it(monkeypatch):
    monkeypatch.setattr(aim_denoiser, "mmse", lambda delta, rho: delta / (1 + delta))
    assert verdict_of(aim_denoiser.CLAIM, DENOISER, seeds=20).outcome is Outcome.REFUTED


def test_message_passing_follows_the_state_evolution():
    verdict = verdict_of(aim_state_evolution.CLAIM, SOFTMAX, seeds=12)
    assert verdict.outcome is not Outcome.REFUTED
    assert 0.85 < verdict.numbers[f"{aim_state_evolution._label(SOFTMAX[0])} at d = infinity"] < 1.15


def test_a_learner_without_its_scores_refutes_it(monkeypatch):
    """Message passing that stops after one step does not reach V."""

    def impatient(*arguments, **options):
        return aim.message_passing(*arguments, **(options | {"max_steps": 2}))

    monkeypatch.setattr(amp_error, "aim", _with(message_passing=impatient))
    assert verdict_of(aim_state_evolution.CLAIM, SOFTMAX, seeds=8).outcome is Outcome.REFUTED


def test_a_theory_with_a_wrong_count_refutes_it(monkeypatch):
    """State evolution that forgets the factor two between G2 and qhat."""

    def wrong(channel, alpha, rho, **options):
        return aim.state_evolution(channel, alpha / 2, rho, **options)

    monkeypatch.setattr(amp_error, "aim", _with(state_evolution=wrong))
    assert verdict_of(aim_state_evolution.CLAIM, SOFTMAX, seeds=8).outcome is Outcome.REFUTED


def test_lengths_collapse_only_on_the_right_count():
    """Measured at A = alpha (T^2 + T), the count of the linear channel, the theory of two lengths differs."""
    points = [aim_sequence_length.Point(tokens=T, A=0.4, d=20) for T in (2, 3)]

    def at_wrong_alpha(point):
        wrong = point.A / (point.tokens**2 + point.tokens)
        return {"theory": aim.state_evolution(aim.Softmax(point.tokens), wrong, 0.5).value, "ratio": 1.0}

    verdict = aim_sequence_length.judge([Measurement(p, s, at_wrong_alpha(p)) for p in points for s in range(3)])
    assert verdict.outcome is Outcome.REFUTED
    assert "does not collapse" in verdict.reason
    theory = {aim.state_evolution(aim.Softmax(p.tokens), p.alpha, 0.5).value for p in points}
    assert np.ptp(list(theory)) < 1e-12


def made(ratio, error, seeds=12):
    """Results of hardmax message passing as if they had been measured."""
    rng, theory = np.random.default_rng(0), {"theory": 0.3291}
    return [
        Measurement(aim_hardmax.Point(d=d), s, {"ratio": ratio + 1 / d + rng.normal(0, 0.02), "error": error} | theory)
        for d in (40, 70, 100) for s in range(seeds)
    ]  # fmt: skip


def test_hardmax_decides_between_the_curves():
    ours, theirs = 0.33 + 0.001 * np.arange(2), 0.593
    assert aim_hardmax.judge(made(1.0, float(ours[0]))).outcome is Outcome.SUPPORTED
    assert aim_hardmax.judge(made(theirs / 0.3291, theirs)).outcome is Outcome.REFUTED


def test_hardmax_message_passing_lies_below_the_published_curve():
    result = aim_hardmax.measure(aim_hardmax.Point(d=60), 0)
    assert result["theory"] == pytest.approx(0.3291, abs=1e-4)
    assert result["error"] < 0.45 < aim_hardmax.PUBLISHED_ERROR


def test_quadratic_networks():
    assert verdict_of(aim_quadratic_networks.CLAIM, seeds=1).outcome is Outcome.SUPPORTED


def test_a_wrong_noise_refutes_quadratic_networks(monkeypatch):
    exact = aim.Linear
    monkeypatch.setattr(aim, "Linear", lambda tokens, noise: exact(tokens, noise + 1e-4))
    assert verdict_of(aim_quadratic_networks.CLAIM, seeds=1).outcome is Outcome.REFUTED


def test_nothing_is_published_elsewhere_and_a_nan_is_no_agreement():
    points = [point.model_copy(update={"noise": 1.0}) for point in aim_quadratic_networks.CLAIM.tiers["quick"].points]
    assert verdict_of(aim_quadratic_networks.CLAIM, points, seeds=1).outcome is Outcome.INCONCLUSIVE
    published = aim_quadratic_networks.CLAIM.tiers["quick"].points
    rows = [Measurement(p, 0, {"V": v}) for p, v in zip(published, (0.61748698, np.nan, 0.16969945), strict=True)]
    assert aim_quadratic_networks.judge(rows).outcome is Outcome.REFUTED


def test_nothing_is_decided_above_perfect_recovery():
    points = [aim_state_evolution.Point(channel="softmax", tokens=2, alpha=0.25, d=d) for d in (10, 14)]
    assert verdict_of(aim_state_evolution.CLAIM, points, seeds=2).outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize(
    "claim", [aim_denoiser, aim_state_evolution, aim_sequence_length, aim_hardmax, aim_quadratic_networks]
)
def test_draws(claim):
    sweep = claim.CLAIM.tiers["quick"].points
    points = [p.model_copy(update={"d": d}) for p in sweep[:2] for d in (16, 20)] if hasattr(sweep[0], "d") else sweep
    figure = claim.draw([Measurement(p, s, claim.measure(p, s)) for p in points for s in range(2)])
    assert figure.axes[0].get_xlabel()


def _with(**changes):
    """The room `aim`, with some of its functions replaced."""
    import types

    room = types.SimpleNamespace(**{name: getattr(aim, name) for name in dir(aim) if not name.startswith("_")})
    for name, value in changes.items():
        setattr(room, name, value)
    return room
