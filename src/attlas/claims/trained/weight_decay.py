"""trained.weight-decay: descent with weight decay solves a convex problem, and the theory predicts what it finds.

A run whose convex problem was not solved, or whose descent has not converged, is no measurement: it leaves the claim
undecided.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from pydantic import PositiveFloat, PositiveInt

from attlas import aim
from attlas.claims.aim.kit import LIMIT, errors, points
from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep
from attlas.claims.figure import COLOURS, MARKERS, THEORY, drawn, panels
from attlas.claims.finding import ending, span
from attlas.claims.finite_size import finite_size_verdict
from attlas.claims.learners import learner
from attlas.claims.series import Series, gather
from attlas.claims.trained.kit import TOLERANCE, size_of
from attlas.claims.verdict import Outcome, Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

QUANTITIES = ("error", "training", "rank", "trace")
SAME = 0.02  # of ||S||: how far descent may end from the convex solution


class Point(Settings):
    """Samples, decay, width of the teacher and size; two tokens, softmax."""

    alpha: PositiveFloat = 0.1
    decay: PositiveFloat = 0.1
    rho: PositiveFloat = 0.5
    d: PositiveInt


def measure(point: Point, seed: int) -> Result:
    """Solve the convex problem and descend, from a start at the scale of the prior, on the same data.

    Test errors are divided by the drawn teacher's ||S||^2 over its mean, the trace by its trace: they share its scatter.
    """
    channel = aim.Softmax(2)
    task = aim.sample(channel, point.d, point.alpha, point.rho, seed)
    found = aim.minimise(task.X, task.y, channel, point.decay, tol=TOLERANCE, throw=False)
    descended = aim.descend(
        task.X, task.y, channel, point.d, decay=point.decay, seed=seed, tol=1e-6, max_steps=8000, throw=False
    )
    theory = aim.trained(channel, point.alpha, point.rho, point.decay, throw=False)
    size = size_of(task, point.rho)
    predicted = {f"theory_{name}": getattr(theory, name) for name in QUANTITIES[1:]} | {"theory_error": theory.value}
    return predicted | {
        "error": found.mse(task.S) / size,
        "training": found.training,
        "rank": found.rank,
        "trace": found.trace * float(np.sqrt(point.rho) / (np.trace(task.S) / point.d)),
        "gap": found.residual,
        "descended_error": descended.mse(task.S).single / size,
        "apart": float(np.linalg.norm(descended.value - found.value) / np.linalg.norm(found.value)),
        "descended_gap": float(descended.gaps.max()),
        "converged": found.converged and descended.converged and theory.converged,
    }


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """Descent ends within 2 % of the convex solution; errors, rank and trace over the theory's extrapolate to 1."""
    # results of before `converged` was recorded say it by their gap
    if not max(m.result["gap"] for m in measurements) < 1e-3:
        return Verdict(Outcome.INCONCLUSIVE, "the convex problem was not solved somewhere", 0.0, "")
    apart = max(m.result["apart"] for m in measurements)
    rows = [
        (
            f"{name} at alpha={m.point.alpha:g} decay={m.point.decay:g}",
            m.point.d,
            m.result[name] / m.result[f"theory_{name}"],
        )
        for name in QUANTITIES
        for m in measurements
    ]
    verdict = finite_size_verdict(rows, "quantity", "simulation over theory")
    largest = max(m.point.d for m in measurements)
    numbers = dict(verdict.numbers) | {"largest distance of descent from the convex solution": apart}
    for name in QUANTITIES:
        ratios = [m.result[name] / m.result[f"theory_{name}"] for m in measurements if m.point.d == largest]
        numbers[f"{name} over theory at d = {largest}, mean"] = float(np.mean(ratios))
    reason = f"descent ends within {apart:.1e} of the convex solution; {verdict.reason}"
    if not apart < SAME:
        return Verdict(Outcome.REFUTED, reason, SAME - apart, "of ||S||", numbers)
    return Verdict(verdict.outcome, reason, verdict.strength, verdict.unit, numbers)


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Errors of the convex solution against alpha; errors, rank and trace over the theory's against 1/d."""
    return errors(measurements, "trained", "error", lambda m: m.result["theory_error"]) + _ratios(measurements)


def _ratios(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    rows = []
    for name in QUANTITIES:
        for m in measurements:
            settings = {"alpha": m.point.alpha, "decay": m.point.decay, "rho": m.point.rho}
            rows.append((name, settings, 1 / m.point.d, m.result[name] / m.result[f"theory_{name}"], 1.0))
    return gather(rows, "1/d", "simulation / theory")


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw simulation over theory against 1/d, and descent against the convex solution."""
    figure, (left, right) = panels(2)
    named = set()
    for mine in _ratios(measurements):
        i = QUANTITIES.index(mine.name)
        beside = (2e-4 * (i - 1.5)).__add__
        drawn(left, points(mine, beside), "" if i in named else mine.name, color=COLOURS[i], fmt=MARKERS[i])
        named.add(i)
    left.axhline(1, **THEORY)
    left.set(xlabel="1/d", ylabel="simulation / theory", xlim=(0, None))
    left.legend(frameon=False, fontsize=9)
    pairs = [(m.result["error"], m.result["descended_error"]) for m in measurements]
    look = learner("trained")
    right.plot(*zip(*pairs, strict=True), look.marker, color=look.colour, alpha=0.6)
    right.axline((0, 0), slope=1, **THEORY)
    right.set(xlabel="error of the convex solution", ylabel="error of descent", xlim=(0, None), ylim=(0, None))
    return figure


def cost(point: Point) -> Cost:
    """Expect some hundred steps of either kind, more at small decays."""
    seconds = 0.3 + 3e-6 * point.d**3 * point.alpha / 0.1 * (0.1 / point.decay) ** 0.5
    return Cost(seconds, int(60_000_000 + 100 * point.alpha * point.d**3))


def finding(numbers: Numbers) -> str:
    """Say how near descent comes to the convex solution, and that to the theory."""
    apart = numbers["largest distance of descent from the convex solution"]
    return (
        f"Training with weight decay has a theory: descent ends within {apart:.2%} of the solution of a convex problem,"
        f" whose errors, rank and trace extrapolate to {span(ending(numbers, LIMIT))} times the predicted ones"
    )


CLAIM = Claim(
    id="trained.weight-decay",
    version=1,
    statement="Descent with weight decay solves a trace-regularised convex problem; theory predicts errors, rank and trace.",
    formula=(
        r"\min_{S\ge0}\,\sum_\mu\frac{1}{4}\lVert e_\mu\rVert^2+\lambda\,d\operatorname{Tr}S:\qquad A\,\Delta=\sigma^2+E,"
        r"\quad\lambda=\theta\left(\frac{A}{2}-\int\rho_R\,f\,h\right),\quad f=(x-\theta)_{+}"
    ),
    source="boncoraglio2025inductive",
    settings=Point,
    tiers={
        "quick": Sweep([Point(d=d) for d in (40, 60, 90)], seeds=14),
        "full": Sweep(
            [Point(alpha=a, decay=lam, d=d) for a in (0.1, 0.15) for lam in (0.01, 0.1, 0.3) for d in (60, 120, 200)],
            seeds=8,
        ),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Left: test error, training error, rank and trace of the convex solution over their predictions, against 1/d,"
        " means with standard errors; the line is exact agreement. Right: test error of gradient descent against that of"
        " the convex solution, one mark for each data set; the line is equality."
    ),
    finding=finding,
    series=series,
)
