"""A spectral method for a teacher of any rank, which sees something as soon as anything can be seen."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.errors import InputError
from attlas.inputs import array, integer
from attlas.positional.bayes import weak_recovery
from attlas.positional.readout import read_gram

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Spectral:
    """The top of the spectrum.

    Attributes
    ----------
    vectors : array of shape (d, r)
        Orthonormal, the estimate of the span of the teacher.
    values : array of shape (r + 1,)
        The r largest eigenvalues, and the next.
    """

    vectors: Array
    values: Array

    def overlap(self, W: ArrayLike) -> float:
        """Return the mean squared cosine with the span of the teacher: 1 is all of it, r/d nothing."""
        d, r = self.vectors.shape
        W = array(W, "W", ("d", "r"), (d, r))
        largest = float(np.abs(W).max())
        if largest == 0 or np.linalg.matrix_rank(W / largest) < r:
            raise InputError(f"W must have rank {r}, one independent column for each vector; got one of lower rank")
        basis = np.linalg.qr(W / largest)[0]
        return float(np.sum((basis.T @ self.vectors) ** 2)) / r


def spectral(X: ArrayLike, attention: ArrayLike, rank: int = 1) -> Spectral:
    """Return the top eigenvectors of sum_mu X^T C (C + k)^-1 X, where C = E[G | attention]/r - I.

    k = max(sqrt(alpha/alpha_w), 1.05), alpha_w that of `weak_recovery`. Their overlap with the teacher falls with d below
    alpha_w, and not above.

    Parameters
    ----------
    X : array of shape (n, L, d)
        Tokens N(0, I), L >= 2.
    attention : array of shape (n, L, L)
        softmax(z z^T), as `read_attention` gives it.
    rank : int, default 1
        r < d.

    Examples
    --------
    >>> import numpy as np
    >>> from attlas import layers, positional
    >>> task = positional.sample_teacher(tokens=2, d=200, alpha=2, seed=0)
    >>> found = positional.spectral(task.X, layers.softmax(task.z @ task.z.transpose(0, 2, 1)))
    >>> found.vectors.shape
    (200, 1)
    """
    X, r = array(X, "X", ("n", "L", "d")), integer(rank, "rank")
    n, L, d = X.shape
    if r >= d:
        raise InputError(f"rank must be below d; got rank = {r} and d = {d}")
    weights = array(attention, "attention", ("n", "L", "L"), (n, L, L))
    C = read_gram(weights, r) / r - np.eye(L)
    k = max(np.sqrt(n / d / weak_recovery(L, r)), 1.05)
    values, vectors = np.linalg.eigh(C)
    values = np.maximum(values, -1.0)  # G has no negative eigenvalue
    filtered = (vectors * (values / (values + k))[:, None, :]) @ vectors.transpose(0, 2, 1)
    M = X.reshape(n * L, d).T @ (filtered @ X).reshape(n * L, d)
    found, directions = np.linalg.eigh((M + M.T) / (2 * n))
    return Spectral(np.ascontiguousarray(directions[:, : -r - 1 : -1]), found[: -r - 2 : -1])
