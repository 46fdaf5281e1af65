"""recovery.queries-noise: the error grows in proportion to the noise of the oracle."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from pydantic import PositiveFloat, PositiveInt

from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep
from attlas.claims.figure import THEORY, panels
from attlas.claims.finding import ending, span
from attlas.claims.recovery.kit.figures import curves, magnitude
from attlas.claims.recovery.kit.tasks import oracle_of, query_layer
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Outcome, Verdict
from attlas.numerics import fit_line
from attlas.recovery import learn_from_queries

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEVEL = 0.99
SHARP = 0.1  # a slope known to less than this decides nothing


class Point(Settings):
    """The oracle's noise relative to its answer, tokens, outputs, and how often a query is repeated."""

    noise: PositiveFloat
    d: PositiveInt = 10
    outputs: PositiveInt = 10
    repeats: PositiveInt = 1


def measure(point: Point, seed: int) -> Result:
    """Return the relative error of Theta and the queries used."""
    truth = query_layer(1, point.d, point.outputs, seed)
    oracle = oracle_of(truth, point.noise, seed)
    found = learn_from_queries(oracle, point.d, noise=point.noise, repeats=point.repeats, seed=seed)
    error = np.linalg.norm(found.Theta - truth.Theta) / np.linalg.norm(truth.Theta)
    return {"error": float(error), "queries": float(found.certificate.queries), "converged": found.converged}


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """The slope of log error on log noise contains one, within a sharp interval (99 %)."""
    groups = sorted({(m.point.d, m.point.outputs, m.point.repeats) for m in measurements})
    level = 1 - (1 - LEVEL) / len(groups)
    numbers: dict[str, float] = {}
    margins, blurred = [], False
    for d, outputs, repeats in groups:
        mine = [m for m in measurements if (m.point.d, m.point.outputs, m.point.repeats) == (d, outputs, repeats)]
        if len({m.point.noise for m in mine}) < 3 or not all(0 < m.result["error"] < np.inf for m in mine):
            return Verdict(Outcome.INCONCLUSIVE, "needs three noise levels and finite errors", 0.0, "")
        line = fit_line([np.log(m.point.noise) for m in mine], [np.log(m.result["error"]) for m in mine])
        low, high = line.slope_interval(level)
        factor = float(np.exp(np.mean([np.log(m.result["error"] / m.point.noise) for m in mine])))
        label = f"d={d} outputs={outputs} repeats={repeats}"
        numbers |= {f"{label} slope": line.slope, f"{label} slope ±": (high - low) / 2, f"{label} error/noise": factor}
        margins.append(((high - low) / 2 - abs(line.slope - 1)) / line.slope_error)
        blurred = blurred or (high - low) / 2 > SHARP
    factors = [value for key, value in numbers.items() if key.endswith("error/noise")]
    slopes = [value for key, value in numbers.items() if key.endswith(" slope")]
    reason = (
        f"the error of Theta is {span(factors, '.1f')} times the noise and grows as its power {span(slopes, '.3f')}"
    )
    if min(margins) < 0:
        return Verdict(Outcome.REFUTED, reason, float(min(margins)), "standard errors", numbers)
    outcome = Outcome.INCONCLUSIVE if blurred else Outcome.SUPPORTED
    return Verdict(outcome, reason, float(min(margins)), "standard errors", numbers)


def finding(numbers: Numbers) -> str:
    """Return what noise costs."""
    factors = ending(numbers, "error/noise")
    return f"The error of a recovered head is {span(factors, '.1f')} times the noise of the answers"


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Return the error of Theta against the noise, both as powers of ten."""
    rows = [
        ("queries", m.point.model_dump(exclude={"noise"}), magnitude(m.point.noise), magnitude(m.result["error"]), None)
        for m in measurements
    ]
    return gather(rows, "log10 of the noise of the oracle", "log10 of the relative error of Theta")


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw the error against the noise."""
    figure, (axis,) = panels(1, width=6)
    noise = sorted({magnitude(m.point.noise) for m in measurements})
    axis.plot(noise, noise, label="the noise itself", **THEORY)
    curves(axis, series(measurements))
    axis.set(xlabel="log₁₀ of the noise of the oracle", ylabel="log₁₀ of the relative error of Θ")
    return figure


def cost(point: Point) -> Cost:
    """Expect a tenth of a millisecond for a query."""
    return Cost(0.02 + 1.5e-4 * point.repeats * (point.d**2 + point.d), 100_000_000)


CLAIM = Claim(
    id="recovery.queries-noise",
    version=1,
    statement="Recovery from queries degrades in proportion to the noise of the oracle.",
    formula=(
        r"\text{answer}=f(X)+\varepsilon\,|f(X)|\,\xi:"
        r"\qquad\frac{\lVert\hat\Theta-\Theta\rVert}{\lVert\Theta\rVert}\propto\varepsilon"
    ),
    source="bhattamishra2026provably",
    settings=Point,
    tiers={
        "quick": Sweep([Point(noise=10.0**-e, repeats=r) for e in (7, 6, 5, 4, 3) for r in (1, 4)], seeds=8),
        "full": Sweep(
            [Point(noise=10.0**-e, repeats=r, d=d) for e in (8, 7, 6, 5, 4, 3) for r in (1, 10) for d in (10, 20)],
            seeds=10,
        ),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Relative error of the query-key matrix of one head against the noise of the oracle, on logarithmic"
        " scales: means over heads with standard errors. The line is the noise itself."
    ),
    finding=finding,
    series=series,
)
