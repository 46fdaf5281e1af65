"""The layer trained on infinitely many sequences of given tasks: one solve, no data."""

import numpy as np

from attlas.context.layer import Layer
from attlas.context.tasks import TaskSet
from attlas.inputs import flag, real, require_parts
from attlas.numerics import Status


def population(tasks: TaskSet, ridge: float = 0.0, *, column: bool = True) -> Layer:
    """Return the layer that minimises E (y - x^T Gamma h)^2 + (ridge/d) |Gamma|^2 over sequences of the tasks.

        Gamma = A (B + ridge)^-1

    Parameters
    ----------
    tasks : TaskSet
        From `draw_tasks`, or of a `sample`.
    ridge : float, default 0
    column : bool, default True
        Whether the layer may use the label energy.

    Examples
    --------
    >>> from attlas import context
    >>> tasks = context.draw_tasks(d=100, alpha=10, kappa=0.5, noise=0.1, seed=0)
    >>> errors = context.population(tasks, column=False).errors()
    >>> abs(errors.icl - context.theory(alpha=10, kappa=0.5, tau=float("inf"), noise=0.1).icl) < 0.01
    True
    """
    require_parts(tasks, "tasks", ("moments", "d"), "what `draw_tasks` returns, or the `tasks` of a `sample`")
    ridge = real(ridge, "ridge", least=0)
    A, B, _ = moments = tasks.moments()
    width = tasks.d + flag(column, "column")
    penalised = B[:width, :width] + ridge * np.eye(width)
    Gamma = np.asarray(np.linalg.solve(penalised, A[:, :width].T).T, dtype=np.float64)
    residual = float(np.linalg.norm(Gamma @ penalised - A[:, :width]) / np.linalg.norm(A[:, :width]))
    status = Status.CONVERGED if residual < 1e-8 else Status.INACCURATE
    return Layer(
        Gamma, status, residual, 1, tasks=tasks, ridge=ridge, training=moments.error(Gamma), solver="population"
    )
