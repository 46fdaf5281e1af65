"""The fixed point V = F(1/(2 alpha G2(V))) of the state evolution: of one layer a bracketed root, of several an iteration.

Each of several layers has an effective observation R_l = S_l + sqrt(Delta_l) GOE, 1/Delta_l = 2 alpha G_ll(V). Their noises
are correlated, by G_lm, and the best joint denoiser is not known: each layer is denoised on its own, which is the diagonal
approximation.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas.aim import roots
from attlas.aim.channels import ChannelDefaults
from attlas.aim.spectrum import mmse
from attlas.numerics import Event, Progress, Solution, Status

Array = NDArray[np.float64]

_TOL = 1e-4  # of V, relative, for several layers


@dataclass(frozen=True)
class FixedPoint(Solution[Any]):
    """The fixed point of the state evolution.

    For a channel of L layers, numbers are arrays with one entry per layer.

    Attributes
    ----------
    value : float or array of shape (L,)
        V = ||S - S_hat||^2 / d; of several layers in the diagonal approximation.
    q : float or array of shape (L,)
        The overlap <S_hat, S>/d, which is Q - V here, Q = 1 + rho.
    qhat : float or array of shape (L, L)
        Precision of the effective observation of S; infinite where V = 0. Entries off the diagonal are what the diagonal
        approximation drops.
    standard_error : float or array of shape (L,)
        Standard error of V where G2 is a Monte Carlo mean (`Custom`, `Deep`, hardmax of three and more tokens); else 0.
    history : array of shape (steps + 1,) or (steps + 1, L)
        For one layer V of the iteration from the prior mean, step by step: what message passing follows. It illustrates; the
        value is a bracketed root. For several layers the steps that led to the value.
    residual : float
        |V - F(1/(2 alpha G2(V)))|; for several layers over V.
    status : Status
        ``INACCURATE`` where the quadrature behind G2 does not resolve the channel: the nodes of a `Custom` channel are too
        few for its noise.
    """

    q: Any = np.nan
    qhat: Any = np.nan
    standard_error: Any = 0.0


def of_one_layer(channel: ChannelDefaults, alpha: float, rho: float, history: Array) -> FixedPoint:
    """Return the largest fixed point, which the prior mean as a start leads to."""
    steps = len(history) - 1
    if alpha == 0:
        return FixedPoint(1.0, Status.CONVERGED, 0.0, 0, history, q=rho, qhat=0.0)
    V = float(roots.largest(channel, np.array(alpha), np.array(rho)))
    if V == 0:
        return FixedPoint(0.0, Status.CONVERGED, 0.0, steps, history, q=1 + rho, qhat=np.inf)
    G = float(channel.information(V, 1 + rho))
    residual, resolved = roots.missed(channel, *(np.array([x]) for x in (V, alpha, rho)))
    status = Status.CONVERGED if residual[0] < roots.RESIDUAL else Status.OUT_OF_STEPS
    if not resolved[0]:
        status = Status.INACCURATE
    error = float(channel.information_error(V, 1 + rho)[0])
    if error > 0:  # G2 enters with alpha as a product, so its error is one of alpha
        sides = alpha * (1 + error / max(G, 1e-300) * np.array([-1, 1]))
        low, high = roots.largest(channel, sides, np.full(2, rho))
        error = float(abs(high - low)) / 2
    return FixedPoint(
        V, status, float(residual[0]), steps, history, q=1 + rho - V, qhat=2 * alpha * G, standard_error=error
    )


def of_several_layers(
    channel: ChannelDefaults, alpha: float, rhos: Array, max_steps: int, progress: Progress | None
) -> FixedPoint:
    """Return V of every layer, started at the prior mean.

    V_l <- F(1/(2 alpha G_ll(V))) falls from V = 1. It is hastened by Aitken's extrapolation, taken only where the map still
    points down in all layers, so that no fixed point is jumped over.
    """
    L = channel.layers
    if alpha == 0:
        start = np.ones(L)
        return FixedPoint(start, Status.CONVERGED, 0.0, 0, start[None], rhos, np.zeros((L, L)), np.zeros(L))
    V, history, residual = np.ones(L), [np.ones(L)], np.inf
    status = Status.OUT_OF_STEPS
    for step in range(max_steps):
        image = _step(channel, alpha, rhos, V)
        residual = float(np.max(np.abs(image - V) / V))
        history.append(image)
        if progress is not None:
            progress(Event(step + 1, max_steps, f"step {step + 1}, V changes by {residual:.2g}", residual))
        V = image
        if residual < _TOL or np.all(image <= channel.floor):
            status = Status.CONVERGED
            break
        if step % 3 == 2:
            guess = _aitken(*history[-3:])
            if np.all(_step(channel, alpha, rhos, guess) <= guess):
                V = guess
    Q = 1 + rhos
    if np.any(np.asarray(channel.information_error(V, Q)[1]) > roots.MISSED):
        status = Status.INACCURATE
    error = _standard_error(channel, alpha, rhos, V)
    qhat = 2 * alpha * channel.information(V, Q)
    return FixedPoint(V, status, residual, len(history) - 1, np.array(history), Q - V, qhat, error)


def _step(channel: ChannelDefaults, alpha: float, rhos: Array, V: Array) -> Array:
    return np.maximum(_images(channel.information(V, 1 + rhos).diagonal(), alpha, rhos), channel.floor)


def _images(G: Array, alpha: float, rhos: Array) -> Array:
    """Return F(1/(2 alpha G_l)) of every layer."""
    return np.array([float(mmse(1 / (2 * alpha * g), r)) for g, r in zip(G, rhos, strict=True)])


def _aitken(a: Array, b: Array, c: Array) -> Array:
    """Return where three iterates of geometric decay lead, at most four fifths of the way to zero."""
    first, second = b - a, c - b
    bend = second - first
    limit = np.where(bend > 0, c - second**2 / np.where(bend > 0, bend, 1.0), c)
    return np.asarray(np.maximum(limit, c / 5))


def _standard_error(channel: ChannelDefaults, alpha: float, rhos: Array, V: Array) -> Array:
    """Return the standard errors of V: those of G, carried through V = F(G(V), alpha) by its derivatives."""
    batches = np.diagonal(channel.information_batches(V, 1 + rhos), axis1=1, axis2=2)
    if len(batches) == 1:
        return np.zeros(len(V))
    G = batches.mean(0)
    slope = (_images(1.001 * G, alpha, rhos) - _images(0.999 * G, alpha, rhos)) / (0.002 * G)
    J = np.empty((len(V), len(V)))
    for layer in range(len(V)):
        move = 0.02 * V * (np.arange(len(V)) == layer)
        up, down = (channel.information(V + sign * move, 1 + rhos).diagonal() for sign in (1, -1))
        J[:, layer] = slope * (up - down) / (2 * move[layer])
    carried = np.linalg.solve(np.eye(len(V)) - J, (slope * (batches - G)).T)
    return np.asarray(carried.std(1, ddof=1) / np.sqrt(len(batches)))
