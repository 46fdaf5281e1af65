"""recovery.queries-low-rank: a head of rank r needs O(r d) queries."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field, PositiveInt

from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep
from attlas.claims.recovery.kit.figures import each_against_x, magnitude
from attlas.claims.recovery.kit.tasks import oracle_of
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Outcome, Verdict
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
    return {"queries": float(found.certificate.queries), "error": float(error), "converged": found.converged}


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """Every run is right, with at most 2 r d + d queries and a tenth more for steps that had to be shortened."""
    shares = np.array([m.result["queries"] / (2 * m.point.rank * m.point.d + m.point.d) for m in measurements])
    errors = np.array([m.result["error"] for m in measurements])
    if not np.isfinite([*shares, *errors]).all() or np.any(errors == 0):
        return Verdict(Outcome.REFUTED, "an error is exactly zero, or not a number", -np.inf, "orders of magnitude")
    numbers = {"worst error": float(errors.max()), "largest share of 2rd + d": float(shares.max())}
    reason = (
        f"{int(np.sum(errors < SMALL))} of {len(errors)} runs are right to {SMALL:g} (worst {errors.max():.1e}), with"
        f" {_count(float(shares.max()))} queries"
    )
    margin = float(min(np.log10(SMALL / errors.max()), np.log10(1.1 / shares.max())))
    if not margin > 0:
        return Verdict(Outcome.REFUTED, reason, margin, "orders of magnitude", numbers)
    return Verdict(Outcome.SUPPORTED, reason, margin, "orders of magnitude", numbers)


def finding(numbers: Numbers) -> str:
    """Return how many queries."""
    count = _count(numbers["largest share of 2rd + d"])
    return f"A head of rank r is recovered with {count} queries; the largest error is {numbers['worst error']:.0e}"


def _count(share: float) -> str:
    return "exactly 2rd + d" if share == 1 else f"at most {share:.2f} times 2rd + d"


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Return queries, beside 2 r d + d, and errors against d, as powers of ten."""
    found = []
    for key, y_name in (("queries", "log10 of the queries"), ("error", "log10 of the relative error of Theta")):
        rows = [
            (
                "queries",
                {"rank": m.point.rank},
                m.point.d,
                magnitude(m.result[key]),
                magnitude(2 * m.point.rank * m.point.d + m.point.d) if key == "queries" else None,
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
    caption=(
        "Queries that one head of a known rank took, and the relative error of its query-key matrix, on"
        " logarithmic scales, against the dimension of tokens: means over heads with standard errors. The lines on"
        " the left are 2rd + d."
    ),
    finding=finding,
    series=series,
)
