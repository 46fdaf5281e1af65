"""features.key-averages: on averages over keys, attention beats a network of as many trained numbers."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

import numpy as np
from pydantic import Field, PositiveInt, model_validator

from attlas import features
from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep
from attlas.claims.features.kit import AXES, curve_points, draw_curves, labels
from attlas.claims.figure import panels
from attlas.claims.finding import ending
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Outcome, Verdict
from attlas.numerics import mean_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEVEL = 0.99
TARGETS = ("keys 1", "keys 2")


class Point(Settings):
    """Heads (the network has heads x (d + 1) neurons), tokens and the largest sample."""

    heads: PositiveInt = 200
    d: int = Field(8, ge=2)
    keys: PositiveInt = 8
    n: int = Field(1024, ge=64)

    @model_validator(mode="after")
    def _enough(self) -> Self:
        if self.n < 2 * self.d**2:
            raise ValueError(f"n must be at least 2 d^2 = {2 * self.d**2}: curves start at d^2; got {self.n}")
        return self


def measure(point: Point, seed: int) -> Result:
    """Return both learning curves, (sizes, targets), from one draw of data."""
    data = features.TargetData(TARGETS, point.d, point.keys, point.n, 1000, seed)
    sizes = features.sample_sizes(point.d**2, point.n, 1)  # from d^2, the coefficients of degree two, on
    models = {
        "attention": features.RandomAttentionFeatures(point.heads, random_state=seed),
        "network": features.RandomMLPFeatures(n_heads=point.heads, random_state=seed),
    }
    curves = {name: data.features(model, sizes) for name, model in models.items()}
    return {"sizes": np.array(sizes, dtype=float), **curves}


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """At every n past the first and for every power the network's error exceeds attention's, paired (99 % together)."""
    if len({m.seed for m in measurements}) < 3:
        return Verdict(Outcome.INCONCLUSIVE, "needs three seeds", 0.0, "")
    points = list(dict.fromkeys(m.point for m in measurements))
    sizes = {point: next(m.result["sizes"] for m in measurements if m.point == point) for point in points}
    names = labels(points)
    tests = [(p, k, t) for p in points for k in range(1, len(sizes[p])) for t in range(len(TARGETS))]
    level = 1 - (1 - LEVEL) / len(tests)
    numbers: dict[str, float] = {}
    margins, lost = [], 0
    for point, k, t in tests:
        gaps = [float((m.result["network"] - m.result["attention"])[k, t]) for m in measurements if m.point == point]
        mean, low, high = mean_interval(gaps, level)
        error = float(np.std(gaps, ddof=1)) / np.sqrt(len(gaps))
        name = f"{names[point]} {TARGETS[t]}, {sizes[point][k]:.0f} samples"
        numbers |= {f"{name} gap": mean, f"{name} gap ±": (high - low) / 2}
        margins.append(low / max(error, 1e-300))
        lost += high < 0
    worst = min((v for k, v in numbers.items() if k.endswith("gap")))
    reason = (
        f"the network's error exceeds attention's by {worst:.3f} of the variance or more at all {len(tests)} points"
        if min(margins) > 0
        else f"attention is ahead at {sum(m > 0 for m in margins)} of {len(tests)} sizes and powers, behind at {lost}"
    )
    outcome = Outcome.SUPPORTED if min(margins) > 0 else Outcome.REFUTED if lost else Outcome.INCONCLUSIVE
    return Verdict(outcome, reason, float(min(margins)), "standard errors", numbers)


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Return the learning curves."""
    learners = {"attention": "heads", "network": "neurons"}
    return gather((row for m in measurements for row in curve_points(m, learners, TARGETS)), *AXES)


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw both curves of each power at the largest size."""
    figure, axes = panels(len(TARGETS))
    point = max((m.point for m in measurements), key=lambda p: (p.d, p.n))
    found = series([m for m in measurements if m.point == point])
    for target, axis in zip(TARGETS, axes, strict=True):
        draw_curves(axis, [s for s in found if s.settings["target"] == target], f"{target} (d = {point.d})", marks=1)
    axes[0].set_ylabel("test error / variance")
    axes[0].legend(frameon=False, fontsize=9)
    return figure


def finding(numbers: Numbers) -> str:
    """Return the smallest lead in a sentence."""
    gaps = ending(numbers, " gap")
    return (
        "On averages over keys attention beats a network with as many trained numbers: its error is lower by at least"
        f" {min(gaps):.3f} of the variance in all {len(gaps)} comparisons"
    )


def cost(point: Point) -> Cost:
    """Expect the products of the features and the factorisations."""
    p, rows = point.heads * (point.d + 1), point.n + 1000
    seconds = 0.3 + 1e-10 * (rows * p * point.n + rows * p * (point.keys + 1) * point.d) + 3e-10 * 10 * point.n**3
    return Cost(seconds, int(200_000_000 + 16 * rows * p))


CLAIM = Claim(
    id="features.key-averages",
    version=1,
    statement="On averages of key functions random-feature attention beats a random-feature MLP of equal parameter count.",
    formula=(
        r"f(X)=\frac{1}{N}\sum_{i=1}^{N}\langle\beta,x_i\rangle^s:\qquad"
        r"\operatorname{error}_{\text{RFA}}(n)<\operatorname{error}_{\text{RFMLP}}(n)\quad\text{at }p=M(d+1)"
    ),
    source="fu2023random, section 3 and its experiments",
    settings=Point,
    tiers={
        "quick": Sweep([Point()], seeds=6),
        "full": Sweep([Point(heads=1000, d=16, keys=16, n=4096)], seeds=4),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Test error over variance against samples, for attention and for a network with as many trained numbers, on averages"
        " over keys of degrees one and two (a constant predictor scores 1). Means over draws with standard errors."
    ),
    finding=finding,
    series=series,
)
