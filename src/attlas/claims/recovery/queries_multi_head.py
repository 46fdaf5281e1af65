"""recovery.queries-multi-head: H heads from fewer than 4 H d^2 - 2 H + 1 queries, their number unknown."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field, PositiveInt

from attlas.claims.claim import Claim, Cost, Measurement, Outcome, Result, Settings, Sweep, Verdict
from attlas.claims.figure import THEORY, panels, simulated, ticks
from attlas.claims.recovery.kit.tasks import oracle_of, query_layer
from attlas.numerics import share_interval
from attlas.recovery import learn_from_queries, parameter_error

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEVEL = 0.99
SUCCESS = 1e-6
OFTEN = 0.8


class Point(Settings):
    """Heads, tokens and outputs. The number of heads is not told."""

    heads: PositiveInt
    d: int = Field(ge=2)
    outputs: PositiveInt = 1


def measure(point: Point, seed: int) -> Result:
    """Return the heads found by saturating and isolating, the relative error of their parameters, and the queries."""
    truth = query_layer(point.heads, point.d, point.outputs, seed)
    found = learn_from_queries(oracle_of(truth), point.d, heads=None, method="isolate", seed=seed)
    return {
        "heads": float(found.layer.heads),
        "error": parameter_error(found.layer, truth),
        "queries": float(found.queries),
        "certificate": found.certificate,
    }


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """All heads are found in four runs of five or more (99 %), from d = 6 on with fewer queries than the bound (medians)."""
    errors = np.array([m.result["error"] for m in measurements])
    counts = [m.result[key] for m in measurements for key in ("queries", "certificate")]
    if np.any(errors == 0) or np.isnan(errors).any() or np.isnan(counts).any():
        return Verdict(Outcome.REFUTED, "an error is exactly zero, or not a number", -np.inf, "of a share")
    hits = int(np.sum(errors < SUCCESS))
    share, low, high = share_interval(hits, len(errors), LEVEL)
    numbers = {"share": share, "share low": low, "share high": high}
    false = sum(m.result["certificate"] < SUCCESS and m.result["error"] > 10 * SUCCESS for m in measurements)
    numbers["certified but wrong"] = float(false)
    ratios = {}
    for point in dict.fromkeys(m.point for m in measurements):
        mine = [m.result["queries"] / bound(m.point) for m in measurements if m.point == point]
        ratios[point] = float(np.median(mine))
        numbers[f"H={point.heads} d={point.d} outputs={point.outputs} queries over bound"] = ratios[point]
    large = [ratio for point, ratio in ratios.items() if point.d >= 6]
    reason = (
        f"{hits} of {len(errors)} runs find all heads to {SUCCESS:g}, the largest of these errors"
        f" {errors[errors < SUCCESS].max(initial=0):.1e}; queries are {min(large, default=np.nan):.2f} to"
        f" {max(large, default=np.nan):.2f} of 4Hd^2 - 2H + 1 for d >= 6, and at most"
        f" {max(ratios.values()):.2f} of it for smaller d"
    )
    if high < OFTEN or false or max(large, default=0) > 1:
        return Verdict(Outcome.REFUTED, reason, low - OFTEN, "of a share", numbers)
    outcome = Outcome.SUPPORTED if low > OFTEN and large else Outcome.INCONCLUSIVE
    return Verdict(outcome, reason, low - OFTEN, "of a share", numbers)


def bound(point: Point) -> int:
    """Return the queries that kim2026queries claims to be enough."""
    return 4 * point.heads * point.d**2 - 2 * point.heads + 1


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw queries over the bound, and the errors, against the number of heads."""
    figure, (left, right) = panels(2)
    for i, d in enumerate(sorted({m.point.d for m in measurements})):
        mine = [m for m in measurements if m.point.d == d]
        heads = [m.point.heads for m in mine]
        simulated(left, i, heads, [m.result["queries"] / bound(m.point) for m in mine], f"d = {d}")
        simulated(right, i, heads, [min(m.result["error"], 10.0) for m in mine], log=True)
    left.axhline(1.0, linestyle=":", **THEORY)
    left.set(xlabel="heads", ylabel="queries / (4Hd² - 2H + 1)", xscale="log")
    left.legend(frameon=False, fontsize=9)
    right.axhline(SUCCESS, linestyle=":", **THEORY)
    right.set(xlabel="heads", ylabel="relative error of the parameters", xscale="log", yscale="log")
    for axis in (left, right):
        ticks(axis, [m.point.heads for m in measurements])
    return figure


def cost(point: Point) -> Cost:
    """Expect H d^2 queries that each cost the heads, and as much for choosing them."""
    return Cost(0.1 + 1.5e-4 * bound(point) * (1 + point.heads / 8) / 2, 150_000_000)


CLAIM = Claim(
    id="recovery.queries-multi-head",
    version=2,
    statement="H heads, their number unknown, are recovered from value queries, fewer than 4Hd^2 - 2H + 1 from d = 6 on.",
    formula=(
        r"f([b+u;\,b])=b^\top\sum_{i=1}^{H}W_i+\sum_{i=1}^{H}\sigma(b^\top\Theta_i u)\,u^\top W_i,"
        r"\qquad\text{queries}<4Hd^2-2H+1"
    ),
    source="kim2026queries for the bound; saturating and isolating is ours",
    settings=Point,
    tiers={
        "quick": Sweep([Point(heads=H, d=d) for H, d in ((2, 4), (4, 4), (2, 8), (4, 8), (8, 8), (8, 12))], seeds=6),
        "full": Sweep(
            [Point(heads=H, d=d, outputs=o) for H in (2, 4, 8, 16) for d in (4, 8, 16, 24) for o in (1, 4)], seeds=4
        ),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
)
