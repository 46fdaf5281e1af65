"""recovery.agreement: examples on which all heads agree become exponentially rare with the number of heads."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field, PositiveFloat

from attlas import tokens
from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep
from attlas.claims.figure import panels
from attlas.claims.finding import ending
from attlas.claims.recovery.kit.figures import curves, magnitude
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Outcome, Verdict
from attlas.layers import softmax
from attlas.numerics import fit_line, stream
from attlas.recovery import planted_layer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEVEL = 0.99
LEAST = 10  # rows that agree: fewer do not measure a rate


class Point(Settings):
    """Heads, tokens, the size of the logits, and how far attention may differ and still agree."""

    heads: int = Field(ge=2)
    k: int = Field(3, ge=2)
    d: int = Field(8, ge=2)
    scale: PositiveFloat = 3.0
    window: PositiveFloat = 0.1
    examples: int = Field(20_000, ge=100)


def measure(point: Point, seed: int) -> Result:
    """Return how many rows of Boolean sequences have all heads' attention within the window of each other."""
    Theta, _ = planted_layer(point.heads, point.d, stream(seed, "teacher"), point.scale)
    X = tokens.boolean(point.examples, point.k, point.d, stream(seed, "data"))
    P = np.array([softmax((X @ theta) @ X.transpose(0, 2, 1)) for theta in Theta])
    agree = (P.max(0) - P.min(0)).max(-1) < point.window
    return {"agree": float(agree.sum()), "rows": float(agree.size)}


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """The slope of log P(agree) on (m - 1)(k - 1) is below zero, for every window and size of logits (99 % together)."""
    groups = sorted({_group(m.point) for m in measurements})
    level = 1 - (1 - LEVEL) / len(groups)
    numbers: dict[str, float] = {}
    margins, sides = [], []
    for group in groups:
        mine = [m for m in measurements if _group(m.point) == group and m.result["agree"] >= LEAST]
        if len({_freedom(m.point) for m in mine}) < 3 or len(mine) < 6:
            return Verdict(
                Outcome.INCONCLUSIVE, "needs three numbers of heads or tokens at which rows still agree", 0.0, ""
            )
        line = fit_line([_freedom(m.point) for m in mine], [np.log(m.result["agree"] / m.result["rows"]) for m in mine])
        low, high = line.slope_interval(level)
        label = f"window {group[0]:g} d={group[1]} s={group[2]:g}"
        numbers |= {
            f"{label} slope": line.slope,
            f"{label} slope ±": (high - low) / 2,
            f"{label} too rare to count": float(sum(_group(m.point) == group for m in measurements) - len(mine)),
        }
        margins.append(-high / line.slope_error)
        sides.append(1 if high < 0 else -1 if low > 0 else 0)
    worst = f"window {groups[int(np.argmin(margins))][0]:g}"
    slopes = [value for key, value in numbers.items() if key.endswith(" slope")]
    reason = (
        f"every further (m - 1)(k - 1) divides the share of agreeing rows by {np.exp(-max(slopes)):.1f} to"
        f" {np.exp(-min(slopes)):.1f} (slopes {min(slopes):.2f} to {max(slopes):.2f}, nearest to failing: {worst})"
    )
    return Verdict(Outcome.of(sides), reason, float(min(margins)), "standard errors", numbers)


def finding(numbers: Numbers) -> str:
    """Return by how much agreement fades."""
    slopes = ending(numbers, " slope")
    return (
        "Every further (m - 1)(k - 1) divides the share of examples on which all heads agree by"
        f" {np.exp(-max(slopes)):.1f} to {np.exp(-min(slopes)):.1f}"
    )


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Return the share of agreeing rows against (m - 1)(k - 1), as a power of ten."""
    rows = []
    for m in measurements:
        settings = {"window": m.point.window, "d": m.point.d, "scale": m.point.scale}
        rows.append(("agreement", settings, _freedom(m.point), magnitude(m.result["agree"] / m.result["rows"]), None))
    return gather(rows, "(m - 1)(k - 1)", "log10 of the share of rows on which all heads agree")


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw the share of agreeing rows."""
    figure, (axis,) = panels(1, width=6)
    curves(axis, series(measurements))
    axis.set(xlabel="(m - 1)(k - 1)", ylabel="log₁₀ of the share of rows that agree")
    return figure


def cost(point: Point) -> Cost:
    """Expect the attention of every head."""
    numbers = point.examples * point.k * (point.k + point.d)
    return Cost(0.05 + 2e-8 * point.heads * numbers, 100_000_000 + 8 * (point.heads + 3) * numbers)


def _group(point: Point) -> tuple[float, int, float]:
    return point.window, point.d, point.scale


def _freedom(point: Point) -> int:
    return (point.heads - 1) * (point.k - 1)


CLAIM = Claim(
    id="recovery.agreement",
    version=1,
    statement="Agreement of all heads on an example, which sculpting lives on, fades exponentially in the number of heads.",
    formula=r"P(\text{all heads attend alike})\propto e^{-c\,(m-1)(k-1)},\qquad c>0",
    source="chen2024provably, whose cost is exponential in the number of heads",
    settings=Point,
    tiers={
        "quick": Sweep([Point(heads=m, k=k, window=w) for m in (2, 3, 4) for k in (2, 3) for w in (0.1, 0.2)], seeds=4),
        "full": Sweep(
            [
                Point(heads=m, k=k, window=w, examples=100_000)
                for m in (2, 3, 4, 5)
                for k in (2, 3, 4)
                for w in (0.05, 0.1, 0.2)
            ],
            seeds=8,
        ),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Share of rows on which the attention of all heads agrees within a window, on a logarithmic scale,"
        " against (m - 1)(k - 1): means over layers with standard errors."
    ),
    finding=finding,
    series=series,
)
