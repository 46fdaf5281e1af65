"""recovery.single-head: one head is recovered exactly from random examples."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field, PositiveFloat

from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep
from attlas.claims.figure import THEORY, panels
from attlas.claims.recovery.kit.figures import curves, magnitude, runs
from attlas.claims.recovery.kit.tasks import LEARNERS, Budget, planted
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Outcome, Verdict
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
    fit = LEARNERS["varpro"](data, 1, seed, Budget())
    return {"error": parameter_error(fit, truth), "converged": fit.converged}


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


def finding(numbers: Numbers) -> str:
    """Return how exactly."""
    return (
        f"One head is recovered from random examples in all {numbers['runs']:.0f} runs; the largest relative error of its"
        f" parameters is {numbers['worst']:.0e}"
    )


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Return the errors against d, as powers of ten."""
    rows = [
        ("varpro", m.point.model_dump(exclude={"d"}), m.point.d, magnitude(m.result["error"]), None)
        for m in measurements
    ]
    return gather(rows, "d", "log10 of the relative error of the parameters")


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw every run, and the means."""
    figure, (axis,) = panels(1, width=6)
    runs(axis, [m.point.d for m in measurements], [magnitude(m.result["error"]) for m in measurements], "varpro")
    curves(axis, series(measurements))
    axis.axhline(magnitude(ROUNDING), linestyle=":", **THEORY)
    axis.set(xlabel="d", ylabel="log₁₀ of the error of the parameters")
    axis.set_xticks(sorted({m.point.d for m in measurements}))
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
    caption=(
        "Relative error of the recovered parameters, on a logarithmic scale, against the dimension of tokens:"
        " each run faintly, and means with standard errors. The claim needs every run below the dotted line."
    ),
    finding=finding,
    series=series,
)
