"""How many samples the theory asks for: to reach an error, over dimensions, and until one bias overtakes another."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from attlas.errors import InputError
from attlas.features.sharp.model import Placed
from attlas.features.sharp.penalty import best_points
from attlas.features.sharp.predictor import Point
from attlas.inputs import described, integer, real
from attlas.numerics import Solution, Status

if TYPE_CHECKING:
    import xarray

    from attlas.features.sharp.theory import AnyTheory, Theory

FEWEST, MOST = 2.0, 1e12
TOL = 1e-4  # relative, in n
MAX_STEPS = 60


def sample_cost(
    theory: "AnyTheory", target: Placed, share: float, units: float, noise: float, most: float = MOST
) -> Solution[float]:
    """Return the smallest n whose error at the best penalty is `share`, by bracketing and bisection in log n."""
    share = real(share, "share", above=0)
    if share >= 1:
        raise InputError(f"share must lie between 0 and 1, the error of a constant predictor; got {share!r}")
    noise = real(noise, "noise", least=0)
    predictor = theory.predictor(units)
    ended: list[bool] = []
    memory: dict[int, Point] = {}

    def excess(n: float) -> float:
        point = best_points(predictor, [n], [target], noise, memory=memory)[0][0]
        ended.append(point.solution.converged)
        return float(np.log(point.error(target, noise) / share))

    return _root(excess, ended, most)


def _root(excess: Any, ended: list[bool], most: float) -> Solution[float]:
    """Return where a function of n falls through zero first, scanning by factors of two, then by regula falsi."""
    low, above = FEWEST, excess(FEWEST)
    if above <= 0:
        return Solution(0.0, Status.CONVERGED, 0.0, 1)
    high, below, steps = low, above, 1
    while below > 0:
        low, above = high, below
        high *= 4
        if high > most:
            return Solution(float("inf"), Status.CONVERGED, 0.0, steps)
        below = excess(high)
        steps += 1
    history = []
    while high / low - 1 > TOL and steps < MAX_STEPS:
        at = np.log(low) + np.log(high / low) * float(np.clip(above / (above - below), 0.05, 0.95))
        value = excess(float(np.exp(at)))
        if value > 0:
            low, above, below = float(np.exp(at)), value, below / 2  # Illinois: keeps both ends moving
        else:
            high, below, above = float(np.exp(at)), value, above / 2
        history.append(high / low - 1)
        steps += 1
    status = Status.CONVERGED if high / low - 1 <= TOL and all(ended) else Status.OUT_OF_STEPS
    return Solution(float(np.sqrt(low * high)), status, high / low - 1, steps, np.array(history))


def sample_costs(
    theory: "Theory", target: Any, d: Sequence[int], share: float, heads: Any, noise: float
) -> "xarray.Dataset":
    """Return the sample cost over dimensions and its local exponent; see `Theory.exponent`."""
    import xarray

    if not isinstance(d, list | tuple | range | np.ndarray):
        raise InputError(f"d must be at least two increasing dimensions; got {described(d)}")
    sizes = [integer(each, "d", least=3) for each in d]
    if len(sizes) < 2 or any(b <= a for a, b in pairwise(sizes)):
        raise InputError(f"d must be at least two increasing dimensions; got {list(d)}")
    found = []
    for each in sizes:
        own = replace(theory, d=each)
        given = target(each) if callable(target) and not hasattr(target, "expansion") else target
        found.append(sample_cost(own, own.placed(given, heads, any_dimension=True), share, own.units(heads), noise))
    cost = np.array([solution.value for solution in found])
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = np.diff(np.log(cost)) / np.diff(np.log(sizes))
    return xarray.Dataset(
        {
            "cost": ("d", cost),
            "slope": ("d", np.append(slope, np.nan)),
            "converged": ("d", [solution.converged for solution in found]),
        },
        {"d": sizes},
        {"theory": repr(theory), "share": share},
    )


def crossing(pair: "list[Theory]", placed: list[Placed], units: float, noise: float) -> Solution[float]:
    """Return the n from which the first has the smaller error for good, at the best penalties of both."""
    noise = real(noise, "noise", least=0)
    predictors = [theory.predictor(units) for theory in pair]
    ended: list[bool] = []
    memories: list[dict[int, Point]] = [{} for _ in predictors]

    def ahead(sizes: list[float]) -> list[float]:
        """Log error of the first over that of the second."""
        errors = []
        for predictor, target, memory in zip(predictors, placed, memories, strict=True):
            points = best_points(predictor, sizes, [target], noise, memory=memory)[0]
            ended.extend(point.solution.converged for point in points)
            errors.append([np.log(point.error(target, noise)) for point in points])
        return [float(first - second) for first, second in zip(*errors, strict=True)]

    sizes = list(np.geomspace(8.0, 1e7, 21))
    scanned = ahead(sizes)
    behind = [k for k in range(len(sizes) - 1) if scanned[k] > 1e-6 and scanned[k + 1] <= 0]
    if not behind:
        never = float("inf") if scanned[-1] > 0 else 0.0
        return Solution(never, Status.CONVERGED if all(ended) else Status.OUT_OF_STEPS, 0.0, len(sizes))
    low, high = sizes[behind[-1]], sizes[behind[-1] + 1]
    above, below, steps = scanned[behind[-1]], scanned[behind[-1] + 1], len(sizes)
    while high / low - 1 > TOL and steps < len(sizes) + MAX_STEPS:
        at = low * (high / low) ** float(np.clip(above / (above - below), 0.05, 0.95))
        value = ahead([at])[0]
        if value > 0:
            low, above, below = at, value, below / 2
        else:
            high, below, above = at, value, above / 2
        steps += 1
    status = Status.CONVERGED if high / low - 1 <= TOL and all(ended) else Status.OUT_OF_STEPS
    return Solution(float(np.sqrt(low * high)), status, high / low - 1, steps)
