"""aim.gradient-descent: does gradient descent, averaged over its starts, reach the Bayes error?

A descent that has not converged is no measurement: one such run leaves the claim undecided. One that has converged without
fitting its data is left out by the judge.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field, PositiveFloat, PositiveInt

from attlas import aim
from attlas.claims.aim.kit import HOLLOW, LIMIT, above_threshold, errors, points
from attlas.claims.claim import Claim, Cost, Difference, Measurement, Numbers, Result, Settings, Sweep
from attlas.claims.figure import THEORY, drawn, panels
from attlas.claims.finding import ending, span
from attlas.claims.finite_size import finite_size_verdict
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Outcome, Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = ("single", "averaged", "limit")
INFINITE = "averaged over infinitely many starts"


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
    theory = aim.state_evolution(channel, point.alpha, point.rho, steps=0, throw=False)
    converged = found.converged and theory.converged
    return errors | {"theory": theory.value, "loss": float(found.losses.max()), "converged": converged}


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """The error of infinitely many starts over V, extrapolated to d = infinity, contains 1 or not.

    Only runs that fitted their data are used: without noise a loss above 1e-6 means that descent got stuck or gave up.
    """
    fitted = [m for m in measurements if m.result["loss"] < 1e-6]
    if not fitted or len(fitted) < 0.8 * len(measurements):
        return Verdict(
            Outcome.INCONCLUSIVE, f"only {len(fitted)} of {len(measurements)} descents fitted their data", 0.0, ""
        )
    if undecided := above_threshold(fitted):
        return undecided
    rows = [
        (f"alpha={m.point.alpha:g} rho={m.point.rho:g}", m.point.d, m.result["limit"] / m.result["theory"])
        for m in fitted
    ]
    verdict = finite_size_verdict(rows, "setting", "error of averaged descent over the Bayes error")
    single = float(np.mean([m.result["single"] / m.result["theory"] for m in fitted]))
    return Verdict(
        verdict.outcome,
        f"{verdict.reason}; one run alone has {single:.2f} V",
        verdict.strength,
        verdict.unit,
        verdict.numbers | {"single run over V": single},
    )


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Errors of one run and of the average against alpha; these and that of infinitely many starts over V, against 1/d."""
    found = errors(measurements, "single", "single")
    found += errors(measurements, "averaged", "averaged", lambda m: m.result["theory"])
    return found + _ratios(measurements)


def _ratios(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    rows = []
    for kind, name, theory in zip(KINDS, ("single", "averaged", INFINITE), (None, 1.0, 1.0), strict=True):
        for m in measurements:
            settings = {"alpha": m.point.alpha, "rho": m.point.rho, "inits": m.point.inits}
            rows.append((name, settings, 1 / m.point.d, m.result[kind] / m.result["theory"], theory))
    return gather(rows, "1/d", "mse / V")


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw the three errors over V against 1/d."""
    figure, (axis,) = panels(1, width=6)
    first = measurements[0].point
    for mine in _ratios(measurements):
        main = mine.settings == {"alpha": first.alpha, "rho": first.rho, "inits": first.inits}
        drawn(axis, points(mine), **({} if main else HOLLOW))
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


def finding(numbers: Numbers) -> str:
    """Say how near the average comes, and how far one run stays."""
    return (
        f"Averaging makes gradient descent optimal: over infinitely many starts its error extrapolates to"
        f" {span(ending(numbers, LIMIT))} times the Bayes error, and one run has {numbers['single run over V']:.1f} times"
    )


def _ours(numbers: Numbers) -> str:
    limit, half = ending(numbers, LIMIT)[0], ending(numbers, f"{LIMIT} ±")[0]
    d, ratio = _largest(numbers)
    return (
        f"One run has {numbers['single run over V']:.1f} times the Bayes error. Averaged over infinitely many starts it has"
        f" {ratio:.2f} times at d = {d}; extrapolated to infinite d that is {limit:.2f} ± {half:.2f}."
    )


def _largest(numbers: Numbers) -> tuple[int, float]:
    """Return the largest size, and the ratio there."""
    for name, value in numbers.items():
        size = name.rpartition(" at d = ")[2]
        if size.isdecimal():
            return int(size), value
    raise LookupError("at d = ")


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
    caption=(
        "Error of gradient descent over the Bayes error V, against 1/d: of one run, of the average over the starts, and"
        " extrapolated to infinitely many starts; hollow marks are further settings. The lines are V and 2V (dotted), the"
        " error of one draw from the posterior. Points are means over data sets with standard errors."
    ),
    finding=finding,
    differs=[
        Difference(
            title="Averaged gradient descent",
            statement="Gradient descent, averaged over its starts, was found to reach the Bayes error.",
            ours=_ours,
        )
    ],
    series=series,
)
