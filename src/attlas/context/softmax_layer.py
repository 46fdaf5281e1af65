"""A full softmax layer on the same contexts: trained by gradients, with no theory to say what it reaches."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.errors import InputError
from attlas.inputs import array, integer, real
from attlas.numerics import Solution, Status, stream

Array = NDArray[np.float64]


@dataclass(frozen=True)
class SoftmaxLayer:
    """Heads of softmax attention that read a context and predict the label of a query.

        y_hat = sum_h sum_i p_hi v_h.z_i,   p_h = softmax_i(sqrt(d) x'K_h z_i),   z_i = [sqrt(d) x_i ; y_i]

    Attributes
    ----------
    K : array of shape (heads, d, d + 1)
        Queries times keys.
    v : array of shape (heads, d + 1)
        Values.
    """  # fmt: skip

    K: Array
    v: Array

    def __post_init__(self) -> None:
        K = array(self.K, "K", ("heads", "d", "d + 1"))
        heads, d, size = K.shape
        if size != d + 1:
            raise InputError(f"K must have shape (heads, d, d + 1); got {K.shape}")
        object.__setattr__(self, "K", K)
        object.__setattr__(self, "v", array(self.v, "v", ("heads", "d + 1"), (heads, size)))

    def predict(self, X: ArrayLike, y: ArrayLike, query: ArrayLike) -> Array:
        """Return the predicted labels.

        Parameters
        ----------
        X : array of shape (n, l, d)
        y : array of shape (n, l)
        query : array of shape (n, d)
        """
        Z, queries = _tokens(X, y, query)
        return _forward(self.K, self.v, Z, queries)[0]


@dataclass(frozen=True)
class SoftmaxFit(Solution[SoftmaxLayer]):
    """A trained softmax layer.

    Attributes
    ----------
    value : SoftmaxLayer
    training : float
        Mean square of what is left of the labels of training.
    residual : float
        The largest entry of the gradient of the objective.
    """

    training: float = np.nan

    @property
    def layer(self) -> SoftmaxLayer:
        """The layer."""
        return self.value


def fit_softmax(
    X: ArrayLike,
    y: ArrayLike,
    query: ArrayLike,
    target: ArrayLike,
    *,
    heads: int = 1,
    decay: float = 1e-6,
    seed: int = 0,
    max_steps: int = 500,
    tol: float = 1e-5,
    throw: bool = True,
) -> SoftmaxFit:
    """Train a softmax layer by L-BFGS.

    It minimises

        mean_mu (target - y_hat)^2 + decay (|K|^2 + |v|^2).

    The problem is not convex; the start is small and random, with values that read labels, of alternating sign from head to
    head: as their scores tend to 0, two heads of opposite sign tend to a linear layer with centred keys.

    Parameters
    ----------
    X : array of shape (n, l, d)
        Contexts.
    y : array of shape (n, l)
    query : array of shape (n, d)
    target : array of shape (n,)
        Labels of the queries.
    heads : int, default 1
    decay : float
    seed : int
        Of the start.
    max_steps : int
    tol : float
        Largest entry of the gradient at the end.
    throw : bool
        Raise `ConvergenceError` where that is not reached, else say so in `status`.

    Examples
    --------
    >>> import numpy as np
    >>> from attlas import context
    >>> rng = np.random.default_rng(0)
    >>> w, query = rng.standard_normal((100, 2)), rng.standard_normal((100, 2)) / np.sqrt(2)
    >>> X, y = context.draw_contexts(w, length=6, noise=0.1, seed=1)
    >>> fit = context.fit_softmax(X, y, query, np.sum(query * w, axis=1), max_steps=20, throw=False)
    >>> bool(fit.training < np.mean(np.sum(query * w, axis=1) ** 2))  # better than predicting zero
    True

    References
    ----------
    he2025incontext: trained heads come in opposite signs, and together are a linear layer whose keys are centred.
    """  # fmt: skip
    from scipy.optimize import minimize

    Z, queries = _tokens(X, y, query)
    n, _, size = Z.shape
    target = array(target, "target", ("n",), (n,))
    heads, max_steps = integer(heads, "heads"), integer(max_steps, "max_steps")
    decay, tol = real(decay, "decay", least=0), real(tol, "tol", above=0)
    d = size - 1
    rng = stream(seed, "start")
    sign = (-1.0) ** np.arange(heads)
    K = 0.1 * rng.standard_normal((heads, d, size)) / np.sqrt(d)
    K[:, :, :d] += 0.2 * sign[:, None, None] * np.eye(d)
    v = 0.1 * rng.standard_normal((heads, size)) / np.sqrt(d)
    v[:, -1] += sign
    history: list[float] = []

    def objective(flat: Array) -> tuple[float, Array]:
        K, v = flat[: heads * d * size].reshape(heads, d, size), flat[heads * d * size :].reshape(heads, size)
        value, dK, dv = loss_and_gradient(K, v, Z, queries, target)
        history.append(value)
        return value + decay * float(flat @ flat), np.concatenate([dK.ravel(), dv.ravel()]) + 2 * decay * flat

    start = np.concatenate([K.ravel(), v.ravel()])
    options = {"maxiter": max_steps, "gtol": tol, "ftol": 0.0, "maxcor": 30, "maxfun": 4 * max_steps}
    run = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    K, v = run.x[: heads * d * size].reshape(heads, d, size), run.x[heads * d * size :].reshape(heads, size)
    residual = float(np.abs(run.jac).max())
    training = float(np.mean((target - _forward(K, v, Z, queries)[0]) ** 2))
    status = Status.CONVERGED if residual <= tol else Status.OUT_OF_STEPS
    found = SoftmaxFit(SoftmaxLayer(K, v), status, residual, int(run.nit), np.array(history), training=training)
    return found.or_raise("training of the softmax layer") if throw else found


def loss_and_gradient(K: Array, v: Array, Z: Array, queries: Array, target: Array) -> tuple[float, Array, Array]:
    """Return the mean squared error of a layer on tokens Z (n, l, d + 1) and its gradients by K and v."""
    out, weights, values, read = _forward(K, v, Z, queries)
    off = 2 * (out - target) / len(target)
    dv = np.einsum("n,nhs->hs", off, weights @ Z)
    moved = weights * (values - read[:, :, None])  # derivative of the output by the scores
    dK = np.einsum("nd,nhs->hds", off[:, None] * queries, moved @ Z, optimize=True)
    return float(np.mean((out - target) ** 2)), dK, dv


def _tokens(X: ArrayLike, y: ArrayLike, query: ArrayLike) -> tuple[Array, Array]:
    """Return tokens [sqrt(d) x ; y] and queries sqrt(d) x, entries of order one."""
    X = array(X, "X", ("n", "l", "d"))
    n, length, d = X.shape
    y = array(y, "y", ("n", "l"), (n, length))
    query = array(query, "query", ("n", "d"), (n, d))
    return np.concatenate([np.sqrt(d) * X, y[:, :, None]], axis=2), np.sqrt(d) * query


def _forward(K: Array, v: Array, Z: Array, queries: Array) -> tuple[Array, Array, Array, Array]:
    """Return outputs (n,), attention (n, heads, l), values (n, heads, l) and what each head reads (n, heads)."""
    keys = np.einsum("nd,hds->nhs", queries, K, optimize=True)
    scores = keys @ Z.transpose(0, 2, 1)
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    weights /= weights.sum(axis=2, keepdims=True)
    values = v @ Z.transpose(0, 2, 1)
    read = np.sum(weights * values, axis=2)
    return read.sum(axis=1), weights, values, read
