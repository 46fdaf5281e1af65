"""The penalty with the smallest predicted error, for every n of a curve."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from attlas.features.sharp.model import Placed
from attlas.features.sharp.predictor import Point, Predictor
from attlas.numerics import Event, Progress

Array = NDArray[np.float64]

GRID = np.array([1e3, 1e2, 1e1, 1.0, 1e-1, 1e-2, 1e-4, 1e-6, 1e-8])  # relative to the trace
_STEPS = 8  # of refinement between grid points, at most
_GAIN = 1e-5  # relative: less is not worth another step


def best_points(
    predictor: Predictor,
    sizes: Sequence[float],
    targets: Sequence[Placed],
    noise: float,
    progress: Progress | None = None,
    memory: dict[int, Point] | None = None,
) -> list[list[Point]]:
    """Return the point of the smallest error for every target and size.

    The penalties of a grid first, each started from the same penalty at the size before; then parabolas through the
    best three in log penalty and log error.
    """
    found: list[list[Point]] = [[] for _ in targets]
    memory = {} if memory is None else memory
    order = np.argsort(sizes)
    for step, place in enumerate(order):
        n = float(sizes[place])
        row: list[Point] = []
        for k, alpha in enumerate(GRID):
            start = memory.get(k) or (row[-1] if row else None)
            row.append(predictor.at(n, float(alpha * predictor.spectrum.trace), start))
            memory[k] = row[-1]
        for target, points in zip(targets, found, strict=True):
            points.append(_refined(predictor, row, target, noise))
        if progress is not None:
            progress(Event(step + 1, len(order), f"theory: {step + 1} of {len(order)} sizes"))
    back = np.argsort(order)
    return [[points[k] for k in back] for points in found]


def _refined(predictor: Predictor, row: list[Point], target: Placed, noise: float) -> Point:
    points = [point for point in row if point.solution.converged] or row
    points = sorted(points, key=lambda point: point.ridge)
    for _ in range(_STEPS):
        errors = [point.error(target, noise) for point in points]
        best = int(np.argmin(errors))
        if best in (0, len(points) - 1):
            break
        x = np.log([point.ridge for point in points[best - 1 : best + 2]])
        y = np.log(np.maximum(errors[best - 1 : best + 2], 1e-300))
        at, gain = _vertex(x, y)
        if gain < _GAIN:
            break
        place = best if at < x[1] else best + 1
        points.insert(place, predictor.at(points[best].n, float(np.exp(at)), points[best]))
    return min(points, key=lambda point: point.error(target, noise))


def _vertex(x: Array, y: Array) -> tuple[float, float]:
    """Return where to look next between three points, and what that may gain.

    The lowest point of the parabola through them; or the middle of the wider side, where there is none or it is too
    close to a
    known point. Over more than two units (of log penalty) a parabola says little: the gain is then taken as what they
    differ by.
    """
    left, right = (y[1] - y[0]) / (x[1] - x[0]), (y[2] - y[1]) / (x[2] - x[1])
    curvature = (right - left) / (x[2] - x[0])
    middle = float((x[0] + x[1]) / 2 if x[1] - x[0] > x[2] - x[1] else (x[1] + x[2]) / 2)
    at = float((x[0] + x[1]) / 2 - left / (2 * curvature)) if curvature > 0 else middle
    if x[2] - x[0] > 2:
        return (at if np.min(np.abs(x - at)) > 0.1 * (x[2] - x[0]) and x[0] < at < x[2] else middle), float(np.ptp(y))
    close = curvature <= 0 or np.min(np.abs(x - at)) < 0.02
    return at, 0.0 if close else float(curvature * (at - x[1]) ** 2)
