"""Training at finite d: which minimum it ends in, and what was learned there."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.errors import InputError
from attlas.inputs import array, integer, real
from attlas.numerics import Event, Progress, Solution, Status, stream
from attlas.positional.fixed_point import BRANCHES, least_order
from attlas.positional.model import attention
from attlas.positional.objective import Objective
from attlas.positional.sharpness import sharpness
from attlas.positional.task import LARGEST, Task, check_size, check_task

Array = NDArray[np.float64]
Start = Literal["positional", "semantic", "random"]

RANDOM = 0.1  # standard deviation of the entries of a random start
_APART = 2.0  # times the other cosine: what a mechanism needs to be called by its name


@dataclass(frozen=True, repr=False)
class Minimum(Solution[Array]):
    """What training found.

    Attributes
    ----------
    value : array of shape (d,)
        Q.
    loss : float
        The objective over d.
    train : float
        2/n of its sum over samples: E|y_hat - y|^2/d over the data.
    test : float
        The same for new samples, exact for this Q to 1e-3 of itself (an integral over four variables).
    q, m, theta : float
        sigma^2 |Q|^2/d, e.Q/sqrt(d) and sigma^2 Q.Q*/d; Q and -Q are one layer, and the sign is that of the larger cosine.
        At a positional minimum theta is not zero but of order 1/sqrt(d).
    residual : float
        |gradient|/sqrt(d).
    history : array
        The loss, call by call.
    token_scale, encoding : float
        Of the model.
    task : Task
        The data; `sharpness` needs them.
    """

    loss: float = np.nan
    train: float = np.nan
    test: float = np.nan
    q: float = np.nan
    m: float = np.nan
    theta: float = np.nan
    token_scale: float = 1.0
    encoding: float = 1.0
    task: Task | None = None

    @property
    def cosines(self) -> tuple[float, float]:
        """|cos| of Q with the encoding (position) and with the teacher (meaning)."""
        size = max(float(np.sqrt(self.q)), 1e-300)
        return abs(self.m) * self.token_scale / size, abs(self.theta) / (self.token_scale * size)

    @cached_property
    def sharpness(self) -> float:
        """The largest eigenvalue of the Hessian here, by Lanczos; descent with a step above 2/sharpness leaves."""
        if self.task is None:
            raise InputError("this minimum does not know its data; take sharpness(task, Q)")
        return sharpness(self.task, self.value).value

    def __repr__(self) -> str:
        return (
            f"Minimum({self.mechanism}: loss={self.loss:.6g}, test={self.test:.6g}, q={self.q:.6g}, m={self.m:.6g},"
            f" theta={self.theta:.6g}; {self.status}, {self.steps} steps)"
        )

    @property
    def mechanism(self) -> str:
        """Which minimum, "positional" or "semantic" by the larger cosine; "between" if it is not twice the other."""
        position, meaning = self.cosines
        least = [least_order(branch, self.token_scale, self.encoding) for branch in BRANCHES]
        if position > _APART * meaning and abs(self.m) > least[0]:
            return "positional"
        return "semantic" if meaning > _APART * position and abs(self.theta) > least[1] else "between"


def minimise(
    task: Task,
    start: Start | ArrayLike = "random",
    method: Literal["lbfgs", "descent"] = "lbfgs",
    *,
    step: float = 0.05,
    tol: float = 1e-5,
    max_steps: int | None = None,
    seed: int | None = None,
    throw: bool = True,
    progress: Progress | None = None,
) -> Minimum:
    """Train the student from a start.

    Parameters
    ----------
    task : Task
    start : {"random", "positional", "semantic"} or array of shape (d,)
        0.1 N(0, 1) per entry; (0.25/c) sqrt(d) e; or Q*/2.
    method : {"lbfgs", "descent"}
        L-BFGS, whose first steps are long; or plain descent Q <- Q - step * gradient.
    step : float, default 0.05
        Of the descent. A minimum holds it below 2/`sharpness`.
    tol : float, default 1e-5
        Converged when |gradient|/sqrt(d) is below it.
    max_steps : int, optional
        500 for L-BFGS and 3000 for descent.
    seed : int, optional
        Of a random start; the task's if not given.
    throw : bool, default True
        Raise `ConvergenceError` if not converged; otherwise the status says so.
    progress : callable, optional
        Called with an `Event` after every step; its value is the loss.

    Examples
    --------
    >>> from attlas import positional
    >>> task = positional.sample(positional.Model(mixture=0.3, encoding=3.0), d=60, alpha=4, seed=0)
    >>> positional.minimise(task, "semantic").mechanism, positional.minimise(task, "positional").mechanism
    ('semantic', 'positional')

    References
    ----------
    The objective is that of `Model`. liu1989limited for L-BFGS (scipy's).
    """
    from threadpoolctl import threadpool_limits

    objective = Objective(check_task(task))
    Q = _begin(task, start, task.seed if seed is None else seed)
    tol, step = real(tol, "tol", above=0), real(step, "step", above=0)
    if not isinstance(method, str) or method not in ("lbfgs", "descent"):
        raise InputError(f'method must be "lbfgs" or "descent"; got {method!r}')
    most = {"lbfgs": 500, "descent": 3000}[method] if max_steps is None else integer(max_steps, "max_steps")
    course = _Course(objective, most, progress)
    # products of a vector gain nothing from threads, and the pools of NumPy and of SciPy's L-BFGS get into each other's way
    with threadpool_limits(1), np.errstate(over="ignore", invalid="ignore"):  # what diverges says so
        Q, steps = _lbfgs(course, Q, tol) if method == "lbfgs" else _descend(course, Q, step, tol)
        found = _found(course, Q, steps, tol)
    return found.or_raise("training") if throw else found


def _begin(task: Task, start: Start | ArrayLike, seed: int) -> Array:
    if not isinstance(start, str):
        return check_size(array(start, "start", ("d",), (task.d,)).astype(float))
    if start == "random":
        return RANDOM * stream(seed, "positional", "start").standard_normal(task.d)
    if start == "semantic":
        return task.Q / 2
    if start != "positional":
        raise InputError(f'start must be "random", "positional", "semantic" or an array; got {start!r}')
    if task.model.encoding == 0:
        raise InputError('start="positional" needs an encoding; got encoding=0; take start="random" or "semantic"')
    return np.asarray(0.25 / task.model.encoding * np.sqrt(task.d) * task.e)


class _Course:
    """The objective over d, with a record of its values."""

    def __init__(self, objective: Objective, most: int, progress: Progress | None) -> None:
        self.objective, self.most, self._progress = objective, most, progress
        self.d = objective.task.d
        self.history: list[float] = []
        self.gradient = np.empty(0)

    def __call__(self, Q: Array) -> tuple[float, Array]:
        value, self.gradient = self.objective.value_and_gradient(Q)
        self.history.append(value / self.d)
        return value, self.gradient

    @property
    def residual(self) -> float:
        return float(np.linalg.norm(self.gradient) / np.sqrt(self.d))

    def tell(self, step: int) -> None:
        if self._progress is not None:
            loss = self.history[-1]
            self._progress(Event(step, self.most, f"step {step}, loss {loss:.5g}", loss))


def _lbfgs(course: _Course, Q: Array, tol: float) -> tuple[Array, int]:
    from scipy.optimize import minimize

    steps = 0

    def told(intermediate_result: object) -> None:  # noqa: ARG001 (scipy looks at the name)
        nonlocal steps
        steps += 1
        course.tell(steps)
        if course.residual < tol:
            raise StopIteration

    options = {"maxiter": course.most, "maxfun": 3 * course.most, "gtol": tol / 10, "ftol": 0.0, "maxcor": 20}
    found = minimize(course, Q, jac=True, method="L-BFGS-B", callback=told, options=options)
    return np.asarray(found.x), int(found.nit)


def _descend(course: _Course, Q: Array, step: float, tol: float) -> tuple[Array, int]:
    for made in range(1, course.most + 1):
        _, gradient = course(Q)
        if course.residual < tol or not course.residual < LARGEST:
            return Q, made - 1
        Q = Q - step * gradient
        course.tell(made)
    return Q, course.most


def _found(course: _Course, Q: Array, steps: int, tol: float) -> Minimum:
    task, model = course.objective.task, course.objective.task.model
    value, _ = course(Q)
    status = Status.CONVERGED if course.residual < tol else Status.OUT_OF_STEPS
    if not (np.isfinite(value) and course.residual < LARGEST):
        status = Status.DIVERGED
    variance = model.token_scale**2
    square, m, theta = float(Q @ Q), float(task.e @ Q) / np.sqrt(task.d), variance * float(Q @ task.Q) / task.d
    sign = np.sign(m if abs(m) * variance > abs(theta) else theta) or 1.0
    return Minimum(
        sign * Q,
        status,
        course.residual,
        steps,
        np.array(course.history),
        loss=value / task.d,
        train=2 * (value - 0.5 * model.decay * square) / len(task.X),
        test=new_sample_error(task, Q),
        q=variance * square / task.d,
        m=float(sign * m),
        theta=float(sign * theta),
        token_scale=model.token_scale,
        encoding=model.encoding,
        task=task,
    )


def new_sample_error(task: Task, Q: Array, draws: int = 2**14) -> float:
    """Return E|y_hat - y|^2/d of new samples, given Q, by a quasi-random rule.

    Given the products of (x_1 - x_2)/sqrt 2 with Q and Q*, its length has mean square sigma^2 (d - 2) plus that of its
    projection on their span, so that four Gaussian variables suffice at any d.
    """
    from scipy.special import ndtri
    from scipy.stats import qmc

    model, d = task.model, task.d
    points = qmc.Sobol(4, seed=np.random.default_rng(0)).random(draws)
    S, R, x_s, x_r = ndtri(np.clip(points.T, 1e-12, 1 - 1e-12))
    variance, sigma = model.token_scale**2, model.token_scale
    q, theta, m = variance * float(Q @ Q) / d, variance * float(Q @ task.Q) / d, float(task.e @ Q) / np.sqrt(d)
    rest = float(np.sqrt(max(q - theta**2 / variance, 0.0)))
    s, r = theta / sigma * S + rest * x_s, theta / sigma * R + rest * x_r
    both = attention(s + np.sqrt(2) * model.encoding * m, r)
    targets = model.targets(sigma * S, sigma * R)
    weight = variance * (d - 2 + S**2 + x_s**2) / d
    total = weight * sum((own - t) ** 2 for own, t in zip(both, targets, strict=True))
    if task.values == "encoded":
        c = model.encoding
        along = variance * m / max(rest, 1e-300) * x_s  # mean of e.(x_1 - x_2)/sqrt 2 given s and S
        for own, t in zip(both, targets, strict=True):
            lean = 2 * own - 1
            total = total + c * c / (2 * d) * lean**2 + np.sqrt(2) * c / d * along * (own - t) * lean
    return float(2 * np.mean(total))
