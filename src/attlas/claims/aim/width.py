"""aim.width: the error and the threshold as functions of the width, down to widths that vanish against d.

The last of 80 iterates is used, whether or not message passing has converged: at finite d it often cycles about its
fixed point.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field, NonNegativeInt, PositiveFloat

from attlas import aim
from attlas.claims.aim.kit import LIMIT, amp_cost, amp_error, points, ratios
from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep, Unfinished
from attlas.claims.figure import COLOURS, MARKERS, THEORY, drawn, panels
from attlas.claims.finding import ending, span
from attlas.claims.finite_size import finite_size_verdict
from attlas.claims.series import Series
from attlas.claims.verdict import Outcome, Verdict
from attlas.numerics import fit_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SMALL_NOISE = 1e-8
SHOWN = dict(zip((1e-3, 0.1, 0.5, 1.0, 2.0), COLOURS, strict=False))  # widths with a curve in the figure


class Point(Settings):
    """Width, samples and size: A = alpha (T^2 + T - 2), in units of rho. Size 0 asks the theory alone."""

    rho: PositiveFloat
    A_over_rho: PositiveFloat
    tokens: int = Field(2, ge=2)
    d: NonNegativeInt = 0

    @property
    def alpha(self) -> float:
        """Samples over d^2."""
        return self.A_over_rho * self.rho / (self.tokens**2 + self.tokens - 2)


def measure(point: Point, seed: int) -> Result:
    """Solve the theory; at a size also run message passing.

    ``edge`` is alpha at which F(Delta) = A Delta has its root at Delta = 1e-8, over the formula of the threshold: found from
    the spectrum alone.
    """
    channel = aim.Softmax(point.tokens)
    edge = float(aim.mmse(SMALL_NOISE, point.rho)) / SMALL_NOISE / channel.count
    formula = aim.recovery_threshold(channel, point.rho)
    theory = aim.state_evolution(channel, point.alpha, point.rho, steps=0, throw=False)
    result: Result = {"V": theory.value, "edge": edge / (formula or np.nan), "converged": theory.converged}
    if point.d:
        found = amp_error(channel, point.d, point.alpha, point.rho, seed, max_steps=80)
        result |= {name: found[name] for name in ("ratio", "converged")}
    return result


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """Theory: thresholds as in the formula to 1e-4, and V -> min(1, A'(2 - A')) as rho -> 0 with a gap of order rho.

    Simulation: message passing extrapolates to V at every width.
    """
    theory = [m for m in measurements if m.point.d == 0]
    edge = float(np.max([abs(m.result["edge"] - 1) for m in measurements]))  # NaN if any is
    numbers = {"threshold over formula, less 1, at most": edge}
    slopes: list[float] = []
    if not theory:
        return Verdict(Outcome.INCONCLUSIVE, "needs points of the theory alone (d = 0) at small widths", 0.0, "")
    for A in sorted({m.point.A_over_rho for m in theory}):
        mine = sorted((m for m in theory if m.point.A_over_rho == A and m.point.rho < 2e-3), key=lambda m: m.point.rho)
        gaps = {m.point.rho: abs(m.result["V"] - _limit(A)) for m in mine}
        if len(gaps) < 3:
            return Verdict(Outcome.INCONCLUSIVE, "needs three small widths", 0.0, "")
        line = fit_line(np.log(list(gaps)), np.log(list(gaps.values())))
        slopes.append(line.slope)
        numbers |= {f"A'={A:g} gap at rho={min(gaps):g}": gaps[min(gaps)], f"A'={A:g} power of rho": line.slope}
    simulated = [
        (f"T={m.point.tokens} rho={m.point.rho:g} A={m.point.A_over_rho * m.point.rho:g}", m.point.d, m.result["ratio"])
        for m in measurements
        if m.point.d
    ]
    verdict = finite_size_verdict(simulated, "width", "error of message passing over V")
    numbers |= verdict.numbers
    reason = (
        f"thresholds agree with the formula to {edge:.1g}; V nears its limit at small widths as rho^{min(slopes):.2f};"
        f" {verdict.reason}"
    )
    if not edge < 1e-4 or not min(slopes) > 0.8:
        return Verdict(Outcome.REFUTED, reason, -1.0, "standard errors", numbers)
    return Verdict(verdict.outcome, reason, verdict.strength, verdict.unit, numbers)


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Errors of message passing over V, against 1/d."""
    return ratios([m for m in measurements if m.point.d], "tokens", "rho", "A_over_rho")


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw V against A/rho for widths down to the limit, and message passing over V against 1/d."""
    figure, (left, right) = panels(2)
    grid = np.linspace(0.02, 2.2, 110)
    T = measurements[0].point.tokens
    for rho, colour in SHOWN.items():
        V = aim.curve(aim.Softmax(T), grid * rho / (T * T + T - 2), rho)["mse"].values[0]
        left.plot(grid, V, **(THEORY | {"color": colour}), label=f"rho = {rho:g}")
    left.plot(grid, [_limit(A) for A in grid], linestyle=":", **THEORY, label="rho → 0")
    left.set(xlabel="alpha (T² + T - 2)/rho", ylabel="error V")
    left.legend(frameon=False, fontsize=8)
    simulated = series(measurements)
    for i, mine in enumerate(simulated):
        rho = mine.settings["rho"]
        style = {"color": SHOWN.get(rho, COLOURS[-1]), "fmt": MARKERS[i % len(MARKERS)]}
        drawn(right, points(mine, (0.98 + 0.02 * i).__mul__), f"rho = {rho:g}", **style)  # side by side
    right.axhline(1, **THEORY)
    right.set(xlabel="1/d", ylabel="error of message passing / V", xlim=(0, None))
    if simulated:
        right.legend(frameon=False, fontsize=8)
    return figure


def cost(point: Point) -> Cost:
    """Expect what message passing takes."""
    return amp_cost(aim.Softmax(point.tokens), point.d, point.alpha) if point.d else Cost(0.01, 80_000_000)


def finding(numbers: Numbers) -> str:
    """Say how near theory, formula and simulation come at every width."""
    return (
        f"Width sets the number of samples as theory says: thresholds agree with the formula to"
        f" {numbers['threshold over formula, less 1, at most']:.0e}, and extrapolated to infinite d message passing has"
        f" {span(ending(numbers, LIMIT))} times the predicted error"
    )


def _limit(A: float) -> float:
    """Return V as rho -> 0: 1 up to weak recovery at A' = 1, A'(2 - A') up to strong recovery at 2."""
    return 1.0 if A <= 1 else max(A * (2 - A), 0.0)


_THEORY = [Point(rho=rho, A_over_rho=A) for rho in (1e-5, 1e-4, 1e-3, 0.1, 0.5, 1.0, 2.0) for A in (0.5, 0.8, 1.5, 1.9)]

CLAIM = Claim(
    id="aim.width",
    version=2,
    statement=(
        "Error and threshold follow the theory at every width; as rho -> 0 recovery begins at alpha/rho = 1/(T^2 + T - 2)"
        " and is perfect at twice that."
    ),
    formula=(
        r"V\to1\;\;(A'\le1),\quad A'(2-A')\;\;(1\le A'\le2),\quad0\;\;(A'\ge2)\qquad\text{as }\rho\to0,"
        r"\qquad A'=\frac{\alpha\,(T^2+T-2)}{\rho}"
    ),
    source="boncoraglio2025bayes, the role of the width",
    settings=Point,
    tiers={
        "quick": Sweep(
            _THEORY + [Point(rho=rho, A_over_rho=0.4 / rho, d=d) for rho in (0.5, 1.0, 2.0) for d in (40, 80, 120)],
            seeds=10,
        ),
        "full": Sweep(
            _THEORY
            + [
                Point(rho=rho, A_over_rho=A / rho, d=d)
                for rho, A in ((0.2, 0.2), (0.5, 0.4), (1.0, 0.5), (2.0, 0.5))
                for d in (100, 160, 240)
            ],
            seeds=10,
        ),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Left: predicted error against alpha (T² + T - 2)/rho for several widths rho, and its limit as rho tends to 0"
        " (dotted). Right: error of message passing over the prediction against 1/d, for each width; the line is exact"
        " agreement. Points are means over data sets with standard errors."
    ),
    finding=finding,
    series=series,
    unfinished=Unfinished.USED,
)
