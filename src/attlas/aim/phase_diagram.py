"""Grids of the error over samples and width, sequence length or weight decay; `attlas.report.diagram` draws them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.aim.channels import Channel, complete
from attlas.aim.state_evolution import curve
from attlas.aim.trained import RESIDUAL, best_decays, trained_curve
from attlas.errors import InputError
from attlas.inputs import numbers
from attlas.numerics import Event, Progress

if TYPE_CHECKING:
    import xarray


def phase_diagram(
    channel: Channel | Sequence[Channel],
    alpha: ArrayLike,
    rho: ArrayLike = 0.5,
    *,
    progress: Progress | None = None,
) -> "xarray.Dataset":
    """Return the error V over (alpha, rho), or over (alpha, T) for several channels, with the threshold of perfect recovery.

    Parameters
    ----------
    channel : Channel or sequence of Channel
        One channel, for widths `rho`; or one for each sequence length, at one rho.
    alpha : array_like
        Increasing, at least two.
    rho : array_like
        Increasing, at least two, for one channel; one number for several.
    progress : callable, optional
        Called with an `Event` for every row of the diagram.

    Returns
    -------
    xarray.Dataset
        As from `curve`, of dimensions (rho, alpha), or (tokens, alpha).

    Examples
    --------
    >>> from attlas import aim
    >>> found = aim.phase_diagram([aim.Softmax(T) for T in (2, 3, 4)], [0.01, 0.1])
    >>> found["threshold"].values.round(4).tolist()
    [0.1875, 0.075, 0.0417]
    """
    import xarray

    alphas, rhos = _increasing(alpha, "alpha", least=0), np.atleast_1d(numbers(rho, "rho", above=0))
    if not isinstance(channel, Sequence):
        return curve(channel, alphas, _increasing(rho, "rho", above=0), progress=progress)
    rows = sorted(map(complete, channel), key=lambda c: c.tokens)
    lengths = [c.tokens for c in rows]
    if len(rows) < 2 or len(rhos) != 1 or len(set(lengths)) < len(rows):
        raise InputError("a diagram over sequence lengths needs channels of two or more different lengths, and one rho")
    parts = []
    for i, own in enumerate(rows):
        parts.append(curve(own, alphas, rhos).isel(rho=0, drop=True))
        if progress is not None:
            progress(Event(i + 1, len(rows), f"{own.tokens} tokens"))
    found = xarray.concat(parts, dim=xarray.Variable("tokens", lengths), combine_attrs="drop")
    return found.assign_attrs(channel=", ".join(map(repr, rows)), rho=float(rhos[0]))


def trained_diagram(
    channel: Channel, alpha: ArrayLike, rho: float, decay: ArrayLike, *, progress: Progress | None = None
) -> "xarray.Dataset":
    """Return what training reaches over (alpha, decay), with the best decay of every alpha.

    Parameters
    ----------
    channel : Channel
        As in `trained`.
    alpha : array_like
        Increasing, at least two.
    rho : float
    decay : array_like
        Positive and increasing, at least two.
    progress : callable, optional
        Called with an `Event` after every iteration of the whole grid: how many of its points are solved.

    Returns
    -------
    xarray.Dataset
        As from `trained_curve`, with ``best_decay`` (0 where the limit decay -> 0+ is best), ``best_mse`` and
        ``best_converged`` of dimension alpha.

    Examples
    --------
    >>> from attlas import aim
    >>> found = aim.trained_diagram(aim.Linear(tokens=1, noise=0.25), alpha=[0.2, 0.5], rho=0.5, decay=[0.01, 0.1])
    >>> found["best_decay"].round(3).values.tolist()
    [0.031, 0.054]
    """
    alphas, decays = _increasing(alpha, "alpha", above=0), _increasing(decay, "decay", above=0)
    best, mse, residual = best_decays(channel, alphas, rho)
    parts = {"best_decay": best, "best_mse": mse, "best_converged": residual < RESIDUAL}
    found = trained_curve(channel, alphas, rho, decays, progress=progress)
    return found.assign({name: ("alpha", part) for name, part in parts.items()})


def _increasing(values: ArrayLike, name: str, **limits: float) -> NDArray[np.float64]:
    found = np.atleast_1d(numbers(values, name, **limits))
    if found.ndim != 1 or len(found) < 2 or not np.all(np.diff(found) > 0):
        raise InputError(f"{name} must be an increasing list of at least two values")
    return found
