"""features.target-degree: the sample cost of a target grows in the order of its complexity."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveInt

from attlas import features
from attlas.claims.claim import Claim, Cost, Difference, Measurement, Numbers, Result, Settings, Sweep
from attlas.claims.features.kit import kernels_cost, labels
from attlas.claims.figure import COLOURS, MARKERS, drawn, panels
from attlas.claims.finding import ending
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Outcome, Verdict
from attlas.features import complexity, sample_cost, targets
from attlas.numerics import rank_correlation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

LEVEL = 0.99
TEST = 500  # test sequences
ERROR = 0.1  # for 0.5 the linear part of an odd power is enough
TENTH = "samples to a tenth of the variance"
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
    data = features.TargetData(TARGETS, point.d, point.keys, point.n, TEST, seed)
    sizes = features.sample_sizes(4, point.n, 2)
    curves = data.attention(sizes)
    functions = [complexity(targets.named(name, point.d, seed), point.d) for name in TARGETS]
    return {
        "tenth": np.array([sample_cost(sizes, curve, ERROR) for curve in curves.T]),
        "half": np.array([sample_cost(sizes, curve) for curve in curves.T]),
        "B": np.array([f.B for f in functions]),
        "rkhs": np.array([f.rkhs for f in functions]),
        "variance": data.variance,
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


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Return the cost of each target, against B(f) and against the RKHS norm over the variance."""
    rows: dict[str, list[tuple[str, dict[str, Any], float, float, None]]] = {}
    for m in measurements:
        _, law = _costs(measurements, m.point)
        for x_name, x in (("B(f)", law["B"]), ("RKHS norm / variance", law["rkhs"] / law["variance"])):
            rows.setdefault(x_name, []).extend(
                (name, {"d": m.point.d, "keys": m.point.keys}, x[t], m.result["tenth"][t], None)
                for t, name in enumerate(TARGETS)
                if m.result["tenth"][t] > 0
            )
    return [one for x_name, own in rows.items() for one in gather(own, x_name, TENTH)]


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw the costs against B and against the sharper norm over the variance."""
    figure, axes = panels(2)
    point = max((m.point for m in measurements), key=lambda p: p.d)
    found = series([m for m in measurements if m.point == point])
    families = list(dict.fromkeys(name.split()[0] for name in TARGETS))
    for axis, x_name in zip(axes, dict.fromkeys(one.x_name for one in found), strict=True):
        for one in (s for s in found if s.x_name == x_name):
            family, power = one.name.split()
            look = families.index(family)
            drawn(axis, one, family if power == "1" else "", color=COLOURS[look], fmt=MARKERS[look])
            axis.annotate(power, (one.x[0], one.mean[0]), xytext=(4, 3), textcoords="offset points", fontsize=8)
        axis.set(xlabel=x_name, xscale="log", yscale="log")
    axes[0].set_ylabel(f"{TENTH}, d = {point.d}")
    axes[0].legend(frameon=False, fontsize=9)
    return figure


def finding(numbers: Numbers) -> str:
    """Return the rank correlations with both measures of complexity in a sentence."""
    B, norm = (min(ending(numbers, f"rank correlation with {name}")) for name in ("B", "RKHS norm over variance"))
    return (
        f"B(f) orders targets by the samples they need, but only roughly (rank correlation {B:.2f}); the norm in the"
        f" kernel's own space, over the variance, {'does better' if norm > B else 'does no better'} ({norm:.2f})"
    )


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
    caption=(
        "Samples that bring the test error of each target to a tenth of its variance, against its complexity B(f) (left) and"
        " against its norm in the kernel's own space over its variance (right). Numbers are powers; means over draws with"
        " standard errors, at the largest d."
    ),
    finding=finding,
    differs=(
        Difference(
            "The complexity B(f)",
            "Theorem 2 orders targets by B(f): the larger it is, the more samples they need.",
            finding,
        ),
    ),
    series=series,
)
