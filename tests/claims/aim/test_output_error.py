"""aim.output-error: errors of both predictions over theory decide, and one over the other."""

import re

import numpy as np
import pytest

from attlas import aim
from attlas.claims import Measurement, Outcome
from attlas.claims.aim import output_error

from .worlds import missed, near, outcome, with_seeds, with_sizes, world

CLAIM = output_error.CLAIM
BAYES, PLUGIN = 0.3, 0.36  # errors that theory expects where the two differ


def made(bayes=1.0, plugin=1.0, scatter=0.3, **changes):
    """Errors tend to these ratios to theory; both predictions are of the same sequences."""

    def result(point, rng):
        common = near(1, point.d, rng, scatter) - 1
        own = {"bayes": bayes + common, "plugin": plugin + common}
        expected = {"bayes": BAYES, "plugin": BAYES if point.channel == "linear" else PLUGIN}
        return (
            {"V": 0.4, "theory": 0.4, "converged": True}
            | {f"{kind}_ratio": ratio for kind, ratio in own.items()}
            | {f"{kind}_expected": expected[kind] for kind in own}
            | {kind: ratio * expected[kind] * (1 + rng.normal(0, 0.02 / point.d)) for kind, ratio in own.items()}
            | changes
        )

    return world(CLAIM, result)


def test_both_errors_and_their_ratio_decide():
    assert outcome(CLAIM, made()) is Outcome.SUPPORTED
    for sign in (1, -1):
        off = 1 + 2 * sign * output_error.EPS
        assert outcome(CLAIM, made(off, off)) is Outcome.REFUTED
        assert outcome(CLAIM, made(plugin=off)) is Outcome.REFUTED
        apart = CLAIM.verdict(made(plugin=1 + 2 * sign * output_error.EPS_PAIRED))
        assert apart.outcome is Outcome.REFUTED
        assert output_error.BOTH in apart.reason


def test_what_it_must_refute():
    assert missed(CLAIM, made()) == {}


@pytest.mark.parametrize("few", [with_seeds(made(), 1), with_sizes(made(), 3), made(scatter=5), made(theory=0.0)])
def test_too_little_decides_nothing(few):
    assert outcome(CLAIM, few) is Outcome.INCONCLUSIVE


def test_runs_that_do_not_converge_are_counted():
    rows = made()
    odd = [Measurement(m.point, m.seed, m.result | {"converged": i > 0}) for i, m in enumerate(rows)]
    verdict = CLAIM.verdict(odd)
    assert verdict.outcome is Outcome.SUPPORTED
    assert verdict.numbers["runs that did not converge"] == 1
    assert outcome(CLAIM, made(converged=False)) is Outcome.REFUTED


@pytest.mark.parametrize("channel", ["linear", "softmax"])
def test_fresh_outputs_are_predicted(channel):
    case = next(point for point in CLAIM.tiers["quick"].points if point.channel == channel)
    point = case.model_copy(update={"d": 14, "fresh": 1000})
    result = output_error.measure(point, 0)
    for kind in output_error.KINDS:
        assert 0 < result[kind] < 3 * result[f"{kind}_expected"]
        assert 0.3 < result[f"{kind}_ratio"] < 3
    if channel == "linear":  # the plug-in is the posterior mean
        assert result["plugin"] == result["bayes"]
        assert result["bayes_expected"] == pytest.approx(6 * result["V"])  # T (T + 1) V
    else:
        assert result["plugin_expected"] > result["bayes_expected"]
    assert isinstance(result["converged"], bool)
    assert len(output_error.draw([Measurement(point, 0, result)]).axes) == 2


@pytest.mark.parametrize("channel", ["softmax", "hardmax"])
def test_errors_of_outputs_are_those_of_whole_attention(channel):
    """Two numbers tell all four entries of an output of two tokens; the average over indices is one over their draws."""
    rng = np.random.default_rng(0)
    h, omega = (x + np.swapaxes(x, 1, 2) for x in rng.normal(size=(2, 20, 2, 2)))

    def attend(h):
        if channel == "hardmax":
            return np.eye(2)[np.argmax(h, axis=-1)]
        weights = np.exp(h)
        return weights / weights.sum(axis=-1, keepdims=True)

    exact = np.mean(np.sum((attend(h) - attend(omega)) ** 2, axis=(1, 2)))
    assert output_error._error(channel, h, omega, 0.0) == pytest.approx(exact)
    V, x = 0.3, rng.normal(size=(20_000, 20, 2, 2)) * np.sqrt(0.3)
    drawn = omega + np.triu(x) * np.sqrt(1 + np.eye(2)) + np.swapaxes(np.triu(x, 1), -1, -2)
    exact = np.mean(np.sum((attend(h) - attend(drawn).mean(0)) ** 2, axis=(1, 2)))
    assert output_error._error(channel, h, omega, V) == pytest.approx(exact, rel=0.01)


def test_a_wider_posterior_predicts_worse():
    """Of indices that are drawn from it, the average at the right variance has the least error."""
    rng, V = np.random.default_rng(1), 0.5
    omega, x = (rng.normal(size=(4000, 2, 2)) for _ in range(2))
    omega = np.triu(omega) + np.swapaxes(np.triu(omega, 1), 1, 2)
    h = omega + np.sqrt(V) * (np.triu(x) * np.sqrt(1 + np.eye(2)) + np.swapaxes(np.triu(x, 1), 1, 2))
    errors = [output_error._error("softmax", h, omega, width * V) for width in (0.0, 1.0, 4.0)]
    assert errors[1] < min(errors[0], errors[2])
    assert isinstance(output_error.Point(channel="softmax", alpha=1, d=1).model, aim.Softmax)


def test_finding():
    said = CLAIM.found(CLAIM.verdict(made(scatter=0.001)))
    assert re.search(r"1.00 \(± \S*[1-9]\S*\) times what it says", said)


def test_series():
    point = output_error.Point(channel="softmax", alpha=0.1, d=50)
    expected = {"bayes_expected": 0.3, "plugin_expected": 0.4}
    rows = [
        Measurement(point, seed, {"bayes": x, "plugin": 2 * x, "bayes_ratio": 3 * x, "plugin_ratio": 4 * x} | expected)
        for seed, x in enumerate((0.2, 0.4))
    ]
    found = output_error.series(rows)
    assert [s.name for s in found] == [*output_error.KINDS.values()] * 2
    assert [s.mean[0] for s in found] == pytest.approx([0.3, 0.6, 0.9, 1.2])
    assert [s.theory for s in found] == [(0.3,), (0.4,), (1.0,), (1.0,)]
    assert [s.x for s in found] == [(0.1,), (0.1,), (1 / 50,), (1 / 50,)]
    assert found[0].settings == {"channel": "softmax", "noise": 0.0, "rho": point.rho, "d": 50}
