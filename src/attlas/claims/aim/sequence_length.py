"""aim.sequence-length: curves of all sequence lengths are one curve in alpha (T^2 + T - 2).

The last of 60 iterates is used, whether or not message passing has converged: at finite d it often cycles about its
fixed point.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field, PositiveFloat, PositiveInt

from attlas import aim
from attlas.claims.aim.kit import LIMIT, above_threshold, amp_cost, amp_error, errors, points
from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep, Unfinished
from attlas.claims.figure import COLOURS, MARKERS, THEORY, drawn, panels
from attlas.claims.finding import ending, span
from attlas.claims.finite_size import finite_size_verdict
from attlas.claims.series import Series
from attlas.claims.verdict import Outcome, Verdict

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


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Errors against alpha, for every length."""
    return errors(measurements, "amp", "error", lambda m: m.result["theory"])


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw theory and simulation against A, and against alpha, where they do not collapse."""
    figure, (left, right) = panels(2)
    grid = np.linspace(0.01, 0.8, 80)
    largest, rho = max(m.point.d for m in measurements), measurements[0].point.rho
    shown = [s for s in series(measurements) if (s.settings["d"], s.settings["rho"]) == (largest, rho)]
    for i, mine in enumerate(sorted(shown, key=lambda s: s.settings["tokens"])):
        channel = aim.Softmax(mine.settings["tokens"])
        V = aim.curve(channel, grid / channel.count, rho)["mse"].values[0]
        style = {"color": COLOURS[i % len(COLOURS)], "fmt": MARKERS[i % len(MARKERS)]}
        for axis, scale in ((left, float(channel.count)), (right, 1.0)):
            axis.plot(grid / channel.count * scale, V, **(THEORY | {"color": style["color"]}))
            drawn(axis, points(mine, scale.__mul__), f"T = {channel.tokens}", **style)
    left.set(xlabel="alpha (T² + T - 2)", ylabel=f"error V (points: message passing, d = {largest})")
    right.set(xlabel="alpha", xscale="log")
    left.legend(frameon=False, fontsize=9)
    return figure


def cost(point: Point) -> Cost:
    """Expect what message passing takes."""
    return amp_cost(aim.Softmax(point.tokens), point.d, point.alpha)


def finding(numbers: Numbers) -> str:
    """Say how near to one curve the lengths come."""
    return (
        "Learning curves of all sequence lengths are one curve: extrapolated to infinite d the error is"
        f" {span(ending(numbers, LIMIT))} times that of the common curve, for every length tried"
    )


CLAIM = Claim(
    id="aim.sequence-length",
    version=2,
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
    caption=(
        "Error of the query-key matrix, predicted and reached by message passing at the largest d, for every sequence"
        " length T. Left: against alpha (T² + T - 2). Right: the same against alpha. Points are means over data sets with"
        " standard errors."
    ),
    finding=finding,
    series=series,
    unfinished=Unfinished.USED,
)
