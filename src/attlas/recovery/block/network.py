"""A network with one hidden layer of ReLUs, in the form in which it can be known."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_SEEN = 1e-9  # of the largest singular value: below, a direction is not seen


@dataclass(frozen=True)
class Network:
    """G(x) = c + x L + sum_j beta_j |u_j x + t_j|, |u_j| = 1.

    relu(v) = (v + |v|)/2, so no sign of a ReLU is needed: residuals, neurons that are always on and half of every ReLU are
    in (c, L). Neurons with one hyperplane are one here; c, L and beta are unique, (u_j, t_j) up to a common sign.

    Attributes
    ----------
    c : array of shape (d_out,)
    L : array of shape (d, d_out)
    U : array of shape (h, d)
    t : array of shape (h,)
    beta : array of shape (h, d_out)
    """

    c: Array
    L: Array
    U: Array
    t: Array
    beta: Array

    @property
    def d(self) -> int:
        """Dimension of the input."""
        return len(self.L)

    @property
    def outputs(self) -> int:
        """Dimension of the output."""
        return len(self.c)

    def __call__(self, x: Array) -> Array:
        """Return G of rows (..., d)."""
        return np.asarray(self.c + x @ self.L + np.abs(self.places(x)) @ self.beta)

    def places(self, x: Array) -> Array:
        """Return u_j x + t_j (..., h): on which side of every hyperplane, and how far from it."""
        return np.asarray(x @ self.U.T + self.t)

    def depth(self, x: Array) -> Array:
        """Return the distance of rows (..., d) to the nearest hyperplane; infinite if there is none."""
        return np.asarray(np.abs(self.places(x)).min(-1, initial=np.inf))

    def slope(self, x: Array) -> Array:
        """Return J (..., d, d_out), the linear map of the cell of rows (..., d)."""
        return self.slope_of(np.sign(self.places(x)))

    def slope_of(self, signs: Array) -> Array:
        """Return J (..., d, d_out) of the cell with these signs (..., h)."""
        return np.asarray(self.L + np.einsum("...j,jd,jo->...do", signs, self.U, self.beta, optimize=True))

    def seen(self) -> Array:
        """Return an orthonormal basis S (d, s) of what the network depends on: all u_j, weighed by beta_j, and L."""
        weighed = np.concatenate([self.U.T * np.linalg.norm(self.beta, axis=1), self.L], axis=1)
        left, sizes, _ = np.linalg.svd(weighed, full_matrices=False)
        least = max(
            _SEEN * float(sizes.max(initial=0.0)), 1e-12 * float(np.linalg.norm(self.c))
        )  # a constant is rounded
        return np.asarray(left[:, sizes > least])
