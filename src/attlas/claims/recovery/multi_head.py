"""recovery.multi-head: a layer of several heads is learned from random Boolean examples."""

from attlas.claims.claim import Claim, Difference, Result, Sweep, Unfinished
from attlas.claims.recovery.kit.learners import CAPTION, Point, compare, cost, draw, finding, judge, series, successes


def measure(point: Point, seed: int) -> Result:
    """Return the relative error of every learner on fresh examples."""
    return compare("boolean", point, seed)


CLAIM = Claim(
    id="recovery.multi-head",
    version=2,
    statement="A non-degenerate layer of m heads is learned from random Boolean examples.",
    formula=(
        r"F(X)=\sum_{i=1}^{m}\operatorname{softmax}(X\Theta_iX^\top)\,XW_i,\qquad x\in\{-1,1\}^d:"
        r"\qquad\frac{\lVert\hat F-F\rVert}{\lVert F\rVert}<10^{-3}"
    ),
    source="chen2024provably, theorem 1 for sculpting; the learners here are ours",
    settings=Point,
    tiers={
        "quick": Sweep([Point(heads=m, d=6, n=400, adam_steps=2000) for m in (2, 3)], seeds=10),
        "full": Sweep([Point(heads=m, n=2000, scale=s) for m in (2, 3, 4) for s in (1.0, 3.0, 30.0)], seeds=10),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=CAPTION,
    finding=finding("Boolean"),
    differs=[
        Difference(
            "Sculpting is not needed",
            "The algorithm with a guarantee learns several heads by sculpting a convex body around them.",
            lambda numbers: f"On generic layers, from random starts, {successes(numbers)}",
        )
    ],
    series=series,
    unfinished=Unfinished.USED,  # a learner is its budget: a layer that it does not find within it is the measurement
)
