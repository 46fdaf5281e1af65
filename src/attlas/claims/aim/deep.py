"""aim.deep: of two attention layers, the last is learned first.

The last of 24 iterates is used, whether or not message passing has converged.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field, PositiveFloat, PositiveInt

from attlas import aim
from attlas.claims.aim.kit import points
from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep, Unfinished
from attlas.claims.figure import COLOURS, MARKERS, THEORY, drawn, panels
from attlas.claims.finding import ending, span
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Outcome, Verdict
from attlas.numerics import fit_line, mean_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEVEL = 0.99
STEPS = 24
LAYERS = ("first", "second")


class Point(Settings):
    """Samples, width of both layers, residual strength and size; `samples` are those behind the theory."""

    alpha: PositiveFloat = 0.2
    rho: PositiveFloat = 0.5
    skip: float = Field(1.0, ge=0)
    d: PositiveInt
    samples: int = Field(512, ge=64)


def measure(point: Point, seed: int) -> Result:
    """Run message passing on two layers; return both errors over that of the prior mean, beside the diagonal theory."""
    channel = aim.Deep(skip=point.skip, samples=point.samples)
    task = aim.sample(channel, point.d, point.alpha, point.rho, seed)
    found = aim.message_passing(task.X, task.y, channel, point.rho, S=task.S, max_steps=STEPS, throw=False)
    residue = task.S - found.S_hat
    theory = _theory(channel, point.alpha, point.rho)
    return {
        "errors": found.mse[-1] / found.mse[0],
        "course": found.mse,
        "cross": float(np.sum(residue[0] * residue[1])) / point.d,
        "theory": theory.value,
        "theory_error": theory.standard_error,
        "correlation": float(theory.qhat[0, 1] / np.sqrt(theory.qhat[0, 0] * theory.qhat[1, 1])),
        "converged": found.converged and theory.converged,
    }


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """The first layer's error minus the second's, paired over data sets, is above zero at every alpha (99 % together).

    How far message passing is from the diagonal theory is reported, extrapolated in 1/d where there are sizes enough.
    """
    if len({(m.point.rho, m.point.skip) for m in measurements}) > 1:
        return Verdict(Outcome.INCONCLUSIVE, "judge one rho and one skip at a time", 0.0, "")
    if not all(np.isfinite(m.result["errors"]).all() for m in measurements):
        return Verdict(Outcome.INCONCLUSIVE, "an error is not finite: message passing diverged somewhere", 0.0, "")
    groups = {m.point.alpha: [n for n in measurements if n.point.alpha == m.point.alpha] for m in measurements}
    numbers: dict[str, float] = {}
    margins, sides = [], []
    for alpha, mine in groups.items():
        gaps = [float(m.result["errors"][0] - m.result["errors"][1]) for m in mine]
        if len(gaps) < 3:
            return Verdict(Outcome.INCONCLUSIVE, "needs three runs at every alpha", 0.0, "")
        mean, low, high = mean_interval(gaps, 1 - (1 - LEVEL) / len(groups))
        error = float(np.std(gaps, ddof=1)) / np.sqrt(len(gaps))
        numbers |= {
            f"alpha={alpha:g} first minus second": mean,
            f"alpha={alpha:g} first minus second ±": (high - low) / 2,
        }
        margins.append(low / max(error, 1e-300))
        sides.append(1 if low > 0 else -1 if high < 0 else 0)
        numbers |= _deviation(alpha, mine)
    correlation = max(abs(float(m.result["correlation"])) for m in measurements)
    numbers["correlation that the theory drops"] = correlation
    worst = max((abs(v) for k, v in numbers.items() if k.endswith("over theory, less 1")), default=np.nan)
    reason = (
        f"the first layer's error exceeds the second's by {min(v for k, v in numbers.items() if k.endswith('second')):.3f}"
        f" of the prior's at the alpha nearest to failing; message passing at the largest d is within {worst:.1%} of the"
        f" diagonal theory (which drops correlations of up to {correlation:.0%})"
    )
    return Verdict(Outcome.of(sides), reason, float(min(margins)), "standard errors", numbers)


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Errors of both layers over the diagonal theory against 1/d, and along the iteration."""
    return _ratios(measurements) + _courses(measurements)


def _ratios(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    rows = [
        (f"{name} layer", {"alpha": m.point.alpha}, 1 / m.point.d, m.result["errors"][i] / m.result["theory"][i], 1.0)
        for i, name in enumerate(LAYERS)
        for m in measurements
    ]
    return gather(rows, "1/d", "mse / diagonal theory")


def _courses(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    rows = [
        (f"{name} layer", {"alpha": m.point.alpha, "d": m.point.d}, step, errors[i], None)
        for i, name in enumerate(LAYERS)
        for m in measurements
        for step, errors in enumerate(m.result["course"])
    ]
    return gather(rows, "iteration", "mse after the step")


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw both layers' errors over the diagonal theory against 1/d, and their course at the largest alpha and size."""
    figure, (left, right) = panels(2)
    largest, top = max(m.point.d for m in measurements), max(m.point.alpha for m in measurements)
    theory = next(m.result["theory"] for m in measurements if m.point.alpha == top)
    for layer, name in enumerate(LAYERS):
        style = {"color": COLOURS[layer], "fmt": MARKERS[layer]}
        beside = (0.98 + 0.04 * layer).__mul__  # so that the layers do not hide each other
        for mine in _ratios(measurements):
            if mine.name == f"{name} layer":
                main = mine.settings["alpha"] == top
                drawn(left, points(mine, beside), None if main else "", **style, alpha=1.0 if main else 0.4)
        for mine in _courses(measurements):
            if mine.name == f"{name} layer" and mine.settings == {"alpha": top, "d": largest}:
                drawn(right, mine, "", **style)
        right.axhline(float(theory[layer]), **(THEORY | {"color": COLOURS[layer]}))
    left.axhline(1, **THEORY)
    left.set(xlabel="1/d", ylabel="error of message passing / diagonal theory", xlim=(0, None))
    left.legend(frameon=False, fontsize=9)
    right.set(xlabel="iteration", ylabel=f"error at alpha = {top:g}, d = {largest}", ylim=(0, None))
    return figure


def cost(point: Point) -> Cost:
    """Expect a millisecond for each score, of the data and of the theory."""
    n = point.alpha * point.d**2
    return Cost(STEPS * (n + point.samples / 4) * 7e-4, int(150_000_000 + 200 * n * point.d))


def finding(numbers: Numbers) -> str:
    """Say by how much the first layer lags behind."""
    gaps = ending(numbers, "first minus second")
    return (
        f"The last layer is learned first: the first has more error, by {span(gaps)} (guessing the prior mean gives 1)"
    )


def _deviation(alpha: float, mine: Sequence[Measurement[Point]]) -> dict[str, float]:
    numbers: dict[str, float] = {}
    sizes = sorted({m.point.d for m in mine})
    for layer, name in enumerate(LAYERS):
        ratios = [(m.point.d, float(m.result["errors"][layer] / m.result["theory"][layer])) for m in mine]
        label = f"alpha={alpha:g} {name} layer"
        numbers[f"{label}, d={sizes[-1]}, over theory, less 1"] = (
            float(np.mean([r for d, r in ratios if d == sizes[-1]])) - 1
        )
        numbers[f"{label}, relative error of theory"] = float(
            mine[0].result["theory_error"][layer] / mine[0].result["theory"][layer]
        )
        if len(sizes) > 1 and len(ratios) > 3:
            line = fit_line([1 / d for d, _ in ratios], [r for _, r in ratios])
            low, high = line.intercept_interval(LEVEL)
            numbers |= {f"{label} at d = infinity": line.intercept, f"{label} at d = infinity ±": (high - low) / 2}
    return numbers


@lru_cache(maxsize=64)
def _theory(channel: aim.Deep, alpha: float, rho: float) -> aim.FixedPoint:
    return aim.state_evolution(channel, alpha, rho, throw=False)


CLAIM = Claim(
    id="aim.deep",
    version=2,
    statement="Of two stacked attention layers the last is learned first.",
    formula=r"A_l=\operatorname{softmax}(\beta H^{(l)}),\quad x^{(2)}=(cI+A_1)\,x^{(1)},\quad y=A_2:\qquad V_2<V_1",
    source="boncoraglio2025bayes, deep attention",
    settings=Point,
    tiers={
        "quick": Sweep([Point(d=d) for d in (24, 36)], seeds=3),
        "full": Sweep([Point(alpha=a, d=d, samples=4096) for a in (0.1, 0.2, 0.3) for d in (60, 100, 140)], seeds=6),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Left: error of message passing in each layer over the diagonal theory, against 1/d, paler at smaller alpha; the"
        " line is exact agreement. Right: the errors after each iteration at the largest alpha and d, and the theory's"
        " fixed point. Points are means over data sets with standard errors."
    ),
    finding=finding,
    series=series,
    unfinished=Unfinished.USED,
)
