"""The scalar problem behind training: which (Delta, theta) belong to which number of measurements A and weight decay.

R = S + sqrt(Delta) GOE with its eigenvalues shrunk by theta, f(x) = (x - theta)_+, solves

    A Delta = sig2 + E,   E = ||f(R) - S||^2/d,   decay = theta (A - D)/2,   D = 2 int rho_R f h,

h the Hilbert transform of the spectrum of R. With the posterior mean f_B = x - 2 Delta h of an eigenvalue, E = F(Delta) +
int rho_R (f - f_B)^2, a sum of positive terms. `family` maps (Delta, theta) to (A, decay); `solve` and `best` go back.

References
----------
boncoraglio2025inductive; derived again in these coordinates.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.aim.shrunk import Shrunk
from attlas.errors import InputError
from attlas.inputs import numbers, real
from attlas.numerics import Event, Progress

Array = NDArray[np.float64]

LOWEST = 1e-12  # of the noises Delta at which roots are looked for
_WIDEST = 1e4  # rho at most


class Family(NamedTuple):
    """The scalar problem at (Delta, theta): which A and decay it stands for, and what is learned there.

    `decay` is negative where no decay leads to this pair. All are arrays of one shape; `overlap` is <S_hat, S>/d.
    """

    A: Array
    decay: Array
    mse: Array
    training: Array
    rank: Array
    trace: Array
    overlap: Array


def family(delta: ArrayLike, theta: ArrayLike, rho: float, noise: float = 0.0) -> Family:
    """Return A, decay and what is learned at every (Delta, theta): whole families of curves without finding a root.

    Parameters
    ----------
    delta, theta : array_like
        Noise, positive, and shift, not negative; broadcast.
    rho : float
    noise : float, default 0
        The variance sig2 of a measurement; see `measurements`.

    Examples
    --------
    >>> from attlas import aim
    >>> found = aim.family(delta=[0.1, 1.0], theta=0.2, rho=0.5)
    >>> found.mse.round(4).tolist(), found.rank.round(4).tolist()
    ([0.0715, 0.5428], [0.5597, 0.5853])
    """
    noises, shifts = numbers(delta, "delta", above=0), numbers(theta, "theta", least=0)
    sig2, rho = real(noise, "noise", least=0), width(rho)
    try:
        delta, theta = np.broadcast_arrays(noises, shifts)
    except ValueError as mismatch:
        raise InputError(
            f"delta of shape {noises.shape} and theta of shape {shifts.shape} do not combine"
        ) from mismatch
    if delta.size and delta.max() > highest(rho):
        raise InputError(f"delta must be at most {highest(rho):g} at rho = {rho:g}; got {delta.max():g}")
    at = Shrunk(delta, np.full(delta.shape, rho))(theta)
    A, D = (sig2 + at.mse) / delta, at.divergence
    return Family(A, theta * (A - D) / 2, at.mse, (1 - D / A) ** 2 * A * delta, at.rank, at.trace, at.overlap)


def width(rho: float) -> float:
    """Return rho if this theory resolves it."""
    if real(rho, "rho", above=0) > _WIDEST:
        raise InputError(f"rho must be at most {_WIDEST:g}; got {rho:g}")
    return float(rho)


def highest(rho: float) -> float:
    """Return the noise up to which the spectrum of R is resolved."""
    return 1e8 * max(1.0, 1 / rho)


def solve(
    A: Array, rho: float, noise: float, decay: Array, perfect: float, progress: Progress | None = None
) -> tuple[Array, Array]:
    """Return Delta and theta for A and decay of one length.

    Zeros where S is recovered perfectly: without noise and decay, from A = `perfect` on.
    """
    delta, theta = np.zeros(len(A)), np.zeros(len(A))
    todo = (perfect > A) | (noise > 0) | (decay > 0)
    if todo.any():
        delta[todo], theta[todo] = _outer(A[todo], rho, noise, decay[todo], _shift, progress)
    return delta, theta


def best(A: Array, rho: float, noise: float) -> tuple[Array, Array]:
    """Return Delta and theta of the least error: E is stationary in theta; zeros where there is no such pair."""
    return _outer(A, rho, noise, np.zeros(len(A)), _stationary)


def _shift(spectra: Shrunk, A: Array, decay: Array) -> Array:
    """Return theta of decay = theta (A - D)/2 at given noises; for decay = 0 that of D = A, or zero."""

    def excess(spectra: Shrunk, theta: Array, A: Array, decay: Array) -> tuple[Array, Array]:
        at = spectra(theta)
        room, limit = A - at.divergence, decay == 0
        return np.where(limit, room, theta * room - 2 * decay), np.where(limit, at.slope, room + theta * at.slope)

    return spectra.root(excess, np.maximum(spectra.top, 2 * decay / A), A, decay)


def _stationary(spectra: Shrunk, A: Array, decay: Array) -> Array:  # noqa: ARG001
    """Return the theta that minimises E at given noises."""

    def falling(spectra: Shrunk, theta: Array) -> tuple[Array, Array]:
        at = spectra(theta)
        return -at.lean, at.rank

    return spectra.root(falling, spectra.top)


def _outer(
    A: Array,
    rho: float,
    noise: float,
    decay: Array,
    shift: Callable[[Shrunk, Array, Array], Array],
    progress: Progress | None = None,
) -> tuple[Array, Array]:
    """Return the root in Delta of A Delta = noise + E(Delta, shift), and the shift there; zeros where there is none."""
    from scipy.optimize import elementwise

    def spectra_at(delta: Array) -> Shrunk:
        return Shrunk(delta, np.full(delta.shape, rho))

    def excess(log_delta: Array, A: Array, decay: Array) -> Array:
        spectra = spectra_at(np.exp(log_delta))
        return np.asarray(np.log((noise + spectra(shift(spectra, A, decay)).mse) / A) - log_delta)

    def tell(state: Any) -> None:
        if progress is not None:
            done = int(np.sum(state.success))
            progress(Event(done, len(A), f"{done} of {len(A)} points"))

    low = np.full(len(A), np.log(LOWEST))
    high = np.log(np.full(len(A), highest(rho)))
    found = excess(low, A, decay) > 0
    delta, theta = np.zeros(len(A)), np.zeros(len(A))
    if found.any():
        A, decay = A[found], decay[found]
        root = elementwise.find_root(
            excess,
            (low[found], high[found]),
            args=(A, decay),
            tolerances={"xatol": 1e-13, "xrtol": 1e-14, "fatol": 0.0},
            maxiter=80,
            callback=None if progress is None else tell,
        )
        delta[found] = np.exp(root.x)
        theta[found] = shift(spectra_at(delta[found]), A, decay)
    return delta, theta
