"""features.activations: relu attention does as well as softmax attention, whatever the target."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field, PositiveInt

from attlas import features
from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep
from attlas.claims.features.kit import AXES, labels
from attlas.claims.figure import COLOURS, MARKERS, drawn, panels, ticks
from attlas.claims.finding import ending
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Outcome, Verdict
from attlas.numerics import mean_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEVEL = 0.99
AS_WELL = 0.01  # an error larger by less than this share of the variance is as good
TARGETS = ("query 1", "query 2", "keys 1", "keys 2", "correlation 1", "rotated 1", "weighted 1")
ACTIVATIONS = ("relu", "exp", "softmax")


class Point(Settings):
    """Heads, tokens, bias and the largest sample."""

    heads: PositiveInt = 200
    d: int = Field(8, ge=2)
    keys: PositiveInt = 8
    bias: float = 0.0
    n: int = Field(1024, ge=64)


def measure(point: Point, seed: int) -> Result:
    """Return the learning curves (sizes, targets) of the three activations: the same heads, the same data."""
    data = features.TargetData(TARGETS, point.d, point.keys, point.n, 1000, seed)
    sizes = features.sample_sizes(point.n // 8, point.n, 1)
    models = {
        name: features.RandomAttentionFeatures(point.heads, bias=point.bias, activation=name, random_state=seed)
        for name in ACTIVATIONS
    }
    curves = {name: data.features(model, sizes) for name, model in models.items()}
    return {"sizes": np.array(sizes, dtype=float), **curves}


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """At the largest n relu's error exceeds softmax's by at most a hundredth of the variance, paired (99 % together).

    Where softmax is ahead at smaller n is reported.
    """
    if len({m.seed for m in measurements}) < 3:
        return Verdict(Outcome.INCONCLUSIVE, "needs three seeds", 0.0, "")
    points = list(dict.fromkeys(m.point for m in measurements))
    names = labels(points)
    level = 1 - (1 - LEVEL) / (len(points) * len(TARGETS))
    numbers: dict[str, float] = {}
    margins: dict[str, float] = {}
    sides, ahead = [], []
    for point in points:
        mine = [m.result for m in measurements if m.point == point]
        for t, name in enumerate(TARGETS):
            curves = {a: np.array([r[a][:, t] for r in mine]) for a in ACTIVATIONS}
            label = f"{names[point]} {name}"
            numbers |= {f"{label} {a}": float(curves[a][:, -1].mean()) for a in ACTIVATIONS}
            gaps = curves["relu"] - curves["softmax"]
            ahead += [
                f"{label} n={n:.0f}"
                for n, gap in zip(mine[0]["sizes"], gaps.T, strict=True)
                if mean_interval(gap, level)[1] > AS_WELL
            ]
            mean, low, high = mean_interval(gaps[:, -1], level)
            numbers |= {f"{label} relu - softmax": mean, f"{label} relu - softmax ±": high - mean}
            error = max(float(np.std(gaps[:, -1], ddof=1)) / np.sqrt(len(mine)), 1e-300)
            margins[label] = (AS_WELL - high) / error
            sides.append((low > AS_WELL, high < AS_WELL, high < -AS_WELL))
    lost, held, won = (sum(column) for column in zip(*sides, strict=True))
    widest = min(margins, key=lambda label: numbers[f"{label} relu - softmax"])
    reason = (
        f"relu's error exceeds softmax's by less than {AS_WELL} of the variance on {held} of {len(sides)} targets, and is"
        f" lower by more than that on {won}, most on {widest} ({numbers[f'{widest} relu']:.3f} against"
        f" {numbers[f'{widest} softmax']:.3f})"
    )
    if ahead:
        reason += f"; softmax is ahead at {len(ahead)} sizes, such as {ahead[0]}"
    outcome = Outcome.REFUTED if lost else Outcome.SUPPORTED if held == len(sides) else Outcome.INCONCLUSIVE
    return Verdict(outcome, reason, float(min(margins.values())), "standard errors", numbers)


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Return the learning curves of each activation."""
    rows = []
    for m in measurements:
        for activation in ACTIVATIONS:
            for target, curve in zip(TARGETS, m.result[activation].T, strict=True):
                settings = {"target": target, **m.point.model_dump(exclude={"n"})}
                rows += [(activation, settings, n, e, None) for n, e in zip(m.result["sizes"], curve, strict=True)]
    return gather(rows, *AXES)


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw the curves of four targets, averaged over seeds."""
    shown = ("query 2", "keys 2", "correlation 1", "weighted 1")
    figure, axes = panels(len(shown), width=3)
    point = max((m.point for m in measurements), key=lambda p: (p.d, p.n))
    found = series([m for m in measurements if m.point == point])
    for axis, name in zip(axes, shown, strict=True):
        for one in (s for s in found if s.settings["target"] == name):
            look = ACTIVATIONS.index(one.name)
            drawn(axis, one, color=COLOURS[look], fmt=MARKERS[look])
        axis.set(xlabel="samples n", xscale="log", yscale="log", title=name)
        ticks(axis, found[0].x)
    axes[0].set_ylabel(f"test error / variance, d = {point.d}")
    axes[0].legend(frameon=False, fontsize=9)
    return figure


def finding(numbers: Numbers) -> str:
    """Return the largest lead of relu in a sentence."""
    gaps = ending(numbers, "relu - softmax")
    return (
        f"Relu attention loses nothing to softmax: on {len(gaps)} targets its error is larger by less than {AS_WELL} of the"
        f" variance, and lower by up to {-min(gaps):.2f}"
    )


def cost(point: Point) -> Cost:
    """Expect the products of the features and the factorisations, three times."""
    p, rows = point.heads * (point.d + 1), point.n + 1000
    seconds = 0.3 + 3e-10 * (rows * p * point.n + rows * p * (point.keys + 1) * point.d) + 9e-10 * 10 * point.n**3
    return Cost(seconds, int(200_000_000 + 16 * rows * p))


CLAIM = Claim(
    id="features.activations",
    version=1,
    statement="With random heads, relu attention does as well as softmax attention.",
    formula=(
        r"\varphi_m=\frac{1}{N}\sum_{i=1}^{N}\operatorname{act}(s_{mi})\,\tilde x_i,\qquad"
        r"\operatorname{act}(s_{mi})=\max(s_{mi},0)\;\text{ or }\;\frac{N\,e^{s_{mi}}}{\sum_j e^{s_{mj}}}"
    ),
    source="fu2023random, section 2, which studies relu in place of softmax",
    settings=Point,
    tiers={
        "quick": Sweep([Point(heads=150, d=6, keys=6, n=768)], seeds=10),
        "full": Sweep([Point(heads=1000, d=16, keys=16, n=4000, bias=b) for b in (0.0, 1.0)], seeds=4),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Test error over variance against samples, for relu, exp and softmax attention with the same frozen heads, on four"
        " targets (a constant predictor scores 1). Means over draws with standard errors."
    ),
    finding=finding,
    series=series,
)
