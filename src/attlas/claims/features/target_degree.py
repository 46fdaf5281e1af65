"""features.target-degree: the sample cost of a target grows in the order of its complexity."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveInt

from attlas.claims.claim import Claim, Cost, Measurement, Outcome, Result, Settings, Sweep, Verdict
from attlas.claims.features.kit import Draw, grid, kernels_cost, labels, target_of
from attlas.claims.figure import panels, simulated
from attlas.features import complexity, sample_cost
from attlas.numerics import rank_correlation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

LEVEL = 0.99
TEST = 500  # test sequences
ERROR = 0.1  # at 0.5 the linear part of an odd power would do
TARGETS = (
    *(f"query {p}" for p in (1, 2, 3, 4)),
    *(f"keys {p}" for p in (1, 2, 3, 4)),
    *(
        f"{family} {p}" for family in ("correlation", "weighted") for p in (1, 2)
    ),  # rotated ones are the same without bias
)


class Point(Settings):
    """Tokens and the largest sample. Heads are infinitely many, without bias."""

    d: int = Field(4, ge=2)
    keys: PositiveInt = 8
    n: int = Field(2000, ge=64)


def measure(point: Point, seed: int) -> Result:
    """Return the samples that bring the error of each target to a tenth and to a half of its variance."""
    draw = Draw(TARGETS, point.d, point.keys, point.n, TEST, seed)
    sizes = grid(4, point.n, 2)
    curves = draw.attention(sizes)
    functions = [complexity(target_of(name, point.d, seed), point.d) for name in TARGETS]
    return {
        "tenth": np.array([sample_cost(sizes, curve, ERROR) for curve in curves.T]),
        "half": np.array([sample_cost(sizes, curve) for curve in curves.T]),
        "B": np.array([f.B for f in functions]),
        "rkhs": np.array([f.rkhs for f in functions]),
        "variance": draw.variance,
    }


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """The rank correlation of the cost (median over seeds) with B(f) is above zero, at every d (99 % together)."""
    points = list(dict.fromkeys(m.point for m in measurements))
    names = labels(points)
    level = 1 - (1 - LEVEL) / len(points)
    numbers: dict[str, float] = {}
    margins, sides = [], []
    for point in points:
        costs, law = _costs(measurements, point)
        if len(np.unique(costs)) < 4 or sum(m.point == point for m in measurements) < 3:
            return Verdict(Outcome.INCONCLUSIVE, "needs three seeds and four different costs", 0.0, "")
        found = {
            "B": rank_correlation(costs, law["B"], level),
            "RKHS norm": rank_correlation(costs, law["rkhs"], level),
            "B over variance": rank_correlation(costs, law["B"] / law["variance"], level),
            "RKHS norm over variance": rank_correlation(costs, law["rkhs"] / law["variance"], level),
        }
        half = _costs(measurements, point, "half")[0]
        if len(np.unique(half)) > 1:
            found["B, samples to a half"] = rank_correlation(half, law["B"], level)
        for name, (value, low, high) in found.items():
            label = f"{names[point]} rank correlation with {name}"
            numbers |= {label: value, f"{label} low": low, f"{label} high": high}
        numbers[f"{names[point]} censored"] = float(np.sum(~np.isfinite(costs) | (costs == 0)))
        _, low, high = found["B"]
        margins.append(float(np.arctanh(np.clip(low, -0.999999, 0.999999)) / np.sqrt(1.06 / (len(TARGETS) - 3))))
        sides.append(1 if low > 0 else -1 if high < 0 else 0)
    worst = points[int(np.argmin(margins))]
    name = f"{names[worst]} rank correlation with"
    reason = (
        f"over {len(TARGETS)} targets at d = {worst.d} the samples that bring the error to a tenth have rank correlation"
        f" {numbers[f'{name} B']:.2f} ({numbers[f'{name} B low']:.2f} to {numbers[f'{name} B high']:.2f}) with B(f),"
        f" {numbers[f'{name} RKHS norm']:.2f} with the RKHS norm, {numbers[f'{name} RKHS norm over variance']:.2f} with that"
        f" over the variance"
    )
    return Verdict(Outcome.of(sides), reason, min(margins), "standard errors", numbers)


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw the costs against B and against the sharper norm over the variance."""
    figure, axes = panels(2)
    point = max((m.point for m in measurements), key=lambda p: p.d)
    costs, law = _costs(measurements, point)
    families = list(dict.fromkeys(name.split()[0] for name in TARGETS))
    for axis, x, label in zip(
        axes, (law["B"], law["rkhs"] / law["variance"]), ("B(f)", "RKHS norm / variance"), strict=True
    ):
        for i, family in enumerate(families):
            mine = [t for t, name in enumerate(TARGETS) if name.split()[0] == family and 0 < costs[t] < np.inf]
            runs = np.array([m.result["tenth"][mine] for m in measurements if m.point == point])
            simulated(axis, i, np.tile(x[mine], len(runs)), runs.ravel(), family, log=True)
            for t in mine:
                axis.annotate(
                    TARGETS[t].split()[1], (x[t], costs[t]), xytext=(4, 3), textcoords="offset points", fontsize=8
                )
        axis.set(xlabel=label, xscale="log", yscale="log")
    axes[0].set_ylabel(f"samples to a tenth of the variance, d = {point.d}")
    axes[0].legend(frameon=False, fontsize=9)
    return figure


def cost(point: Point) -> Cost:
    """Expect one kernel and its factorisations."""
    return kernels_cost(point.n, point.keys, TEST)


def _costs(
    measurements: Sequence[Measurement[Point]], point: Point, key: str = "tenth"
) -> tuple[Array, dict[str, Array]]:
    """Return the median costs over seeds, and what the theory says; the variance is the mean over seeds."""
    mine = [m.result for m in measurements if m.point == point]
    law = {name: np.mean([result[name] for result in mine], axis=0) for name in ("B", "rkhs", "variance")}
    return np.median([result[key] for result in mine], axis=0), law


CLAIM = Claim(
    id="features.target-degree",
    version=1,
    statement="The sample cost of random-feature attention grows with the degree of the target, in the order of B(f).",
    formula=r"B(f)=C_k\,\lVert A\rVert^2,\qquad C_k=\max(1,\,k^{4.5}\,4^k),\qquad k=\max(r,\,s-1)",
    source="fu2023random, theorem 2 and its examples",
    settings=Point,
    tiers={
        "quick": Sweep([Point(n=1400)], seeds=5),
        "full": Sweep([Point(n=4000), Point(d=6, n=6000)], seeds=6),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
)
