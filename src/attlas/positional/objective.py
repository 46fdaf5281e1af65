"""The objective of training at finite d: its value, its gradient and the product of its Hessian with a vector.

The rows of softmax(h h^T) - T sum to zero, so that a sample contributes |x_1 - x_2|^2/(2d) [(p - t_1)^2 + (k - t_2)^2] with
p = sig(s(s + r)), k = sig(s(s - r)): all that is needed of the tokens are the products of their sums and differences with Q.
A call costs two products of the rotated tokens with a vector, 4 n L d multiplications and additions.
"""

import numpy as np
from numpy.typing import NDArray

from attlas.positional.model import attention
from attlas.positional.task import Task, check_task

Array = NDArray[np.float64]


class Objective:
    """(1/2d) sum |softmax(h h^T) v - y|^2 + (decay/2) |Q|^2 over Q, with v the tokens, plain or with their encoding."""

    def __init__(self, task: Task) -> None:
        check_task(task)
        X, d, c = task.X, task.d, task.model.encoding
        self.task, self.n = task, len(X)
        self._rotated = np.empty((2 * self.n, d))
        np.subtract(X[:, 0], X[:, 1], out=self._rotated[: self.n])
        np.add(X[:, 0], X[:, 1], out=self._rotated[self.n :])
        self._rotated /= np.sqrt(2 * d)
        self._shift = np.sqrt(2 / d) * c * task.e
        self._weight = np.einsum("nd,nd->n", self._rotated[: self.n], self._rotated[: self.n])  # |x_1 - x_2|^2/(2d)
        self._targets = np.ascontiguousarray(task.targets.T)
        encoded = task.values == "encoded"
        self._extra = c * c / (2 * d) if encoded else 0.0
        self._cross = c * np.sqrt(2 / d) * (self._rotated[: self.n] @ task.e) if encoded else np.zeros(self.n)

    def indices(self, Q: Array) -> tuple[Array, Array]:
        """Return s and r of every sample."""
        h = self._rotated @ Q
        return h[: self.n] + self._shift @ Q, h[self.n :]

    def back(self, g_s: Array, g_r: Array) -> Array:
        """Return sum_mu g_s ds/dQ + g_r dr/dQ."""
        return np.asarray(np.concatenate([g_s, g_r]) @ self._rotated + g_s.sum() * self._shift)

    def loss(self, Q: Array) -> float:
        """Return the sum over samples without the decay."""
        return float(self._losses(attention(*self.indices(Q))).sum())

    def value_and_gradient(self, Q: Array) -> tuple[float, Array]:
        """Return the objective and its gradient."""
        s, r = self.indices(Q)
        both = attention(s, r)
        g_u, g_v = (self._slope(i, own) * own * (1 - own) for i, own in enumerate(both))
        decay = self.task.model.decay
        gradient = self.back(g_u * (2 * s + r) + g_v * (2 * s - r), (g_u - g_v) * s)
        return float(self._losses(both).sum() + 0.5 * decay * (Q @ Q)), gradient + decay * Q

    def hessian(self, Q: Array) -> "Hessian":
        """Return the Hessian at Q, which multiplies vectors."""
        return Hessian(self, Q)

    def curvatures(self, Q: Array) -> tuple[Array, Array, Array]:
        """Return the second derivatives of every sample's loss by (s, s), (s, r) and (r, r)."""
        s, r = self.indices(Q)
        both = attention(s, r)
        u, v = 2 * s + r, 2 * s - r
        first, second = [], []
        for i, own in enumerate(both):
            rise = own * (1 - own)
            slope, bend = self._slope(i, own), 2 * self._weight + 8 * self._extra + 4 * self._cross
            first.append(slope * rise)
            second.append(bend * rise**2 + slope * rise * (1 - 2 * own))
        (g_u, g_v), (h_u, h_v) = first, second
        return (
            h_u * u * u + h_v * v * v + 2 * (g_u + g_v),
            (h_u * u - h_v * v) * s + g_u - g_v,
            (h_u + h_v) * s * s,
        )

    def _losses(self, both: tuple[Array, Array]) -> Array:
        total = np.zeros(self.n)
        for own, t in zip(both, self._targets, strict=True):
            lean = 2 * own - 1
            total += self._weight * (own - t) ** 2 + self._extra * lean**2 + self._cross * (own - t) * lean
        return total

    def _slope(self, token: int, own: Array) -> Array:
        """Return the derivative of every sample's loss by one attention weight."""
        t = self._targets[token]
        lean = 2 * own - 1
        return np.asarray(2 * self._weight * (own - t) + 4 * self._extra * lean + self._cross * (lean + 2 * (own - t)))


class Hessian:
    """The Hessian of an objective at one point."""

    def __init__(self, objective: Objective, Q: Array) -> None:
        self._objective, self._curvatures = objective, objective.curvatures(Q)

    def __matmul__(self, v: Array) -> Array:
        ss, sr, rr = self._curvatures
        a, b = self._objective.indices(v)
        return self._objective.back(ss * a + sr * b, sr * a + rr * b) + self._objective.task.model.decay * v
