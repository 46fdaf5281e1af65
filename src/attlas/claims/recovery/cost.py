"""recovery.cost: for a fixed number of heads the work is polynomial in d and k; it grows steeply with the heads."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field, PositiveFloat, PositiveInt

from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep, Unfinished
from attlas.claims.figure import drawn, panels, ticks
from attlas.claims.recovery.kit.figures import magnitude
from attlas.claims.recovery.kit.tasks import planted
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Outcome, Verdict
from attlas.numerics import Line, fit_line, stream
from attlas.recovery.search import random_start
from attlas.recovery.variable_projection import best_of, work_of_a_step

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEVEL = 0.99
RIGHT = 1e-10  # the relative residual that ends a run
STARTS = 5
# what the algebra of one step allows: d^4 for every row and d^6 for the solve; one power of k for rows, one for attention
MOST = {"d": 6.0, "k": 2.0}


class Point(Settings):
    """Heads, tokens, and the number of examples."""

    heads: PositiveInt = 2
    d: int = Field(8, ge=2)
    k: int = Field(4, ge=2)
    scale: PositiveFloat = 3.0
    n: int = Field(600, ge=20)


def measure(point: Point, seed: int) -> Result:
    """Return the steps of variable projection to a residual of 1e-10, over all starts it took, and their operations.

    Operations and not seconds, so that the same seed gives the same number everywhere; `benchmarks/recovery.py` has seconds.
    """
    _, data, _ = planted("boolean", point.heads, point.d, point.k, point.scale, point.n, seed)
    starts = (random_start(point.heads, point.d, stream(seed, "start", str(number))) for number in range(STARTS))
    fit = best_of(data, starts, done=RIGHT, tol=RIGHT, max_steps=100)
    work = fit.steps * work_of_a_step(point.heads, point.d, point.d, point.k, point.n * point.k)
    return {
        "steps": float(fit.steps),
        "operations": float(work),
        "residual": fit.residual,
        "converged": fit.converged,
    }


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """All runs end right; the exponents of the work in d and k are below those of the algebra, and the steps do not grow."""
    failed = [m for m in measurements if not m.result["residual"] <= RIGHT]
    numbers: dict[str, float] = {"runs that did not end right": float(len(failed))}
    margins = []
    for name in ("d", "k", "heads"):
        lines = {key: _line(measurements, name, key) for key in ("operations", "steps")}
        if lines["operations"] is None or lines["steps"] is None:
            return Verdict(Outcome.INCONCLUSIVE, f"needs three values of {name} with the rest fixed", 0.0, "")
        for key, line in lines.items():
            if line is not None:
                low, high = line.slope_interval(LEVEL)
                numbers |= {
                    f"exponent of {key} in {name}": line.slope,
                    f"exponent of {key} in {name} ±": (high - low) / 2,
                }
        if name in MOST:
            line = lines["operations"]
            margins.append((MOST[name] - line.slope_interval(LEVEL)[1]) / max(line.slope_error, 1e-300))
    work, steps = (
        " ".join(f"{name}^{numbers[f'exponent of {key} in {name}']:.1f}" for name in ("d", "k", "heads"))
        for key in ("operations", "steps")
    )
    reason = (
        f"the work to a residual of 1e-10 grows as {work}, the steps as {steps};"
        f" {len(measurements) - len(failed)} of {len(measurements)} runs end right"
    )
    if min(margins) < 0 or len(failed) > len(measurements) / 2:
        return Verdict(Outcome.REFUTED, reason, float(min(margins)), "standard errors", numbers)
    outcome = Outcome.INCONCLUSIVE if failed else Outcome.SUPPORTED
    return Verdict(outcome, reason, float(min(margins)), "standard errors", numbers)


def _line(measurements: Sequence[Measurement[Point]], name: str, key: str) -> Line | None:
    """Fit log(key) on log(name) over the points that differ in nothing else."""
    mine = _along(measurements, name)
    if len({getattr(m.point, name) for m in mine}) < 3:
        return None
    return fit_line([np.log(getattr(m.point, name)) for m in mine], [np.log(max(m.result[key], 1.0)) for m in mine])


def _along(measurements: Sequence[Measurement[Point]], name: str) -> list[Measurement[Point]]:
    """Return the largest set of measurements whose points differ in this setting alone."""
    groups: dict[Any, list[Measurement[Point]]] = {}
    for m in measurements:
        others = tuple(getattr(m.point, field) for field in Point.model_fields if field != name)
        groups.setdefault(others, []).append(m)
    return max(groups.values(), key=lambda group: len({getattr(m.point, name) for m in group}))


def finding(numbers: Numbers) -> str:
    """Return how the work grows."""
    d, k, heads = (numbers[f"exponent of operations in {name}"] for name in ("d", "k", "heads"))
    return f"The work to recover a layer grows as d^{d:.1f} and as k^{k:.1f}, and with the number of heads as m^{heads:.1f}"


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Return the operations against d, against k and against the heads, as powers of ten."""
    found = []
    for name in ("d", "k", "heads"):
        rows = [
            (
                "varpro",
                m.point.model_dump(exclude={name}),
                getattr(m.point, name),
                magnitude(m.result["operations"]),
                None,
            )
            for m in _along(measurements, name)
        ]
        found += gather(rows, name, "log10 of the operations to a residual of 1e-10")
    return found


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw a panel for each of d, k and m."""
    figure, axes = panels(3, width=3.6)
    for axis, one in zip(axes, series(measurements), strict=True):
        drawn(axis, one)
        axis.set(xlabel="heads m" if one.x_name == "heads" else one.x_name, xscale="log")
        ticks(axis, one.x)
    axes[0].set_ylabel("log₁₀ of the operations")
    return figure


def cost(point: Point) -> Cost:
    """Expect fifteen steps."""
    work = work_of_a_step(point.heads, point.d, point.d, point.k, point.n * point.k)
    return Cost(0.1 + 15 * work / 5e9, 200_000_000)


CLAIM = Claim(
    id="recovery.cost",
    version=1,
    statement="For a fixed number of heads the work of recovery is polynomial in d and k; it grows steeply with the heads.",
    formula=r"\text{work}=O(d^6)\;\text{ and }\;O(k^2)\quad\text{at fixed }m",
    source="chen2024provably, whose own algorithm is exponential in the heads; the learner here is ours",
    settings=Point,
    tiers={
        "quick": Sweep(
            [Point(d=d) for d in (4, 6, 8, 12)] + [Point(k=k) for k in (2, 8)] + [Point(heads=m) for m in (1, 3, 4)],
            seeds=4,
        ),
        "full": Sweep(
            [Point(d=d, n=1000) for d in (4, 6, 8, 12, 16)]
            + [Point(k=k, n=1000) for k in (2, 8, 16)]
            + [Point(heads=m, n=1000) for m in (1, 3, 4, 6)],
            seeds=10,
        ),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Floating-point operations of variable projection until the residual is 1e-10, on a logarithmic scale,"
        " against the dimension of tokens, their number and the number of heads: means over layers with standard"
        " errors."
    ),
    finding=finding,
    series=series,
    unfinished=Unfinished.USED,  # the judge asks whether a run reached the residual, and counts those that did not
)
