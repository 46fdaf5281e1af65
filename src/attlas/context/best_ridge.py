"""The ridge that minimises an error of the theory."""

from dataclasses import dataclass
from math import exp, log, nan
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from attlas.context.spectra import law
from attlas.context.theory import setting, solve
from attlas.inputs import choice
from attlas.numerics import Solution, Status

_GRID = np.linspace(log(1e-9), log(1e4), 61)  # of log ridge, in units of what the effective ridge adds


@dataclass(frozen=True)
class BestRidge(Solution[float]):
    """The ridge that minimises the error asked for, and the errors there.

    Attributes
    ----------
    value, ridge : float
        0 for its limit ridge -> 0.
    icl, idg : float
        Errors on new and on training tasks at that ridge.
    residual : float
        As in `Theory`, at that ridge. The errors are good to rounding, the ridge to the root of it, about 1e-7.
    """

    icl: float = nan
    idg: float = nan

    @property
    def ridge(self) -> float:
        """The ridge."""
        return self.value


def best_ridge(
    alpha: float,
    kappa: float,
    tau: float,
    noise: float = 0.0,
    *,
    error: Literal["icl", "idg"] = "icl",
    test_alpha: float | None = None,
    spectrum: ArrayLike | None = None,
    test_spectrum: ArrayLike | None = None,
    throw: bool = True,
) -> BestRidge:
    """Return the ridge at which the error on new tasks ("icl") or on training tasks ("idg") is smallest.

    The two differ: new tasks ask for more ridge where the training tasks are few. A grid of 61 ridges finds the valley, a
    bracketing search its bottom; the limit ridge -> 0 is taken where nothing is better.

    Parameters
    ----------
    alpha, kappa, tau, noise, test_alpha, spectrum, test_spectrum
        As in `theory`.
    error : {"icl", "idg"}
        Which error to minimise.
    throw : bool, default True
        Raise `ConvergenceError` if a point of the theory is not solved; otherwise the status says so.

    Examples
    --------
    >>> from attlas import context
    >>> found = context.best_ridge(alpha=2, kappa=2, tau=1, noise=0.1)
    >>> print(f"{found.ridge:.4f} {found.icl:.6f}")
    1.1783 0.847891
    """
    from scipy.optimize import minimize_scalar

    error = choice(error, "error", ("icl", "idg"), '"icl" (new tasks) or "idg" (training tasks)')
    at = setting(alpha, kappa, tau, 0.0, noise, test_alpha, law(spectrum, test_spectrum))
    total = at.law.mean(at.law.c)

    def value(x: float) -> float:
        return float(getattr(solve(at._replace(ridge=exp(x))), error))

    grid = _GRID + log((total + at.q) * (1 + 1 / at.tau))
    values = [value(x) for x in grid]
    low = int(np.argmin(values))
    bracket = grid[max(low - 1, 0)], grid[min(low + 1, len(grid) - 1)]
    found = minimize_scalar(value, bounds=bracket, method="bounded", options={"xatol": 1e-9})
    ridge = exp(found.x)
    best = solve(at._replace(ridge=ridge))
    limit = solve(at) if at.tau != 1 else None
    if limit is not None and getattr(limit, error) <= getattr(best, error) * (1 + 1e-12):
        ridge, best = 0.0, limit
    status = best.status if found.success else Status.OUT_OF_STEPS
    result = BestRidge(ridge, status, best.residual, int(found.nfev) + len(grid), icl=best.icl, idg=best.idg)
    return result.or_raise("the search for the best ridge") if throw else result
