"""Pictures of the error over samples and width, sequence length or weight decay."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from attlas.aim.channels import Channel
from attlas.aim.state_evolution import curve
from attlas.aim.trained import best_decay, trained_curve
from attlas.errors import InputError
from attlas.inputs import numbers

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def phase_diagram(channel: Channel | Sequence[Channel], alpha: ArrayLike, rho: ArrayLike = 0.5) -> "Figure":
    """Draw the error V over (alpha, rho), or over (alpha, T) for several channels, with the threshold of perfect recovery.

    Parameters
    ----------
    channel : Channel or sequence of Channel
        One channel, for widths `rho`; or one for each sequence length, at one rho.
    alpha : array_like
        Increasing, at least two.
    rho : array_like
        Increasing, at least two, for one channel; one number for several.

    Returns
    -------
    matplotlib.figure.Figure
        ``figure.savefig(...)`` writes it. The line is `recovery_threshold`; channels that never recover have none.

    Examples
    --------
    >>> figure = phase_diagram(Softmax(2), np.linspace(0.01, 0.3, 50), np.linspace(0.1, 2, 40))  # doctest: +SKIP
    >>> figure = phase_diagram([Softmax(T) for T in (2, 3, 4)], np.linspace(0.01, 0.3, 50))  # doctest: +SKIP
    """
    from matplotlib.figure import Figure

    alphas, rhos = np.atleast_1d(numbers(alpha, "alpha", least=0)), np.atleast_1d(numbers(rho, "rho", above=0))
    several = isinstance(channel, Sequence)
    rows = sorted(channel, key=lambda c: c.tokens) if isinstance(channel, Sequence) else [channel]
    if len(alphas) < 2 or not np.all(np.diff(alphas) > 0):
        raise InputError("alpha must be an increasing list of at least two values")
    if several and (len(rows) < 2 or len(rhos) != 1 or len({c.tokens for c in rows}) < len(rows)):
        raise InputError("a diagram over sequence lengths needs channels of two or more different lengths, and one rho")
    if not several and (len(rhos) < 2 or not np.all(np.diff(rhos) > 0)):
        raise InputError("a diagram over widths needs an increasing list of at least two rho")
    data = [curve(c, alphas, rhos) for c in rows]
    error = np.concatenate([part["mse"].values for part in data])
    edge = np.concatenate([part["threshold"].values for part in data])
    height = np.array([c.tokens for c in rows]) if several else rhos

    figure = Figure(figsize=(6, 4.2), layout="constrained")
    axis = figure.add_subplot()
    image = axis.pcolormesh(alphas, height, error, cmap="cividis_r", vmin=0, vmax=1, shading="nearest")
    if several:  # a length is a whole number: a bar across its row
        inside = (edge >= alphas[0]) & (edge <= alphas[-1])
        axis.vlines(edge[inside], height[inside] - 0.5, height[inside] + 0.5, color="#D55E00", label="perfect recovery")
        axis.set_yticks(height)
    else:
        inside = np.isfinite(edge)
        axis.plot(edge[inside], height[inside], color="#D55E00", label="perfect recovery")
        axis.set(xlim=(alphas[0], alphas[-1]), ylim=(rhos[0], rhos[-1]))
    axis.set(xlabel="samples over d², alpha", ylabel="tokens, T" if several else "width over d, rho")
    axis.set_title(f"rho = {rhos[0]:g}" if several else repr(rows[0]), fontsize=10)
    if inside.any():
        axis.legend(loc="upper right", fontsize=9)
    figure.colorbar(image, label="error of the query-key matrix, V")
    return figure


def trained_diagram(channel: Channel, alpha: ArrayLike, decay: ArrayLike, rho: float = 0.5) -> "Figure":
    """Draw the test error and the rank of the trained matrix over (alpha, decay), with the best decay as a line.

    Parameters
    ----------
    channel : Softmax or Linear
    alpha, decay : array_like
        Increasing, at least two each; decay positive, for its axis is logarithmic.
    rho : float
    """
    from matplotlib.figure import Figure

    alphas, decays = np.atleast_1d(numbers(alpha, "alpha", above=0)), np.atleast_1d(numbers(decay, "decay", above=0))
    for name, values in (("alpha", alphas), ("decay", decays)):
        if values.ndim != 1 or len(values) < 2 or not np.all(np.diff(values) > 0):
            raise InputError(f"{name} must be an increasing list of at least two values")
    data = trained_curve(channel, alphas, decays, rho)
    few = np.linspace(alphas[0], alphas[-1], 25)
    best = np.array([best_decay(channel, a, rho).decay for a in few])
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    for axis, name, label in zip(figure.subplots(1, 2), ("mse", "rank"), ("test error", "rank over d"), strict=True):
        image = axis.pcolormesh(alphas, decays, data[name].values, cmap="cividis_r", vmin=0, shading="nearest")
        axis.plot(few, np.where(best > 0, best, np.nan), color="#D55E00", label="best decay")
        axis.set(
            xlabel="samples over d², alpha", ylabel="decay", yscale="log", ylim=(decays[0], decays[-1]), title=label
        )
        axis.set_xlim(alphas[0], alphas[-1])
        figure.colorbar(image)
        if np.any((best > decays[0]) & (best < decays[-1])):
            axis.legend(loc="upper right", fontsize=9)
    return figure
