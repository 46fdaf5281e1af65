"""What a fitted layer leaves, and what fitting did to it: one Gauss-Newton step, leverage, and the effect on scores.

With the Jacobian J_s of a sequence in the parameters, and G = sum_s J_s^T J_s, least squares takes the part J G^-1 J^T E
out of noise E. What is left of a sequence is smaller by its leverage H_s = J_s G^-1 J_s^T;
(I - H_s)^-1 makes up for it (HC3).
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from attlas.recovery.examples import Examples
from attlas.recovery.layer import Layer
from attlas.recovery.tangent import directions, numbers, tangent

Array = NDArray[np.float64]

_KEPT = 40_000_000  # numbers of the Jacobian that are kept, in single precision; more are computed anew
_BLOCK = 1 << 21
_LEAST_SLACK = 0.05  # eigenvalues of I - H_s are not taken for smaller
_EXACT_BLOCK = 128  # outputs of a sequence, up to which I - H_s is diagonalised


class Residuals:
    """Residuals after one Gauss-Newton step on all examples, scaled to mean square one.

    Attributes
    ----------
    E : array of shape (n, rows, d_out)
        As seen.
    flipped : array of shape (n, rows, d_out)
        With leverage made up for: what is to be flipped.
    pull : array of shape (n, parameters)
        J_s^T E_s of what is to be flipped: how each sequence moves the parameters.
    size : float
        Root mean square of the residuals before they were scaled.
    """

    def __init__(self, data: Examples, layer: Layer, leverage: bool = True) -> None:
        from scipy.linalg import cho_factor

        self.data, self.layer = data, layer
        n, rows, out = data.Y.shape
        self._moves = directions(layer, data.bias, layer.rank)  # a fit of low rank moved within it
        q = numbers(layer, data.bias) if self._moves is None else self._moves.shape[1]
        self._cache: list[tuple[slice, Array]] | None = [] if data.Y.size * q <= _KEPT else None
        E = (data.Y - data.predict(layer)).reshape(n, -1)
        G, g = np.zeros((q, q)), np.zeros(q)
        for part, J in self._tangents(np.float64):
            flat = J.reshape(-1, q)
            G += flat.T @ flat
            g += flat.T @ E[part].reshape(-1)
        G.flat[:: q + 1] += 1e-10 * float(np.trace(G)) / q + np.finfo(float).tiny
        self._factor = cho_factor(G, lower=True, check_finite=False)
        step = self.solve(g)
        left, flipped, pull = np.empty_like(E), np.empty_like(E), np.empty((n, q))
        for part, J in self._tangents(np.float64):
            left[part] = E[part] - J @ step
            flipped[part] = self._unshrunk(J, left[part]) if leverage else left[part]
            pull[part] = np.matmul(flipped[part][:, None], J)[:, 0]
            if self._cache is not None:
                self._cache.append((part, J.astype(np.float32)))
        self.size = max(float(np.sqrt(np.mean(left**2))), np.finfo(float).tiny)
        self.E, self.flipped = (e.reshape(n, rows, out) / self.size for e in (left, flipped))
        self.pull = pull / self.size

    def solve(self, right: Array) -> Array:
        """Return G^-1 times this."""
        from scipy.linalg import cho_solve

        return np.asarray(cho_solve(self._factor, right, check_finite=False))

    def effect(self, U: Array) -> Array:
        """Return Q = U^T J G^-1, (directions d_out, parameters), of directions (n, rows, p): how fitting changes scores."""
        p = U.shape[2]
        out = self.data.Y.shape[2]
        crossed = np.zeros((p, out * self.pull.shape[1]))
        for part, J in self._tangents(np.float32):
            here = U[part].reshape(-1, p).astype(np.float32)
            crossed += here.T @ J.reshape(len(here), -1)
        return self.solve(crossed.reshape(p * out, -1).T).T

    def without_fit(self, g: Array) -> Array:
        """Return g - J G^-1 J^T g: what is left of a function g (n, rows, d_out) when the layer is fitted to it, too."""
        flat = g.reshape(len(g), -1)
        right = np.zeros(self.pull.shape[1])
        for part, J in self._tangents(np.float32):
            right += np.tensordot(flat[part], J, axes=2)
        step, left = self.solve(right), flat.copy()
        for part, J in self._tangents(np.float32):
            left[part] -= J @ step
        return left.reshape(g.shape)

    def _tangents(self, kind: type) -> Iterator[tuple[slice, Array]]:
        """Yield slices of sequences and their Jacobians (sequences, rows d_out, parameters)."""
        if kind is np.float32 and self._cache:
            yield from self._cache
            return
        start = 0
        for part in self.data.blocks(self.data.Y[0].size * numbers(self.layer, self.data.bias), _BLOCK):
            J = tangent(part, self.layer)
            J = J if self._moves is None else J @ self._moves
            yield slice(start, start + len(part.X)), J.astype(kind, copy=False)
            start += len(part.X)

    def _unshrunk(self, J: Array, E: Array) -> Array:
        """Return (I - H_s)^-1 E_s for every sequence of a block."""
        from scipy.linalg import solve_triangular

        b, size, q = J.shape
        lower = self._factor[0]
        A = solve_triangular(lower, J.reshape(-1, q).T, lower=True, check_finite=False).T.reshape(b, size, q)
        if size <= _EXACT_BLOCK:
            w, V = np.linalg.eigh(np.eye(size) - A @ A.transpose(0, 2, 1))
            along = np.matmul(E[:, None], V)[:, 0] / np.maximum(w, _LEAST_SLACK)
            return np.asarray(np.matmul(V, along[:, :, None])[:, :, 0])
        total, term = E.copy(), E
        for _ in range(round(1 / _LEAST_SLACK)):  # the series of (I - H)^-1 for long sequences
            term = np.matmul(A, np.matmul(term[:, None], A)[:, 0, :, None])[:, :, 0]
            total += term
        return total
