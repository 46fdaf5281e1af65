"""aim.hardmax: which curve is the error of hardmax attention, and it never vanishes.

The last of 60 iterates is used, whether or not message passing has converged: at finite d it often cycles about its
fixed point.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from pydantic import PositiveFloat, PositiveInt

from attlas import aim
from attlas.claims.aim.kit import HARDMAX_SCORE, amp_cost, amp_error, errors, points
from attlas.claims.claim import Claim, Cost, Difference, Measurement, Numbers, Result, Settings, Sweep, Unfinished
from attlas.claims.figure import COLOURS, THEORY, drawn, panels
from attlas.claims.finite_size import finite_size_verdict
from attlas.claims.learners import learner
from attlas.claims.series import Series
from attlas.claims.verdict import Outcome, Verdict
from attlas.numerics import mean_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# the authors' public curve for rho = 0.5 at this alpha; its score uses the joint normal density where the partial derivative
# of the bivariate distribution function is needed, and then misses the Nishimori identity
PUBLISHED_ALPHA, PUBLISHED_RHO, PUBLISHED_ERROR = 0.3417, 0.5, 0.593


class Point(Settings):
    """Samples, width and size."""

    alpha: PositiveFloat = PUBLISHED_ALPHA
    rho: PositiveFloat = PUBLISHED_RHO
    d: PositiveInt


def measure(point: Point, seed: int) -> Result:
    """Run message passing once."""
    return amp_error(aim.Hardmax(2), point.d, point.alpha, point.rho, seed)


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """Message passing extrapolates to our V, and at the published alpha lies below the published curve, at every size.

    An estimator with a smaller error refutes a curve as an optimum. V is positive at every alpha tried.
    """
    verdict = finite_size_verdict(
        [(f"alpha={m.point.alpha:g} rho={m.point.rho:g}", m.point.d, m.result["ratio"]) for m in measurements],
        "setting",
        "error of message passing over V",
    )
    there = [m for m in measurements if (m.point.alpha, m.point.rho) == (PUBLISHED_ALPHA, PUBLISHED_RHO)]
    if verdict.outcome is not Outcome.SUPPORTED or len(there) < 2:
        return verdict
    largest = max(m.point.d for m in there)
    mean, low, high = mean_interval([m.result["error"] for m in there if m.point.d == largest])
    numbers = verdict.numbers | {
        "error at the published alpha": mean,
        "low": low,
        "high": high,
        "published": PUBLISHED_ERROR,
        "state evolution at the published alpha": there[0].result["theory"],
    }
    reason = (
        f"at alpha = {PUBLISHED_ALPHA:g} message passing has {mean:.3f} ({low:.3f} to {high:.3f}, d = {largest}), ours is"
        f" {there[0].result['theory']:.4f}, the published curve {PUBLISHED_ERROR}; {verdict.reason}"
    )
    positive = min(m.result["theory"] for m in measurements) > 0
    outcome = Outcome.SUPPORTED if high < PUBLISHED_ERROR and positive else Outcome.REFUTED
    return Verdict(outcome, reason, verdict.strength, verdict.unit, numbers)


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Errors against alpha."""
    return errors(measurements, "amp", "error", lambda m: m.result["theory"], channel="hardmax")


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw our curve, the published point and message passing."""
    figure, (axis,) = panels(1, width=6)
    alphas = np.geomspace(0.02, 8, 60)
    V = aim.curve(aim.Hardmax(2), alphas, measurements[0].point.rho)["mse"].values[0]
    axis.plot(alphas, V, label="state evolution (ours)", **THEORY)
    largest = max(m.point.d for m in measurements)
    for mine in series(measurements):
        if mine.settings["d"] == largest:
            drawn(axis, points(mine), f"{learner(mine.name).name}, d = {largest}")
    axis.plot([PUBLISHED_ALPHA], [PUBLISHED_ERROR], "X", color=COLOURS[1], markersize=9, label="published curve")
    axis.set(xscale="log", yscale="log", xlabel="alpha", ylabel="error of the query-key matrix, V")
    axis.legend(frameon=False, fontsize=9)
    return figure


def cost(point: Point) -> Cost:
    """Expect what message passing takes."""
    return amp_cost(aim.Hardmax(2), point.d, point.alpha, steps=40, score=HARDMAX_SCORE)


def finding(numbers: Numbers) -> str:
    """Say by how much the published curve is beaten."""
    return (
        "Hardmax attention can be learned better than the published optimum: at the same number of samples message passing"
        f" has an error of {numbers['error at the published alpha']:.2f}, the published curve {numbers['published']:.2f}"
    )


def _ours(numbers: Numbers) -> str:
    return (
        f"Message passing on the channel as defined has {numbers['error at the published alpha']:.3f}"
        f" ({numbers['low']:.3f} to {numbers['high']:.3f}), and the state evolution here gives"
        f" {numbers['state evolution at the published alpha']:.4f}."
    )


CLAIM = Claim(
    id="aim.hardmax",
    version=2,
    statement=(
        "The error of hardmax attention follows the state evolution of the channel as defined, is positive at every"
        " alpha, and lies below the published curve."
    ),
    formula=(
        r"y=\operatorname{hardmax}(h),\qquad V=F\left(\frac{1}{2\alpha\,G_2(V)}\right)>0\quad\text{at every }\alpha"
    ),
    source="boncoraglio2025bayes, hardmax attention; the published number from the authors' public scripts",
    settings=Point,
    tiers={
        "quick": Sweep([Point(d=d) for d in (40, 70, 100)], seeds=14),
        "full": Sweep([Point(alpha=a, d=d) for a in (0.1, PUBLISHED_ALPHA, 1.0) for d in (100, 200, 300)], seeds=8),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Error of the query-key matrix against alpha: the state evolution of the channel as defined, message passing at"
        " the largest d, and one point of the published curve. Points are means over data sets with standard errors."
    ),
    finding=finding,
    differs=[
        Difference(
            title="Hardmax",
            statement=(
                f"The published error of the best learner for two tokens is {PUBLISHED_ERROR} at alpha = {PUBLISHED_ALPHA},"
                f" rho = {PUBLISHED_RHO}. The score in the public scripts has a joint density where a partial derivative"
                " belongs; with it their number comes out."
            ),
            ours=_ours,
            theirs=str(PUBLISHED_ERROR),
        )
    ],
    series=series,
    unfinished=Unfinished.USED,
)
