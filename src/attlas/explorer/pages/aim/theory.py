"""The theory behind the page of Bayes limits, fast enough to follow a slider, and remembered."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas import aim
from attlas.aim.family import family, solve
from attlas.aim.measurements import measurements
from attlas.aim.trained_thresholds import trained_threshold
from attlas.errors import InputError
from attlas.explorer.controls import State
from attlas.explorer.memoised import memoised
from attlas.explorer.plotting import plain

Array = NDArray[np.float64]

RHOS = (0.05, 1.5)  # widths over d
_CURVE = 50  # alphas of a curve
_DIAGRAM = (48, 40)  # alphas and widths of a diagram
_TRAINED = (0.01, 34)  # first alpha of a curve of training, as a share of the axis, and their number
_LOGS = (float(np.log(RHOS[0])), float(np.log(RHOS[1])))  # of the grids that the browser interpolates
_WIDTHS, _PLACES = np.exp(np.linspace(*_LOGS, 30)), np.linspace(0, 1, 65)
_CHANNEL = ("channel", "tokens", "noise")


@memoised(512, *_CHANNEL)
def channel_of(state: State) -> aim.Channel:
    """Return the channel; raise `InputError` if there is none of these settings, or none that is fast enough."""
    name, tokens = state["channel"], int(state["tokens"])
    if name == "linear":
        return aim.Linear(tokens, state["noise"])
    if tokens < 2:
        raise InputError(f"The {name} of one token is always 1, so nothing can be learned; choose two or more tokens")
    if name == "softmax":
        return aim.Softmax(tokens)
    if tokens != 2:
        raise InputError("A hardmax curve takes a minute with more than two tokens; use `attlas predict hardmax`")
    channel = aim.Hardmax(2)
    channel.information(0.5, 1.5)  # makes its table, which takes some seconds
    return channel


def span(state: State) -> float:
    """Return the alpha at which the axis ends: beyond perfect recovery at every width."""
    name, tokens = state["channel"], int(state["tokens"])
    count = tokens**2 + tokens - (2 if name == "softmax" else 0)
    return float(f"{(4.0 if name == 'hardmax' else 1.25) / max(count, 1):.3g}")


def trains(state: State) -> bool:
    """Return whether training with weight decay is shown; hardmax has no theory of it."""
    return bool(state["trained"] == "on" and state["channel"] != "hardmax")


def least_error(state: State) -> float:
    """Return the least error V at the alpha of the slider; one that did not converge is told instead."""
    return float(aim.state_evolution(channel_of(state), state["alpha"], state["rho"], steps=0).value)


@memoised(2048, *_CHANNEL, "rho")
def curve(state: State) -> tuple[Array, Array, float]:
    """Return alphas, V at each, and the threshold of perfect recovery (NaN if there is none)."""
    alphas = np.linspace(0, span(state), _CURVE + 1)[1:]
    found = aim.curve(channel_of(state), alphas, state["rho"])
    return alphas, _solved(found)[0], float(found["threshold"].values[0])


@memoised(256, *_CHANNEL)
def diagram(state: State) -> tuple[Array, Array, Array, Array]:
    """Return alphas, widths, V over both, and the threshold at each width."""
    alphas, rhos = np.linspace(0, span(state), _DIAGRAM[0] + 1)[1:], np.linspace(*RHOS, _DIAGRAM[1])
    found = aim.curve(channel_of(state), alphas, rhos)
    return alphas, rhos, _solved(found), found["threshold"].values


@memoised(512, *_CHANNEL, "rho", "decay")
def trained_curve(state: State) -> tuple[Array, Array]:
    """Return alphas and the error of training with weight decay."""
    alphas = _trained_alphas(state)
    found = aim.trained_curve(channel_of(state), alphas, rho=state["rho"], decay=[state["decay"]])
    return alphas, _solved(found).ravel()


def _solved(found: Any) -> Array:
    """Return the errors of a dataset; NaN, which is drawn as a gap, where their equation was not solved."""
    return np.asarray(found["mse"].where(found["converged"]).values)


def _trained_alphas(state: State) -> Array:
    return np.linspace(_TRAINED[0], 1, _TRAINED[1]) * span(state)


@memoised(64, *_CHANNEL)
def bayes_grid(state: State) -> dict[str, Any]:
    """Return V over alpha and width, for the browser to interpolate by cubics in a place t from 0 to 1 and log rho.

    Places are where V is smooth. Where it ends in perfect recovery, alpha is t times that threshold. Elsewhere it is
    end t/(k - (k - 1) t), half of all places below the threshold without noise: k = end/threshold - 1.
    """
    channel, end = channel_of(state), span(state)
    known = [aim.recovery_threshold(channel, rho) for rho in _WIDTHS]
    exact = None not in known
    noiseless = aim.Linear(int(state["tokens"]), 0.0)
    units = np.array(known if exact else [aim.recovery_threshold(noiseless, rho) for rho in _WIDTHS], dtype=float)
    rows = []
    for rho, unit in zip(_WIDTHS, units, strict=True):
        k = end / unit - 1
        alphas = unit * _PLACES[1:-1] if exact else end * _PLACES[1:] / (k - (k - 1) * _PLACES[1:])
        rows.append(np.r_[1.0, _solved(aim.curve(channel, alphas, rho))[0], [0.0] if exact else []])
    return {"logs": _LOGS, "end": end, "exact": exact, "unit": plain(units, 8), "V": _whole(np.stack(rows))}


@memoised(32, *_CHANNEL, "decay")
def trained_grid(state: State) -> dict[str, Any]:
    """Return what training reaches over alpha and log rho, for the browser to interpolate by cubics.

    Noise and shift of the spectrum fall as 1/alpha at small alpha: given are the logarithms of alpha times them. The rank
    is that of the spectrum, which no sum over a drawn density gives to three digits.
    """
    channel, alphas = channel_of(state), _trained_alphas(state)
    A, noise = measurements(channel, alphas)
    decays = np.full(len(alphas), state["decay"])
    tables: list[tuple[Array, ...]] = []
    for rho in _WIDTHS:
        delta, theta = solve(A, rho, noise, decays, trained_threshold(rho).minimum_trace)
        reached = family(delta, theta, rho, noise)
        tables.append((reached.mse, np.log(alphas * delta), np.log(alphas * theta), reached.rank))
    found = dict(zip(("mse", "delta", "theta", "rank"), map(_whole, np.stack(tables, axis=1)), strict=True))
    return {"logs": _LOGS, "alpha": [float(alphas[0]), float(alphas[-1])]} | found


def _whole(values: Array) -> list[Any]:
    """Return a table for the browser; with a gap, where equations were not solved, there is none."""
    if not np.isfinite(values).all():
        raise InputError("The theory was not solved everywhere on this grid")
    return plain(values, 8)


@memoised(512, *_CHANNEL, "rho", "decay", "alpha")
def spectrum(state: State) -> tuple[Any, Array, Array]:
    """Return what training reaches at the alpha of the slider, and the density of its non-zero eigenvalues."""
    rho = state["rho"]
    found = aim.trained(channel_of(state), state["alpha"], rho, state["decay"])
    x = np.linspace(0, 4 * np.sqrt(rho) * (1 + 1 / np.sqrt(rho)) ** 2, 801)[1:]
    density = found.spectrum(x)
    end = int(np.flatnonzero(density > 0).max(initial=100)) + 10  # the bulk ends well before the grid
    return found, x[:end], density[:end]
