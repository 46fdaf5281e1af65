"""Vectors in groups, one per head, with sum_m |v_m| <= radius and sum_m |v_m|^2 <= energy; Huber's loss over them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas.numerics import Event, Progress, Solution, Status

Array = NDArray[np.float64]

CHECK = 10  # steps between certificates
_RELAX = 1.7
_SCALE = 0.3  # the unit of v, in root-mean-square rows of F: the fastest of 0.03, 0.1, 0.3 and 1


@dataclass(frozen=True)
class GroupBall:
    """Bounds on the sum of group norms and on the sum of their squares. Groups are the rows of an array (groups, size)."""

    radius: float
    energy: float = np.inf

    def project(self, V: Array) -> Array:
        """Return the nearest point of the set.

        It is V with every group norm a put to (a - tau)_+/(1 + mu): the first multiplier switches groups off, the second
        shrinks the rest. tau is found exactly for one constraint, and by bisection to rounding where both bind.
        """
        norms = np.linalg.norm(V, axis=1)
        kept = self._norms(norms)
        return np.asarray(V * np.divide(kept, norms, out=np.zeros_like(norms), where=norms > 0)[:, None])

    def support(self, G: Array) -> float:
        """Return max over the set of <G, V> = min over tau >= 0 of radius tau + sqrt(energy) |(g - tau)_+|, g_m = |G_m|."""
        from scipy.optimize import minimize_scalar

        g = np.linalg.norm(G, axis=1)
        top = float(g.max(initial=0.0))
        if not np.isfinite(self.energy) or top == 0:
            return self.radius * top
        r = np.sqrt(self.energy)
        found = minimize_scalar(
            lambda tau: self.radius * tau + r * np.linalg.norm(np.maximum(g - tau, 0)),
            bounds=(0, top),
            method="bounded",
        )
        return float(min(found.fun, r * np.linalg.norm(g), self.radius * top))  # each is an upper bound

    def _norms(self, a: Array) -> Array:
        """Project a vector of norms, a >= 0."""
        r = np.sqrt(self.energy)
        size = float(np.linalg.norm(a))
        scaled = np.asarray(a * (r / size)) if size > r else a
        if scaled.sum() <= self.radius:
            return scaled
        ordered = np.sort(a)[::-1]
        taus = (np.cumsum(ordered) - self.radius) / np.arange(1, len(a) + 1)
        tau = taus[np.flatnonzero(ordered > taus)[-1]]
        soft = np.asarray(np.maximum(a - tau, 0))
        if np.linalg.norm(soft) <= r:
            return soft

        def ratio(tau: float) -> float:
            """Sum over norm, which falls to sqrt(number of the largest) as tau rises to the largest."""
            rest = np.maximum(a - tau, 0)
            return float(rest.sum() / np.linalg.norm(rest))

        low, high = 0.0, float(a.max())
        while (middle := 0.5 * (low + high)) not in (low, high):
            low, high = (middle, high) if ratio(middle) * r > self.radius else (low, middle)
        soft = np.maximum(a - low, 0)
        return np.asarray(soft * (r / np.linalg.norm(soft)))


@dataclass(frozen=True)
class BallMinimum(Solution[Array]):
    """The best point met, (groups, size), as a `Solution`.

    Its residual is the certified gap: a bound on how far the risk is above the smallest. Its history is the gap at each
    certificate, `CHECK` steps apart.

    Attributes
    ----------
    risk : float
        The mean loss at the point.
    """

    risk: float = np.nan


def huber(residual: Array, width: float) -> Array:
    """Return |r| - width/2 beyond `width` and r^2/(2 width) within it: 1-Lipschitz, and within width/2 of |r|."""
    size = np.abs(residual)
    return np.where(size > width, size - width / 2, residual**2 / (2 * width))


def minimise(
    F: NDArray[Any],
    y: Array,
    ball: GroupBall,
    groups: int,
    width: float,
    *,
    tol: float,
    max_steps: int = 5000,
    progress: Progress | None = None,
    throw: bool = True,
) -> BallMinimum:
    """Minimise the mean of Huber's loss of F v - y over the ball, by alternating between the two and the graph of F.

    One factorisation of I + F F^T or I + F^T F serves all steps, so that the conditioning of F, which would cost a gradient
    method thousands of steps, hardly matters. The certificate is Fenchel's: with -1/n <= s_i <= 1/n, no v of the set has a
    risk below -<s, y> - (n width/2)|s|^2 - max_u <-F^T s, u>.

    Parameters
    ----------
    F : array of shape (n, p)
        Columns in `groups` blocks of equal length.
    y : array of shape (n,)
    ball : GroupBall
    groups : int
    width : float
        Of Huber's loss.
    tol : float
        On the certified gap.
    max_steps : int, default 5000
    progress : callable, optional
        Called with an `Event` at every certificate; its value is the gap.
    throw : bool, default True
        Raise `ConvergenceError` if the tolerance is not reached.

    References
    ----------
    parikh2014block.
    """
    n = len(F)
    scale = _SCALE * float(np.sqrt(np.einsum("ij,ij->", F, F, dtype=float) / n)) or 1.0
    A, scaled = F / F.dtype.type(scale), GroupBall(ball.radius * scale, ball.energy * scale**2)
    project = _onto_graph(A)
    rho = 1 / (n * (float(y.std()) or 1.0))
    reach = 1 / (n * rho)
    v, f = np.zeros(A.shape[1]), np.zeros(n)  # a point of the graph, f = A v
    dual_v, dual_f = np.zeros_like(v), np.zeros_like(f)
    best, risk, bound, gaps = np.zeros((groups, A.shape[1] // groups)), float(huber(y, width).mean()), 0.0, []
    for step in range(max_steps + 1):
        u = scaled.project((v - dual_v).reshape(groups, -1)).ravel()
        e = f - dual_f - y
        near = y + np.where(np.abs(e) <= width + reach, e * (width / (width + reach)), e - reach * np.sign(e))
        if step % CHECK == 0 or step == max_steps:
            here = float(huber(_times(A, u) - y, width).mean())
            s = np.clip(rho * (f - dual_f - near), -1 / n, 1 / n)
            support = scaled.support(-_times(A.T, s).reshape(groups, -1))
            bound = max(bound, float(-(s @ y) - 0.5 * n * width * (s @ s) - support))
            if here < risk:
                best, risk = u.reshape(groups, -1), here
            gaps.append(risk - bound)
            if progress is not None:
                progress(Event(step, max_steps, f"risk {risk:.3g}, certified to {gaps[-1]:.1e}", gaps[-1]))
            if gaps[-1] <= tol:
                break
        u, near = _RELAX * u + (1 - _RELAX) * v, _RELAX * near + (1 - _RELAX) * f
        v, f = project(u + dual_v, near + dual_f)
        dual_v += u - v
        dual_f += near - f
    status = Status.CONVERGED if gaps[-1] <= tol else Status.OUT_OF_STEPS
    found = BallMinimum(best / scale, status, gaps[-1], max(step, 1), np.array(gaps), risk)
    return found.or_raise("the constrained fit") if throw else found


def _onto_graph(A: NDArray[Any]) -> Callable[[Array, Array], tuple[Array, Array]]:
    """Return the projection of (v, f) onto f = A v."""
    from attlas.features.ridge import factor, solve

    if A.shape[0] <= A.shape[1]:
        L = factor(np.asarray(A @ A.T, dtype=float), 1.0)

        def nearest(v: Array, f: Array) -> Array:
            return v + _times(A.T, solve(L, (f - _times(A, v))[:, None])[:, 0])
    else:
        L = factor(np.asarray(A.T @ A, dtype=float), 1.0)

        def nearest(v: Array, f: Array) -> Array:
            return solve(L, (v + _times(A.T, f))[:, None])[:, 0]

    def project(v: Array, f: Array) -> tuple[Array, Array]:
        found = nearest(v, f)
        return found, _times(A, found)

    return project


def _times(A: NDArray[Any], v: Array) -> Array:
    """Return A v without a float64 copy of A."""
    return np.asarray(A @ v.astype(A.dtype), dtype=float)
