"""recovery.gaussian-tokens: a layer of several heads is learned from Gaussian tokens, too."""

from attlas.claims.claim import Claim, Result, Sweep, Unfinished
from attlas.claims.recovery.kit.learners import CAPTION, MUTATIONS, Point, attempt, cost, draw, finding, judge, series


def measure(point: Point, seed: int) -> Result:
    """Return the relative error of a learner on fresh examples."""
    return attempt("gaussian", point, seed)


CLAIM = Claim(
    id="recovery.gaussian-tokens",
    version=2,
    statement=(
        "Layers of one to three generic heads are learned from Gaussian tokens, too, which no proof covers: variable"
        " projection from at most three random starts finds more than 90 % of them to $10^{-3}$, and more than 80 % in"
        " every setting, with soft (s = 3) and sharp logits (s = 30). With sharp logits Adam finds fewer than half in"
        " its budget, and with fewer outputs than parameters variable projection finds fewer than 20 %."
    ),
    formula=(
        r"F(X)=\sum_{i=1}^{m}\operatorname{softmax}(X\Theta_iX^\top)\,XW_i,\qquad x\sim N(0,I):"
        r"\qquad P\Big(\frac{\lVert\hat F-F\rVert}{\lVert F\rVert}<10^{-3}\Big)>0.8"
    ),
    source="chen2024provably for Boolean tokens; Gaussian ones and the learners are ours",
    settings=Point,
    tiers={
        "quick": Sweep(
            [Point(heads=m, d=5, scale=s) for m, s in ((1, 3.0), (3, 3.0), (3, 30.0))]
            + [Point(heads=3, d=5, n=7)]
            + [Point(heads=3, d=5, learner="lbfgs"), Point(heads=3, d=5, scale=30.0, learner="adam", adam_steps=600)],
            seeds=[50] * 3 + [30, 10, 12],
        ),
        "full": Sweep(
            [Point(heads=m, d=d, scale=s, n=600) for m in (1, 3) for d in (8, 12) for s in (3.0, 30.0)]
            + [Point(heads=3, d=8, n=11)]
            + [Point(heads=3, d=8, scale=s, n=600, learner="lbfgs") for s in (3.0, 30.0)]
            + [Point(heads=3, d=8, scale=s, n=600, learner="adam", adam_steps=10_000) for s in (3.0, 30.0)],
            seeds=[40] * 8 + [60] + [20] * 2 + [12] * 2,
        ),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=CAPTION,
    finding=finding("Gaussian"),
    series=series,
    unfinished=Unfinished.USED,  # a learner is its budget: a layer that it does not find within it is the measurement
    mutations=MUTATIONS,
    unseen=(
        "A failure in fewer than one layer of twelve, and whether another rate or a longer schedule would let"
        " Adam succeed."
    ),
    design=(
        "In a pilot variable projection found 24 of 24 layers, Adam none of 12 with sharp logits; 50 layers per setting"
        " let three be missed and still show a share above 0.8."
    ),
)
