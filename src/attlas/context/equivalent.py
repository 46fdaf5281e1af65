"""The equations of the finite-size theory for one set of tasks, averages taken over a drawn pool of (|x|^2, h, w).

The pool is turned so that its second moments are the exact ones: only what the weights 1/(1 + delta) change is left to
it, and averages of h h^T with positive weights are positive.
"""

import numpy as np
from numpy.typing import NDArray

from attlas.context.layer import Errors
from attlas.context.moments import Moments
from attlas.context.sequences import read_contexts
from attlas.context.tasks import TaskSet, rounded
from attlas.errors import InputError
from attlas.inputs import flag, integer, real
from attlas.numerics import Solution, Status, stream

Array = NDArray[np.float64]
_TOLERANCE = 1e-9  # relative change of a matrix: far below the error of the pool
_STEPS = 5000


def equivalent(
    tasks: TaskSet, tau: float, ridge: float, pool: int | None, seed: int, column: bool, fresh: Moments
) -> Solution[Errors]:
    """Return the errors for these tasks, averages over sequences taken over one pool drawn at `seed`; see `finite_size`."""
    d, ridge = tasks.d, real(ridge, "ridge", least=0)
    n, width = rounded(tau, d * d, "tau"), d + flag(column, "column")
    if ridge == 0 and n == d * width:
        raise InputError(
            f"{n} sequences for {n} parameters without ridge is the interpolation point; give a positive ridge"
        )
    count = 1000 * d if pool is None else integer(pool, "pool", least=10 * width)
    rng = stream(seed, "pool")
    if tasks.W is None:
        W = rng.standard_normal((count, d)) * np.sqrt(tasks.spectrum)
    else:
        W = tasks.W[rng.integers(len(tasks.W), size=count)]
    H = read_contexts(W, tasks.noise, tasks.length, rng)[:, :width]
    square = rng.chisquare(d, count) / d
    A, B = (part[..., :width] for part in tasks.moments()[:2])
    B = B[:width]
    H = H @ _turn(H, square, B)

    # The equations hold for any (unit, shift) of the ratio ridge: (1, ridge), or (ridge, 1), which has a limit for n < p.
    unit, shift = (1.0, ridge) if n > d * width else (ridge, 1.0)
    Q, residual, steps = B / _size(B, n / d, unit, shift), 1.0, 0
    while (
        steps < _STEPS and residual > _TOLERANCE
    ):  # Q rises with Q, less than in proportion: it converges from anywhere
        weight = 1 / (unit + d / n * square * _forms(H, _inverse(Q, shift)))
        new = _average(H, square, weight, H)
        residual, Q, steps = float(np.abs(new - Q).max() / np.abs(new).max()), new, steps + 1
    M = _inverse(Q, shift)
    weight = 1 / (unit + d / n * square * _forms(H, M))
    centre = float(weight.mean())  # the exact moment is a control variate of what has no sign
    G = (_average(W, square, weight - centre, H) + centre * A) @ M
    missed = np.sum((W - H @ G.T) ** 2, axis=1) / d
    V, last = np.zeros_like(M), 1.0
    while steps < 2 * _STEPS and last > _TOLERANCE:
        e2 = (tasks.noise + square * (missed + _forms(H, V))) * weight * weight
        new = d / n * M @ _average(H, square, e2, H) @ M
        last, V, steps = float(np.abs(new - V).max() / np.abs(new).max()), new, steps + 1
    residual = max(residual, last)
    here = tasks.moments()
    errors = Errors(
        fresh.error(G) + float(np.sum(fresh.B[:width, :width] * V)),
        here.error(G) + float(np.sum(B * V)),
        unit * unit * float(np.mean(e2)),
    )
    status = Status.CONVERGED if residual <= _TOLERANCE else Status.OUT_OF_STEPS
    if not np.isfinite(errors).all():
        status, residual = Status.DIVERGED, np.inf
    elif min(errors.icl, errors.idg) < tasks.noise or np.linalg.eigvalsh(V)[0] < -1e-6 * np.abs(V).max():
        status = Status.INACCURATE  # V is a covariance: a pool too small for its heavy tails has made it negative
    return Solution(errors, status, residual, steps)


def _average(left: Array, square: Array, weight: Array, H: Array) -> Array:
    """Return the mean of |x|^2 weight left h^T over the pool."""
    return np.asarray(left.T @ ((square * weight)[:, None] * H) / len(H))


def _turn(H: Array, square: Array, exact: Array) -> Array:
    """Return the matrix after which the pool's E[|x|^2 h h^T] is the exact one: a product of Cholesky factors."""
    from scipy.linalg import solve_triangular

    seen = np.linalg.cholesky(_average(H, square, np.ones(len(H)), H))
    return np.asarray(solve_triangular(seen, np.linalg.cholesky(exact).T, lower=True, trans=1))


def _forms(H: Array, M: Array) -> Array:
    """Return h^T M h for every row h."""
    return np.asarray(np.einsum("nj,nj->n", H @ M, H))


def _inverse(Q: Array, shift: float) -> Array:
    return np.asarray(np.linalg.inv(Q + shift * np.eye(len(Q))))


def _size(B: Array, rows: float, unit: float, shift: float) -> float:
    """Return unit + delta for rows of equal norm, where Q = B/size: the start of the iteration."""
    from scipy.optimize import brentq

    values = np.maximum(np.linalg.eigvalsh(B), 0)
    if shift == 0:
        return rows / (rows - len(B))

    def excess(x: float) -> float:  # x = log size
        size = float(np.exp(x))
        return rows * (1 - unit / size) - float(np.sum(values / (values + shift * size)))

    high = unit + (float(values.sum()) / shift + 1) / rows
    low = max(unit, 1e-12 * high)
    if excess(np.log(low)) >= 0 or excess(np.log(high)) <= 0:  # so large a ridge that rounding hides the root between
        return low
    return float(np.exp(brentq(excess, np.log(low), np.log(high))))
