"""recovery.queries-low-rank: a head of rank r needs O(r d) queries."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field, PositiveInt

from attlas.claims.claim import Claim, Cost, Measurement, Outcome, Result, Settings, Sweep, Verdict
from attlas.claims.figure import THEORY, panels, simulated, ticks
from attlas.claims.recovery.kit.tasks import oracle_of
from attlas.numerics import stream
from attlas.recovery import Layer, learn_from_queries

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SMALL = 1e-8  # a sketch divides by its smallest singular value


class Point(Settings):
    """Tokens and rank."""

    d: PositiveInt
    rank: PositiveInt = Field(le=20)


def measure(point: Point, seed: int) -> Result:
    """Return the queries used and the relative error of Theta."""
    d, r = point.d, point.rank
    rng = stream(seed, "teacher")
    Theta = rng.standard_normal((d, r)) @ rng.standard_normal((r, d)) * (2 / np.sqrt(d * r))
    truth = Layer(Theta[None], rng.standard_normal((1, d, d)) / np.sqrt(d))
    found = learn_from_queries(oracle_of(truth), d, rank=r, seed=seed)
    error = np.linalg.norm(found.Theta - truth.Theta) / np.linalg.norm(Theta)
    return {"queries": float(found.queries), "error": float(error)}


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """Every run is right, with at most 2 r d + d queries and a tenth more for steps that had to be shortened."""
    shares = np.array([m.result["queries"] / (2 * m.point.rank * m.point.d + m.point.d) for m in measurements])
    errors = np.array([m.result["error"] for m in measurements])
    if not np.isfinite([*shares, *errors]).all() or np.any(errors == 0):
        return Verdict(Outcome.REFUTED, "an error is exactly zero, or not a number", -np.inf, "orders of magnitude")
    numbers = {"worst error": float(errors.max()), "largest share of 2rd + d": float(shares.max())}
    reason = (
        f"{int(np.sum(errors < SMALL))} of {len(errors)} runs are right to {SMALL:g} (worst {errors.max():.1e}), with"
        f" {shares.min():.2f} to {shares.max():.2f} times 2 r d + d queries"
    )
    margin = float(min(np.log10(SMALL / errors.max()), np.log10(1.1 / shares.max())))
    if not margin > 0:
        return Verdict(Outcome.REFUTED, reason, margin, "orders of magnitude", numbers)
    return Verdict(Outcome.SUPPORTED, reason, margin, "orders of magnitude", numbers)


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw the queries against r d, and the errors."""
    figure, (left, right) = panels(2)
    for i, r in enumerate(sorted({m.point.rank for m in measurements})):
        mine = [m for m in measurements if m.point.rank == r]
        for axis, key in ((left, "queries"), (right, "error")):
            simulated(axis, i, [m.point.d for m in mine], [m.result[key] for m in mine], f"rank {r}", log=True)
    d = np.array(sorted({m.point.d for m in measurements}))
    left.plot(d, d**2 + d, label="d² + d", **THEORY)
    left.set(xlabel="d", ylabel="queries", xscale="log", yscale="log")
    left.legend(frameon=False, fontsize=9)
    right.set(xlabel="d", ylabel="relative error of Theta", xscale="log", yscale="log")
    for axis in (left, right):
        ticks(axis, d.tolist())
    return figure


def cost(point: Point) -> Cost:
    """Expect a tenth of a millisecond for a query."""
    return Cost(0.02 + 2e-4 * (2 * point.rank + 1) * point.d, 100_000_000)


CLAIM = Claim(
    id="recovery.queries-low-rank",
    version=1,
    statement="O(r d) value queries suffice for a head of rank r.",
    formula=r"\operatorname{rank}\Theta=r:\qquad\Theta=(\Theta V)(Q\Theta V)^{+}(Q\Theta),\quad 2rd+d\text{ queries}",
    source="bhattamishra2026provably; the sketch is ours",
    settings=Point,
    tiers={
        "quick": Sweep([Point(d=d, rank=r) for d in (10, 20, 40) for r in (1, 2, 4)], seeds=6),
        "full": Sweep([Point(d=d, rank=r) for d in (10, 20, 40, 80) for r in (1, 2, 4, 8)], seeds=20),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
)
