"""aim.gradient-descent: does gradient descent, averaged over its starts, reach the Bayes error?"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field, PositiveFloat, PositiveInt

from attlas import aim
from attlas.claims.aim.kit import above_threshold
from attlas.claims.claim import Claim, Cost, Measurement, Outcome, Result, Settings, Sweep, Verdict
from attlas.claims.figure import THEORY, panels, simulated
from attlas.claims.finite_size import finite_size_verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = ("single", "averaged", "limit")


class Point(Settings):
    """Samples, width, size and number of starts; two tokens, loss on the logits."""

    alpha: PositiveFloat = 0.1
    rho: PositiveFloat = 0.5
    d: PositiveInt
    inits: int = Field(12, ge=2)


def measure(point: Point, seed: int) -> Result:
    """Descend from several starts; return the errors of one run, of the average and of infinitely many starts.

    Each is divided by the error of the prior mean for the drawn teacher, whose scatter it shares.
    """
    channel = aim.Softmax(2)
    task = aim.sample(channel, point.d, point.alpha, point.rho, seed)
    rank = round(point.rho * point.d)
    found = aim.descend(task.X, task.y, channel, rank, inits=point.inits, seed=seed, throw=False)
    prior = float(np.sum((task.S - np.sqrt(point.rho) * np.eye(point.d)) ** 2)) / point.d
    errors = dict(zip(KINDS, (error / prior for error in found.mse(task.S)), strict=True))
    theory = aim.state_evolution(channel, point.alpha, point.rho, steps=0).value
    return errors | {"theory": theory, "loss": float(found.losses.max()), "converged": found.converged}


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """The error of infinitely many starts over V, extrapolated to d = infinity, contains 1 or not.

    Only runs that fitted their data are used: without noise a loss above 1e-6 means that descent had not ended.
    """
    ended = [m for m in measurements if m.result["loss"] < 1e-6]
    if not ended or len(ended) < 0.8 * len(measurements):
        return Verdict(
            Outcome.INCONCLUSIVE, f"descent had ended in {len(ended)} of {len(measurements)} runs only", 0.0, ""
        )
    if undecided := above_threshold(ended):
        return undecided
    rows = [
        (f"alpha={m.point.alpha:g} rho={m.point.rho:g}", m.point.d, m.result["limit"] / m.result["theory"])
        for m in ended
    ]
    verdict = finite_size_verdict(rows, "setting", "error of averaged descent over the Bayes error")
    single = float(np.mean([m.result["single"] / m.result["theory"] for m in ended]))
    return Verdict(
        verdict.outcome,
        f"{verdict.reason}; one run alone has {single:.2f} V",
        verdict.margin,
        verdict.unit,
        verdict.numbers | {"single run over V": single},
    )


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw the three errors over V against 1/d."""
    figure, (axis,) = panels(1, width=6)
    labels = {"single": "one run", "averaged": "average over the starts", "limit": "infinitely many starts"}
    for i, kind in enumerate(KINDS):
        x = [1 / m.point.d for m in measurements]
        values = [m.result[kind] / m.result["theory"] for m in measurements]
        simulated(axis, i, x, values, labels[kind])
    axis.axhline(1, **THEORY)
    axis.axhline(2, linestyle=":", **THEORY)
    axis.set(xlabel="1/d", ylabel="error of descent / Bayes error V", xlim=(0, None), ylim=(0.5, None))
    axis.legend(frameon=False, fontsize=9)
    return figure


def cost(point: Point) -> Cost:
    """Expect some five hundred steps of two products with all starts."""
    n, r = point.alpha * point.d**2, point.rho * point.d
    step = 4 * n * 2 * point.d * r * point.inits / 4e10 + 3e-8 * n * 2 * r * point.inits
    return Cost(500 * step + 0.05, int(80_000_000 + 40 * n * 2 * r * point.inits))


CLAIM = Claim(
    id="aim.gradient-descent",
    version=2,
    statement="Gradient descent on a softmax layer, averaged over its initialisations, reaches the Bayes-optimal error.",
    formula=(
        r"\frac{1}{d}\left\lVert S-\frac{1}{K}\sum_{k=1}^{K}\hat S_k\right\rVert^2\to V"
        r"\qquad(K\text{ starts},\;K\to\infty)"
    ),
    source="boncoraglio2025bayes, gradient descent and averaging",
    settings=Point,
    tiers={
        "quick": Sweep([Point(d=d) for d in (24, 36, 50)], seeds=9),
        "full": Sweep([Point(alpha=a, d=d, inits=32) for a in (0.1, 0.15) for d in (60, 100, 200)], seeds=8),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
)
