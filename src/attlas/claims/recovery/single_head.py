"""recovery.single-head: one head is recovered exactly from random examples."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field, PositiveFloat

from attlas.claims.claim import Claim, Cost, Measurement, Outcome, Result, Settings, Sweep, Verdict
from attlas.claims.figure import THEORY, panels, simulated
from attlas.claims.recovery.kit.tasks import learned, planted
from attlas.recovery import parameter_error

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROUNDING = 1e-10  # a hundred thousand times the rounding of one number: conditioning costs some digits


class Point(Settings):
    """Tokens, the size of the logits and the number of examples."""

    d: int = Field(ge=2)
    k: int = Field(4, ge=2)
    scale: PositiveFloat = 3.0
    n: int = Field(500, ge=20)


def measure(point: Point, seed: int) -> Result:
    """Return the relative error of the parameters that variable projection finds."""
    truth, data, _ = planted("boolean", 1, point.d, point.k, point.scale, point.n, seed)
    return {"error": parameter_error(learned("varpro", data, 1, seed, 0), truth)}


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """Every seed of every setting is recovered to rounding; an error of exactly zero would be a leak."""
    errors = np.array([m.result["error"] for m in measurements])
    if not np.isfinite(errors).all() or np.any(errors == 0):
        return Verdict(Outcome.REFUTED, "an error is zero or not a number", -np.inf, "orders of magnitude")
    failed = int(np.sum(errors > ROUNDING))
    numbers = {"worst": float(errors.max()), "median": float(np.median(errors)), "runs": float(len(errors))}
    reason = (
        f"{len(errors) - failed} of {len(errors)} runs are right to {ROUNDING:g}; the worst error is {errors.max():.1e}"
    )
    outcome = Outcome.REFUTED if failed else Outcome.SUPPORTED
    return Verdict(outcome, reason, float(np.log10(ROUNDING / errors.max())), "orders of magnitude", numbers)


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw the errors against d."""
    figure, (axis,) = panels(1, width=6)
    for i, k in enumerate(sorted({m.point.k for m in measurements})):
        mine = [m for m in measurements if m.point.k == k]
        errors = [m.result["error"] for m in mine]
        simulated(axis, i, [m.point.d for m in mine], errors, f"k = {k}", log=True)
    axis.axhline(ROUNDING, linestyle=":", **THEORY)
    axis.set(xlabel="d", ylabel="relative error of the parameters", yscale="log")
    axis.legend(frameon=False, fontsize=9)
    return figure


def cost(point: Point) -> Cost:
    """Expect ten steps, each d^4 for every row."""
    return Cost(0.1 + 2e-8 * point.n * point.k * point.d**4 / 100 + 2e-6 * point.n * point.k, 200_000_000)


CLAIM = Claim(
    id="recovery.single-head",
    version=1,
    statement="One attention head is recovered exactly from random examples, in polynomial time.",
    formula=r"F(X)=\operatorname{softmax}(X\Theta X^\top)\,XW,\qquad(\hat\Theta,\hat W)=(\Theta,W)",
    source="chen2024provably; the learner is ours",
    settings=Point,
    tiers={
        "quick": Sweep([Point(d=d, k=k) for d in (4, 8, 12) for k in (2, 4)], seeds=10),
        "full": Sweep(
            [Point(d=d, k=k, scale=s, n=2000) for d in (4, 8, 16, 24) for k in (2, 4, 8) for s in (1.0, 3.0, 10.0)],
            seeds=10,
        ),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
)
