"""Training: ridge regression of the labels on queries times contexts."""

from math import log, sqrt
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from attlas.context.conjugate_gradients import Design, conjugate_gradients
from attlas.context.direct import dual, primal
from attlas.context.layer import Layer
from attlas.context.sequences import Sequences
from attlas.errors import InputError
from attlas.inputs import choice, flag, integer, real, require_parts
from attlas.numerics import Progress, Solution, Status

Array = NDArray[np.float64]
Solver = Literal["auto", "cg", "dual", "primal"]
SOLVERS = ("auto", "cg", "dual", "primal")
_MEMORY = 1 << 30  # bytes of a matrix that "auto" may form
_EXACT = 1e-6  # residual of the normal equations beyond which a factorisation has lost its digits


def fit(
    task: Sequences,
    ridge: float = 0.0,
    solver: Solver = "auto",
    *,
    column: bool = True,
    tol: float = 1e-8,
    max_steps: int = 10_000,
    progress: Progress | None = None,
    throw: bool = True,
) -> Layer:
    """Train a layer: min over Gamma of sum (y - x^T Gamma h)^2 + (n/d) ridge |Gamma|^2.

    Parameters
    ----------
    task : Sequences
        From `sample`.
    ridge : float, default 0
        Beside the *sum* of squares; 0 gives the smallest of all Gamma that fit best.
    solver : {"auto", "cg", "dual", "primal"}
        Conjugate gradients (4 n d^2 steps an iteration, no memory beside the data), one factorisation of n x n numbers, or
        one of d^2 (d + 1)^2 numbers. "auto" takes the cheapest that fits into 1 GB. All agree where all apply: without
        ridge, "dual" needs at most as many sequences as parameters, "primal" at least as many.
    column : bool, default True
        Whether the layer may use the label energy, the last entry of h. It costs O(1/d) on new tasks and is worth nothing.
    tol, max_steps, progress
        Of conjugate gradients: residual of the normal equations over their right-hand side.
    throw : bool, default True
        Raise `ConvergenceError` if the normal equations are not solved; otherwise the status says so.

    Returns
    -------
    Layer
        ``errors()`` are exact; no test data are drawn.

    Examples
    --------
    >>> from attlas import context
    >>> task = context.sample(d=20, alpha=2, kappa=0.5, tau=2, noise=0.1, seed=0)
    >>> layer = context.fit(task, ridge=0.05)
    >>> errors = layer.errors()
    >>> errors.training < errors.idg < errors.icl
    True
    """
    require_parts(task, "task", ("X", "H", "y", "tasks", "n", "d"), "what `sample` returns")
    ridge, tol, max_steps = real(ridge, "ridge", least=0), real(tol, "tol", above=0), integer(max_steps, "max_steps")
    solver = choice(solver, "solver", SOLVERS)
    H = task.H if flag(column, "column") else task.H[:, :-1]
    name = _cheapest(task, H, ridge, tol) if solver == "auto" else solver
    penalty = task.n / task.d * ridge
    if name == "cg":
        found = conjugate_gradients(
            task.X,
            H,
            task.y,
            penalty,
            tol=tol,
            max_steps=max_steps,
            progress=progress,
        )
    else:
        found = _factorised(task, H, penalty, name)
    training = float(np.mean((task.y - Design(task.X, H).fitted(found.value)) ** 2))
    layer = Layer(
        found.value,
        found.status,
        found.residual,
        found.steps,
        found.history,
        tasks=task.tasks,
        ridge=ridge,
        training=training,
        solver=name,
    )
    return layer.or_raise("the fit of the layer") if throw else layer


def _factorised(task: Sequences, H: Array, penalty: float, name: str) -> Solution[Array]:
    n, p = task.n, task.d * H.shape[1]
    if penalty == 0 and ((name == "dual" and n > p) or (name == "primal" and n < p)):
        other = "primal" if name == "dual" else "dual"
        raise InputError(
            f"solver {name!r} without ridge is singular with {n} sequences and {p} parameters;"
            f" take {other!r}, 'cg' or 'auto'"
        )
    Gamma = (dual if name == "dual" else primal)(task.X, H, task.y, penalty)
    residual = Design(task.X, H).residual(task.y, penalty, Gamma)
    return Solution(Gamma, Status.CONVERGED if residual < _EXACT else Status.INACCURATE, residual, 1)


def _cheapest(task: Sequences, H: Array, ridge: float, tol: float) -> str:
    """Return the solver of the fewest operations, from the spread of the spectrum that the theory of the bulk gives."""
    n, d, p = task.n, task.d, task.d * H.shape[1]
    ratio = n / p
    q = float(np.mean(task.H[:, -1])) / task.alpha
    bulk = (1 - sqrt(ratio)) ** 2 / max(ratio, 1.0) + 1 / p
    condition = (2 + q + ridge) / (q * bulk + ridge)
    steps = 0.5 * sqrt(condition) * log(2 / tol)
    costs = {"cg": 4.0 * n * p * steps}
    if 8 * n * n <= _MEMORY and (ridge > 0 or n <= p):
        costs["dual"] = 4.0 * n * n * d + n**3 / 3
    if 8 * p * p <= _MEMORY and (ridge > 0 or n >= p):
        costs["primal"] = 2.0 * n * p * p + p**3 / 3
    return min(costs, key=lambda name: costs[name])
