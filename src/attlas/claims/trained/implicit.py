"""trained.implicit: without decay, descent from a start like the prior is not the solution of the smallest trace.

A descent may creep for long after it has fitted its data, so one that has not converged is used all the same. What counts is
the fit: runs without one are left out by the judge.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from pydantic import PositiveFloat, PositiveInt

from attlas import aim
from attlas.aim.minimise import Problem
from attlas.claims.claim import Claim, Cost, Difference, Measurement, Numbers, Result, Settings, Sweep, Unfinished
from attlas.claims.figure import COLOURS, MARKERS, THEORY, panels
from attlas.claims.finding import ending, span
from attlas.claims.trained.kit import least_trace, size_of
from attlas.claims.verdict import Outcome, Verdict
from attlas.numerics import mean_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEVEL = 0.99
SMALL = 1e-3  # decay that stands for its limit
STARTS = {"prior": 1.0, "small": 0.05}
FITTED = 1e-5  # of the mean loss at S = 0: descent has fitted its data


class Point(Settings):
    """Samples, widths of teacher and student, size; two tokens, softmax."""

    alpha: PositiveFloat = 0.1
    rho: PositiveFloat = 0.5
    student: PositiveFloat = 0.5
    d: PositiveInt
    steps: PositiveInt = 6000


def measure(point: Point, seed: int) -> Result:
    """Return errors and traces of descent from a start of the prior's scale, a small one, and of the smallest trace."""
    channel = aim.Softmax(2)
    task = aim.sample(channel, point.d, point.alpha, point.rho, seed)
    size = size_of(task, point.rho)
    least = least_trace(task.X, task.y, channel, SMALL)
    zero = 0.25 * float(np.sum(Problem(task.X, task.y, channel, 0.0).target ** 2)) / len(task.X)  # the loss at S = 0
    theory = aim.trained(channel, point.alpha, point.rho, 0.0, throw=False)
    bayes = aim.state_evolution(channel, point.alpha, point.rho, steps=0, throw=False)
    result: Result = {"least": least.mse(task.S) / size, "least_trace": least.trace}
    converged = [least.converged, theory.converged, bayes.converged]
    for name, scale in STARTS.items():
        found = aim.descend(
            task.X, task.y, channel, round(point.student * point.d), seed=seed, init_scale=scale,
            tol=1e-9, max_steps=point.steps, throw=False,
        )  # fmt: skip
        converged.append(found.converged)
        result |= {
            name: found.mse(task.S).single / size,
            f"{name}_trace": float(np.trace(found.value)) / point.d,
            f"{name}_loss": float(found.losses.max()) / zero,
        }
    return result | {"theory": theory.value, "bayes": bayes.value, "converged": all(converged)}


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """On the same data, the error of descent from the prior's scale is above that of the smallest trace (99 %)."""
    fitted = [m for m in measurements if m.result["prior_loss"] < FITTED]
    if len(fitted) < max(3, 0.8 * len(measurements)):
        reason = f"only {len(fitted)} of {len(measurements)} descents fitted their data"
        return Verdict(Outcome.INCONCLUSIVE, reason, 0.0, "")
    settings = list(dict.fromkeys(m.point for m in fitted))
    level = 1 - (1 - LEVEL) / len(settings)
    numbers: dict[str, float] = {}
    margins, sides = [], []
    for point in settings:
        mine = [m.result for m in fitted if m.point == point]
        if len(mine) < 3:
            return Verdict(Outcome.INCONCLUSIVE, "needs three seeds", 0.0, "")
        label = f"alpha={point.alpha:g} student={point.student:g} d={point.d}"
        for name in STARTS:
            gaps = [r[name] - r["least"] for r in mine]
            mean, low, high = mean_interval(gaps, level)
            numbers |= {f"{label} {name} less smallest trace": mean, f"{label} {name} ±": (high - low) / 2}
            numbers[f"{label} {name} trace"] = float(np.mean([r[f"{name}_trace"] for r in mine]))
            numbers[f"{label} {name} over 2V"] = float(np.mean([r[name] for r in mine]) / (2 * mine[0]["bayes"]))
            if name == "prior":
                margins.append(low / max(float(np.std(gaps, ddof=1)) / np.sqrt(len(gaps)), 1e-300))
                sides.append(1 if low > 0 else -1 if high < 0 else 0)
        numbers[f"{label} smallest trace, trace"] = float(np.mean([r["least_trace"] for r in mine]))
    means = {name: float(np.mean([m.result[name] for m in fitted])) for name in (*STARTS, "least")}
    reason = (
        f"descent without decay has error {means['prior']:.2f} from a start at the scale of the prior,"
        f" {means['small']:.2f} from a small one, and the smallest trace {means['least']:.2f} on the same data"
    )
    return Verdict(Outcome.of(sides), reason, float(min(margins)), "standard errors", numbers)


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw errors and traces of descent against those of the smallest trace."""
    figure, (left, right) = panels(2)
    for axis, suffix, what in ((left, "", "error"), (right, "_trace", "trace over d")):
        least = [m.result[f"least{suffix}"] for m in measurements]
        for i, name in enumerate(STARTS):
            label = f"{name} start"
            axis.plot(
                least,
                [m.result[f"{name}{suffix}"] for m in measurements],
                MARKERS[i],
                color=COLOURS[i],
                alpha=0.6,
                label=label,
            )
        axis.axline((min(least), min(least)), slope=1, **THEORY)
        axis.set(xlabel=f"{what}, smallest trace", ylabel=f"{what}, descent without decay")
    left.legend(frameon=False, fontsize=9)
    return figure


def cost(point: Point) -> Cost:
    """Expect the steps of two descents, most of them overhead at small sizes."""
    n, r = point.alpha * point.d**2, point.student * point.d
    return Cost(0.5 + point.steps * (4e-4 + 8e-10 * n * point.d * r), int(80_000_000 + 100 * n * point.d))


def finding(numbers: Numbers) -> str:
    """Say how far descent stays from the smallest trace."""
    gaps = ending(numbers, "prior less smallest trace")
    return (
        f"Without decay, gradient descent does not find the solution of the smallest trace: from a start like the prior its"
        f" error is larger by {span(gaps)} on the same data"
    )


def _ours(numbers: Numbers) -> str:
    gaps, ratios = ending(numbers, "prior less smallest trace"), ending(numbers, "prior over 2V")
    return (
        f"From a start at the scale of the prior, the error of descent minus that of the smallest trace is {span(gaps)} on"
        f" the same data, and its error is {span(ratios)} times twice the Bayes error."
    )


CLAIM = Claim(
    id="trained.implicit",
    version=1,
    statement="Without decay, gradient descent from a start like the prior is not the solution of the smallest trace.",
    formula=(
        r"\lVert\hat S_{\text{descent}}-S\rVert>\lVert\hat S_{\text{trace}}-S\rVert,\qquad"
        r"\hat S_{\text{trace}}=\operatorname{argmin}\,\{\operatorname{Tr}S':\;S'\ge0,\;e(S')=0\}"
    ),
    source="boncoraglio2025inductive; this comparison is ours",
    settings=Point,
    tiers={
        "quick": Sweep([Point(d=32, steps=3000)], seeds=12),
        "full": Sweep(
            [Point(alpha=a, d=d, student=s, steps=20_000) for a in (0.1, 0.15) for d in (60, 100) for s in (0.5, 1.0)],
            seeds=8,
        ),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Gradient descent without decay against the solution of the smallest trace on the same data, one mark for each data"
        " set and start: errors (left) and traces over d (right). The lines are equality."
    ),
    finding=finding,
    differs=[
        Difference(
            title="Without weight decay",
            statement=(
                "Two pictures of gradient descent without weight decay are current: it finds the solution of the smallest"
                " trace, or it acts like a draw from the posterior, with twice the Bayes error."
            ),
            ours=_ours,
        )
    ],
    unfinished=Unfinished.USED,
)
