"""Grids of the theory; `attlas.report.diagram` draws those over two ranges."""

from itertools import product
from math import inf, nan
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.context.best_ridge import best_ridge
from attlas.context.spectra import Law, law
from attlas.context.theory import RESIDUAL, setting, solve
from attlas.errors import InputError
from attlas.inputs import plain
from attlas.numerics import Event, Progress

if TYPE_CHECKING:
    import xarray

Array = NDArray[np.float64]
ERRORS = ("icl", "idg", "training", "effective")
_NAMES = ("noise", "ridge", "tau", "kappa", "alpha")


def curve(
    alpha: ArrayLike = 2.0,
    kappa: ArrayLike = inf,
    tau: ArrayLike = inf,
    ridge: ArrayLike | Literal["best"] = 0.0,
    noise: ArrayLike = 0.0,
    *,
    test_alpha: float | None = None,
    spectrum: ArrayLike | None = None,
    test_spectrum: ArrayLike | None = None,
    progress: Progress | None = None,
) -> "xarray.Dataset":
    """Return the theory over a grid, as an xarray.Dataset with one dimension for every argument that is a list.

    Parameters
    ----------
    alpha, kappa, tau, ridge, noise : number or list
        As in `theory`. ``ridge="best"`` takes the ridge that is best for new tasks at every point.
    test_alpha, spectrum, test_spectrum
        As in `theory`.
    progress : callable, optional
        Called with an `Event` for every tenth of the grid.

    Returns
    -------
    xarray.Dataset
        ``icl``, ``idg``, ``training``, ``effective``, ``residual`` and ``converged``; with the best ridge, ``best_ridge``.
        Without ridge the errors at tau = 1 are infinite, and given so.

    Examples
    --------
    >>> from attlas import context
    >>> found = context.curve(alpha=2, kappa=[0.5, 2], tau=[0.5, 1, 2], noise=0.1)
    >>> found["icl"].dims
    ('tau', 'kappa')
    >>> found["icl"].sel(tau=1).values.tolist()
    [inf, inf]
    """
    import xarray

    tuned = isinstance(ridge, str)
    if tuned and ridge != "best":
        raise InputError(f'ridge must be numbers or "best"; got {ridge!r}')
    given = {"noise": noise, "ridge": 0.0 if tuned else ridge, "tau": tau, "kappa": kappa, "alpha": alpha}
    axes = {name: _values(given[name], name) for name in _NAMES}
    tasks, shape = law(spectrum, test_spectrum), tuple(axes[name].size for name in _NAMES)
    names = (*ERRORS, "residual", *(("best_ridge",) if tuned else ()))
    found, total = {name: np.full(shape, nan) for name in names}, int(np.prod(shape))
    for step, index in enumerate(product(*map(range, shape))):
        at = {name: float(axes[name].flat[i]) for name, i in zip(_NAMES, index, strict=True)}
        if tuned:
            best = best_ridge(
                at["alpha"],
                at["kappa"],
                at["tau"],
                at["noise"],
                test_alpha=test_alpha,
                spectrum=spectrum,
                test_spectrum=test_spectrum,
                throw=False,
            )
            at["ridge"] = found["best_ridge"][index] = best.ridge
        for name, value in _point(at, test_alpha, tasks).items():
            found[name][index] = value
        if progress is not None and (step + 1) % max(1, total // 10) == 0:
            progress(Event(step + 1, total, f"{step + 1} of {total} points"))
    dims = [name for name in _NAMES if axes[name].ndim]
    sizes = [axes[name].size for name in dims]
    data = {name: (dims, values.reshape(sizes)) for name, values in found.items()}
    data["converged"] = (dims, (found["residual"] < RESIDUAL).reshape(sizes))
    coordinates = {name: axes[name] for name in _NAMES if not (tuned and name == "ridge")}
    return xarray.Dataset(data, coordinates)


def _point(at: dict[str, float], test_alpha: float | None, tasks: Law) -> dict[str, float]:
    point = setting(at["alpha"], at["kappa"], at["tau"], at["ridge"], at["noise"], test_alpha, tasks)
    if point.tau == 1 and point.ridge == 0:
        return {"icl": inf, "idg": inf, "training": 0.0, "effective": 0.0, "residual": 0.0}
    found = solve(point)
    return {name: float(getattr(found, name)) for name in (*ERRORS, "residual")}


def _values(value: ArrayLike, name: str) -> Array:
    """Return a number or a list of them; what they may be is checked where they are used."""
    found = plain(value, name, "a number or a list of numbers")
    if found.dtype.kind not in "fiu" or found.ndim > 1 or not found.size:
        raise InputError(f"{name} must be a number or a list of numbers; got {value!r}")
    return found.astype(np.float64)
