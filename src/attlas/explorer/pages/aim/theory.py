"""The theory behind the page of Bayes limits, fast enough to follow a slider, and remembered."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas import aim
from attlas.errors import InputError
from attlas.explorer.controls import State
from attlas.explorer.memoised import memoised

Array = NDArray[np.float64]

RHOS = (0.05, 1.5)  # widths over d
_CURVE = 50  # alphas of a curve
_DIAGRAM = (24, 20)  # alphas and widths of a diagram
_TRAINED = 20  # alphas of a curve of training
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
    alphas = np.linspace(0, span(state), _TRAINED + 1)[1:]
    found = aim.trained_curve(channel_of(state), alphas, rho=state["rho"], decay=[state["decay"]])
    return alphas, _solved(found).ravel()


def _solved(found: Any) -> Array:
    """Return the errors of a dataset; NaN, which is drawn as a gap, where their equation was not solved."""
    return np.asarray(found["mse"].where(found["converged"]).values)


@memoised(512, *_CHANNEL, "rho", "decay", "alpha")
def spectrum(state: State) -> tuple[Any, Array, Array]:
    """Return what training reaches at the alpha of the slider, and the density of its non-zero eigenvalues."""
    rho = state["rho"]
    found = aim.trained(channel_of(state), state["alpha"], rho, state["decay"])
    x = np.linspace(0, 4 * np.sqrt(rho) * (1 + 1 / np.sqrt(rho)) ** 2, 801)[1:]
    density = found.spectrum(x)
    end = int(np.flatnonzero(density > 0).max(initial=100)) + 10  # the bulk ends well before the grid
    return found, x[:end], density[:end]
