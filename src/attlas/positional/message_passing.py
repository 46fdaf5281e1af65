"""Message passing for a teacher of rank one: it learns as fast as any learner can, where there is no hard phase."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.errors import InputError
from attlas.inputs import array, integer, real
from attlas.numerics import Event, Progress, Solution, Status, stream
from attlas.positional.readout import read_attention, read_indices

Array = NDArray[np.float64]

_DAMPING = 0.3
_BEGIN = 1e-4  # entries of the start: a larger one saturates before the signal shows
_EXACT = 1e-13  # of V: what counts as found
_FIXED = 1e-3  # relative change of V: it falls no more
_NOTHING = 1e-12  # of |Q_hat|^2/d: what counts as zero
_GROWN = 1e-3  # of |Q_hat|^2/d: what counts as grown from the start
_STRETCH, _STILL, _WANDERS = 60, 0.01, 0.05  # steps, relative change of V and of Q_hat (squared)


@dataclass(frozen=True)
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
        |Q* - Q_hat|^2/d for the better sign, if Q* was given, else empty.
    """

    mse: Array = field(default_factory=lambda: np.empty(0))

    @property
    def Q_hat(self) -> Array:
        """The estimate of Q*."""
        return self.value


def message_passing(
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    z: ArrayLike | None = None,
    mixture: float = 0.0,
    positional_matrix: ArrayLike | None = None,
    token_scale: float = 1.0,
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
    X : array of shape (n, L, d)
        Gaussian tokens.
    y : array of shape (n, L, d), optional
        Outputs; L >= 2. Their attention is read off exactly, whatever the mixture.
    z : array of shape (n, L), optional
        x_a.Q*/sqrt(d) up to one sign for every sequence, instead of y.
    mixture, positional_matrix, token_scale
        As in `Model`: how y was made.
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

    References
    ----------
    barbier2019optimal for generalised linear models; the channel with L tokens and one sign is derived here.
    """
    X = array(X, "X", ("n", "L", "d"))
    n, L, d = X.shape
    if (y is None) == (z is None):
        raise InputError("give either y, the outputs, or z, the indices up to a sign")
    scale = real(token_scale, "token_scale", above=0)
    if z is None:
        z = read_indices(read_attention(X, y, mixture=mixture, positional_matrix=positional_matrix))  # type: ignore[arg-type]
    seen = array(z, "z", ("n", "L"), (n, L)) / scale
    truth = None if Q is None else array(Q, "Q", ("d",), (d,))
    V, begin = 1.0, np.asarray(_BEGIN * stream(seed, "positional", "message passing").standard_normal(d))
    if start is not None:
        begin, V = array(start[0], "start", ("d",), (d,)).astype(float), real(start[1], "V of the start", above=0)
    course = _Course(V, begin, truth, integer(max_steps, "max_steps"), progress)
    tokens = X.reshape(n * L, d) / (scale * np.sqrt(d))
    status, estimate, residual = _iterate(tokens, seen, begin, V, course, real(tol, "tol", above=0))
    found = Estimate(estimate, status, residual, len(course.V) - 1, np.array(course.V), mse=np.array(course.mse))
    return found.or_raise("message passing") if throw else found


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
