"""aim.state-evolution: the error over V decides, and its overlap with the estimate."""

import re
import types

import numpy as np
import pytest

from attlas import aim
from attlas.claims import Measurement, Outcome
from attlas.claims.aim import kit, state_evolution

from .worlds import missed, near, outcome, with_seeds, with_sizes, world

CLAIM = state_evolution.CLAIM


def made(ratio=1.0, leaning=0.0, scatter=0.3, **changes):
    """Message passing tends to this ratio to V, and its error to this overlap with the estimate."""

    def result(point, rng):
        own = {name: near(to, point.d, rng, scatter) for name, to in (("ratio", ratio), ("leaning", leaning))}
        return own | {"error": 0.4 * own["ratio"], "theory": 0.4, "converged": True} | changes

    return world(CLAIM, result)


def test_error_and_overlap_decide():
    assert outcome(CLAIM, made()) is Outcome.SUPPORTED
    for sign in (1, -1):
        assert outcome(CLAIM, made(1 + 2 * sign * state_evolution.EPS)) is Outcome.REFUTED
        assert outcome(CLAIM, made(leaning=2 * sign * state_evolution.LEANING)) is Outcome.REFUTED


def test_what_it_must_refute():
    assert missed(CLAIM, made()) == {}


def test_one_channel_that_is_off_refutes_it():
    right, wrong, channel = made(), made(1 - 2 * state_evolution.EPS), CLAIM.tiers["quick"].points[-1].channel
    rows = [m for m in right if m.point.channel != channel] + [m for m in wrong if m.point.channel == channel]
    verdict = CLAIM.verdict(rows)
    assert verdict.outcome is Outcome.REFUTED
    assert f"fails: {channel}" in verdict.reason


@pytest.mark.parametrize(
    "few", [with_seeds(made(), 1), with_sizes(made(), 3), made(scatter=60), made(theory=0.0), made(ratio=np.nan)]
)
def test_too_little_decides_nothing(few):
    assert outcome(CLAIM, few) is Outcome.INCONCLUSIVE


def test_runs_that_did_not_converge_are_used_and_counted():
    """The odd one of many changes nothing and is told; half of them leave nothing that a claim could stand on."""
    rows = made()
    odd = [Measurement(m.point, m.seed, m.result | {"converged": i > 0}) for i, m in enumerate(rows)]
    plain, verdict = state_evolution.judge(odd), CLAIM.verdict(odd)
    assert verdict.outcome is plain.outcome is Outcome.SUPPORTED
    assert verdict.numbers == plain.numbers | {"runs that did not converge": 1.0}
    assert f"1 of {len(rows)} runs did not converge" in verdict.reason
    half = [Measurement(m.point, m.seed, m.result | {"converged": i % 2 == 0}) for i, m in enumerate(rows)]
    assert outcome(CLAIM, half) is Outcome.REFUTED


@pytest.fixture(scope="module")
def point():
    return state_evolution.Point(channel="softmax", tokens=2, alpha=0.1, d=16)


def test_message_passing_is_measured_beside_the_theory(point):
    result = state_evolution.measure(point, 0)
    n = len(kit.draw_task(aim.Softmax(2), point.d, point.alpha, point.rho, 0).X)
    assert result["theory"] == aim.state_evolution(aim.Softmax(2), n / point.d**2, point.rho, steps=0).value
    assert result["ratio"] == pytest.approx(result["error"] / result["course"][0] / result["theory"])
    assert 0.3 < result["ratio"] < 3
    assert len(result["course"]) == len(result["believed"]) <= 20
    assert np.isfinite(result["leaning"])
    assert isinstance(result["converged"], bool)
    assert len(state_evolution.draw([Measurement(point, 0, result)]).axes) == 2


def test_the_onsager_term_is_that_of_message_passing(point):
    """Once the right term, a run that is stepped by hand comes where message passing comes; with none it does not."""
    channel = aim.Linear(1, 1.0)
    plain, right, wrong = (kit.amp_error(channel, 20, 0.4, 0.5, 1, onsager) for onsager in (None, 1.0, 0.0))
    assert right["error"] == pytest.approx(plain["error"], rel=1e-3)
    assert right["leaning"] == pytest.approx(plain["leaning"], abs=1e-3)
    assert wrong["error"] > 1.01 * plain["error"]
    assert wrong["leaning"] > plain["leaning"] + 0.05  # it learns too little


def test_an_impatient_learner_has_more_error(monkeypatch, point):
    """Message passing that stops after one step does not reach V, and says that it has not converged."""
    patient = [state_evolution.measure(point, seed) for seed in range(3)]

    def impatient(*arguments, **options):
        return aim.message_passing(*arguments, **(options | {"max_steps": 1}))

    monkeypatch.setattr(kit, "aim", _with(message_passing=impatient))
    hasty = [state_evolution.measure(point, seed) for seed in range(3)]
    assert np.mean([r["ratio"] for r in hasty]) > 1.1 * np.mean([r["ratio"] for r in patient])
    assert not any(r["converged"] for r in hasty)


def test_a_theory_with_a_wrong_count_is_far_off(point):
    """State evolution that forgets the factor two between G2 and qhat is that of half the samples."""
    right, wrong = (kit.theory(aim.Softmax(2), alpha, point.rho)[0] for alpha in (point.alpha, point.alpha / 2))
    mutation = next(m for m in CLAIM.mutations if m.change and m.refuted_at > 1)
    assert wrong / right > mutation.refuted_at
    assert outcome(CLAIM, mutation.applied(made(), wrong / right, CLAIM.own_seed)) is Outcome.REFUTED


def _with(**changes):
    """The room `aim`, with some of its functions replaced."""
    room = types.SimpleNamespace(**{name: getattr(aim, name) for name in dir(aim) if not name.startswith("_")})
    for name, value in changes.items():
        setattr(room, name, value)
    return room


def test_above_perfect_recovery_there_is_no_ratio():
    result = state_evolution.measure(state_evolution.Point(channel="softmax", tokens=2, alpha=0.4, d=10), 0)
    assert result["theory"] == 0
    assert np.isnan(result["ratio"])
    assert np.isnan(result["leaning"])


def test_finding():
    said = CLAIM.found(CLAIM.verdict(made(scatter=0.001)))
    assert re.search(r"its error is 1.00 \(± \S+\) times the predicted one", said)
    numbers = {"softmax at d = infinity": 0.98, "softmax at d = infinity ±": 0.3, "linear at d = infinity": 1.013}
    assert "its error is 0.98 to 1.01 (± 0.30) times the predicted one" in state_evolution.finding(numbers)


def test_series():
    point = state_evolution.Point(channel="linear", tokens=1, noise=0.25, rho=0.5, alpha=0.4, d=50)
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
