"""recovery.gaussian-tokens: a layer of several heads is learned from Gaussian tokens, too."""

from attlas.claims.claim import Claim, Result, Sweep, Unfinished
from attlas.claims.recovery.kit.learners import CAPTION, Point, compare, cost, draw, finding, judge, series


def measure(point: Point, seed: int) -> Result:
    """Return the relative error of every learner on fresh examples."""
    return compare("gaussian", point, seed)


CLAIM = Claim(
    id="recovery.gaussian-tokens",
    version=2,
    statement="A non-degenerate layer of m heads is learned from random Gaussian tokens, too.",
    formula=(
        r"F(X)=\sum_{i=1}^{m}\operatorname{softmax}(X\Theta_iX^\top)\,XW_i,\qquad x\sim N(0,I):"
        r"\qquad\frac{\lVert\hat F-F\rVert}{\lVert F\rVert}<10^{-3}"
    ),
    source="chen2024provably, theorem 1 for sculpting; the learners here are ours",
    settings=Point,
    tiers={
        "quick": Sweep([Point(heads=2, d=6, n=400, adam_steps=2000)], seeds=10),
        "full": Sweep([Point(heads=m, d=d, n=1500) for m in (1, 2, 3) for d in (8, 12)], seeds=10),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=CAPTION,
    finding=finding("Gaussian"),
    series=series,
    unfinished=Unfinished.USED,  # a learner is its budget: a layer that it does not find within it is the measurement
)
