"""features.expressivity: M heads express a target to a squared error that falls at least as fast as 1/M."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field, PositiveInt

from attlas import features, tokens
from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep
from attlas.claims.features.kit import AXES
from attlas.claims.figure import COLOURS, MARKERS, THEORY, drawn, panels, ticks
from attlas.claims.finding import ending
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Outcome, Verdict
from attlas.features import targets
from attlas.features.ridge import factor, solve
from attlas.numerics import fit_line, stream

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEVEL = 0.99
SHARP = 0.25  # a slope that is known less well than this decides nothing
FLOOR = 1e-10  # errors below it are rounding
TARGETS = ("keys 1", "keys 2", "query 2", "correlation 1", "correlation 2")
RATIO = 10  # samples per trained number


class Point(Settings):
    """Heads and tokens."""

    heads: PositiveInt
    d: int = Field(4, ge=2)
    keys: PositiveInt = 4


def measure(point: Point, seed: int) -> Result:
    """Return the relative squared error on fresh sequences of least squares with ten samples per trained number."""
    p = point.heads * (point.d + 1)
    X = tokens.sphere(RATIO * p, point.keys + 1, point.d, stream(seed, "train"))
    fresh = tokens.sphere(4000, point.keys + 1, point.d, stream(seed, "test"))
    functions = [targets.named(name, point.d, seed) for name in TARGETS]
    Y, expected = (np.stack([f(x) for f in functions], axis=1) for x in (X, fresh))
    model = features.RandomAttentionFeatures(point.heads, random_state=seed).fit(X)
    F = model.transform(X)
    G = F.T @ F
    coefficients = solve(factor(G, 1e-13 * float(np.trace(G)) / p), F.T @ Y)
    return {"errors": np.mean((model.transform(fresh) @ coefficients - expected) ** 2, axis=0) / expected.var(0)}


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """The slope of log error on log M is at most -1 within its error, for every target and d (99 % together)."""
    sizes = sorted({(m.point.d, m.point.keys) for m in measurements})
    level = 1 - (1 - LEVEL) / (len(TARGETS) * len(sizes))
    if not all(np.isfinite(m.result["errors"]).all() for m in measurements):
        return Verdict(Outcome.INCONCLUSIVE, "an error is not finite", 0.0, "")
    numbers: dict[str, float] = {}
    margins, blurred = [], False
    for d, keys in sizes:
        for t, name in enumerate(TARGETS):
            mine = [m for m in measurements if (m.point.d, m.point.keys) == (d, keys) and m.result["errors"][t] > FLOOR]
            if len({m.point.heads for m in mine}) < 2 or len(mine) < 6:
                return Verdict(Outcome.INCONCLUSIVE, f"{name}: needs two numbers of heads and six runs", 0.0, "")
            line = fit_line([np.log(m.point.heads) for m in mine], [np.log(float(m.result["errors"][t])) for m in mine])
            low, high = line.slope_interval(level)
            numbers |= {
                f"d={d} keys={keys} {name} slope": line.slope,
                f"d={d} keys={keys} {name} slope ±": (high - low) / 2,
            }
            margins.append((-1 - low) / line.slope_error)
            blurred = blurred or (high > -1 and (high - low) / 2 > SHARP)
    slopes = {key: value for key, value in numbers.items() if key.endswith("slope")}
    worst = max(slopes, key=lambda key: slopes[key])
    reason = (
        f"the squared error falls as M^{min(slopes.values()):.2f} to M^{slopes[worst]:.2f}; the slowest,"
        f" {worst.removesuffix(' slope')}, within ±{numbers[worst + ' ±']:.2f}"
    )
    if min(margins) < 0:
        return Verdict(Outcome.REFUTED, f"{reason}: slower than 1/M", float(min(margins)), "standard errors", numbers)
    outcome = Outcome.INCONCLUSIVE if blurred else Outcome.SUPPORTED
    return Verdict(outcome, reason, float(min(margins)), "standard errors", numbers)


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Return the errors of every target against the number of heads."""
    rows = (
        ("heads", {"target": name, "d": m.point.d, "keys": m.point.keys}, m.point.heads, error, None)
        for m in measurements
        for name, error in zip(TARGETS, m.result["errors"], strict=True)
    )
    return gather(rows, "heads", AXES[1])


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw the error of every target against M at the largest d, beside 1/M."""
    figure, (axis,) = panels(1, width=6)
    d = max(m.point.d for m in measurements)
    found = series([m for m in measurements if m.point.d == d])
    for one, colour, marker in zip(found, COLOURS, MARKERS, strict=False):
        drawn(axis, one, one.settings["target"], color=colour, fmt=marker)
    heads = np.array(found[0].x)
    axis.plot(heads, max(one.mean[0] for one in found) * heads[0] / heads, **THEORY, label="1/M")
    axis.set(xlabel="heads M", ylabel=f"squared error / variance, d = {d}", xscale="log", yscale="log")
    ticks(axis, heads.tolist())
    axis.legend(frameon=False, fontsize=9)
    return figure


def finding(numbers: Numbers) -> str:
    """Return the slowest and the fastest slope in a sentence."""
    slopes = ending(numbers, " slope")
    return (
        f"The error of M heads falls as M^{max(slopes):.2f} for the slowest of the targets and as M^{min(slopes):.2f} for"
        " the fastest; M^-1 is proved"
    )


def cost(point: Point) -> Cost:
    """Expect the features and their Gram matrix."""
    p = point.heads * (point.d + 1)
    return Cost(0.05 + 1e-10 * RATIO * p * p * p, 150_000_000 + 16 * (RATIO * p + 4000) * p)


CLAIM = Claim(
    id="features.expressivity",
    version=1,
    statement="M random heads express key averages, correlations and query functions to a squared error of order 1/M.",
    formula=(
        r"\min_{v_1,\dots,v_M}\operatorname{E}\left(f(X)-\sum_{m=1}^{M}\langle v_m,\varphi_m(X)\rangle\right)^2"
        r"=O\left(\frac{1}{M}\right)"
    ),
    source="fu2023random, theorem 1",
    settings=Point,
    tiers={
        "quick": Sweep([Point(heads=M) for M in (32, 64, 128, 256)], seeds=6),
        "full": Sweep(
            [Point(heads=M) for M in (32, 64, 128, 256, 512)]
            + [Point(heads=M, d=6, keys=6) for M in (64, 128, 256, 512)],
            seeds=8,
        ),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Squared error over variance of the best values of M random heads, on fresh sequences, against M, for five targets."
        " Means over draws with standard errors; the line falls as 1/M."
    ),
    finding=finding,
    series=series,
)
