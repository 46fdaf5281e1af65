"""Message passing for a teacher of rank one: it learns as fast as any learner can, where there is no hard phase."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.errors import InputError
from attlas.inputs import array, described, integer, real
from attlas.numerics import Event, Progress, Solution, Status, stream
from attlas.positional.readout import read_attention, read_indices
from attlas.positional.task import Task
from attlas.positional.teacher import TeacherTask

Array = NDArray[np.float64]

_DAMPING = 0.3
_BEGIN = 1e-4  # entries of the start: a larger one saturates before the signal shows
_EXACT = 1e-13  # of V: what counts as found
_FIXED = 1e-3  # relative change of V: it falls no more
_NOTHING = 1e-12  # of |Q_hat|^2/d: what counts as zero
_GROWN = 1e-3  # of |Q_hat|^2/d: what counts as grown from the start
_OFF = 10.0  # factor between the size of what is given and what the model says, beyond any chance
_MISFIT = 1e-12  # chance of so large or so small a mean square of z
_UNEXPLAINED = 1e-4  # share of z that an exact estimate may leave
_STRETCH, _STILL, _WANDERS = 60, 0.01, 0.05  # steps, relative change of V and of Q_hat (squared)


@dataclass(frozen=True, repr=False)
class Estimate(Solution[Array]):
    """What message passing found.

    Attributes
    ----------
    value, Q_hat : array of shape (d,)
        The estimate of Q*, up to its sign.
    residual : float
        |Q_hat - old|^2 over |Q_hat|^2 of the last step.
    history : array of shape (steps + 1,)
        V of every step: the error that the algorithm expects of itself.
    mse : array of the same shape
        |Q* - Q_hat|^2/d for the better sign, if Q* is known, else empty.
    reason : str
        Why the estimate is not to be trusted (status "inaccurate"); empty otherwise.
    """

    mse: Array = field(default_factory=lambda: np.empty(0))
    reason: str = ""

    def __repr__(self) -> str:
        error = f", mse={self.mse[-1]:.4g}" if len(self.mse) else ""
        about = f" ({self.reason})" if self.reason else ""
        return (
            f"Estimate(d={len(self.value)}, V={self.history[-1]:.4g}{error}; {self.status}{about}, {self.steps} steps)"
        )

    @property
    def Q_hat(self) -> Array:
        """The estimate of Q*."""
        return self.value


def message_passing(
    X: ArrayLike | Task | TeacherTask,
    y: ArrayLike | None = None,
    *,
    z: ArrayLike | None = None,
    mixture: float | None = None,
    positional_matrix: ArrayLike | None = None,
    token_scale: float | None = None,
    Q: ArrayLike | None = None,
    start: tuple[ArrayLike, float] | None = None,
    seed: int = 0,
    tol: float = 1e-8,
    max_steps: int = 1000,
    throw: bool = True,
    progress: Progress | None = None,
) -> Estimate:
    """Estimate Q* from sequences and outputs, or from indices known up to one sign each.

    With unit tokens, from Q_hat ~ 1e-4 N(0, 1) and V = 1, repeat

        w = X Q_hat/sqrt(d) - V g,   t = tanh(z.w/V),   g = (z t - w)/V,
        Lambda = (1/d) sum (L - |z|^2 (1 - t^2)/V)/V,
        Q_hat = (sum X^T g/sqrt(d) + Lambda Q_hat)/(1 + Lambda),   V = 1/(1 + Lambda),

    w and V each mixed with 0.3 of the old. A step costs two products with X.

    Parameters
    ----------
    X : array of shape (n, L, d), or a task
        Gaussian tokens. A task of `sample` or `sample_teacher` knows its outputs, its mixture, the scale of its tokens and
        Q*, so that nothing else is needed: ``message_passing(task)``.
    y : array of shape (n, L, d), optional
        Outputs; L >= 2. Their attention is read off exactly, whatever the mixture.
    z : array of shape (n, L), optional
        x_a.Q*/sqrt(d) up to one sign for every sequence, instead of y.
    mixture, positional_matrix, token_scale
        As in `Model`: how y was made. Without them the mixture is 0 and the scale 1. If they do not fit the outputs the
        status is "inaccurate" and `reason` says so.
    Q : array of shape (d,), optional
        Q*, to follow the true error. It does not enter the estimate.
    start : pair of array of shape (d,) and float, optional
        Q_hat and V to begin with, such as an informed start.
    seed : int, default 0
        Of the usual start.
    tol : float, default 1e-8
        Converged when a step changes Q_hat by |Q_hat - old|^2 < tol |Q_hat|^2 and V by less than 1e-3 of itself, when V
        falls below 1e-13 (exact recovery), or when Q_hat fades to zero (nothing to learn). Also when V has stood still to
        1 % for 60 steps while Q_hat wanders, as it does at finite d: the estimate is then the mean over these steps, and
        `residual` says how far a step wanders.
    max_steps : int, default 1000
    throw : bool, default True
        Raise `ConvergenceError` if not converged; otherwise the status says so.
    progress : callable, optional
        Called with an `Event` after every step; its value is V.

    Examples
    --------
    >>> from attlas import positional
    >>> task = positional.sample(positional.Model(mixture=0.3, encoding=3.0), d=300, alpha=1.0, seed=0)
    >>> found = positional.message_passing(task)
    >>> found.status.name, bool(found.value.shape == (300,))
    ('CONVERGED', True)

    References
    ----------
    barbier2019optimal for generalised linear models; the channel with L tokens and one sign is derived here.
    """
    if isinstance(X, Task | TeacherTask):
        if any(given is not None for given in (y, z, mixture, positional_matrix, token_scale)):
            raise InputError("a task knows its outputs, mixture and scale; give the task alone, or task.X and the rest")
        task = X
        if isinstance(task, TeacherTask):
            if task.W.shape[1] > 1:
                raise InputError(
                    f"message passing is for teachers of rank one; got rank {task.W.shape[1]}; take `spectral`"
                )
            truth = task.W[:, 0]
        else:
            model, truth = task.model, task.Q
            mixture, positional_matrix, token_scale = model.mixture, model.positional_matrix, model.token_scale
        X, y, Q = task.X, task.y, truth if Q is None else Q
    X = array(X, "X", ("n", "L", "d"))
    n, L, d = X.shape
    if (y is None) == (z is None):
        raise InputError("give either y, the outputs, or z, the indices up to a sign")
    scale = real(1.0 if token_scale is None else token_scale, "token_scale", above=0)
    _check_size(X, "X", scale, "Gaussian tokens of this scale")
    if y is not None:
        share = 0.0 if mixture is None else mixture
        z = read_indices(read_attention(X, y, mixture=share, positional_matrix=positional_matrix))
    seen = array(z, "z", ("n", "L"), (n, L))  # type: ignore[arg-type]
    _check_size(seen, "z", scale, "x.Q*/sqrt(d) with |Q*|^2 = d", least=0.0)
    seen = seen / scale
    known = None if Q is None else array(Q, "Q", ("d",), (d,))
    begin, V = _begin(start, d, seed)
    course = _Course(V, begin, known, integer(max_steps, "max_steps"), progress)
    tokens = X.reshape(n * L, d) / (scale * np.sqrt(d))
    with np.errstate(over="ignore", invalid="ignore"):  # what diverges says so
        status, estimate, residual = _iterate(tokens, seen, begin, V, course, real(tol, "tol", above=0))
    reason = _doubt(tokens, seen, estimate, course.V[-1]) if status is Status.CONVERGED else ""
    status = Status.INACCURATE if reason else status
    history, mse = np.array(course.V), np.array(course.mse)
    found = Estimate(estimate, status, residual, len(history) - 1, history, mse=mse, reason=reason)
    return found.or_raise("message passing" + (f" ({reason})" if reason else "")) if throw else found


def _check_size(values: Array, name: str, scale: float, wanted: str, least: float = 1 / _OFF) -> None:
    """Refuse entries whose size is not that of the scale of the tokens, within a factor that no draw reaches."""
    largest = float(np.abs(values).max())
    size = largest * float(np.sqrt(np.mean((values / largest) ** 2))) if largest > 0 else 0.0
    if not least * scale <= size <= _OFF * scale:
        raise InputError(
            f"{name} must be {wanted}; got entries of mean square {size:.3g}^2 with token_scale = {scale:g}; give the scale"
            " of the tokens"
        )


def _begin(start: object, d: int, seed: int) -> tuple[Array, float]:
    """Return Q_hat and V to begin with."""
    if start is None:
        return np.asarray(_BEGIN * stream(seed, "positional", "message passing").standard_normal(d)), 1.0
    if not isinstance(start, tuple | list) or len(start) != 2:
        raise InputError(f"start must be a pair, Q_hat of shape (d,) and V; got {described(start)}")
    begin = array(start[0], "Q_hat of the start", ("d",), (d,)).astype(float)
    V = real(start[1], "V of the start", above=0, below=_OFF)
    if V < _EXACT or np.abs(begin).max() > _OFF * np.sqrt(d):
        raise InputError(f"start must have V of at least {_EXACT:g} and |Q_hat|^2 of about d; got V = {V:g}")
    return begin, V


def _doubt(X: Array, z: Array, Q: Array, V: float) -> str:
    """Return why an estimate that settled does not explain what was seen; empty if it does."""
    from scipy.special import gammainc, gammaincc

    n, L = z.shape
    ask = "do mixture, positional_matrix and token_scale fit the outputs?"
    size = float(np.mean(z * z))
    if min(gammainc(n * L / 2, n * L * size / 2), gammaincc(n * L / 2, n * L * size / 2)) < _MISFIT:
        return f"z has the mean square {size:.3g}, not 1, in units of token_scale: {ask}"
    if V < _EXACT:
        h = (X @ Q).reshape(n, L)
        signs = np.where(np.sum(h * z, axis=1) < 0, -1.0, 1.0)[:, None]
        off = float(np.mean((h - signs * z) ** 2)) / size
        if off > _UNEXPLAINED:
            return f"V fell to zero, but {off:.2g} of z is not explained: {ask}"
    return ""


def _iterate(X: Array, z: Array, Q: Array, V: float, course: "_Course", tol: float) -> tuple[Status, Array, float]:
    (n, L), d = z.shape, X.shape[1]
    square = np.sum(z * z, axis=1)
    w, g, residual, calm = np.zeros((n, L)), np.zeros((n, L)), np.inf, _Calm(d)
    for step in range(course.most):
        new = (X @ Q).reshape(n, L) - V * g
        w = new if step == 0 else (1 - _DAMPING) * new + _DAMPING * w
        t = np.tanh(np.sum(z * w, axis=1) / V)
        g = (z * t[:, None] - w) / V
        precision = float(np.sum(L - square * (1 - t * t) / V)) / (V * d)
        if not np.isfinite(precision):
            return Status.DIVERGED, Q, np.inf
        precision = max(precision, -0.5)
        old, Q = Q, (g.ravel() @ X + precision * Q) / (1 + precision)
        before, V = V, (1 - _DAMPING) / (1 + precision) + _DAMPING * V
        size = float(Q @ Q)
        residual = float(np.sum((Q - old) ** 2)) / max(size, np.finfo(float).tiny)
        course.add(V, Q)
        if not np.isfinite(size):
            return Status.DIVERGED, old, np.inf
        if (residual < tol and abs(V - before) < _FIXED * V) or V < _EXACT or size / d < _NOTHING:
            return Status.CONVERGED, Q, residual
        if calm.still(V, Q, residual):
            course.amend(calm.mean)
            return Status.CONVERGED, calm.mean, calm.residual
    return Status.OUT_OF_STEPS, Q, residual


class _Calm:
    """Looks for a stretch over which V stands still while Q_hat wanders about its mean."""

    def __init__(self, d: int) -> None:
        self.mean = np.zeros(d)
        self._V: list[float] = []
        self._residuals: list[float] = []

    @property
    def residual(self) -> float:
        """Mean of the residuals of the stretch."""
        return float(np.mean(self._residuals))

    def still(self, V: float, Q: Array, residual: float) -> bool:
        """Return whether this step ends such a stretch; one that is no such stretch is forgotten."""
        if _GROWN * len(Q) > Q @ Q:
            return False
        self._V.append(V)
        self._residuals.append(residual)
        self.mean = self.mean + (Q - self.mean) / len(self._V)
        if len(self._V) < _STRETCH:
            return False
        first, second = np.mean(self._V[: _STRETCH // 2]), np.mean(self._V[_STRETCH // 2 :])
        if abs(second / first - 1) < _STILL and np.std(self._V) < 2 * _STILL * first and self.residual < _WANDERS:
            return True
        self._V, self._residuals, self.mean = [], [], np.zeros_like(Q)
        return False


class _Course:
    """What is recorded of every step; the true error stays here."""

    def __init__(self, V: float, Q: Array, truth: Array | None, most: int, progress: Progress | None) -> None:
        self.most, self._truth, self._progress = most, truth, progress
        self.V: list[float] = []
        self.mse: list[float] = []
        self.add(V, Q)

    def add(self, V: float, Q: Array) -> None:
        self.V.append(V)
        if self._truth is not None:
            self.mse.append(self._error(self._truth, Q))
        if self._progress is not None and len(self.V) > 1:
            step = len(self.V) - 1
            self._progress(Event(step, self.most, f"step {step}, estimated error {V:.4g}", V))

    def amend(self, Q: Array) -> None:
        """Let the last error be that of this estimate, which is returned instead of the last step's."""
        if self._truth is not None:
            self.mse[-1] = self._error(self._truth, Q)

    @staticmethod
    def _error(truth: Array, Q: Array) -> float:
        return float(min(np.sum((truth - Q) ** 2), np.sum((truth + Q) ** 2))) / len(Q)
