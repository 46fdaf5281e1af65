"""recovery.hard-instances: m heads can hide a parity of m coordinates, which learners do not find."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveInt

from attlas import tokens
from attlas.claims.claim import Claim, Cost, Difference, Measurement, Numbers, Result, Settings, Sweep, Unfinished
from attlas.claims.figure import THEORY, drawn, panels
from attlas.claims.finding import ending
from attlas.claims.learners import learner
from attlas.claims.recovery.kit.figures import runs, shifted
from attlas.claims.recovery.kit.tasks import LEARNERS, SUCCESS, Budget, counted, examples, tally
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Outcome, Verdict
from attlas.numerics import mean_interval, stream
from attlas.recovery import Layer, control_layer, on_slice_accuracy, parity_layer
from attlas.recovery.parity import hidden_coordinates

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEVEL = 0.99
EXACT = 1e-12
CHANCE = 0.05  # of one half, within which an accuracy is no better than guessing


class Point(Settings):
    """Heads, which are also hidden coordinates; tokens, examples; the budgets of the learners."""

    heads: PositiveInt = 5
    d: int = Field(16, ge=4)
    n: int = Field(1000, ge=100)
    adam_steps: PositiveInt = 10_000
    starts: PositiveInt = 3
    steps: PositiveInt = 60


def measure(point: Point, seed: int) -> Result:
    """Return how exact the parity is, and what each learner makes of it and of a control with the same norms."""
    layer = parity_layer(point.heads, point.d, seed)
    X, test = (
        tokens.boolean(count, 2, point.d, stream(seed, name)) for name, count in (("data", point.n), ("test", 2000))
    )
    result: Result = {"deviation": _deviation(layer, test), "converged": True}
    budget = Budget(point.starts, point.steps, point.adam_steps)
    for task, truth in (("parity", layer), ("control", control_layer(layer, seed))):
        data, fresh = examples(truth, X), examples(truth, test)
        for name, learn in LEARNERS.items():
            found = learn(data, point.heads, seed, budget)
            result[f"{task}_{name}"] = fresh.residual(found.Theta, found.W)
            result["converged"] = result["converged"] and found.converged
            if task == "parity":
                result[f"accuracy_{name}"] = on_slice_accuracy(layer, found.layer, test)
    return result


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """The parity is exact; on it every learner is at chance; one of them solves the control more often than not (99 %)."""
    if any(np.isnan(value) for m in measurements for value in m.result.values()):
        return Verdict(Outcome.REFUTED, "a result is not a number", -np.inf, "in accuracy")
    deviation = max(m.result["deviation"] for m in measurements)
    if not deviation < EXACT:
        return Verdict(Outcome.REFUTED, f"the parity is off by {deviation:.1e}", -np.inf, "in accuracy")
    points = list(dict.fromkeys(m.point for m in measurements))
    level = 1 - (1 - LEVEL) / (len(points) * (len(LEARNERS) + 1))
    numbers: dict[str, float] = {"largest deviation of the parity": deviation}
    margins, learned_it, solved = [], [], []
    for point in points:
        mine = [m.result for m in measurements if m.point == point]
        label = f"m={point.heads} d={point.d} n={point.n}"
        if len(mine) < 3:
            return Verdict(Outcome.INCONCLUSIVE, "needs three seeds", 0.0, "")
        for name in LEARNERS:
            mean, low, high = mean_interval([r[f"accuracy_{name}"] for r in mine], level)
            numbers |= {f"{label} {name} on-slice accuracy": mean, f"{label} {name} accuracy ±": high - mean}
            margins.append(0.5 + CHANCE - high)
            learned_it.append(low > 0.5 + CHANCE)
        hits, low, _ = counted([min(r[f"control_{name}"] for name in LEARNERS) for r in mine], level)
        numbers |= {f"{label} controls solved, of {len(mine)}": float(hits), f"{label} share solved, low": low}
        solved.append(low > 0.5)
    accuracies = [value for key, value in numbers.items() if key.endswith("on-slice accuracy")]
    reason = (
        f"the parity is exact to {deviation:.1e}; learners guess it with accuracy {min(accuracies):.3f} to"
        f" {max(accuracies):.3f}, and solve the control of equal norms"
        f" {'more often than not' if all(solved) else 'not surely enough'}"
    )
    if any(learned_it):
        return Verdict(Outcome.REFUTED, f"{reason}: a learner beats chance", min(margins), "in accuracy", numbers)
    outcome = Outcome.SUPPORTED if min(margins) > 0 and all(solved) else Outcome.INCONCLUSIVE
    return Verdict(outcome, reason, min(margins), "in accuracy", numbers)


def finding(numbers: Numbers) -> str:
    """Return who finds which."""
    best = max(ending(numbers, "on-slice accuracy"))
    solved, of = tally(numbers, "controls solved, of")
    return (
        f"Two layers of the same norms: one is found by some learner in {solved} of {of} runs; the other hides a parity, on"
        f" which no learner is right more than {best:.2f} of the time (chance is 0.50)"
    )


def ours(numbers: Numbers) -> str:
    """Return from how many heads on it holds."""
    best = max(ending(numbers, "on-slice accuracy"))
    least = min(int(found[1]) for key in numbers if (found := re.match(r"m=(\d+) .*on-slice accuracy$", key)))
    return (
        f"It holds from {least} heads on in what was run here: no learner is right more than {best:.2f} of the time (chance"
        " is 0.50); fewer heads are in the documentation's tables"
    )


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Return the accuracy of every learner against the number of heads, beside chance."""
    rows = [
        (name, m.point.model_dump(include={"d", "n"}), m.point.heads, m.result[f"accuracy_{name}"], 0.5)
        for name in LEARNERS
        for m in measurements
    ]
    return gather(rows, "heads m", "accuracy of the parity")


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw the errors of parity and control, and the accuracies."""
    figure, (left, right) = panels(2)
    for i, name in enumerate(LEARNERS):
        errors = ([m.result[f"{task}_{name}"] for m in measurements] for task in ("control", "parity"))
        look, aside = learner(name), 0.15 * (i - 1)
        left.plot(*errors, look.marker, color=look.colour, alpha=0.6, label=look.name)
        places = [m.point.heads + aside for m in measurements]
        runs(right, places, [m.result[f"accuracy_{name}"] for m in measurements], name)
        for one in series(measurements):
            if one.name == name:
                drawn(right, replace(shifted(one, aside), theory=None))
    left.axvline(SUCCESS, linestyle=":", **THEORY)
    left.set(xlabel="error on the control", ylabel="error on the parity", xscale="log")
    left.legend(frameon=False, fontsize=9)
    right.axhline(0.5, linestyle=":", **THEORY)
    heads = sorted({m.point.heads for m in measurements})
    right.set_xticks(heads)
    right.set(xlabel="heads m", ylabel="accuracy of the parity")
    right.set(xlim=(heads[0] - 0.6, heads[-1] + 0.6), ylim=(0.3, 1.02))
    return figure


def cost(point: Point) -> Cost:
    """Expect three starts of variable projection that do not succeed, and Adam."""
    unknowns = point.heads * point.d**2
    steps = point.steps * point.starts * (2e-10 * point.n * unknowns * point.heads * point.d**2 + 1e-10 * unknowns**3)
    return Cost(4 * point.starts + 1e-3 * point.adam_steps + 2 * steps, 300_000_000)


def _deviation(layer: Layer, X: NDArray[np.float64]) -> float:
    pairs = X[X[:, 0, -1] != X[:, 1, -1]]
    parity = np.prod(pairs[:, :, hidden_coordinates(layer)], axis=2)
    return float(np.abs(layer(pairs)[:, :, -1] - parity).max())


CLAIM = Claim(
    id="recovery.hard-instances",
    version=2,
    statement="Some layers are not learned: m heads can hide a parity of m coordinates, and learners stay at chance on it.",
    formula=(
        r"\Theta_i=B\,(1_S-\tau_i e_d)\,e_d^\top,\quad W_i=w_i\,e_d e_d^\top:"
        r"\qquad F(X)_{rd}=\prod_{j\in S}x_{rj}\quad\text{where }x_{1d}\ne x_{2d}"
    ),
    source="chen2024provably, the lower bound; the construction is ours",
    settings=Point,
    tiers={
        "quick": Sweep([Point(heads=5, d=10, n=400, adam_steps=800, starts=1, steps=20)], seeds=10),
        "full": Sweep([Point(heads=5, d=16, n=2000), Point(heads=7, d=16, n=2000)], seeds=10),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Left: error of every learner on a layer that hides a parity against its error on a control of the same"
        " norms, one point per run; left of the dotted line the control is found. Right: how often the sign of the"
        " parity is right, each run faintly and means with standard errors; the dotted line is chance."
    ),
    finding=finding,
    differs=[
        Difference(
            "Hard instances", "Some layers of m heads hide a parity of m coordinates that no learner finds.", ours
        )
    ],
    series=series,
    # a learner is its budget: what it has when that is spent is its answer, and Adam always spends it
    unfinished=Unfinished.USED,
)
