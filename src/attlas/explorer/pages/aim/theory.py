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


def channel_of(name: str, tokens: int, noise: float) -> aim.Channel:
    """Return the channel of these settings; raise `InputError` if it has none, or none that is fast enough."""
    if name == "linear":
        return aim.Linear(tokens, noise)
    if tokens < 2:
        raise InputError(f"The {name} of one token is always 1, so nothing can be learned; choose two or more tokens")
    if name == "softmax":
        return aim.Softmax(tokens)
    if tokens != 2:
        raise InputError("A hardmax curve takes a minute with more than two tokens; use `attlas predict hardmax`")
    return _hardmax()


@memoised(1)
def _hardmax() -> aim.Channel:
    """Return the channel with its table, which takes some seconds to make."""
    channel = aim.Hardmax(2)
    channel.information(0.5, 1.5)
    return channel


def model(state: State) -> tuple[str, int, float]:
    """Return the name of the channel, its tokens and its noise: what every function here begins with."""
    return state["channel"], int(state["tokens"]), state["noise"] if state["channel"] == "linear" else 0.0


def span(state: State) -> float:
    """Return the alpha at which the axis ends: beyond perfect recovery at every width."""
    name, tokens, _ = model(state)
    count = tokens**2 + tokens - (2 if name == "softmax" else 0)
    return float(f"{(4.0 if name == 'hardmax' else 1.25) / max(count, 1):.3g}")


def trains(state: State) -> bool:
    """Return whether training with weight decay is shown; hardmax has no theory of it."""
    return bool(state["trained"] == "on" and state["channel"] != "hardmax")


def curve(state: State) -> tuple[Array, Array, float]:
    """Return alphas, the least error V at each, and the threshold of perfect recovery (NaN if there is none)."""
    return _curve(*model(state), state["rho"], span(state))


def diagram(state: State) -> tuple[Array, Array, Array, Array]:
    """Return alphas, widths, V over both, and the threshold at each width."""
    return _diagram(*model(state), span(state))


def least_error(state: State) -> float:
    """Return V at the alpha of the slider."""
    found = aim.curve(channel_of(*model(state)), state["alpha"], state["rho"])
    return float(found["mse"].values[0, 0])


def trained_curve(state: State) -> tuple[Array, Array]:
    """Return alphas and the error of training with weight decay."""
    return _trained_curve(*model(state), state["rho"], state["decay"], span(state))


def spectrum(state: State) -> tuple[Any, Array, Array]:
    """Return what training reaches at the alpha of the slider, and the density of its non-zero eigenvalues."""
    return _spectrum(*model(state), state["rho"], state["decay"], state["alpha"])


@memoised(2048)
def _curve(name: str, tokens: int, noise: float, rho: float, end: float) -> tuple[Array, Array, float]:
    alphas = np.linspace(0, end, _CURVE + 1)[1:]
    found = aim.curve(channel_of(name, tokens, noise), alphas, rho)
    return alphas, found["mse"].values[0], float(found["threshold"].values[0])


@memoised(256)
def _diagram(name: str, tokens: int, noise: float, end: float) -> tuple[Array, Array, Array, Array]:
    alphas, rhos = np.linspace(0, end, _DIAGRAM[0] + 1)[1:], np.linspace(*RHOS, _DIAGRAM[1])
    found = aim.curve(channel_of(name, tokens, noise), alphas, rhos)
    return alphas, rhos, found["mse"].values, found["threshold"].values


@memoised(512)
def _trained_curve(name: str, tokens: int, noise: float, rho: float, decay: float, end: float) -> tuple[Array, Array]:
    alphas = np.linspace(0, end, _TRAINED + 1)[1:]
    found = aim.trained_curve(channel_of(name, tokens, noise), alphas, rho=rho, decay=[decay])
    return alphas, found["mse"].values.ravel()


@memoised(512)
def _spectrum(name: str, tokens: int, noise: float, rho: float, decay: float, alpha: float) -> tuple[Any, Array, Array]:
    found = aim.trained(channel_of(name, tokens, noise), alpha, rho, decay)
    x = np.linspace(0, 4 * np.sqrt(rho) * (1 + 1 / np.sqrt(rho)) ** 2, 801)[1:]
    density = found.spectrum(x)
    end = int(np.flatnonzero(density > 0).max(initial=100)) + 10  # the bulk ends well before the grid
    return found, x[:end], density[:end]
