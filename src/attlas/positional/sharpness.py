"""How sharp a minimum is: what descent with a given step can settle in."""

import numpy as np
from numpy.typing import ArrayLike

from attlas.inputs import array, integer, real
from attlas.numerics import Solution, Status, stream
from attlas.positional.objective import Objective
from attlas.positional.task import Task, check_size, check_task


def sharpness(
    task: Task, Q: ArrayLike, *, tol: float = 1e-6, max_steps: int = 300, throw: bool = True
) -> Solution[float]:
    """Return the largest eigenvalue of the Hessian of the objective at Q, by Lanczos on exact products.

    The objective is a sum over samples, with its decay. Descent with a step above 2/sharpness leaves such a minimum.

    Parameters
    ----------
    task : Task
    Q : array of shape (d,)
        Such as the value of `minimise`.
    tol : float, default 1e-6
        Relative.
    max_steps : int, default 300
        Restarts of Lanczos' iteration.
    throw : bool, default True
        Raise `ConvergenceError` if not converged; otherwise the status says so.

    Examples
    --------
    >>> from attlas import positional
    >>> task = positional.sample(positional.Model(mixture=0.3, encoding=3.0), d=60, alpha=4, seed=0)
    >>> place, meaning = (positional.minimise(task, start).value for start in ("positional", "semantic"))
    >>> bool(positional.sharpness(task, place).value > positional.sharpness(task, meaning).value)
    True

    References
    ----------
    lehoucq1998arpack (scipy's eigsh).
    """
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

    Q = check_size(array(Q, "Q", ("d",), (check_task(task).d,)))
    tol, max_steps = real(tol, "tol", above=0), integer(max_steps, "max_steps")
    hessian, products = Objective(task).hessian(Q), 0

    def product(v: object) -> object:
        nonlocal products
        products += 1
        return hessian @ np.ravel(np.asarray(v))

    operator = LinearOperator((task.d, task.d), matvec=product, dtype=float)
    begin = stream(task.seed, "positional", "lanczos").standard_normal(task.d)
    options = {"k": 1, "which": "LA", "v0": begin, "tol": tol}
    try:
        values, vectors = eigsh(operator, maxiter=max_steps, **options)
        residual = float(np.linalg.norm(hessian @ vectors[:, 0] - values[0] * vectors[:, 0]) / abs(values[0]))
        found = Solution(float(values[0]), Status.CONVERGED, residual, products)
    except ArpackNoConvergence:
        found = Solution(np.nan, Status.OUT_OF_STEPS, np.inf, products)
    return found.or_raise("Lanczos' iteration") if throw else found
