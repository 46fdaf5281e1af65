"""Variable projection: least squares over Theta alone, the values W eliminated, by Levenberg-Marquardt.

With attention p of a row, its attended token z = X^T p and the covariance C = X^T diag(p) X - z z^T, a change of Theta_i
moves the output by x^T dTheta_i C_i W_i. For every Theta the best W is linear least squares, so only the part of that change
which no W can undo counts (Kaufman's approximation). The Gram matrix of the Jacobian is summed over blocks of rows from
(x x^T) and (C_i W_i W_j^T C_j); the Jacobian itself, (rows d_out) x (m d^2), is never stored. A key bias is one more row
of Theta, seen by the query (x, 1), and an output bias one more column of the least squares. Heads of rank r move as
Theta_i = Q_i K_i^T does, by dQ_i K_i^T + Q_i dK_i^T.

References
----------
golub1973differentiation; kaufman1975variable.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attlas.inputs import integer, real
from attlas.numerics import Event, Progress, Status
from attlas.recovery.clock import Clock
from attlas.recovery.examples import Examples
from attlas.recovery.fit import Fit

Array = NDArray[np.float64]

TOL = 1e-13
_STIFF = 1e12  # damping beyond which no step is left to try


class Model(NamedTuple):
    """The best W for a Theta: attended tokens Z (rows, m d), W (m d, d_out), the residual Y - Z W, Cholesky of Z^T Z.

    With an output bias b, Z has a last column of ones and W a last row, b.
    """

    Z: Array
    W: Array
    R: Array
    L: Array
    loss: float


def variable_projection(
    data: Examples,
    start: Array,
    *,
    span: Array | None = None,
    rank: int | None = None,
    tol: float = TOL,
    max_steps: int = 200,
    max_seconds: float | None = None,
    throw: bool = False,
    progress: Progress | None = None,
) -> Fit:
    """Fit Theta (m, d, d) and W from a start, until the relative residual is below `tol` or stops falling.

    Parameters
    ----------
    data : Examples
    start : array of shape (m, d, d)
        Or (m, d + 1, d), for examples with a bias.
    span : array of shape (q, d, d), optional
        Directions in which every Theta_i may move; all, if not given.
    rank : int, optional
        Of every Theta_i; with a bias, of (Theta_i, u_i). The start is cut to it.
    tol : float, default 1e-13
    max_steps : int, default 200
    max_seconds : float, optional
        Stop by the clock, too; the result then depends on the machine, and its status is out of time.
    throw : bool, default False
        Raise `ConvergenceError` if it did not converge.
    progress : callable, optional
        Called with an `Event` after every step.

    Returns
    -------
    Fit
        Converged, also where the residual stopped falling above `tol`: in a local minimum, or at the noise.
    """
    real(tol, "tol", least=0)
    integer(max_steps, "max_steps")
    clock = Clock(max_seconds)
    Theta = np.array(start, dtype=float)
    m = len(Theta)
    size = float(np.linalg.norm(data.Y))
    moves = None if span is None else np.kron(np.eye(m), span.reshape(len(span), -1).T)
    factors = None if rank is None else _factors(Theta, integer(rank, "rank"))
    if factors is not None:
        Theta = factors[0] @ factors[1].transpose(0, 2, 1)
    model = eliminate(data, Theta)
    damping, growth, stalled = 1e-3, 2.0, 0
    history: list[float] = []
    converged = bool(np.sqrt(model.loss) <= tol * size)
    while not converged and len(history) < max_steps and not clock.out:
        H, g = _normal_equations(data, Theta, model)
        if rank is not None:
            factors = _factors(Theta, rank)  # balanced anew, so that no factor grows
            moves = _factor_moves(*factors)
        if moves is not None:
            H, g = moves.T @ H @ moves, moves.T @ g
        scale = np.maximum(np.diagonal(H).copy(), 1e-12 * float(np.diagonal(H).max()) + 1e-300)
        improved = False
        while not improved and damping < _STIFF and not clock.out:
            step = _solve(H, damping * scale, g)
            trial_Theta = Theta + _move(Theta.shape, step, moves, factors)
            trial = eliminate(data, trial_Theta)
            predicted = float(step @ (2 * g - H @ step))  # of the fall in loss, by the quadratic model
            gain = (model.loss - trial.loss) / max(predicted, 1e-300)
            improved = bool(np.isfinite(trial.loss) and trial.loss < model.loss)
            if improved:
                damping *= max(1 / 3, 1 - (2 * gain - 1) ** 3) if gain < 2 else 1.0
                growth = 2.0
            else:
                damping, growth = damping * growth, growth * 2
        if improved:
            stalled = stalled + 1 if 1 - trial.loss / model.loss < 1e-7 else 0
            Theta, model = trial_Theta, trial
        history.append(float(np.sqrt(model.loss)) / size)
        converged = bool(np.sqrt(model.loss) <= tol * size or stalled >= 3) if improved else damping >= _STIFF
        if progress is not None:
            text = f"step {len(history)}: residual {history[-1]:.2e}"
            progress(Event(len(history), max_steps, text, history[-1]))
        if not improved:
            break
    status = Status.CONVERGED if converged else clock.status(Status.OUT_OF_STEPS)
    residual = float(np.sqrt(model.loss)) / size
    fit = Fit(data.layer(Theta, model.W), status, residual, len(history), np.array(history))
    return fit.or_raise("variable projection") if throw else fit


def best_of(
    data: Examples,
    starts: Iterable[Array],
    *,
    done: float = 1e-10,
    span: Array | None = None,
    rank: int | None = None,
    tol: float = TOL,
    max_steps: int = 200,
    max_seconds: float | None = None,
    progress: Progress | None = None,
) -> Fit:
    """Fit from every start until a residual is down to `done` or time is up; return the best fit, with the steps of all.

    Its status is that of the best fit, or out of time; its history is the residual at the end of every start.
    """
    clock, given = Clock(max_seconds), list(starts)
    fits: list[Fit] = []
    for number, start in enumerate(given, 1):
        fit = variable_projection(
            data, start, span=span, rank=rank, tol=tol, max_steps=max_steps, max_seconds=clock.left
        )
        fits.append(fit)
        if progress is not None:
            progress(Event(number, len(given), f"start {number}: residual {fit.residual:.2e}", fit.residual))
        if fit.residual <= done or clock.out:
            break
    best = min(fits, key=lambda fit: fit.residual)
    status = best.status if best.residual <= done else clock.status(best.status)
    history = np.array([fit.residual for fit in fits])
    return replace(best, status=status, steps=sum(fit.steps for fit in fits), history=history)


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

    m, d = len(Theta), data.X.shape[2]
    rows = data.Y.shape[0] * data.Y.shape[1]
    Z = np.empty((rows, m * d + data.bias))
    for i, theta in enumerate(Theta):
        Z[:, i * d : (i + 1) * d] = data.attend(theta)[1].reshape(rows, d)
    if data.bias:
        Z[:, -1] = data.counted.reshape(rows)
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

    m, e, d = Theta.shape  # e is d + 1 with a key bias
    out, values = model.W.shape[1], len(model.W)
    W = model.W[: m * d].reshape(m, d, out)
    H = np.zeros((m, m, e, e, d, d))  # i, j, a, a', c, c'
    g = np.zeros((m, e, d))
    B = np.zeros((values * e, m * d * out))
    k, q = data.X.shape[1], data.queries.shape[1]
    start = 0
    for part in data.blocks(q * (2 * m * d * out + m * d * d + d * d) + k * q * out):
        n = len(part.X)
        rows = slice(start, start + n * q)
        start += n * q
        x = part.asking.reshape(-1, e)
        xx = (x[:, :, None] * x[:, None, :]).reshape(-1, e * e)
        V = np.empty((len(x), m, d, out))
        for i in range(m):
            V[:, i] = output_moves(part, Theta[i], W[i])[0]
            g[i] += x.T @ np.matmul(V[:, i], model.R[rows, :, None])[:, :, 0]
        for i in range(m):
            for j in range(i + 1):
                pairs = np.matmul(V[:, i], V[:, j].transpose(0, 2, 1)).reshape(-1, d * d)
                H[i, j] += (xx.T @ pairs).reshape(e, e, d, d)
        zx = (model.Z[rows, :, None] * x[:, None, :]).reshape(len(x), -1)
        B += zx.T @ V.reshape(len(x), -1)
    for i in range(m):
        for j in range(i):
            H[j, i] = H[i, j].transpose(1, 0, 3, 2)
    full = H.transpose(0, 2, 4, 1, 3, 5).reshape(m * e * d, m * e * d)
    half = solve_triangular(model.L, B.reshape(values, -1), lower=True, check_finite=False)
    # rows: z and output; columns: i, a, c
    half = half.reshape(values, e, m, d, out).transpose(0, 4, 2, 1, 3).reshape(values * out, m * e * d)
    full -= half.T @ half
    return full, g.reshape(-1)


def _move(
    shape: tuple[int, ...], step: Array, moves: NDArray[Any] | None, factors: tuple[Array, Array] | None
) -> Array:
    """Return by how much a step moves Theta; one of the factors moves them both, so that the rank stays."""
    along = (step if moves is None else moves @ step).reshape(shape)
    if factors is None:
        return along
    Q, K = factors
    dQ, dK = np.split(step.reshape(len(Q), -1), [Q[0].size], axis=1)
    return np.asarray(along + dQ.reshape(Q.shape) @ dK.reshape(K.shape).transpose(0, 2, 1))


def _factors(Theta: Array, rank: int) -> tuple[Array, Array]:
    """Return Q (m, e, r) and K (m, d, r), of equal norms, whose products Q_i K_i^T are closest to Theta."""
    U, s, V = np.linalg.svd(Theta, full_matrices=False)
    root = np.sqrt(s[:, None, :rank])
    return U[:, :, :rank] * root, V[:, :rank].transpose(0, 2, 1) * root


def _factor_moves(Q: Array, K: Array) -> Array:
    """Return how Theta (m e d) moves with (dQ_i, dK_i), head by head: dQ_i K_i^T + Q_i dK_i^T."""
    from scipy.linalg import block_diag

    e, d = Q.shape[1], K.shape[1]
    heads = []
    for q, k in zip(Q, K, strict=True):
        with_Q = np.einsum("ab,cs->acbs", np.eye(e), k).reshape(e * d, -1)
        with_K = np.einsum("as,cb->acbs", q, np.eye(d)).reshape(e * d, -1)
        heads.append(np.concatenate([with_Q, with_K], axis=1))
    return np.asarray(block_diag(*heads))


def output_moves(part: Examples, theta: Array, W: Array) -> tuple[Array, Array]:
    """Return C W for every row, (rows, d, d_out), how the output moves with x^T dTheta; and the attended tokens."""
    P, Z = part.attend(theta)
    n, q, k = P.shape
    out = W.shape[1]
    U = part.X @ W
    weighed = (P.transpose(0, 2, 1)[:, :, :, None] * U[:, :, None, :]).reshape(n, k, q * out)
    V = (part.X.transpose(0, 2, 1) @ weighed).reshape(n, -1, q, out).transpose(0, 2, 1, 3)
    V = V - Z[:, :, :, None] * (Z @ W)[:, :, None, :]
    return np.asarray(V.reshape(n * q, -1, out)), Z


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
