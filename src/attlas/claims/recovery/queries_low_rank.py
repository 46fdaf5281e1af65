"""recovery.queries-low-rank: a head of rank r from 2 r d + d value queries."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field, PositiveInt

from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep, Unfinished
from attlas.claims.estimate import Exact, Undecided
from attlas.claims.mutation import Mutation, changed
from attlas.claims.recovery.kit.figures import each_against_x, magnitude
from attlas.claims.recovery.kit.tasks import oracle_of
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Test, Verdict, above, below, decide
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
    """Return the queries used and the relative error of Theta, told its rank; and told one less, beside the least possible.

    No matrix of rank r - 1 is nearer to Theta than its smallest singular value (Eckart and Young).
    """
    return _measured(point, seed)


def _measured(point: Point, seed: int, extra: float = 0.0) -> Result:
    """Measure; `extra` is the size of one more singular direction of Theta, relative to the others."""
    d, r = point.d, point.rank
    rng = stream(seed, "teacher")
    Theta = rng.standard_normal((d, r)) @ rng.standard_normal((r, d)) * (2 / np.sqrt(d * r))
    W = rng.standard_normal((1, d, d)) / np.sqrt(d)
    if extra:
        Theta += extra * np.outer(*rng.standard_normal((2, d))) * (2 / np.sqrt(d * r))
    truth = Layer(Theta[None], W)

    def error(rank: int) -> tuple[float, float, bool]:
        found = learn_from_queries(oracle_of(truth), d, rank=rank, seed=seed)
        off = float(np.linalg.norm(found.Theta[0] - Theta) / np.linalg.norm(Theta))
        return off, float(found.certificate.queries), found.converged

    own, queries, converged = error(r)
    result: Result = {"queries": queries, "error": own, "converged": converged}
    if r > 1:
        sizes = np.linalg.svd(Theta, compute_uv=False)
        result |= {
            "short": error(r - 1)[0],
            "short_limit": float(np.linalg.norm(sizes[r - 1 :]) / np.linalg.norm(sizes)),
        }
    return result


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """Every run uses 2 r d + d queries and is right; told a rank less, none is nearer than a matrix of that rank can be."""
    errors = np.nan_to_num([m.result["error"] for m in measurements], nan=np.inf)
    counts = [abs(m.result["queries"] - _count(m.point)) for m in measurements]
    short = [m.result["short"] / m.result["short_limit"] for m in measurements if "short" in m.result]
    if not short or len({m.point.d for m in measurements}) < 2:
        raise Undecided("needs a rank of two or more, and two dimensions")
    tests = [
        Test("largest departure from 2rd + d queries", Exact(float(np.max(counts))), below(0.5)),
        Test("worst error", Exact(float(errors.max())), below(SMALL)),
        Test("smallest error", Exact(float(errors.min())), above(0)),
        Test("error with a rank less, over the least possible", Exact(float(np.min(short))), above(1)),
    ]
    reason = (
        f"{int(np.sum(errors < SMALL))} of {len(errors)} runs are right to {SMALL:g}, {sum(c == 0 for c in counts)} with"
        f" 2rd + d queries; the largest error is {errors.max():.1e}; told a rank less, it is {min(short):.2f} times the"
        " least possible or more"
    )
    return decide(tests, reason, {"runs": float(len(errors))})


def _count(point: Point) -> int:
    return 2 * point.rank * point.d + point.d


def finding(numbers: Numbers) -> str:
    """Return how many queries."""
    return (
        f"A head of rank r is recovered from exactly 2rd + d queries in all {numbers['runs']:.0f} runs; the largest relative"
        f" error is {numbers['worst error']:.0e}"
    )


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
                magnitude(_count(m.point)) if key == "queries" else None,
            )
            for m in measurements
        ]
        found += gather(rows, "d", y_name)
    return found


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw queries and errors against d."""
    return each_against_x(series(measurements))


def cost(point: Point) -> Cost:
    """Expect a tenth of a millisecond for a query, of the rank and of one less."""
    return Cost(0.004 + 1e-4 * (4 * point.rank) * point.d, 100_000_000)


MUTATIONS = (
    Mutation(
        "{size:g} queries more than 2rd + d",
        (1, 10),
        1,
        change=changed(lambda result, size: {"queries": result["queries"] + size}),
    ),
    Mutation(
        "{size:g} queries fewer than 2rd + d",
        (1, 10),
        1,
        change=changed(lambda result, size: {"queries": result["queries"] - size}),
    ),
    Mutation("errors are {size:g}", (0.0,), 0.0, change=changed(lambda _, size: {"error": size})),
    Mutation(
        "the learner sees the layer: told a rank less, its error is {size:g} of the least possible",
        (0.99, 0.0),
        0.99,
        change=changed(lambda result, size: {"short": size * result["short_limit"]} if "short" in result else {}),
    ),
    Mutation(
        "the head has one more direction, {size:g} of the others",
        (1e-12, 1e-6, 1e-3),
        1e-6,
        measure=_measured,
    ),
)


CLAIM = Claim(
    id="recovery.queries-low-rank",
    version=2,
    statement=(
        "A head of known rank r is recovered from $2rd + d$ value queries: exactly that many in every run, the"
        " query-key matrix to $10^{-8}$, for r up to 4 and d up to 40 (8 and 80 in the full tier)."
    ),
    formula=r"\operatorname{rank}\Theta=r:\qquad\Theta=(\Theta V)(Q\Theta V)^{+}(Q\Theta),\quad 2rd+d\text{ queries}",
    source="bhattamishra2026provably proves O(rd) by compressed sensing; the sketch, and so the count, is ours",
    settings=Point,
    tiers={
        "quick": Sweep(
            [Point(d=d, rank=r) for d in (10, 20, 40) for r in (1, 2, 4)],
            seeds=[seeds for seeds in (30, 20, 10) for _ in range(3)],
        ),
        "full": Sweep([Point(d=d, rank=r) for d in (10, 20, 40, 80) for r in (1, 2, 4, 8)], seeds=40),
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
    unfinished=Unfinished.USED,
    mutations=MUTATIONS,
    unseen="Heads whose singular values differ by many orders: the sketch loses as many digits, and all ours are alike.",
    design=(
        "In a pilot of 750 heads no count differed, and errors had a median of 1e-14, a largest of 4e-11 and a tail that"
        " falls as one over the error (the sketch divides by a smallest singular value): a true claim is supported in 99.9 %"
        " of runs."
    ),
)
