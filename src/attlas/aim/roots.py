"""The roots of 2 alpha Delta G2(F(Delta)) = 1, the state evolution of one layer written in the noise Delta = 1/qhat.

The largest root belongs to the prior mean as a start. Every root is bracketed, so that near a transition, where the
iteration crawls, the answer is as exact as elsewhere.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas.aim.channels import ChannelDefaults
from attlas.aim.spectrum import mmse
from attlas.errors import InputError
from attlas.inputs import described
from attlas.numerics import Event, Progress

Array = NDArray[np.float64]

# between these noises lies every fixed point with V > 1e-12
_LOWEST, _HIGHEST = np.log(1e-12), np.log(1e12)
_SCAN = np.linspace(_HIGHEST, _LOWEST, 400)
_RESOLVED = 1e-9  # below it F/Delta is flat to rounding, and roots in it are not roots
RESIDUAL = 1e-8  # of V: what counts as solved
MISSED = 5.0  # standard errors of the Nishimori identity: what counts as resolved


def largest(channel: ChannelDefaults, alpha: Array, rho: Array, progress: Progress | None = None) -> Array:
    """Return V of the largest root for arrays of alpha and rho of one shape."""
    V = np.ones(alpha.shape)
    todo = alpha > 0
    if channel.count is not None:
        perfect = alpha * channel.count >= np.where(rho <= 1, 2 * rho - rho**2, 1.0)
        V[perfect & todo] = 0.0
        todo = todo & ~perfect
    if not todo.any():
        return V
    a, r = alpha[todo], rho[todo]
    low, high, found = _bracket(channel, a, r, progress)
    values = np.zeros(len(a))
    if found.any():
        root = _refine(channel, low[found], high[found], a[found], r[found])
        values[found] = mmse(np.exp(root), r[found])
    if channel.count is None:
        values[~found] = [_beyond(channel, *pair) for pair in zip(a[~found], r[~found], strict=True)]
    V[todo] = values
    return V


def every(channel: ChannelDefaults, alpha: float, rho: float) -> Array:
    """Return V of every root, the largest first; 0 where perfect recovery is a fixed point."""
    found: list[float] = []
    values = _excess(_SCAN, channel, np.full_like(_SCAN, alpha), np.full_like(_SCAN, rho))
    if values[0] < 0:  # beyond the largest noise of the scan: V = 1 to rounding
        found.append(1.0)
    for i in np.flatnonzero(np.sign(values[:-1]) * np.sign(values[1:]) < 0):
        root = _refine(channel, _SCAN[i + 1 : i + 2], _SCAN[i : i + 1], np.array([alpha]), np.array([rho]))
        V = float(mmse(np.exp(root), rho)[0])
        if V > _RESOLVED:  # smaller ones are rounding in F/Delta, which is flat there
            found.append(V)
    if channel.count is None and values[-1] > 0:
        found.append(_beyond(channel, alpha, rho))
    if channel.count is not None:  # V = 0 is always fixed without noise; it attracts above the threshold
        found.append(0.0)
    return np.array(found)


def missed(channel: ChannelDefaults, V: Array, alpha: Array, rho: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Return |V - F(1/(2 alpha G2(V)))|, and whether the quadrature behind G2 resolves the channel, of arrays."""
    residual, resolved = np.zeros(V.shape), np.ones(V.shape, dtype=bool)
    some = (V > 0) & (alpha > 0)
    if some.any():
        Q = 1 + rho[some]
        qhat = 2 * alpha[some] * channel.information(V[some], Q)
        image = np.where(qhat > 1e-300, mmse(1 / np.maximum(qhat, 1e-300), rho[some]), 1.0)
        residual[some] = np.abs(V[some] - image)
        resolved[some] = np.broadcast_to(channel.information_error(V[some], Q)[1], Q.shape) < MISSED
    return residual, resolved


def slope(rho: float) -> float:
    """Return lim F/Delta as Delta -> 0."""
    return 2 * rho - rho**2 if rho <= 1 else 1.0


@lru_cache(maxsize=128)
def _scanned(rho: float) -> Array:
    """Return F on the scan, which is the same for every channel: what one curve has computed the next one has."""
    found = mmse(np.exp(_SCAN), rho)
    found.flags.writeable = False
    return found


def _excess(log_delta: Array, channel: ChannelDefaults, alpha: Array, rho: Array, F: Array | None = None) -> Array:
    """Return log(2 alpha Delta G2(F(Delta))): positive where the iteration moves to less noise."""
    delta = np.exp(log_delta)
    V = np.maximum(mmse(delta, rho) if F is None else F, 1e-300)
    with np.errstate(divide="ignore"):  # an output that tells nothing has G2 = 0
        value = np.asarray(np.log(alpha) + np.log(2 * delta * channel.information(V, 1 + rho)))
    if np.isnan(value).any():
        raise InputError(f"the information of {described(channel)} is not a number; check its output function")
    return value


def _beyond(channel: ChannelDefaults, alpha: float, rho: float) -> float:
    """Return V where its noise is below the scan, by F = Delta times its slope; 0 if there is no root at all."""
    from scipy.optimize import brentq

    def excess(x: float) -> float:
        return float(np.log(2 * alpha) + x + np.log(channel.information(slope(rho) * np.exp(x), 1 + rho)))

    low = np.log(1e-280)
    if excess(low) > 0 or excess(_LOWEST) < 0:
        return 0.0
    return float(slope(rho) * np.exp(brentq(excess, low, _LOWEST, xtol=1e-12)))


def _bracket(
    channel: ChannelDefaults, alpha: Array, rho: Array, progress: Progress | None
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Return log Delta on both sides of the largest root, from a scan per distinct rho shared by all alpha."""
    low, high = np.full(len(alpha), _LOWEST), np.full(len(alpha), _HIGHEST)
    found = np.zeros(len(alpha), dtype=bool)
    widths = np.unique(rho)
    for i, value in enumerate(widths):
        rows = np.flatnonzero(rho == value)
        # log alpha only shifts the excess, so one scan serves every alpha
        scan = _excess(_SCAN, channel, np.ones_like(_SCAN), np.full_like(_SCAN, value), _scanned(float(value)))
        below = scan[None, :] + np.log(alpha[rows])[:, None] < 0
        first = below.argmax(axis=1)
        found[rows] = below.any(axis=1)
        low[rows] = _SCAN[first]
        # a root beyond the largest noise of the scan: its V is 1 to rounding, and any bracket there will do
        high[rows] = np.where(first > 0, _SCAN[np.maximum(first - 1, 0)], np.inf)
        if progress is not None:
            progress(Event(i + 1, len(widths), f"rho = {value:g}", float(value)))
    return low, high, found


def _refine(channel: ChannelDefaults, low: Array, high: Array, alpha: Array, rho: Array) -> Array:
    """Return the root in log Delta between low and high, for all elements together."""
    from scipy.optimize import elementwise

    if np.isinf(high).any():
        root = np.full(len(high), _HIGHEST)
        inside = np.isfinite(high)
        if inside.any():
            root[inside] = _refine(channel, low[inside], high[inside], alpha[inside], rho[inside])
        return root

    def excess(x: Array, a: Array, r: Array) -> Array:
        return _excess(x, channel, a, r)

    options: dict[str, Any] = {"tolerances": {"xatol": 1e-12, "xrtol": 1e-13, "fatol": 0.0}, "maxiter": 80}
    return np.asarray(elementwise.find_root(excess, (low, high), args=(alpha, rho), **options).x)
