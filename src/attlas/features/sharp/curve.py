"""Learning curves of the theory, as labelled arrays."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from attlas.errors import InputError
from attlas.features.sharp.penalty import best_points
from attlas.features.sharp.predictor import Point
from attlas.inputs import numbers, real
from attlas.numerics import Progress

if TYPE_CHECKING:
    import xarray

    from attlas.features.sharp.theory import AnyTheory

Array = NDArray[np.float64]

_NUMBERS = ("error", "mse", "from_noise", "alpha", "ridge", "freedom", "residual")


def curve(
    theory: "AnyTheory",
    target: Any,
    n: Any,
    heads: Any,
    alpha: Any,
    ridge: Any,
    noise: float,
    progress: Progress | None,
) -> "xarray.Dataset":
    """Return the predicted errors; see `Theory.curve`."""
    import xarray

    sizes = np.atleast_1d(numbers(n, "n", above=0))
    if sizes.ndim != 1:
        raise InputError(f"n must be a number or a list of numbers; got shape {sizes.shape}")
    noise = real(noise, "noise", least=0)
    several_heads = isinstance(heads, list | tuple | np.ndarray)
    many = list(heads) if several_heads else [heads]
    units = [theory.units(each) for each in many]
    several = isinstance(target, list | tuple)
    chosen = list(target) if several else [target]
    if not chosen or not many:
        raise InputError("target and heads must not be empty lists")
    penalties, several_penalties = _penalties(alpha, ridge, theory)
    shape = (len(many), len(chosen), 1 if penalties is None else len(penalties), len(sizes))
    values = {name: np.full(shape, np.nan) for name in _NUMBERS}
    converged = np.zeros(shape, dtype=bool)
    for h, each in enumerate(units):
        placed = [theory.placed(one, many[h]) for one in chosen]
        predictor = theory.predictor(each)
        if penalties is None:
            points = [[row] for row in best_points(predictor, list(sizes), placed, noise, progress)]
        else:
            solved = _solved(theory, each, sizes, penalties)
            points = [solved] * len(chosen)
        for t, one in enumerate(placed):
            for p, row in enumerate(points[t]):
                for s, point in enumerate(row):
                    where = (h, t, p, s)
                    error, spread = point.error(one, noise), noise * point.response.noise
                    record = (
                        error,
                        error * one.variance,
                        spread,
                        point.ridge / theory.trace,
                        point.ridge,
                        point.response.freedom,
                        point.solution.residual,
                    )
                    for name, value in zip(_NUMBERS, record, strict=True):
                        values[name][where] = value
                    converged[where] = point.solution.converged
    limits = [theory.limits(each, sizes) for each in units]
    kept = [several_heads, several, several_penalties, True]
    dims = [name for name, keep in zip(("heads", "target", "penalty", "n"), kept, strict=True) if keep]
    index = tuple(slice(None) if keep else 0 for keep in kept)
    coordinates: dict[str, Any] = {"n": sizes}
    if several_heads:
        coordinates["heads"] = [float("inf") if isinstance(each, str) else float(each) for each in many]
    if several:
        coordinates["target"] = [one if isinstance(one, str) else repr(one) for one in chosen]
    data: dict[str, Any] = {name: (dims, array[index]) for name, array in values.items()}
    data["converged"] = (dims, converged[index])
    size = np.array([limit for limit, _ in limits])
    data["deviation"] = (("heads", "n"), size) if several_heads else ("n", size[0])
    outside = "; ".join(dict.fromkeys(note for _, note in limits if note))
    return xarray.Dataset(data, coordinates, {"theory": repr(theory), "noise": noise, "outside": outside})


def _solved(theory: "AnyTheory", units: float, sizes: Array, penalties: Array) -> list[list[Point]]:
    """Return the points of given penalties, (penalties, sizes), each started from the one before."""
    predictor, found = theory.predictor(units), []
    for penalty in penalties:
        row: list[Point] = []
        for n in sizes:
            row.append(predictor.at(float(n), float(penalty), row[-1] if row else None))
        found.append(row)
    return found


def _penalties(alpha: Any, ridge: Any, theory: "AnyTheory") -> tuple[Array | None, bool]:
    """Return absolute penalties, None for the best ones, and whether a list was given."""
    if ridge is not None:
        if not (isinstance(alpha, str) and alpha == "best"):
            raise InputError("give alpha, relative to the trace of the kernel, or ridge, absolute; not both")
        return np.atleast_1d(numbers(ridge, "ridge", above=0)), bool(np.ndim(ridge))
    if isinstance(alpha, str):
        if alpha != "best":
            raise InputError(f"alpha must be a positive number, a list of them, or 'best'; got {alpha!r}")
        return None, False
    return np.atleast_1d(numbers(alpha, "alpha", above=0)) * theory.trace, bool(np.ndim(alpha))
