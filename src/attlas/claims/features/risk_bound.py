"""features.risk-bound: the excess risk of the norm-constrained estimator stays below its bound. How loose is it?"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field, PositiveInt

from attlas import features, tokens
from attlas.claims.claim import Claim, Cost, Measurement, Outcome, Result, Settings, Sweep, Verdict
from attlas.claims.features.kit import target_of
from attlas.claims.figure import COLOURS, panels, simulated, ticks
from attlas.features import complexity
from attlas.numerics import stream

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TARGETS = ("query 1", "keys 1", "keys 2", "correlation 1", "correlation 2")


class Point(Settings):
    """A target, samples, heads and tokens."""

    target: Literal["query 1", "query 2", "keys 1", "keys 2", "keys 3", "correlation 1", "correlation 2"]
    n: int = Field(ge=10)
    heads: int = Field(ge=2)
    d: int = Field(4, ge=2)
    keys: PositiveInt = 8


def measure(point: Point, seed: int) -> Result:
    """Return the mean absolute error on fresh sequences, noiseless, so all of it excess; the bound; that of a constant.

    The estimator has the radius sqrt(B) and the energy B of the theorem, all constants taken as one.
    """
    f = target_of(point.target, point.d, seed)
    X = tokens.sphere(point.n, point.keys + 1, point.d, stream(seed, "train"))
    fresh = tokens.sphere(4000, point.keys + 1, point.d, stream(seed, "test"))
    law = complexity(f, point.d)
    model = features.ConstrainedAttentionRegressor(
        point.heads,
        radius=float(np.sqrt(law.B)),
        energy=law.B,
        tol=1e-3,
        fit_intercept=False,
        random_state=seed,
    )
    expected = f(fresh)
    found = model.fit(X, f(X)).predict(fresh)
    return {
        "risk": float(np.mean(np.abs(found - expected))),
        "constant": float(np.mean(np.abs(expected - np.median(expected)))),
        "bound": law.risk_bound(point.n, point.heads, point.keys),
        "gap": model.gap_,
        "kept": float(len(model.kept_heads_)),
    }


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """No measured risk is above the bound.

    Where the bound exceeds the risk of a constant, only a learner that diverges could break it: the reason says so.
    """
    numbers: dict[str, float] = {}
    ratios = np.array([m.result["bound"] / max(m.result["risk"], 1e-300) for m in measurements])
    useful = np.array([m.result["constant"] / m.result["bound"] for m in measurements])
    if not np.isfinite(ratios).all():
        return Verdict(Outcome.INCONCLUSIVE, "a risk is not a finite number", 0.0, "")
    for name in dict.fromkeys(m.point.target for m in measurements):
        mine = ratios[[m.point.target == name for m in measurements]]
        numbers |= {f"{name} bound/risk, smallest": float(mine.min()), f"{name} bound/risk, largest": float(mine.max())}
    numbers["bound / risk of a constant, smallest"] = float(1 / useful.max())
    violated = int(np.sum(ratios < 1))
    reason = (
        f"the bound, its constants taken as one, is {ratios.min():.3g} to {ratios.max():.3g} times the risk in"
        f" {len(measurements)} runs; it is at least {1 / useful.max():.3g} times the risk of a constant prediction,"
        f" so {'it says something at some sizes' if useful.max() > 1 else 'a constant would pass as well at these sizes'}"
    )
    if violated:
        return Verdict(
            Outcome.REFUTED,
            f"{violated} of {len(measurements)} runs have a risk above the bound; {reason}",
            float(np.log10(ratios.min())),
            "orders of magnitude",
            numbers,
        )
    return Verdict(Outcome.SUPPORTED, reason, float(np.log10(ratios.min())), "orders of magnitude", numbers)


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw risk and bound against n, at the largest number of heads."""
    figure, (axis,) = panels(1, width=6)
    heads = max(m.point.heads for m in measurements)
    for i, name in enumerate(dict.fromkeys(m.point.target for m in measurements)):
        mine = sorted(
            (m for m in measurements if m.point.target == name and m.point.heads == heads), key=lambda m: m.point.n
        )
        style: dict[str, Any] = {"color": COLOURS[i % len(COLOURS)]}
        n = [m.point.n for m in mine]
        simulated(axis, i, n, [m.result["risk"] for m in mine], name, log=True)
        axis.plot(n, [m.result["bound"] for m in mine], **style)
        axis.plot(n, [m.result["constant"] for m in mine], ":", linewidth=1, **style)
    axis.set(
        xlabel="samples",
        ylabel=f"mean absolute error, {heads} heads",
        xscale="log",
        yscale="log",
        title="points: risk; lines: bound; dotted: a constant",
    )
    ticks(axis, [m.point.n for m in measurements])
    axis.legend(frameon=False, fontsize=9)
    return figure


def cost(point: Point) -> Cost:
    """Expect some hundred steps, two products with the features in each."""
    p = point.heads * (point.d + 1)
    return Cost(0.1 + 1.5e-6 * point.n * p, 200_000_000 + 8 * (4000 + 2 * point.n) * p)


CLAIM = Claim(
    id="features.risk-bound",
    version=1,
    statement="The excess risk of the norm-constrained estimator does not exceed sqrt(B(f)) times the rate of theorem 2.",
    formula=(
        r"\operatorname{E}\,|\hat f-f|\le\sqrt{B(f)}\left(\sqrt{\frac{\log(dM)\,\log(nNM)}{n}}"
        r"+\sqrt{\frac{d^2\log M+\log(1/\delta)}{M}}\right)"
    ),
    source="fu2023random, theorem 2",
    settings=Point,
    tiers={
        "quick": Sweep(
            [Point(target=name, n=n, heads=M) for name in TARGETS for n in (50, 200, 800) for M in (30, 120)], seeds=2
        ),
        "full": Sweep(
            [
                Point(target=name, n=n, heads=M, d=d, keys=d)
                for name in TARGETS
                for n in (100, 400, 1600)
                for M in (50, 200, 800)
                for d in (4, 8)
            ],
            seeds=4,
        ),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
)
