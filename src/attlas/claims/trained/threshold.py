"""trained.threshold: from how many samples the smallest trace, or S >= 0 alone, gives the teacher.

Near the transition some problems do not converge in their steps. Their last iterate is used: either it is the teacher or it
is not.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import PositiveFloat, PositiveInt

from attlas import aim
from attlas.claims.aim.kit import points
from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep, Unfinished
from attlas.claims.figure import COLOURS, MARKERS, THEORY, drawn, panels
from attlas.claims.finding import span
from attlas.claims.series import Series, gather
from attlas.claims.trained.kit import Array, least_trace
from attlas.claims.verdict import Outcome, Verdict
from attlas.numerics import fit_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEVEL = 0.99
SHARP = 0.1  # of A: an extrapolation known to less decides nothing
FOUND = 1e-3  # of 1 + rho: an error below this is recovery
SMALL = 3e-4  # decay that stands for its limit: it moves the transition by -0.007 in A at rho = 0.5
LARGE = 3.0  # times the identity, from which the problem without decay starts
KINDS = {"trace": "smallest trace", "psd": "S >= 0 alone"}


class Point(Settings):
    """Which solution: of the smallest trace, or any S >= 0 that fits, from a large start; width and size; softmax of two."""

    kind: Literal["trace", "psd"]
    rho: PositiveFloat = 0.5
    d: PositiveInt


def measure(point: Point, seed: int) -> Result:
    """Return the A at which the error falls below a thousandth, by bisection over the first n samples of one task."""
    channel = aim.Softmax(2)
    task = aim.sample(channel, point.d, 0.4, point.rho, seed)
    converged = []

    def recovered(n: int) -> bool:
        found = _solve(point, task.X[:n], task.y[:n], channel)
        converged.append(found.converged)
        return found.mse(task.S) < FOUND * (1 + point.rho)

    low, high = round(0.05 * point.d**2), len(task.X)
    while high - low > max(1, round(0.01 * point.d**2)):
        n = (low + high) // 2
        low, high = (low, n) if recovered(n) else (n, high)
    theory = aim.trained_threshold(point.rho)
    return {
        "A": channel.count * (low + high) / 2 / point.d**2,
        "theory": theory.minimum_trace if point.kind == "trace" else theory.psd_only,
        "found_at_the_end": recovered(len(task.X)),
        "converged": all(converged),
    }


def _solve(point: Point, X: Array, y: Array, channel: aim.Softmax) -> aim.Minimum:
    if point.kind == "trace":
        return least_trace(X, y, channel, SMALL, by_way_of=(0.03,))
    start = LARGE * np.eye(point.d)
    return aim.minimise(X, y, channel, 0.0, start=start, tol=1e-8, max_steps=3000, throw=False)


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """The transition of each kind, extrapolated in 1/d, contains the formula (99 % together)."""
    kinds = list(dict.fromkeys((m.point.kind, m.point.rho) for m in measurements))
    if not all(m.result["found_at_the_end"] for m in measurements):
        return Verdict(Outcome.INCONCLUSIVE, "some task was not recovered from all its samples", 0.0, "")
    level = 1 - (1 - LEVEL) / len(kinds)
    numbers: dict[str, float] = {}
    margins, blurred, texts = [], False, []
    for kind, rho in kinds:
        mine = [m for m in measurements if (m.point.kind, m.point.rho) == (kind, rho)]
        if len({m.point.d for m in mine}) < 2 or len(mine) < 6:
            return Verdict(Outcome.INCONCLUSIVE, "needs two sizes and six runs of every kind", 0.0, "")
        line = fit_line([1 / m.point.d for m in mine], [m.result["A"] for m in mine])
        low, high = line.intercept_interval(level)
        theory, half = mine[0].result["theory"], (high - low) / 2
        numbers |= {f"{kind} rho={rho:g} A": line.intercept, f"{kind} rho={rho:g} A ±": half}
        numbers[f"{kind} rho={rho:g} formula"] = theory
        margins.append((half - abs(line.intercept - theory)) / max(line.intercept_error, 1e-300))
        blurred |= half > SHARP
        texts.append(f"{kind}: {line.intercept:.3f} ± {half:.3f}, formula {theory:.3f}")
    reason = "transition at A, extrapolated to d = infinity: " + "; ".join(texts)
    outcome = Outcome.REFUTED if min(margins) < 0 else Outcome.INCONCLUSIVE if blurred else Outcome.SUPPORTED
    return Verdict(outcome, reason, float(min(margins)), "standard errors", numbers)


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Where the teacher is found, against 1/d, for either kind of solution and every width."""
    rows = [
        (KINDS[m.point.kind], {"rho": m.point.rho}, 1 / m.point.d, m.result["A"], m.result["theory"])
        for m in measurements
    ]
    return gather(rows, "1/d", "A")


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw the transitions against 1/d with the formulas."""
    figure, (axis,) = panels(1, width=6)
    for i, mine in enumerate(series(measurements)):
        style = {"color": COLOURS[i % len(COLOURS)], "fmt": MARKERS[i % len(MARKERS)]}
        drawn(axis, points(mine), f"{mine.name}, rho = {mine.settings['rho']:g}", **style)
        if mine.theory:
            axis.axhline(mine.theory[0], **(THEORY | {"color": style["color"]}))
    axis.set(xlabel="1/d", ylabel="A at which the teacher is found", xlim=(0, None))
    axis.legend(frameon=False, fontsize=9)
    return figure


def cost(point: Point) -> Cost:
    """Expect six problems of some thousand steps, most of it overhead at small sizes."""
    return Cost((0.15 if point.kind == "trace" else 0.05) * point.d * (1 + (point.d / 40) ** 3), 100_000_000)


def finding(numbers: Numbers) -> str:
    """Say how near the transitions are to the formulas."""
    near = {
        kind: [
            value / numbers[f"{name.removesuffix(' A')} formula"]
            for name, value in numbers.items()
            if name.startswith(f"{kind} ") and name.endswith(" A")
        ]
        for kind in KINDS
    }
    if not all(near.values()):
        raise LookupError("A")
    return (
        f"Training finds the teacher from as many samples as theory says: the smallest trace from {span(near['trace'])}"
        f" times the predicted number, S >= 0 alone from {span(near['psd'])} times"
    )


CLAIM = Claim(
    id="trained.threshold",
    version=1,
    statement="Minimum-trace interpolation recovers the teacher above A*(rho), S >= 0 alone above 1/2 + rho - rho^2/2.",
    formula=(
        r"A^*=\min_{t\ge0}M(t),\quad M(t)=2\rho-\rho^2+\rho(1-\rho)\,t^2+(1-\rho)^2\int(u-t)_{+}^2\,d\mu(u),"
        r"\quad M(0)=\frac{1}{2}+\rho-\frac{\rho^2}{2}"
    ),
    source="boncoraglio2025inductive for the first; both derived again",
    settings=Point,
    tiers={
        "quick": Sweep([Point(kind=kind, d=d) for kind in ("trace", "psd") for d in (12, 18, 26)], seeds=7),
        "full": Sweep(
            [Point(kind=kind, rho=r, d=d) for kind in ("trace", "psd") for r in (0.2, 0.5) for d in (24, 36, 54)],
            seeds=8,
        ),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Number of samples from which the teacher is found, as A = alpha (T² + T - 2), against 1/d: by the solution of the"
        " smallest trace, and by any S >= 0 that fits the data. The lines are the formulas. Points are means over data"
        " sets with standard errors."
    ),
    finding=finding,
    series=series,
    unfinished=Unfinished.USED,
)
