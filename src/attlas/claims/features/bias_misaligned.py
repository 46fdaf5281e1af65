"""features.bias-misaligned: a bias helps only correlations aligned with it, and costs key averages."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field, PositiveFloat, PositiveInt

from attlas import features
from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep
from attlas.claims.features.kit import AXES, curve_points, draw_curves, kernels_cost, labels
from attlas.claims.figure import THEORY, panels
from attlas.claims.finding import ending
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Outcome, Verdict
from attlas.features import sample_cost
from attlas.numerics import mean_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEVEL = 0.99
SHARP = 0.35  # a rotated gain, in logarithms, that is known less well than this is not known to be none
TEST = 500  # test sequences
TARGETS = ("correlation 1", "rotated 1", "keys 2")


class Point(Settings):
    """Bias strength, tokens and the largest sample. Heads are infinitely many."""

    bias: PositiveFloat = 1.0
    d: PositiveInt
    keys: PositiveInt = 16
    n: int = Field(512, ge=64)


def measure(point: Point, seed: int) -> Result:
    """Return the learning curves (sizes, targets) without and with bias, and the samples that halve each error."""
    data = features.TargetData(TARGETS, point.d, point.keys, point.n, TEST, seed)
    sizes = features.sample_sizes(16, point.n, 3)
    curves = {"plain": data.attention(sizes), "biased": data.attention(sizes, point.bias)}
    costs = {
        f"{key}_cost": np.array([sample_cost(sizes, column) for column in curve.T]) for key, curve in curves.items()
    }
    return curves | costs | {"sizes": np.array(sizes, dtype=float)}


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """Paired over data sets, at every d (99 % for all together).

    The samples that halve the error of a rotated correlation do not fall with bias, while those of the aligned one do; and
    at the largest n the bias raises the error of key averages.
    """
    points = list(dict.fromkeys(m.point for m in measurements))
    level = 1 - (1 - LEVEL) / (3 * len(points))
    names = labels(points)
    numbers: dict[str, float] = {}
    margins: list[float] = []
    against: list[str] = []
    blurred = False
    for point in points:
        mine = [m for m in measurements if m.point == point]
        gains = {name: [g for m in mine if np.isfinite(g := _gain(m, TARGETS.index(name)))] for name in TARGETS[:2]}
        losses = [float(np.log(m.result["biased"][-1, 2] / m.result["plain"][-1, 2])) for m in mine]
        if min(len(v) for v in (*gains.values(), losses)) < 3:
            return Verdict(Outcome.INCONCLUSIVE, f"too few measured costs at d = {point.d}", 0.0, "")
        for name, values, sign in (
            ("log gain, aligned", gains["correlation 1"], 1),
            ("log gain, rotated", gains["rotated 1"], 0),
            ("log loss on key averages", losses, 1),
        ):
            mean, low, high = mean_interval(values, level)
            error = max(float(np.std(values, ddof=1)) / np.sqrt(len(values)), 1e-300)
            numbers |= {f"{names[point]} {name}": mean, f"{names[point]} {name} ±": high - mean}
            if (sign and high < 0) or (not sign and low > 0):
                against.append(f"{names[point]} {name}")
            blurred = blurred or (not sign and high - mean > SHARP)
            # aligned gain and loss must be above zero; a rotated gain must not be
            margins.append((low if sign else -low) / error)
    first = names[points[-1]]
    reason = (
        f"at d = {points[-1].d} the bias divides the sample cost of an aligned correlation by"
        f" {np.exp(numbers[f'{first} log gain, aligned']):.2f}, of a rotated one by"
        f" {np.exp(numbers[f'{first} log gain, rotated']):.2f}, and multiplies the error of key averages by"
        f" {np.exp(numbers[f'{first} log loss on key averages']):.2f}"
    )
    if against:
        reason = f"{reason}; the sign is opposite at {against[0]}"
        return Verdict(Outcome.REFUTED, reason, float(min(margins)), "standard errors", numbers)
    outcome = Outcome.SUPPORTED if min(margins) > 0 and not blurred else Outcome.INCONCLUSIVE
    return Verdict(outcome, reason, float(min(margins)), "standard errors", numbers)


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Return the learning curves."""
    learners = {"plain": "kernel", "biased": "biased"}
    return gather((row for m in measurements for row in curve_points(m, learners, TARGETS)), *AXES)


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw the curves of the three targets at the largest d, without and with bias."""
    figure, axes = panels(len(TARGETS), width=3.8)
    point = max((m.point for m in measurements), key=lambda p: p.d)
    found = series([m for m in measurements if m.point == point])
    for target, axis in zip(TARGETS, axes, strict=True):
        draw_curves(axis, [s for s in found if s.settings["target"] == target], target)
        axis.axhline(0.5, linestyle=":", **THEORY)
    axes[0].set_ylabel(f"test error / variance, d = {point.d}")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return figure


def finding(numbers: Numbers) -> str:
    """Return what the bias does to each target at the last point, in a sentence."""
    aligned, rotated, loss = (
        float(np.exp(ending(numbers, end)[-1]))
        for end in ("log gain, aligned", "log gain, rotated", "log loss on key averages")
    )
    return (
        "A bias helps only what it is aligned with: it divides the samples that an aligned correlation needs by"
        f" {aligned:.2f} and those of a rotated one by {rotated:.2f}, and multiplies the error on key averages by {loss:.2f}"
    )


def cost(point: Point) -> Cost:
    """Expect both kernels and their factorisations."""
    return kernels_cost(point.n, point.keys, TEST)


def _gain(m: Measurement[Point], target: int) -> float:
    """Return log(cost without bias / cost with it), NaN where one of them is censored."""
    plain, biased = (float(m.result[f"{key}_cost"][target]) for key in ("plain", "biased"))
    return float(np.log(plain / biased)) if 0 < plain < np.inf and 0 < biased < np.inf else np.nan


CLAIM = Claim(
    id="features.bias-misaligned",
    version=1,
    statement="The query-key bias helps only correlations aligned with it, and costs averages of key functions.",
    formula=(
        r"f(X)=\frac{1}{N}\sum_{i=1}^{N}\langle x_0,U x_i\rangle:\qquad\frac{n_{50}(0)}{n_{50}(b)}>1\;\text{ for }U=I,"
        r"\;\;\le1\;\text{ for a random rotation }U"
    ),
    source="fu2023random, section 3.3; the rotated correlation is ours",
    settings=Point,
    tiers={
        "quick": Sweep([Point(d=d) for d in (8, 12)], seeds=6),
        "full": Sweep([Point(d=d, n=1000, bias=b) for d in (8, 12, 16) for b in (1.0, 2.0)], seeds=8),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Learning curves without and with a query-key bias at the largest d, for a correlation aligned with the bias, a"
        " rotated one, and a key average (a constant predictor scores 1). Means over draws with standard errors; the dotted"
        " line is one half."
    ),
    finding=finding,
    series=series,
)
