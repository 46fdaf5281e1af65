"""trained.double-descent: with noise and hardly any decay the error peaks where data are just fitted; decay helps.

A run whose convex problem was not solved is no measurement: it leaves the claim undecided.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt

from attlas import aim
from attlas.claims.aim.kit import HOLLOW, errors, points
from attlas.claims.claim import Claim, Cost, Measurement, Numbers, Result, Settings, Sweep
from attlas.claims.figure import COLOURS, THEORY, drawn, panels
from attlas.claims.series import Series
from attlas.claims.trained.kit import TOLERANCE, least_trace, size_of
from attlas.claims.verdict import Outcome, Verdict
from attlas.numerics import mean_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEVEL = 0.99
KINDS = ("small", "best")
NEAR = 1.1  # times Bayes: what the best decay must reach at the largest alpha, in theory
SIMULATED = 2.0  # times Bayes: and in simulation, at sizes at which it is still far from its limit


class Point(Settings):
    """Samples and size; one token, noise, width; a small decay, beside the best one that the theory names."""

    alpha: PositiveFloat
    d: PositiveInt = 40
    noise: PositiveFloat = 0.25
    rho: PositiveFloat = 0.5
    decay: NonNegativeFloat = 1e-4


def measure(point: Point, seed: int) -> Result:
    """Solve with the small decay and with the best one; return both errors beside the theory's."""
    channel = aim.Linear(1, point.noise)
    task = aim.sample(channel, point.d, point.alpha, point.rho, seed)
    size = size_of(task, point.rho)
    best = aim.best_decay(channel, point.alpha, point.rho, throw=False)
    small = least_trace(task.X, task.y, channel, point.decay)
    chosen = aim.minimise(task.X, task.y, channel, best.decay, tol=TOLERANCE, throw=False)
    theory = aim.trained(channel, point.alpha, point.rho, point.decay, throw=False)
    limit = aim.trained(channel, point.alpha, point.rho, 0.0, throw=False)
    return {
        "small": small.mse(task.S) / size,
        "best": chosen.mse(task.S) / size,
        "theory_small": theory.value,
        "theory_best": best.mse,
        "limit": limit.value,
        "bayes": best.bayes,
        "converged": all(solution.converged for solution in (small, chosen, theory, limit, best)),
    }


def judge(measurements: Sequence[Measurement[Point]]) -> Verdict:
    """Simulated errors rise up to the threshold and fall after it; at the best decay they only fall (99 %).

    There the error is below that of the small decay, and at the largest alpha within twice Bayes, 1.1 times it in theory.
    """
    first = measurements[0].point
    if len({(m.point.noise, m.point.rho, m.point.decay) for m in measurements}) > 1:
        return Verdict(Outcome.INCONCLUSIVE, "needs one noise, one width and one decay", 0.0, "")
    edge, peak = aim.interpolation_threshold(aim.Linear(1, first.noise), first.rho)
    alphas = sorted({m.point.alpha for m in measurements})
    middle, last = min(alphas, key=lambda alpha: abs(alpha - edge)), alphas[-1]
    # of one size the same seed is the same teacher at every alpha
    at = {alpha: {(m.point.d, m.seed): m.result for m in measurements if m.point.alpha == alpha} for alpha in alphas}
    means = {key: {alpha: float(np.mean([r[key] for r in at[alpha].values()])) for alpha in alphas} for key in KINDS}
    if middle in (alphas[0], last) or min(len(rows) for rows in at.values()) < 3:
        return Verdict(Outcome.INCONCLUSIVE, "needs samples on both sides of the threshold, and three seeds", 0.0, "")
    values = [value for m in measurements for name, value in m.result.items() if name != "converged"]
    if not all(0 < value < np.inf for value in values):
        return Verdict(Outcome.REFUTED, "a result is zero or not a number", -np.inf, "standard errors")
    before = min((alpha for alpha in alphas if alpha < middle), key=means["small"].__getitem__)
    tests = {  # the first error is larger than the second
        "rise to the peak": ((middle, "small"), (before, "small")),
        "fall from the peak": ((middle, "small"), (last, "small")),
        "fall at the best decay, before": ((before, "best"), (middle, "best")),
        "fall at the best decay, after": ((middle, "best"), (last, "best")),
        "the best decay removes the peak": ((middle, "small"), (middle, "best")),
    }
    level = 1 - (1 - LEVEL) / (len(tests) + 1)
    numbers = {"threshold of interpolation, alpha": edge, "peak of the limit": peak}
    margins, sides = [], []
    for name, ((one, key), (other, other_key)) in tests.items():
        pairs = sorted(at[one].keys() & at[other].keys())
        ratios = np.log([at[one][pair][key] / at[other][pair][other_key] for pair in pairs])
        mean, low, high = mean_interval(ratios, level)
        numbers |= {f"{name}, logarithm": mean, f"{name}, logarithm ±": (high - low) / 2}
        margins.append(low / max(float(np.std(ratios, ddof=1)) / np.sqrt(len(ratios)), 1e-300))
        sides.append(1 if low > 0 else -1 if high < 0 else 0)
    mean, low, high = mean_interval([r["best"] / r["bayes"] for r in at[last].values()], level)
    numbers |= {"best decay over Bayes at the largest alpha, simulated": mean, "simulated ±": (high - low) / 2}
    sides.append(1 if high < SIMULATED else -1 if low > SIMULATED else 0)
    some = next(iter(at[last].values()))
    near = some["theory_best"] / some["bayes"]
    numbers["theory: best decay over Bayes, at the largest alpha"] = near
    sides.append(1 if near < NEAR else -1)
    for alpha in alphas:
        share = float(np.mean([r["small"] / r["theory_small"] for r in at[alpha].values()]))
        numbers[f"alpha={alpha:g} simulation over theory, small decay"] = share
    small, best = means["small"], means["best"]
    reason = (
        f"with decay {first.decay:g} the error is {small[before]:.2f} at alpha = {before:g}, {small[middle]:.2f} at"
        f" {middle:g} and {small[last]:.2f} at {last:g}; with the best decay {best[middle]:.2f} at {middle:g} (theory: peak"
        f" {peak:.2f} at {edge:.4f}; best decay {near:.2f} times Bayes at {last:g})"
    )
    return Verdict(Outcome.of(sides), reason, float(min(margins)), "standard errors", numbers)


def series(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    """Errors against alpha, with the small and with the best decay."""
    return _small(measurements) + _best(measurements)


def _small(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    return errors(measurements, "trained", "small", lambda m: m.result["theory_small"], channel="linear", tokens=1)


def _best(measurements: Sequence[Measurement[Point]]) -> list[Series]:
    found = errors(
        measurements, "trained", "best", lambda m: m.result["theory_best"], channel="linear", tokens=1, decay=None
    )
    return [replace(series, y_name="mse at the best decay") for series in found]


def draw(measurements: Sequence[Measurement[Point]]) -> "Figure":
    """Draw the errors of the limit, of the small and of the best decay, and Bayes."""
    figure, (axis,) = panels(1, width=6)
    first = measurements[0].point
    channel = aim.Linear(1, first.noise)
    alphas = np.linspace(min(m.point.alpha for m in measurements), max(m.point.alpha for m in measurements), 61)
    curves = aim.trained_curve(channel, alphas, first.rho, [0.0, first.decay])["mse"].values
    axis.plot(alphas, curves[0], linestyle=":", **THEORY, label="decay to 0, theory")
    axis.plot(alphas, curves[1], color=COLOURS[1], label=f"decay {first.decay:g}")
    few = alphas[::4]  # the best decay takes a third of a second each, and its error is smooth
    axis.plot(few, [aim.best_decay(channel, a, first.rho).mse for a in few], color=COLOURS[0], label="best decay")
    axis.plot(alphas, aim.curve(channel, alphas, first.rho)["mse"].values[0], "--", **THEORY, label="Bayes")
    largest = max(m.point.d for m in measurements)
    for mine, colour in [(s, COLOURS[1]) for s in _small(measurements)] + [
        (s, COLOURS[0]) for s in _best(measurements)
    ]:
        main = mine.settings["d"] == largest
        drawn(axis, points(mine), color=colour, **({"label": ""} if main else HOLLOW))
    axis.set(xlabel="samples over d²", ylabel="error of the query-key matrix", ylim=(0, None))
    axis.legend(frameon=False, fontsize=9)
    return figure


def cost(point: Point) -> Cost:
    """Expect some thousand steps at small decays."""
    return Cost(1.3 * (point.d / 20) ** 2, int(60_000_000 + 100 * point.alpha * point.d**3))


def finding(numbers: Numbers) -> str:
    """Say how high the peak is, and what decay makes of it."""
    rise, cure = (numbers[f"{name}, logarithm"] for name in ("rise to the peak", "the best decay removes the peak"))
    return (
        f"More data can hurt: with hardly any decay the error grows {np.exp(rise):.1f} times on the way to the interpolation"
        f" threshold; there the best decay divides it by {np.exp(cure):.1f}"
    )


CLAIM = Claim(
    id="trained.double-descent",
    version=1,
    statement="With noise and no decay the error peaks, finitely, at the interpolation threshold; decay removes the peak.",
    formula=(
        r"\lambda\to0:\quad A\,\Delta=\sigma^2+E,\qquad\text{the peak where }\theta=0\text{ and }"
        r"A=2\int\rho_R(x)\,x_{+}\,h(x)\,dx"
    ),
    source="boncoraglio2025inductive; derived again",
    settings=Point,
    tiers={
        "quick": Sweep([Point(alpha=a, noise=1.0, d=20) for a in (0.1, 0.2911, 1.0)], seeds=8),
        "full": Sweep(
            [Point(alpha=a, d=d) for d in (40, 80) for a in (0.1, 0.2, 0.265, 0.3236, 0.4, 0.5, 1.0)], seeds=10
        ),
    },
    measure=measure,
    judge=judge,
    draw=draw,
    cost=cost,
    caption=(
        "Error of the query-key matrix against the number of samples over d²: with a small decay and with the best one,"
        " hollow marks for smaller d. Lines are the predicted errors of both, of decay tending to 0 (dotted) and of the"
        " best learner (dashed). Points are means over data sets with standard errors."
    ),
    finding=finding,
    series=series,
)
