"""features.bias-correlation: a query-key bias lowers the sample cost of correlation targets."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field, PositiveFloat, PositiveInt

from attlas import features
from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep
from attlas.claims.features.kit import AXES, curve_points, draw_curves, kernels_cost
from attlas.claims.figure import THEORY, drawn, panels, ticks
from attlas.claims.finding import ending
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Outcome, Verdict
from attlas.errors import InputError
from attlas.features import exponent, sample_cost
from attlas.numerics import mean_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEVEL = 0.99
TEST = 500  # test sequences
HALVING = "samples that halve the error"


class Point(Settings):
    """Degree of the correlation, bias strength, tokens and the largest sample. Heads are infinitely many."""

    power: PositiveInt = 1
    bias: PositiveFloat = 1.0
    d: PositiveInt
    keys: PositiveInt = 16
    n: int = Field(640, ge=32)


def measure(point: Point, seed: int) -> Result:
    """Return the samples that halve the error, without and with bias, on the same data."""
    data = features.TargetData([f"correlation {point.power}"], point.d, point.keys, point.n, TEST, seed)
    sizes = features.sample_sizes(16, point.n, 3)
    plain, biased = (data.attention(sizes, bias)[:, 0] for bias in (0.0, point.bias))
    return {
        "plain": sample_cost(sizes, plain),
        "biased": sample_cost(sizes, biased),
        "plain_curve": plain,
        "biased_curve": biased,
        "sizes": np.array(sizes, dtype=float),
    }


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """The exponent in d is larger without bias than with it, by more than its error, at every degree and bias (99 %)."""
    groups = sorted({(m.point.power, m.point.bias, m.point.keys) for m in measurements})
    level = 1 - (1 - LEVEL) / len(groups)
    numbers: dict[str, float] = {}
    margins, sides = [], []
    for power, bias, keys in groups:
        mine = [m for m in measurements if (m.point.power, m.point.bias, m.point.keys) == (power, bias, keys)]
        d = [m.point.d for m in mine]
        try:
            found = {key: exponent(d, [m.result[key] for m in mine]) for key in ("plain", "biased")}
            # the data are shared, so the ratio of costs scatters less than either: its exponent is the difference
            both = [(m.point.d, m.result["plain"] / m.result["biased"]) for m in mine if _measured(m)]
            ratio = exponent([d for d, _ in both], [r for _, r in both])
        except InputError as error:
            return Verdict(Outcome.INCONCLUSIVE, f"degree {power}, bias {bias:g}: {error}", 0.0, "")
        low, high = ratio.line.slope_interval(level)
        label = f"degree {power} bias {bias:g} keys {keys}"
        numbers |= {
            f"{label} exponent, no bias": found["plain"].line.slope,
            f"{label} exponent, bias": found["biased"].line.slope,
            f"{label} difference": ratio.line.slope,
            f"{label} difference ±": (high - low) / 2,
            f"{label} censored": float(found["plain"].censored + found["biased"].censored),
        }
        at = max(d for d, _ in both)
        gains = np.log([r for d, r in both if d == at])
        if len(gains) > 1:
            numbers[f"{label} cost over biased cost at d={at}"] = float(np.exp(mean_interval(gains)[0]))
        margins.append(low / ratio.line.slope_error)
        sides.append(1 if low > 0 else -1 if high < 0 else 0)
    closest = groups[int(np.argmin(margins))]
    label = f"degree {closest[0]} bias {closest[1]:g} keys {closest[2]}"
    reason = (
        f"n50 grows as d^{numbers[f'{label} exponent, no bias']:.2f} without and d^{numbers[f'{label} exponent, bias']:.2f}"
        f" with bias at {label}; the exponents differ by {numbers[f'{label} difference']:.2f} ± "
        f"{numbers[f'{label} difference ±']:.2f}"
    )
    return Verdict(Outcome.of(sides), reason, float(min(margins)), "standard errors", numbers)


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Return the learning curves, and the samples that halve the error against d."""
    learners = {"plain_curve": "kernel", "biased_curve": "biased"}
    curves = [row for m in measurements for row in curve_points(m, learners, [f"correlation {m.point.power}"])]
    costs = [
        (name, {"target": f"correlation {m.point.power}", "keys": m.point.keys, "bias": bias}, m.point.d, cost, None)
        for m in measurements
        for name, bias, cost in (("kernel", 0.0, m.result["plain"]), ("biased", m.point.bias, m.result["biased"]))
        if cost > 0
    ]
    return gather(curves, *AXES) + gather(costs, "d", HALVING)


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw the samples that halve the error against d, and the curves at the largest d."""
    figure, (left, right) = panels(2)
    first = measurements[0].point
    found = series([m for m in measurements if (m.point.power, m.point.bias) == (first.power, first.bias)])
    costs = [s for s in found if s.y_name == HALVING]
    for one in costs:
        drawn(left, one)
    left.set(xlabel="d", ylabel=HALVING, xscale="log", yscale="log")
    ticks(left, [d for one in costs for d in one.x])
    left.legend(frameon=False, fontsize=9)
    curves = [s for s in found if s.y_name != HALVING]
    largest = max(s.settings["d"] for s in curves)
    draw_curves(right, [s for s in curves if s.settings["d"] == largest])
    right.axhline(0.5, linestyle=":", **THEORY)
    right.set(ylabel=f"test error / variance, d = {largest}")
    return figure


def finding(numbers: Numbers) -> str:
    """Return both exponents in a sentence."""
    plain, biased = ending(numbers, "exponent, no bias")[0], ending(numbers, "exponent, bias")[0]
    return (
        "A bias in the query-key matrix changes the exponent: the samples needed to learn a correlation of query and keys"
        f" grow as d^{plain:.2f} without it and as d^{biased:.2f} with it"
    )


def cost(point: Point) -> Cost:
    """Expect both kernels and their factorisations."""
    return kernels_cost(point.n, point.keys, TEST)


def _measured(m: Measurement[Point]) -> bool:
    return all(0 < m.result[key] < np.inf for key in ("plain", "biased"))


CLAIM = Claim(
    id="features.bias-correlation",
    version=1,
    statement="A query-key bias (BRFA) lowers the sample cost of correlations between the query and the keys.",
    formula=(
        r"f(X)=\frac{1}{N}\sum_{i=1}^{N}\langle x_0,x_i\rangle^r,\quad\operatorname{E}[s_{mi}]=b\,\langle x_0,x_i\rangle:"
        r"\qquad n_{50}\propto d^{\,\gamma(b)},\quad\gamma(b)<\gamma(0)"
    ),
    source="fu2023random, section 3.3",
    settings=Point,
    tiers={
        "quick": Sweep([Point(d=d, n=440) for d in (6, 8, 12, 16)], seeds=3),
        "full": Sweep(
            [Point(d=d, n=1000) for d in (6, 8, 12, 16, 24)]
            + [Point(power=2, bias=b, d=d, n=4000) for b in (1.0, 2.0) for d in (4, 6, 8)]
            + [Point(power=3, d=d, n=2000) for d in (6, 8, 12)],
            seeds=4,
        ),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Left: samples that halve the test error, against d, without and with a query-key bias. Right: learning curves at"
        " the largest d (a constant predictor scores 1). Means over draws with standard errors; the dotted line is one half."
    ),
    finding=finding,
    series=series,
)
