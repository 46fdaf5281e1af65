"""recovery.queries: one head from d^2 + d value queries, exactly."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from pydantic import PositiveInt

from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep
from attlas.claims.recovery.kit.figures import each_against_x, magnitude
from attlas.claims.recovery.kit.tasks import oracle_of, query_layer
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Outcome, Verdict
from attlas.recovery import learn_from_queries

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROUNDING = 1e-12


class Point(Settings):
    """Tokens and outputs."""

    d: PositiveInt
    outputs: PositiveInt = 1


def measure(point: Point, seed: int) -> Result:
    """Return the queries used and the largest error of an entry of Theta and of W."""
    truth = query_layer(1, point.d, point.outputs, seed)
    found = learn_from_queries(oracle_of(truth), point.d, seed=seed)
    errors = [np.abs(found.Theta - truth.Theta).max(), np.abs(found.W - truth.W).max()]
    return {
        "queries": float(found.certificate.queries),
        "error": float(max(errors)),
        "certificate": found.residual,
        "converged": found.converged,
    }


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """Every run uses exactly d^2 + d queries and is right to rounding."""
    more = [m for m in measurements if m.result["queries"] != m.point.d**2 + m.point.d]
    errors = np.array([m.result["error"] for m in measurements])
    if not np.isfinite(errors).all():
        return Verdict(Outcome.REFUTED, "an error is not a number", -np.inf, "orders of magnitude")
    worst = max(float(errors.max()), 1e-18)  # a single entry may well come out exactly
    numbers = {"worst error": worst, "runs": float(len(errors)), "runs with other counts": float(len(more))}
    reason = (
        f"{len(measurements) - len(more)} of {len(measurements)} runs use d^2 + d queries, d up to"
        f" {max(m.point.d for m in measurements)}; the largest error of an entry is {worst:.1e}"
    )
    if more or not worst < ROUNDING:
        return Verdict(Outcome.REFUTED, reason, float(np.log10(ROUNDING / worst)), "orders of magnitude", numbers)
    return Verdict(Outcome.SUPPORTED, reason, float(np.log10(ROUNDING / worst)), "orders of magnitude", numbers)


def finding(numbers: Numbers) -> str:
    """Return how exactly."""
    return (
        f"One head is recovered from exactly d² + d queries in all {numbers['runs']:.0f} runs; no entry is off by more than"
        f" {numbers['worst error']:.0e}"
    )


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Return queries, beside d^2 + d, and errors against d, as powers of ten."""
    found = []
    for key, y_name in (("queries", "log10 of the queries"), ("error", "log10 of the largest error of an entry")):
        rows = [
            (
                "queries",
                {"outputs": m.point.outputs},
                m.point.d,
                magnitude(m.result[key]),
                magnitude(m.point.d**2 + m.point.d) if key == "queries" else None,
            )
            for m in measurements
        ]
        found += gather(rows, "d", y_name)
    return found


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw queries and errors against d."""
    return each_against_x(series(measurements))


def cost(point: Point) -> Cost:
    """Expect a tenth of a millisecond for a query."""
    return Cost(0.02 + 1.5e-4 * (point.d**2 + point.d), 100_000_000)


CLAIM = Claim(
    id="recovery.queries",
    version=1,
    statement="A single head is recovered exactly from d^2 + d value queries.",
    formula=(
        r"f(e_j)=W_j,\qquad f([q+tv;\,q])=q^\top W+\sigma(t\,q^\top\Theta v)\;t\,v^\top W:"
        r"\qquad d+d^2\text{ queries}"
    ),
    source="bhattamishra2026provably; the choice of directions is ours",
    settings=Point,
    tiers={
        "quick": Sweep([Point(d=d, outputs=o) for d in (2, 5, 10, 20, 40) for o in (1, 3)], seeds=5),
        "full": Sweep([Point(d=d, outputs=o) for d in (2, 5, 10, 20, 40, 80) for o in (1, 8)], seeds=20),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Queries that one head took, and the largest error of an entry of its parameters, on logarithmic scales,"
        " against the dimension of tokens: means over heads with standard errors. The line on the left is d² + d."
    ),
    finding=finding,
    series=series,
)
