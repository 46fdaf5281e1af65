"""aim.sequence-length: curves of all sequence lengths are one curve in alpha (T^2 + T - 2)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field, PositiveFloat, PositiveInt

from attlas import aim
from attlas.claims.aim.kit import above_threshold, amp_cost, amp_error
from attlas.claims.claim import Claim, Cost, Measurement, Outcome, Result, Settings, Sweep, Verdict
from attlas.claims.figure import COLOURS, THEORY, panels, simulated
from attlas.claims.finite_size import finite_size_verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Point(Settings):
    """Sequence length, effective sample size A = alpha (T^2 + T - 2), width and size."""

    tokens: int = Field(ge=2)
    A: PositiveFloat = 0.4
    rho: PositiveFloat = 0.5
    d: PositiveInt

    @property
    def alpha(self) -> float:
        """Samples over d^2."""
        return self.A / (self.tokens**2 + self.tokens - 2)


def measure(point: Point, seed: int) -> Result:
    """Run message passing once, and solve the theory by the state evolution of this T."""
    return amp_error(aim.Softmax(point.tokens), point.d, point.alpha, point.rho, seed)


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """Theory: V of all T equal to 1e-9 at the same A. Simulation: every T extrapolates to that V."""
    if undecided := above_threshold(measurements):
        return undecided
    for A, rho in {(m.point.A, m.point.rho) for m in measurements}:
        theory = {m.point.tokens: m.result["theory"] for m in measurements if (m.point.A, m.point.rho) == (A, rho)}
        spread = float(np.ptp(list(theory.values())))
        if not spread <= 1e-9:
            return Verdict(Outcome.REFUTED, f"the theory itself does not collapse: V spreads by {spread:.2g}", -1.0, "")
    rows = [(_label(m.point), m.point.d, m.result["ratio"]) for m in measurements]
    return finite_size_verdict(rows, "length", "error of message passing over the common V")


def _label(point: Point) -> str:
    return f"T={point.tokens} A={point.A:g} rho={point.rho:g}"


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw theory and simulation against A, and against alpha, where they do not collapse."""
    figure, (left, right) = panels(2)
    grid = np.linspace(0.01, 0.8, 80)
    largest, rho = max(m.point.d for m in measurements), measurements[0].point.rho
    for i, T in enumerate(sorted({m.point.tokens for m in measurements})):
        count = T * T + T - 2
        V = aim.curve(aim.Softmax(T), grid / count, rho)["mse"].values[0]
        mine = [m for m in measurements if m.point.tokens == T and m.point.d == largest]
        for axis, scale in ((left, 1.0), (right, 1 / count)):
            axis.plot(grid * scale, V, **(THEORY | {"color": COLOURS[i % len(COLOURS)]}))
            simulated(axis, i, [m.point.A * scale for m in mine], [m.result["error"] for m in mine], f"T = {T}")
    left.set(xlabel="alpha (T² + T - 2)", ylabel=f"error V (points: message passing, d = {largest})")
    right.set(xlabel="alpha", xscale="log")
    left.legend(frameon=False, fontsize=9)
    return figure


def cost(point: Point) -> Cost:
    """Expect what message passing takes."""
    return amp_cost(aim.Softmax(point.tokens), point.d, point.alpha)


CLAIM = Claim(
    id="aim.sequence-length",
    version=1,
    statement="Learning curves of softmax attention for all sequence lengths T are one curve in alpha (T^2 + T - 2).",
    formula=r"V=F\left(\frac{V}{A}\right),\qquad A=\alpha\,(T^2+T-2)",
    source="boncoraglio2025bayes, the role of the sequence length",
    settings=Point,
    tiers={
        "quick": Sweep([Point(tokens=T, d=d) for T in (2, 3, 6) for d in (80, 140, 220)], seeds=7),
        "full": Sweep(
            [Point(tokens=T, A=A, d=d) for T in (2, 3, 4, 5, 6) for A in (0.2, 0.4, 0.6) for d in (80, 140, 200)],
            seeds=10,
        ),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
)
