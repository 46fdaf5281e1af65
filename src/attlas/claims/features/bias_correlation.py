"""features.bias-correlation: a query-key bias lowers the sample cost of correlation targets."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field, PositiveFloat, PositiveInt

from attlas.claims.claim import Claim, Cost, Measurement, Outcome, Result, Settings, Sweep, Verdict
from attlas.claims.features.kit import Draw, grid, kernels_cost
from attlas.claims.figure import THEORY, panels, simulated, ticks
from attlas.errors import InputError
from attlas.features import exponent, sample_cost
from attlas.numerics import mean_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEVEL = 0.99
TEST = 500  # test sequences


class Point(Settings):
    """Degree of the correlation, bias strength, tokens and the largest sample. Heads are infinitely many."""

    power: PositiveInt = 1
    bias: PositiveFloat = 1.0
    d: PositiveInt
    keys: PositiveInt = 16
    n: int = Field(640, ge=32)


def measure(point: Point, seed: int) -> Result:
    """Return the samples that halve the error, without and with bias, on the same data."""
    draw = Draw([f"correlation {point.power}"], point.d, point.keys, point.n, TEST, seed)
    sizes = grid(16, point.n, 3)
    plain, biased = (draw.attention(sizes, bias)[:, 0] for bias in (0.0, point.bias))
    return {
        "plain": sample_cost(sizes, plain),
        "biased": sample_cost(sizes, biased),
        "plain_curve": plain,
        "biased_curve": biased,
        "sizes": np.array(sizes, dtype=float),
    }


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """Exponents in d: that without bias exceeds that with it by more than their errors, for every degree and bias (99 %)."""
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


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw n50 against d, and the curves at the largest d."""
    figure, (left, right) = panels(2)
    first = measurements[0].point
    mine = [m for m in measurements if (m.point.power, m.point.bias) == (first.power, first.bias)]
    largest = max(m.point.d for m in mine)
    for i, (key, label) in enumerate((("plain", "no bias"), ("biased", f"bias {first.bias:g}"))):
        shown = [m for m in mine if 0 < m.result[key] < np.inf]
        simulated(left, i, [m.point.d for m in shown], [m.result[key] for m in shown], label, log=True)
        curves = [m.result for m in mine if m.point.d == largest]
        sizes = np.concatenate([r["sizes"] for r in curves])
        simulated(right, i, sizes, np.concatenate([r[f"{key}_curve"] for r in curves]), log=True)
    left.set(xlabel="d", ylabel="samples that halve the error", xscale="log", yscale="log")
    ticks(left, [m.point.d for m in mine])
    left.legend(frameon=False, fontsize=9)
    right.axhline(0.5, linestyle=":", **THEORY)
    right.set(xlabel="samples", ylabel=f"test error / variance, d = {largest}", xscale="log", yscale="log")
    ticks(right, mine[-1].result["sizes"][::6])
    return figure


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
)
