"""aim.quadratic-networks: the linear model of one token is the quadratic network."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from pydantic import PositiveFloat

from attlas import aim
from attlas.claims.aim.kit import points
from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep
from attlas.claims.figure import COLOURS, THEORY, drawn, panels
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Outcome, Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# alpha: error of the theory curve in the public data of maillard2024quadratic (kappa = 0.5), times kappa; noise 0.25 here
PUBLISHED = {0.15816535: 0.61748698, 0.31533071: 0.31484979, 0.4882126: 0.16969945}
THEIRS = "Maillard et al. 2024, public data"
CLOSE = 1e-6


class Point(Settings):
    """A point of the published curve."""

    alpha: PositiveFloat
    noise: PositiveFloat = 0.25
    rho: PositiveFloat = 0.5


def measure(point: Point, seed: int) -> Result:  # noqa: ARG001
    """Return V; nothing is random."""
    theory = aim.state_evolution(aim.Linear(1, point.noise), point.alpha, point.rho, steps=0, throw=False)
    return {"V": theory.value, "converged": theory.converged}


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """Every published value within 1e-6."""
    gaps = {
        m.point.alpha: abs(m.result["V"] - PUBLISHED[m.point.alpha]) for m in measurements if _is_published(m.point)
    }
    if not gaps:
        return Verdict(Outcome.INCONCLUSIVE, "nothing is published at these settings", 0.0, "")
    worst = float(np.max(list(gaps.values())))  # NaN if any is
    outcome = Outcome.SUPPORTED if worst < CLOSE else Outcome.REFUTED
    reason = f"{len(gaps)} published values agree to {worst:.1g} (decided at {CLOSE:g})"
    numbers = {f"alpha = {alpha:g}": gap for alpha, gap in gaps.items()}
    return Verdict(outcome, reason, float(np.log10(CLOSE / max(worst, 1e-16))), "orders of magnitude", numbers)


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """The published values, and ours as their theory."""
    rows = [
        (THEIRS, {"noise": 0.25, "rho": 0.5}, m.point.alpha, PUBLISHED[m.point.alpha], m.result["V"])
        for m in measurements
        if _is_published(m.point)
    ]
    return gather(rows, "alpha", "published mse")


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw our curve and the published points."""
    figure, (axis,) = panels(1, width=6)
    alphas = np.linspace(0.02, 0.8, 80)
    V = aim.curve(aim.Linear(1, measurements[0].point.noise), alphas, measurements[0].point.rho)["mse"].values[0]
    axis.plot(alphas, V, label="state evolution (ours)", **THEORY)
    for mine in series(measurements):
        drawn(axis, points(mine), fmt="s", color=COLOURS[1])
    axis.set(xlabel="alpha", ylabel="error V", ylim=(0, 1))
    axis.legend(frameon=False)
    return figure


def cost(point: Point) -> Cost:  # noqa: ARG001
    """Expect one root."""
    return Cost(0.05, 80_000_000)


def finding(numbers: Numbers) -> str:
    """Say how near the published values are."""
    if not numbers:
        raise LookupError("alpha")
    return (
        f"The linear model of one token is the quadratic network: {len(numbers)} published errors agree with the theory here"
        f" to {max(numbers.values()):.0e}"
    )


def _is_published(point: Point) -> bool:
    return point.alpha in PUBLISHED and (point.noise, point.rho) == (0.25, 0.5)


_SWEEP = Sweep([Point(alpha=alpha) for alpha in PUBLISHED], seeds=1)

CLAIM = Claim(
    id="aim.quadratic-networks",
    version=1,
    statement="The attention-indexed model with one token and linear output is the quadratic network of extensive width.",
    formula=(
        r"y=\frac{x^\top S\,x-\operatorname{Tr}S}{\sqrt d}+\sqrt{D}\,\xi:\qquad V=F\left(\frac{D+2V}{4\alpha}\right)"
    ),
    source="maillard2024quadratic, theory curve of the public data; boncoraglio2025bayes",
    settings=Point,
    tiers={"quick": _SWEEP, "full": _SWEEP},
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption="Error against alpha: the state evolution of one token with linear output, and published values of the network.",
    finding=finding,
    series=series,
)
