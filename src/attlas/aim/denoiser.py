"""The best estimate of S from R = S + sqrt(Delta) GOE: the eigenvectors of R, with eigenvalues shrunk."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.aim.spectrum import edges, stieltjes
from attlas.inputs import array, numbers, real
from attlas.layers import symmetric

Array = NDArray[np.float64]


def shrink(eigenvalues: ArrayLike, delta: float, rho: float) -> Array:
    """Return f(lambda) = lambda - 2 Delta h(lambda), h the Hilbert transform of the spectrum of R.

    On the support f = rho^(3/2) / |sqrt(rho) - g|^2, which is positive and free of cancellation. Off it, where an
    eigenvalue lies only at finite size, f = max(lambda - 2 Delta g, 0).

    Parameters
    ----------
    eigenvalues : array_like
        Of R.
    delta, rho : float
        Noise and width, positive.
    """
    x = numbers(eigenvalues, "eigenvalues")
    delta, rho = real(delta, "delta", above=0), real(rho, "rho", above=0)
    g = stieltjes(x, delta, rho)
    inside = np.searchsorted(edges(delta, rho), x) % 2 == 1
    s = np.sqrt(rho)
    return np.where(inside, s**3 / np.abs(s - g) ** 2, np.maximum(x - 2 * delta * g.real, 0))


def denoise(R: ArrayLike, delta: float, rho: float) -> Array:
    """Return the rotation-invariant estimate of S from R, whose error is `mmse` (delta, rho) as d grows.

    Parameters
    ----------
    R : array of shape (d, d)
        Symmetric.
    delta, rho : float

    References
    ----------
    bun2016rotational for the estimator.
    """
    R = array(R, "R", ("d", "d"))
    values, vectors = np.linalg.eigh(symmetric(R, len(R), "R").astype(float, copy=False))
    shrunk = shrink(values, real(delta, "delta", above=0), real(rho, "rho", above=0))
    return np.asarray((vectors * shrunk) @ vectors.T)
