"""Variable projection: least squares over Theta alone, the values W eliminated, by Levenberg-Marquardt.

With attention p of a row, its attended token z = X^T p and the covariance C = X^T diag(p) X - z z^T, a change of Theta_i
moves the output by x^T dTheta_i C_i W_i. For every Theta the best W is linear least squares, so only the part of that change
which no W can undo counts (Kaufman's approximation). The Gram matrix of the Jacobian is summed over blocks of rows from
(x x^T) and (C_i W_i W_j^T C_j); the Jacobian itself, (rows d_out) x (m d^2), is never stored.

References
----------
golub1973differentiation; kaufman1975variable.
"""

import time
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from attlas.recovery.examples import Examples

Array = NDArray[np.float64]

_STIFF = 1e12  # damping beyond which no step is left to try


class Fit(NamedTuple):
    """Where a search ended: parameters, relative training residual, steps, and whether nothing more could be gained."""

    Theta: Array
    W: Array
    residual: float
    steps: int
    converged: bool


class Model(NamedTuple):
    """The best W for a Theta: attended tokens Z (rows, m d), W (m d, d_out), the residual Y - Z W, Cholesky of Z^T Z."""

    Z: Array
    W: Array
    R: Array
    L: Array
    loss: float


def variable_projection(
    data: Examples,
    start: Array,
    *,
    max_steps: int = 200,
    tol: float = 1e-13,
    deadline: float = np.inf,
    span: Array | None = None,
) -> Fit:
    """Fit Theta (m, d, d) and W from a start, until the relative residual is below `tol` or stops falling.

    Parameters
    ----------
    data : Examples
    start : array of shape (m, d, d)
    deadline : float
        Of `time.perf_counter`; the best point so far is returned then.
    span : array of shape (q, d, d), optional
        Directions in which every Theta_i may move; all, if not given.
    """
    Theta = np.array(start, dtype=float)
    m, d, _ = Theta.shape
    size = float(np.linalg.norm(data.Y))
    model = eliminate(data, Theta)
    moves = None if span is None else np.kron(np.eye(m), span.reshape(len(span), -1).T)
    damping, growth, stalled = 1e-3, 2.0, 0
    steps, converged = 0, np.sqrt(model.loss) <= tol * size
    while not converged and steps < max_steps and time.perf_counter() < deadline:
        H, g = _normal_equations(data, Theta, model)
        if moves is not None:
            H, g = moves.T @ H @ moves, moves.T @ g
        scale = np.maximum(np.diagonal(H).copy(), 1e-12 * float(np.diagonal(H).max()) + 1e-300)
        improved = False
        while not improved and damping < _STIFF and time.perf_counter() < deadline:
            step = _solve(H, damping * scale, g)
            trial_Theta = Theta + (step if moves is None else moves @ step).reshape(m, d, d)
            trial = eliminate(data, trial_Theta)
            predicted = float(step @ (2 * g - H @ step))  # of the fall in loss, by the quadratic model
            gain = (model.loss - trial.loss) / max(predicted, 1e-300)
            improved = bool(np.isfinite(trial.loss) and trial.loss < model.loss)
            if improved:
                damping *= max(1 / 3, 1 - (2 * gain - 1) ** 3) if gain < 2 else 1.0
                growth = 2.0
            else:
                damping, growth = damping * growth, growth * 2
        steps += 1
        if not improved:
            converged = damping >= _STIFF  # else time ran out
            break
        fall = 1 - trial.loss / model.loss
        Theta, model = trial_Theta, trial
        stalled = stalled + 1 if fall < 1e-7 else 0
        converged = bool(np.sqrt(model.loss) <= tol * size or stalled >= 3)
    return Fit(Theta, model.W.reshape(m, d, -1), float(np.sqrt(model.loss)) / size, steps, bool(converged))


def best_of(
    data: Examples,
    starts: Iterable[Array],
    *,
    done: float = 1e-10,
    tol: float = 1e-13,
    max_steps: int = 200,
    deadline: float = np.inf,
    span: Array | None = None,
) -> Fit:
    """Fit from every start until a residual is down to `done` or time is up; return the best fit, with the steps of all."""
    fits: list[Fit] = []
    for start in starts:
        fits.append(variable_projection(data, start, tol=tol, max_steps=max_steps, deadline=deadline, span=span))
        if fits[-1].residual <= done or time.perf_counter() > deadline:
            break
    return min(fits, key=lambda fit: fit.residual)._replace(steps=sum(fit.steps for fit in fits))


def work_of_a_step(heads: int, d: int, d_out: int, k: int, rows: int) -> float:
    """Return the floating-point operations of one step, one trial included: its matrix products and its factorisation."""
    pairs, unknowns = heads * (heads + 1) / 2, heads * d * d
    forward = rows * heads * (d * d + 2 * k * d)
    moves = rows * heads * d * (k * d_out + d_out)
    gram = rows * (pairs * (d * d * d_out + d**4) + heads**2 * d**3 * d_out)
    projection = heads * d * (heads * d * heads * d * d * d_out) / 2 + heads * d * d_out * unknowns**2
    least_squares = 2 * rows * (heads * d) * (heads * d + 3 * d_out)
    return 2 * (2 * forward + moves + gram + projection) + least_squares + unknowns**3 / 3


def eliminate(data: Examples, Theta: Array) -> Model:
    """Return the best W for Theta and what is left of Y."""
    from scipy.linalg import cho_solve, cholesky

    m, d, _ = Theta.shape
    rows = data.Y.shape[0] * data.Y.shape[1]
    Z = np.empty((*data.Y.shape[:2], m, d))
    for i, theta in enumerate(Theta):
        Z[:, :, i] = data.attend(theta)[1]
    Z = Z.reshape(rows, m * d)
    Y = data.Y.reshape(rows, -1)
    G = Z.T @ Z
    shift = 1e-14 * float(np.trace(G))  # heads that coincide leave G singular
    G.flat[:: len(G) + 1] += shift
    L = cholesky(G, lower=True, check_finite=False)
    W = cho_solve((L, True), Z.T @ Y, check_finite=False)
    for _ in range(2):  # refine: the shift and the rounding of normal equations are gone after it
        W += cho_solve((L, True), Z.T @ (Y - Z @ W), check_finite=False)
    R = Y - Z @ W
    return Model(Z, W, R, L, float(np.sum(R * R)))


def _normal_equations(data: Examples, Theta: Array, model: Model) -> tuple[Array, Array]:
    """Return J^T J and -J^T R of the projected problem, (m d^2, m d^2) and (m d^2,)."""
    from scipy.linalg import solve_triangular

    m, d, _ = Theta.shape
    out = model.W.shape[1]
    W = model.W.reshape(m, d, out)
    H = np.zeros((m, m, d, d, d, d))  # i, j, a, a', c, c'
    g = np.zeros((m, d, d))
    B = np.zeros((m * d * d, m * d * out))
    k, q = data.X.shape[1], data.queries.shape[1]
    start = 0
    for part in data.blocks(q * (2 * m * d * out + m * d * d + d * d) + k * q * out):
        n = len(part.X)
        rows = slice(start, start + n * q)
        start += n * q
        x = part.queries.reshape(-1, d)
        xx = (x[:, :, None] * x[:, None, :]).reshape(-1, d * d)
        V = np.empty((len(x), m, d, out))
        for i in range(m):
            V[:, i] = _moves(part, Theta[i], W[i])
            g[i] += x.T @ np.matmul(V[:, i], model.R[rows, :, None])[:, :, 0]
        for i in range(m):
            for j in range(i + 1):
                pairs = np.matmul(V[:, i], V[:, j].transpose(0, 2, 1)).reshape(-1, d * d)
                H[i, j] += (xx.T @ pairs).reshape(d, d, d, d)
        zx = (model.Z[rows, :, None] * x[:, None, :]).reshape(len(x), -1)
        B += zx.T @ V.reshape(len(x), -1)
    for i in range(m):
        for j in range(i):
            H[j, i] = H[i, j].transpose(1, 0, 3, 2)
    full = H.transpose(0, 2, 4, 1, 3, 5).reshape(m * d * d, m * d * d)
    half = solve_triangular(model.L, B.reshape(m * d, -1), lower=True, check_finite=False)
    # rows: z and output; columns: i, a, c
    half = half.reshape(m * d, d, m, d, out).transpose(0, 4, 2, 1, 3).reshape(m * d * out, m * d * d)
    full -= half.T @ half
    return full, g.reshape(-1)


def _moves(part: Examples, theta: Array, W: Array) -> Array:
    """Return C W for every row, (rows, d, d_out): how the output moves with x^T dTheta."""
    P, Z = part.attend(theta)
    n, q, k = P.shape
    out = W.shape[1]
    U = part.X @ W
    weighed = (P.transpose(0, 2, 1)[:, :, :, None] * U[:, :, None, :]).reshape(n, k, q * out)
    V = (part.X.transpose(0, 2, 1) @ weighed).reshape(n, -1, q, out).transpose(0, 2, 1, 3)
    V = V - Z[:, :, :, None] * (Z @ W)[:, :, None, :]
    return np.asarray(V.reshape(n * q, -1, out))


def _solve(H: Array, damping: Array, g: Array) -> Array:
    """Solve (H + diag(damping)) step = g, by Cholesky, with more damping where rounding made H indefinite."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    extra = 0.0
    while True:
        A = H.copy()
        A.flat[:: len(A) + 1] += damping + extra
        try:
            return np.asarray(cho_solve(cho_factor(A, overwrite_a=True, check_finite=False), g, check_finite=False))
        except LinAlgError:
            extra = max(10 * extra, 1e-13 * float(np.abs(H).max()))
