"""Both branches along alpha."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.errors import InputError
from attlas.inputs import numbers
from attlas.numerics import Event, Progress
from attlas.positional.baseline import baseline
from attlas.positional.evolution import state_evolution
from attlas.positional.fixed_point import BRANCHES, Branch, FixedPoint
from attlas.positional.model import Model, check_model

if TYPE_CHECKING:
    import xarray

Array = NDArray[np.float64]

CURVES = (
    "loss", "test", "train", "q", "m", "theta", "V", "envelope", "slope", "jump_share", "replica", "cosine", "residual",
    "rule_error",
)  # fmt: skip


def curve(model: Model, alpha: ArrayLike, *, tol: float = 1e-6, progress: Progress | None = None) -> "xarray.Dataset":
    """Return both branches over alpha, each followed from the largest alpha downward, as an xarray.Dataset.

    Variables of dimensions (branch, alpha), as in `FixedPoint`: ``loss``, ``test``, ``train``, ``q``, ``m``, ``theta``,
    ``V``, ``envelope``, ``slope``, ``jump_share``, ``replica``, ``cosine``, ``residual`` and ``rule_error``; besides them
    ``converged``, ``exact`` (whether replica symmetry holds), ``present`` (whether the branch still has its mechanism),
    ``stable`` (whether it is a minimum also towards the other mechanism) and ``status``, how far to trust the point in words
    (`FixedPoint.standing`). The attribute ``baseline`` is the test error of the best layer by place. Without an encoding
    there is no positional branch: NaN.

    Parameters
    ----------
    model : Model
    alpha : array_like
        Samples over d, positive, in any order.
    tol : float, default 1e-6
        As in `state_evolution`.
    progress : callable, optional
        Called with an `Event` after every point.

    Examples
    --------
    >>> from attlas import positional
    >>> found = positional.curve(positional.Model(mixture=0.3, encoding=3.0), alpha=[2, 4], tol=1e-3)
    >>> found["loss"].round(3).sel(branch="semantic").values.tolist()
    [0.086, 0.122]
    """
    import xarray

    check_model(model)
    alphas = np.atleast_1d(numbers(alpha, "alpha", above=0))
    if alphas.ndim != 1:
        raise InputError(f"alpha must be a number or a list; got shape {alphas.shape}")
    shape = (len(BRANCHES), len(alphas))
    values = {name: np.full(shape, np.nan) for name in CURVES}
    flags = {name: np.zeros(shape, bool) for name in ("converged", "exact", "present", "stable")}
    words = np.full(shape, "none: no encoding", dtype=object)
    branches = [branch for branch in BRANCHES if branch == "semantic" or model.encoding > 0]
    made = 0
    for branch in branches:
        i, before = BRANCHES.index(branch), None
        for j in np.argsort(-alphas, kind="stable"):
            before = follow(model, float(alphas[j]), branch, before, tol)
            for name in CURVES:
                values[name][i, j] = getattr(before, name)
            flags["converged"][i, j], flags["exact"][i, j] = before.converged, before.exact
            flags["present"][i, j], flags["stable"][i, j] = before.mechanism == branch, before.stable
            words[i, j] = before.standing
            made += 1
            if progress is not None:
                most = len(branches) * len(alphas)
                progress(Event(made, most, f"{branch} branch, alpha = {alphas[j]:.4g}", before.residual))
    return xarray.Dataset(
        {
            name: (("branch", "alpha"), value)
            for name, value in (values | flags | {"status": words.astype(str)}).items()
        },
        {"branch": list(BRANCHES), "alpha": alphas},
        {
            "mixture": model.mixture,
            "encoding": model.encoding,
            "token_scale": model.token_scale,
            "decay": model.decay,
            "baseline": baseline(model),
        },
    )


def follow(model: Model, alpha: float, branch: Branch, before: FixedPoint | None, tol: float = 1e-6) -> FixedPoint:
    """Return the fixed point next to one at a neighbouring alpha, or from the usual start where that one is no good."""
    if before is not None and before.converged and before.mechanism == branch:
        found = state_evolution(model, alpha, branch, tol=tol, start=before, throw=False)
        if found.converged:
            return found
    return state_evolution(model, alpha, branch, tol=tol, throw=False)
