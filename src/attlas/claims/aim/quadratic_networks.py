"""aim.quadratic-networks: the linear model of one token is the quadratic network."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from pydantic import PositiveFloat

from attlas import aim
from attlas.claims.aim.kit import points
from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep
from attlas.claims.estimate import Exact, Undecided
from attlas.claims.figure import COLOURS, THEORY, drawn, finished, panels
from attlas.claims.finding import ending
from attlas.claims.mutation import Mutation, scaled
from attlas.claims.series import Series, gather
from attlas.claims.verdict import Test, Verdict, below, decide

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# alpha: error of the theory curve in the public data of maillard2024quadratic (kappa = 0.5), times kappa; noise 0.25 here
PUBLISHED = {0.15816535: 0.61748698, 0.31533071: 0.31484979, 0.4882126: 0.16969945}
THEIRS = "Maillard et al. 2024, public data"
CLOSE = 1e-6  # the published values carry eight digits, and their iteration stops at some 1e-7
GAP = "distance from the published value"


class Point(Settings):
    """A point of the published curve."""

    alpha: PositiveFloat
    noise: PositiveFloat = 0.25
    rho: PositiveFloat = 0.5


def measure(point: Point, seed: int) -> Result:  # noqa: ARG001
    """Return V; nothing is random."""
    return _solved(point, point.noise)


def _solved(point: Point, noise: float) -> Result:
    found = aim.state_evolution(aim.Linear(1, noise), point.alpha, point.rho, steps=0, throw=False)
    return {"V": found.value, "converged": found.converged}


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """Every published value within 1e-6."""
    mine = [m for m in measurements if _is_published(m.point)]
    if not mine:
        raise Undecided("nothing is published at these settings")
    gaps = {m.point.alpha: abs(m.result["V"] - PUBLISHED[m.point.alpha]) for m in mine}
    tests = [Test(f"alpha = {alpha:g}: {GAP}", Exact(float(gap)), below(CLOSE)) for alpha, gap in gaps.items()]
    return decide(tests, f"{len(gaps)} published values are within {max(gaps.values()):.1g}")


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
    axis.set(xlabel="samples over d², alpha", ylabel="error V", ylim=(0, 1))
    return finished(figure)


def cost(point: Point) -> Cost:  # noqa: ARG001
    """Expect one root."""
    return Cost(0.05, 80_000_000)


def finding(numbers: Numbers) -> str:
    """Say how near the published values are."""
    gaps = ending(numbers, GAP)
    return (
        f"The linear model of one token is the quadratic network: {len(gaps)} published errors agree with the theory here"
        f" to {max(gaps):.0e}"
    )


def _is_published(point: Point) -> bool:
    return point.alpha in PUBLISHED and (point.noise, point.rho) == (0.25, 0.5)


_SWEEP = Sweep([Point(alpha=alpha) for alpha in PUBLISHED], seeds=1)

CLAIM = Claim(
    id="aim.quadratic-networks",
    version=2,
    statement=(
        "The attention-indexed model with one token and linear output is the quadratic network of extensive width: its"
        " error agrees with three values of the theory curve that Maillard et al. published for the network, to"
        " $10^{-6}$."
    ),
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
    mutations=[
        Mutation("V times {size:g}", (1 + 1e-7, 1 + 1e-5, 1.001), 1 + 1e-5, change=scaled("V")),
        Mutation(
            "noise of variance {size:g} instead of 0.25",
            (0.25001, 0.5),
            0.25001,
            measure=lambda point, seed, size: _solved(point, size),  # noqa: ARG005
        ),
    ],
    unseen="An error that both theories share: nothing is simulated here, as it is in aim.state-evolution.",
    design="Nothing is random. The bound of 1e-6 is ten times the accuracy of the published numbers.",
)
