"""trained.spectrum: the trained matrix has a point mass at zero and a shifted bulk.

A run whose convex problem was not solved is no measurement: it leaves the claim undecided.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from pydantic import PositiveFloat, PositiveInt

from attlas import aim
from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep
from attlas.claims.figure import COLOURS, MARKERS, THEORY, drawn, panels, ticks
from attlas.claims.finding import ending
from attlas.claims.series import Series, gather
from attlas.claims.trained.kit import TOLERANCE
from attlas.claims.verdict import Outcome, Verdict
from attlas.numerics import fit_line, mean_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEVEL = 0.99
SLOWEST = -0.3  # exponent of d with which the distance must fall
CLOSE = 1 / 3  # of the distance to the law without its shift
ZEROS = 0.05
_GRID = 4001


class Point(Settings):
    """Samples, decay, width of the teacher and size; two tokens, softmax."""

    alpha: PositiveFloat = 0.15
    decay: PositiveFloat = 0.1
    rho: PositiveFloat = 0.5
    d: PositiveInt


def measure(point: Point, seed: int) -> Result:
    """Return the mean distance between the eigenvalues and the quantiles of the law, and the share of zeros."""
    channel = aim.Softmax(2)
    task = aim.sample(channel, point.d, point.alpha, point.rho, seed)
    found = aim.minimise(task.X, task.y, channel, point.decay, tol=TOLERANCE, throw=False)
    theory = aim.trained(channel, point.alpha, point.rho, point.decay, throw=False)
    eigenvalues = np.sort(np.linalg.eigvalsh(found.value))
    shares = (np.arange(point.d) + 0.5) / point.d
    return {
        "distance": float(np.abs(eigenvalues - quantiles(theory, shares)).mean()),
        "unshifted": float(np.abs(eigenvalues - quantiles(theory, shares, shift=False)).mean()),
        "zeros": 1 - found.rank,
        "theory_zeros": theory.zero_mass,
        "gap": found.residual,
        "converged": found.converged and theory.converged,
    }


def quantiles(theory: aim.Trained, shares: NDArray[np.float64], shift: bool = True) -> NDArray[np.float64]:
    """Return the quantiles of the predicted law; without the shift, those of max(R, 0), from which it must differ."""
    edge = float(aim.edges(theory.delta, theory.rho)[-1])
    moved = theory.theta if shift else 0.0
    x = np.linspace(0, edge - moved, _GRID)
    density = aim.density(x + moved, theory.delta, theory.rho)
    above = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(x))])
    return np.interp(shares, above + (1 - above[-1]), x, left=0.0)


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """The distance falls with d, faster than d^-0.3, and the share of zeros is the theory's to 0.05 (99 %).

    At the largest d the distance is also below a third of that to the law without its shift.
    """
    sizes = sorted({m.point.d for m in measurements})
    if len(sizes) < 2 or len(measurements) < 6:
        return Verdict(Outcome.INCONCLUSIVE, "needs two sizes and six runs", 0.0, "")
    # results of before `converged` was recorded say by their gap whether the problem was solved
    if not all(0 < m.result["distance"] < np.inf and m.result["gap"] < 1e-3 for m in measurements):
        return Verdict(Outcome.REFUTED, "a distance is zero or not a number", -np.inf, "")
    settings = list(dict.fromkeys((m.point.alpha, m.point.decay) for m in measurements))
    level = 1 - (1 - LEVEL) / len(settings)
    numbers: dict[str, float] = {}
    margins, sides = [], []
    for alpha, decay in settings:
        mine = [m for m in measurements if (m.point.alpha, m.point.decay) == (alpha, decay)]
        label = f"alpha={alpha:g} decay={decay:g}"
        line = fit_line(np.log([m.point.d for m in mine]), np.log([m.result["distance"] for m in mine]))
        low, high = line.slope_interval(level)
        last = [m.result for m in mine if m.point.d == sizes[-1]]
        zeros, z_low, z_high = mean_interval([r["zeros"] - r["theory_zeros"] for r in last], level)
        numbers |= {
            f"{label} exponent of the distance in d": line.slope,
            f"{label} exponent ±": (high - low) / 2,
            f"{label} distance at d = {sizes[-1]}": float(np.mean([r["distance"] for r in last])),
            f"{label} distance without the shift": float(np.mean([r["unshifted"] for r in last])),
            f"{label} share of zeros less the theory's": zeros,
            f"{label} share of zeros ±": (z_high - z_low) / 2,
        }
        close = all(r["distance"] < CLOSE * r["unshifted"] for r in last)
        margins.append((SLOWEST - high) / max(line.slope_error, 1e-300))
        sides.append(1 if high < SLOWEST and close else -1 if low > SLOWEST or not close else 0)
        sides.append(1 if z_low > -ZEROS and z_high < ZEROS else -1 if z_low > ZEROS or z_high < -ZEROS else 0)
    first = f"alpha={settings[0][0]:g} decay={settings[0][1]:g}"
    reason = (
        "the mean distance of the eigenvalues from the law falls as"
        f" d^{numbers[f'{first} exponent of the distance in d']:.2f}"
        f" at {first}, to {numbers[f'{first} distance at d = {sizes[-1]}']:.3f} at d = {sizes[-1]}"
        f" ({numbers[f'{first} distance without the shift']:.3f} from the law without its shift)"
    )
    return Verdict(Outcome.of(sides), reason, float(min(margins)), "standard errors", numbers)


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Distance of the eigenvalues from the law against d, and the share of those at zero."""
    return _distances(measurements) + _zeros(measurements)


def _distances(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    rows = [("eigenvalues", _settings(m.point), m.point.d, m.result["distance"], None) for m in measurements]
    return gather(rows, "d", "mean distance from the law")


def _zeros(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    rows = [
        ("eigenvalues", _settings(m.point) | {"d": m.point.d}, 0.0, m.result["zeros"], m.result["theory_zeros"])
        for m in measurements
    ]
    return gather(rows, "eigenvalue", "share")


def _settings(point: Point) -> dict[str, float]:
    return {"alpha": point.alpha, "decay": point.decay, "rho": point.rho}


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw the distance against d, and the predicted law."""
    figure, (left, right) = panels(2)
    zeros = _zeros(measurements)
    for i, distance in enumerate(_distances(measurements)):
        alpha, decay, rho = distance.settings.values()
        style = {"color": COLOURS[i % len(COLOURS)], "fmt": MARKERS[i % len(MARKERS)]}
        drawn(left, distance, f"alpha {alpha:g}, decay {decay:g}", **style)
        theory = aim.trained(aim.Softmax(2), alpha, rho, decay)
        x = np.linspace(1e-3, float(aim.edges(theory.delta, theory.rho)[-1]) - theory.theta, 300)
        right.plot(x, theory.spectrum(x), color=style["color"])
        right.plot([0, 0], [0, theory.zero_mass], color=style["color"], linewidth=3, alpha=0.7)
        for share in zeros:
            if share.settings == {**distance.settings, "d": max(distance.x)}:
                drawn(right, share, "", **style)
    left.set(xlabel="d", ylabel="mean distance of the eigenvalues", xscale="log", yscale="log")
    ticks(left, [m.point.d for m in measurements])
    left.legend(frameon=False, fontsize=9)
    right.axhline(0, **THEORY)
    right.set(xlabel="eigenvalue", ylabel="density; at 0 the share of zeros")
    return figure


def cost(point: Point) -> Cost:
    """Expect some five hundred steps of two products and an eigendecomposition."""
    n = point.alpha * point.d**2
    return Cost(0.3 + 5e-9 * n * point.d**2 + 2e-7 * point.d**3, int(60_000_000 + 100 * n * point.d))


def finding(numbers: Numbers) -> str:
    """Say how fast the spectrum nears its law."""
    slowest = max(ending(numbers, "exponent of the distance in d"))
    without = min(ending(numbers, "distance without the shift"))
    near = max(value for name, value in numbers.items() if " distance at d = " in name)
    return (
        f"The eigenvalues of the trained matrix follow the predicted law: their mean distance from it falls as"
        f" d^{slowest:.2f}, to {near:.3f} at the largest d ({without:.2f} without the shift)"
    )


CLAIM = Claim(
    id="trained.spectrum",
    version=1,
    statement="The spectrum of the trained query-key matrix is a point mass at zero and a shifted bulk.",
    formula=r"\rho_{\hat S}(x)=\left(1-\int_\theta^\infty\rho_R\right)\delta(x)+\rho_R(x+\theta)\quad(x\ge0)",
    source="boncoraglio2025inductive",
    settings=Point,
    tiers={
        "quick": Sweep([Point(d=d) for d in (20, 40, 80)], seeds=6),
        "full": Sweep(
            [Point(alpha=a, decay=lam, d=d) for a, lam in ((0.15, 0.01), (0.1, 0.1)) for d in (60, 120, 200)], seeds=8
        ),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Left: mean distance of the eigenvalues of the trained matrix from the quantiles of the predicted law, against d."
        " Right: the law, its density and at 0 its share of zeros (bar), with the share of zeros at the largest d (mark)."
        " Points are means over data sets with standard errors."
    ),
    finding=finding,
    series=series,
)
