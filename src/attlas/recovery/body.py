"""The convex body that agreeing examples carve around the heads: slabs, half-spaces, and what can be read off them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.errors import InputError
from attlas.inputs import array, integer, real
from attlas.recovery.examples import Examples

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Body:
    """Slabs <G_s, Theta> = c_s with weights, and half-spaces <H_s, Theta> <= e_s; the rows they came from.

    Attributes
    ----------
    slabs, levels, weights : arrays (s, d, d), (s,), (s,)
    sides, limits : arrays (h, d, d), (h,)
    rows : Examples
        The examples on which the heads seem to agree, one row each.
    patterns : array (rows, k)
        The attention that was read off each of them.
    scores : array
        How far each row is from agreement: its residual over the spread of its tokens' values.
    """

    slabs: Array
    levels: Array
    weights: Array
    sides: Array
    limits: Array
    rows: Examples
    patterns: Array
    scores: Array

    @property
    def rank(self) -> int:
        """Number of independent slabs; d^2 if nothing repeats."""
        return int(np.linalg.matrix_rank(self.slabs.reshape(len(self.slabs), -1)))

    def proxy(self, penalty: float = 1e-3) -> Array:
        """Return the point (d, d) close to all slabs, on the right side of the half-spaces: weighted least squares.

        Half-spaces that contradict each other, as misread patterns make them, are left out, all of them.
        """
        from scipy.optimize import nnls

        d = self.slabs.shape[1]
        G, c = self.slabs.reshape(len(self.slabs), -1) * self.weights[:, None], self.levels * self.weights
        A = np.concatenate([G, np.sqrt(penalty) * np.eye(d * d)])
        target = np.concatenate([c, np.zeros(d * d)])
        free = np.linalg.lstsq(A, target, rcond=None)[0]
        if not len(self.sides):
            return np.asarray(free.reshape(d, d))
        # min |A x - t|^2 over S x <= e: with x = free + R^-1 z it is the least distance to a polyhedron, solved by NNLS
        R = np.linalg.cholesky(A.T @ A).T
        S = np.linalg.solve(R.T, self.sides.reshape(len(self.sides), -1).T).T
        room = self.limits - self.sides.reshape(len(self.sides), -1) @ free
        E = np.concatenate([-S.T, -room[None]])
        unit = np.zeros(len(E))
        unit[-1] = 1.0
        multipliers, distance = nnls(E, unit, maxiter=50 * len(self.sides))
        if distance < 1e-10:  # no point satisfies all half-spaces
            return np.asarray(free.reshape(d, d))
        residual = E @ multipliers - unit
        return np.asarray((free + np.linalg.solve(R, -residual[:-1] / residual[-1])).reshape(d, d))

    def span(self, heads: int) -> tuple[Array, float]:
        """Return the heads - 1 flattest directions (heads - 1, d, d), and the gap to the next: a ratio of eigenvalues."""
        d = self.slabs.shape[1]
        if integer(heads, "heads") > d * d:
            raise InputError(f"{heads} heads have more differences than Theta has entries, {d * d}")
        G = self.slabs.reshape(len(self.slabs), -1) * self.weights[:, None]
        values, vectors = np.linalg.eigh(G.T @ G)
        if heads < 2:
            return np.zeros((0, d, d)), float("inf")
        gap = float(values[heads - 1] / max(values[heads - 2], np.finfo(float).tiny))
        return vectors[:, : heads - 1].T.reshape(-1, d, d), gap

    def width(self, direction: ArrayLike, slack: float) -> float:
        """Return max - min of <direction, Theta> over the body with slabs of this half-thickness, by linear programming.

        Infinite if the body is unbounded that way, NaN if it is empty.
        """
        from scipy.optimize import linprog

        d = self.slabs.shape[1]
        g = array(direction, "direction", ("d", "d"), (d, d)).reshape(d * d)
        real(slack, "slack", least=0)
        G, S = self.slabs.reshape(-1, d * d), self.sides.reshape(-1, d * d)
        A = np.concatenate([G, -G, S])
        b = np.concatenate([self.levels + slack, slack - self.levels, self.limits + slack])
        ends = [linprog(sign * g, A_ub=A, b_ub=b, bounds=(None, None), method="highs") for sign in (1, -1)]
        if any(end.status == 2 for end in ends):
            return float("nan")
        if any(end.status != 0 for end in ends):
            return float("inf")
        return float(-ends[1].fun - ends[0].fun)
