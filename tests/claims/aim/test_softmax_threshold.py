"""aim.softmax-threshold: the place of the transition decides, and gradient descent on both sides of it."""

import numpy as np
import pytest

from attlas.claims import Measurement, Outcome
from attlas.claims.aim import softmax_threshold

from .worlds import missed, outcome, with_seeds, with_sizes

CLAIM = softmax_threshold.CLAIM


def crossings(place=1.0, scatter=0.1, gd_below=0.2, gd_above=1e-9, loss=1e-9):
    """Message passing begins to recover 1.5/d beyond `place` times where it should; descent is at home on both sides."""
    rows = []
    for point, count in CLAIM.tiers["quick"]:
        expected = softmax_threshold._expected(point.tokens, point.rho, point.steps)
        for seed in range(count):
            shift = 1.5 + scatter * np.random.default_rng([point.d, seed]).standard_normal()
            edge = place * expected + shift / point.d
            result = {"amp": np.nan, "gd": np.nan, "loss": np.nan, "converged": True}
            if softmax_threshold._descends(point.ratio):
                result |= {"gd": gd_below if point.ratio < 1 else gd_above, "loss": loss}
            else:
                result |= {"amp": 1e-3 * np.exp(-40 * (point.ratio - edge))}
            rows.append(Measurement(point, seed, result))
    return rows


def test_the_place_of_the_transition_decides():
    verdict = CLAIM.verdict(crossings())
    assert verdict.outcome is Outcome.SUPPORTED
    (place,) = [x for name, x in verdict.numbers.items() if name.endswith(softmax_threshold.PLACE)]
    assert place == pytest.approx(1, abs=0.02)
    assert outcome(CLAIM, crossings(1.5)) is not Outcome.SUPPORTED  # outside the range


def test_what_is_expected_comes_near_the_formula_with_more_steps():
    few, many = (softmax_threshold._expected(2, 0.5, steps) for steps in (20, 120))
    assert 1 < many < few


def test_what_it_must_refute():
    assert missed(CLAIM, crossings()) == {}


@pytest.mark.parametrize(
    "few",
    [
        with_seeds(crossings(), 1),
        with_sizes(crossings(), 3),
        [m for m in crossings() if not softmax_threshold._descends(m.point.ratio)],
        crossings(loss=1.0),
    ],
    ids=["one seed", "three sizes", "no descent", "descents that fit nothing"],
)
def test_too_little_decides_nothing(few):
    assert outcome(CLAIM, few) is Outcome.INCONCLUSIVE


def test_noise_supports_nothing():
    assert outcome(CLAIM, crossings(scatter=20)) is not Outcome.SUPPORTED


@pytest.mark.parametrize("diverged", [np.inf, np.nan])
def test_divergence_is_no_recovery(diverged):
    """Message passing that diverges above the formula leaves its data sets without a transition."""
    rows = crossings()
    for m in rows:
        if m.point.ratio > 1 and np.isfinite(m.result["amp"]):
            m.result["amp"] = diverged
    assert outcome(CLAIM, rows) in (Outcome.REFUTED, Outcome.INCONCLUSIVE)


def test_data_sets_that_diverge_everywhere_are_counted():
    """All but a few data sets of every size show nothing: that supports nothing."""
    rows = crossings()
    for m in rows:
        if m.seed > 1 and np.isfinite(m.result["amp"]):
            m.result["amp"] = np.inf
    sets = {(m.point.d, m.seed) for m in rows if not np.isnan(m.result["amp"])}
    assert CLAIM.verdict(rows).numbers["data sets that show the transition, trials"] == len(sets)


def test_descent_must_fail_below_and_succeed_above():
    assert outcome(CLAIM, crossings(gd_below=1e-9)) is Outcome.REFUTED
    assert outcome(CLAIM, crossings(gd_above=0.1)) is Outcome.REFUTED


def test_descent_finds_another_solution_below_the_threshold_and_the_teacher_above():
    below, above = (softmax_threshold.measure(softmax_threshold.Point(ratio=x, d=16), 0) for x in (0.7, 1.6))
    assert below["loss"] < 1e-5
    assert below["gd"] > 0.05
    assert 0 < above["gd"] < 1e-6
    near = softmax_threshold.measure(softmax_threshold.Point(ratio=1.35, d=16), 0)
    assert 0 < near["amp"] < softmax_threshold.RECOVERED
    assert all(isinstance(result["converged"], bool) for result in (below, above, near))


def test_a_slow_run_is_used_and_counted():
    """Message passing near the threshold has not converged after its steps, and that is no reason to decide nothing."""
    rows = [Measurement(m.point, m.seed, m.result | {"converged": m.point.ratio > 1.05}) for m in crossings()]
    verdict = CLAIM.verdict(rows)
    assert verdict.outcome is Outcome.SUPPORTED
    assert verdict.numbers["runs that did not converge"] == sum(m.point.ratio <= 1.05 for m in rows)


def test_words():
    verdict = CLAIM.verdict(crossings())
    name = next(name for name in verdict.numbers if name.endswith(softmax_threshold.PLACE))
    where, half = verdict.numbers[name], verdict.numbers[f"{name} ±"]
    said = CLAIM.found(verdict)
    assert f"at {where:.2f} ± {half:.2f} times the number of samples" in said
    assert "a wrong matrix in 100% (64% to 100%) of its runs" in said
    (difference,) = CLAIM.differs
    assert "an error of 0.0042" in difference.statement
    ours = difference.ours(verdict.numbers)
    assert ours.startswith("The error there is 0: ")  # exactly: the formula at alpha = 0.1875
    assert f"at {where:.3f} ± {half:.3f} times" in ours


def test_series():
    rows = crossings()
    *errors, located = softmax_threshold.series(rows)
    assert {(s.name, s.y_name) for s in errors} == {("amp", "mse"), ("single", "mse")}
    chosen = next(m.point for m in rows if np.isfinite(m.result["amp"]) and m.point.ratio > 1)
    amp = next(s for s in errors if (s.name, s.settings["d"]) == ("amp", chosen.d))
    mine = [m.result["amp"] for m in rows if m.point == chosen]
    place = amp.x.index(pytest.approx(chosen.alpha))
    assert amp.mean[place] == pytest.approx(np.mean(mine))
    assert amp.standard_error[place] == pytest.approx(np.std(mine, ddof=1) / np.sqrt(len(mine)))
    assert amp.theory[place] == 0  # above the threshold
    assert amp.theory[0] > 0  # below it
    descents = {point.alpha for point in CLAIM.tiers["quick"].points if softmax_threshold._descends(point.ratio)}
    found = [s for s in errors if s.name == "single"]
    assert sorted({x for s in found for x in s.x}) == pytest.approx(sorted(descents))
    sizes = {m.point.d for m in rows if np.isfinite(m.result["amp"])}
    assert located.x == pytest.approx(sorted(1 / d for d in sizes))
    first = softmax_threshold._expected(2, 0.5, chosen.steps)
    assert located.mean == pytest.approx([first + 1.5 * x for x in located.x], abs=0.01)
    seeds = {d: len({m.seed for m in rows if m.point.d == d and np.isfinite(m.result["amp"])}) for d in sizes}
    assert located.seeds == tuple(seeds[d] for d in sorted(sizes, reverse=True))
