"""aim.hardmax: which curve is the error of hardmax attention, and it never vanishes.

Runs that have not converged are used as they are; a tenth of them leaves the claim undecided.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from pydantic import NonNegativeInt, PositiveFloat

from attlas import aim
from attlas.claims.aim.kit import (
    HARDMAX_SCORE,
    LIMIT,
    amp_cost,
    amp_error,
    converged,
    errors,
    points,
    reaches,
    theory,
)
from attlas.claims.claim import Claim, Cost, Difference, Measurement, Numbers, Result, Settings, Sweep, Unfinished
from attlas.claims.estimate import Exact, Undecided, mean
from attlas.claims.figure import COLOURS, THEORY, drawn, finished, panels
from attlas.claims.finding import spans
from attlas.claims.learners import learner
from attlas.claims.mutation import Mutation, changed
from attlas.claims.series import Series
from attlas.claims.verdict import Test, Verdict, above, below, between, decide

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# the authors' public curve for rho = 0.5 at this alpha; its score uses the joint normal density where the partial derivative
# of the bivariate distribution function is needed, and then misses the Nishimori identity
PUBLISHED_ALPHA, PUBLISHED_RHO, PUBLISHED_ERROR = 0.3417, 0.5, 0.593


EPS = 0.08  # of the error of message passing, in units of V
MANY = 100.0  # alpha from which the error falls as alpha^-2
THERE = "error at the published alpha"


class Point(Settings):
    """Samples, width and size; size 0 asks the theory alone."""

    alpha: PositiveFloat = PUBLISHED_ALPHA
    rho: PositiveFloat = PUBLISHED_RHO
    d: NonNegativeInt = 0


def measure(point: Point, seed: int) -> Result:
    """Run message passing once, or solve the theory."""
    if point.d:
        return amp_error(aim.Hardmax(2), point.d, point.alpha, point.rho, seed)
    V, known = theory(aim.Hardmax(2), point.alpha, point.rho)
    return {"V": V, "converged": known}


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """Message passing extrapolates to our V, to 8 %, and at the published alpha its error is below the published curve.

    An estimator with a smaller error refutes a curve as an optimum. V is positive at every alpha tried, and falls as
    alpha^-2 where alpha is large: it vanishes at none.
    """
    alone = {m.point.alpha: m.result["V"] for m in measurements if not m.point.d and m.point.alpha >= MANY}
    simulated = [m for m in measurements if m.point.d]
    there = [m for m in simulated if (m.point.alpha, m.point.rho) == (PUBLISHED_ALPHA, PUBLISHED_RHO)]
    if len(alone) < 3 or not there:
        raise Undecided(
            "needs three large alphas of the theory alone (d = 0), and message passing at the published alpha"
        )
    least = min(*alone.values(), *(m.result["theory"] for m in simulated))
    power = float(np.polyfit(np.log(list(alone)), np.log(list(alone.values())), 1)[0]) if least > 0 else np.nan
    largest = max(m.point.d for m in there)
    errors_there = mean([m.result["error"] for m in there if m.point.d == largest])
    V = theory(aim.Hardmax(2), PUBLISHED_ALPHA, PUBLISHED_RHO)[0]
    tests = [
        Test("smallest V", Exact(least), above(0)),
        Test("power of alpha with which V falls", Exact(power), between(-2.1, -1.9), expected=-2.0),
        Test(THERE, errors_there, below(PUBLISHED_ERROR), expected=V),
        *reaches(simulated, lambda point: f"alpha = {point.alpha:g}, rho = {point.rho:g}", EPS),
        converged(measurements),
    ]
    reason = (
        f"at alpha = {PUBLISHED_ALPHA:g} message passing has {errors_there.value:.3f} at d = {largest}, the state evolution"
        f" {V:.4f}, the published curve {PUBLISHED_ERROR}"
    )
    return decide(tests, reason, {"published": PUBLISHED_ERROR, "state evolution at the published alpha": V})


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Errors against alpha."""
    simulated = [m for m in measurements if m.point.d]
    return errors(simulated, "amp", "error", lambda m: m.result["theory"], channel="hardmax")


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
    axis.set(xscale="log", yscale="log", xlabel="samples over d², alpha", ylabel="error of the query-key matrix, V")
    return finished(figure)


def cost(point: Point) -> Cost:
    """Expect what message passing takes."""
    if not point.d:
        return Cost(0.05, 80_000_000)
    return amp_cost(aim.Hardmax(2), point.d, point.alpha, steps=55, score=HARDMAX_SCORE)


def finding(numbers: Numbers) -> str:
    """Say by how much the published curve is beaten."""
    return (
        "Hardmax attention can be learned better than the published optimum: at the same number of samples message passing"
        f" has an error of {numbers[THERE]:.3f} ± {numbers[f'{THERE} ±']:.3f}, the published curve"
        f" {numbers['published']:.3f}; extrapolated to infinite d it has {spans(numbers, LIMIT)} times the error predicted"
        " here"
    )


def _ours(numbers: Numbers) -> str:
    return (
        f"Message passing on the channel as defined has {numbers[THERE]:.3f} ± {numbers[f'{THERE} ±']:.3f}, and the state"
        f" evolution here gives {numbers['state evolution at the published alpha']:.4f}."
    )


_THEORY = [Point(alpha=alpha) for alpha in (1.0, 10.0, 100.0, 1000.0, 10_000.0)]

CLAIM = Claim(
    id="aim.hardmax",
    version=4,
    statement=(
        "The error of hardmax attention of two tokens follows the state evolution of the channel as defined, to 8 %"
        r" ($\rho = 0.5$, one $\alpha$; three at full scale); it lies below the published curve, and is positive at"
        r" every $\alpha$: it falls as $\alpha^{-2}$."
    ),
    formula=(
        r"y=\operatorname{hardmax}(h),\qquad V=F\left(\frac{1}{2\alpha\,G_2(V)}\right)>0\quad\text{at every }\alpha"
    ),
    source="boncoraglio2025bayes, hardmax attention; the published number from the authors' public scripts",
    settings=Point,
    tiers={
        "quick": Sweep(_THEORY + [Point(d=d) for d in (24, 36, 56, 84)], seeds=(1,) * len(_THEORY) + (64, 42, 30, 32)),
        "full": Sweep(
            _THEORY + [Point(alpha=a, d=d) for a in (0.1, PUBLISHED_ALPHA, 1.0) for d in (50, 80, 130, 200)],
            seeds=(1,) * len(_THEORY) + (40, 24, 16, 12) * 3,
        ),
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
    mutations=[
        Mutation(
            "V of the theory times {size:g}",
            (1.08, 1.2, 1.8),
            1.2,
            change=changed(lambda result, size: {"ratio": result["ratio"] / size} if "ratio" in result else {}),
        ),
        Mutation(
            "V of the theory times {size:g}",
            (0.92, 0.8),
            0.8,
            change=changed(lambda result, size: {"ratio": result["ratio"] / size} if "ratio" in result else {}),
        ),
        Mutation(
            "errors of message passing times {size:g}: that of the published curve, or the teacher leaks",
            (1.2, 1.65, 0.0),
            1.65,
            change=changed(
                lambda result, size: {name: result[name] * size for name in ("ratio", "error") if name in result}
            ),
        ),
    ],
    unseen="More than two tokens; errors of V below 8 %.",
    design=(
        "In a pilot errors over V scattered by 4/d. Five runs of an earlier design, one of them undecided, gave a standard"
        " error of 1.9 % at d = infinity and support in 0.81 of resampled runs; with these seeds it is 1.4 %."
    ),
)
