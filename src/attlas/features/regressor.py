"""Random-feature attention as scikit-learn estimators."""

import warnings
from collections.abc import Iterable, Iterator
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from attlas.errors import InputError
from attlas.features.base import (
    OnSequences,
    draw_heads,
    finite,
    make_features,
    penalties_of,
    regression_targets,
    seed_of,
)
from attlas.features.heads import mlp_neurons
from attlas.features.kernels import attention_kernel
from attlas.features.ridge import (
    Curve,
    Nystrom,
    Path,
    conjugate_gradients,
    dual_path,
    factor,
    nested_curve,
    primal_path,
    solve,
)
from attlas.inputs import integer
from attlas.layers import random_feature_mlp
from attlas.numerics import stream

Array = NDArray[Any]

_HEADS = 128  # used at a time: beside its Gram matrix a fit holds n x 128 (d + 1) float32 numbers
_ROWS = 2048  # used at a time in the primal, with all heads
_DIRECT = 20_000  # the largest Gram matrix, n or p, that is factorised unless a direct solver is asked for
_HELD = 1 << 30  # bytes of features that conjugate gradients keep rather than make again in every step
_RANK = 300  # of the preconditioner
_STEPS = 1000
_TOLERANCE = 1e-6

SOLVERS = ("auto", "dual", "primal", "cg")


class RandomAttentionFeatures(TransformerMixin, OnSequences):
    """Features of random-feature attention with frozen random heads.

    phi_m(X) = (1/N) sum_i act(xt_0^T W_m xt_i) xt_i / sqrt(M),  W_m = W_0 + N(0, 1/4), xt = [x; 1],

    one block of d + 1 numbers per head; inner products of features tend to `attention_kernel` as M grows.

    Parameters
    ----------
    n_heads : int, default 1000
    bias : float or array, default 0
        W_0: a strength b for b [[I, 0], [0, 0]], or a matrix (d, d) or (d + 1, d + 1).
    activation : {"relu", "exp", "softmax"}
    token_dim : int, optional
        For 2-D X: rows are tokens of this many numbers, end to end, the first the query. If not given a row is one token,
        both the query and the only key.
    random_state : int, RandomState or None
    dtype : {"float32", "float64"}

    Attributes
    ----------
    heads_ : array of shape (n_heads, d + 1, d + 1)

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(5, 4, 3))  # five sequences: a query and three keys in three dimensions
    >>> RandomAttentionFeatures(n_heads=10, random_state=0).fit_transform(X).shape
    (5, 40)
    """

    def __init__(
        self,
        n_heads: int = 1000,
        *,
        bias: float | ArrayLike = 0.0,
        activation: str = "relu",
        token_dim: int | None = None,
        random_state: Any = None,
        dtype: str = "float64",
    ) -> None:
        self.n_heads = n_heads
        self.bias = bias
        self.activation = activation
        self.token_dim = token_dim
        self.random_state = random_state
        self.dtype = dtype

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Draw the heads for tokens of the dimension of X."""
        checked = self._sequences(X, reset=True)
        if not isinstance(self.dtype, str) or self.dtype not in ("float32", "float64"):
            raise InputError(f"dtype must be 'float32' or 'float64'; got {self.dtype!r}")
        self.heads_ = draw_heads(self.n_heads, checked.shape[2], self.bias, self.random_state)
        self._n_features_out = self.heads_.shape[0] * self.heads_.shape[1]
        return self

    def transform(self, X: Any) -> Array:
        """Return the features (n, n_heads (d + 1))."""
        check_is_fitted(self)
        checked = self._sequences(X, reset=False)
        found = make_features(checked, self.heads_, self.activation, np.dtype(self.dtype))
        return np.asarray(found / found.dtype.type(np.sqrt(len(self.heads_))))

    def get_feature_names_out(self, input_features: Any = None) -> Array:  # noqa: ARG002
        """Return head0_value0, head0_value1, ..."""
        check_is_fitted(self)
        M, D = self.heads_.shape[:2]
        return np.array([f"head{m}_value{k}" for m in range(M) for k in range(D)], dtype=object)


class RandomMLPFeatures(TransformerMixin, OnSequences):
    """Features relu(<w_m, [x_0; ..; x_N; 1]>)/sqrt(M) of a random two-layer network on the same tokens, in order.

    Parameters
    ----------
    n_neurons : int, optional
        If not given, as many as the trained numbers of `n_heads` heads of attention.
    n_heads : int, default 1000
    token_dim, random_state
        As for `RandomAttentionFeatures`.
    """

    def __init__(
        self,
        n_neurons: int | None = None,
        *,
        n_heads: int = 1000,
        token_dim: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_neurons = n_neurons
        self.n_heads = n_heads
        self.token_dim = token_dim
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Draw the neurons for sequences of the shape of X."""
        checked = self._sequences(X, reset=True)
        d = checked.shape[2]
        count = integer(self.n_heads, "n_heads") * (d + 1) if self.n_neurons is None else self.n_neurons
        self._tokens = checked.shape[1]
        self.neurons_ = mlp_neurons(count, checked.shape[1], d, seed_of(self.random_state))
        self._n_features_out = len(self.neurons_)
        return self

    def transform(self, X: Any) -> Array:
        """Return the features (n, n_neurons)."""
        check_is_fitted(self)
        checked = self._sequences(X, reset=False)
        if np.isnan(checked).any():
            raise InputError("X has missing tokens (NaN); an MLP on concatenated tokens needs all of them")
        if checked.shape[1] != self._tokens:
            raise InputError(f"X has {checked.shape[1]} tokens to a sequence, the network was made for {self._tokens}")
        return np.asarray(random_feature_mlp(checked, self.neurons_) / np.sqrt(len(self.neurons_)))

    def get_feature_names_out(self, input_features: Any = None) -> Array:  # noqa: ARG002
        """Return neuron0, neuron1, ..."""
        check_is_fitted(self)
        return np.array([f"neuron{m}" for m in range(len(self.neurons_))], dtype=object)


class RandomAttentionRegressor(RegressorMixin, OnSequences):
    """Ridge regression on random-feature attention: frozen query-key matrices, trained values.

    min_v sum_n (y_n - sum_m <v_m, phi_m(X_n)>)^2 + lam ||v||^2,   lam = alpha tr(K)/n,

    with K the Gram matrix of the features, and y less its mean unless `fit_intercept` is False.

    Parameters
    ----------
    n_heads : int or "infinite", default 1000
        "infinite" is the kernel limit (relu or exp), without the noise of finitely many heads.
    bias, activation, token_dim, random_state
        As for `RandomAttentionFeatures`.
    alpha : float or "loo", default "loo"
        Penalty relative to tr(K)/n, or the best of `alphas` by leave-one-out.
    alphas : array_like, optional
        Powers of ten from 1e-6 to 1e3 if not given.
    fit_intercept : bool, default True
        Learn y less its mean, and add the mean to predictions. The layer itself has no constant, though it comes close to
        one; without the intercept this is the paper's model.
    solver : {"auto", "dual", "primal", "cg"}
        With p = n_heads (d + 1): "dual" factorises the n x n Gram matrix, "primal" the p x p one, "cg" none: conjugate
        gradients to a relative residual of 1e-6, preconditioned by a Nystrom approximation of rank 300. "auto" takes the
        smaller matrix, and conjugate gradients where both exceed 20,000. Infinitely many heads are dual.

    Attributes
    ----------
    alpha_ : float
        The relative penalty used.
    loo_errors_ : array of shape (alphas, targets)
        Mean squared leave-one-out errors, if alpha is "loo". With conjugate gradients, which have none, the errors on a
        tenth of the samples, held out.
    intercept_ : float or array of shape (targets,)
    heads_, coef_ : arrays
        Heads and their values (n_heads (d + 1), targets); for infinitely many heads `X_fit_` and `dual_coef_`.
    solver_ : str
    n_iter_ : int
        Steps of conjugate gradients; 0 for the others.

    Notes
    -----
    Memory, in float64: 2 n^2 numbers and n^2 float32 ones for the dual, 2 p^2 for the primal, 300 n for conjugate gradients,
    plus at most 1 GB of features; features are made in blocks, in float32, and their products summed in float64. Penalties
    below the rounding of that are left out of the path.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 5, 3))
    >>> y = X[:, 1:, 0].mean(1)  # an average over the keys
    >>> bool(RandomAttentionRegressor(n_heads=100, random_state=0).fit(X[:150], y[:150]).score(X[150:], y[150:]) > 0.9)
    True

    References
    ----------
    fu2023random.
    """

    def __init__(
        self,
        n_heads: int | Literal["infinite"] = 1000,
        *,
        bias: float | ArrayLike = 0.0,
        activation: str = "relu",
        alpha: float | Literal["loo"] = "loo",
        alphas: ArrayLike | None = None,
        fit_intercept: bool = True,
        solver: Literal["auto", "dual", "primal", "cg"] = "auto",
        token_dim: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_heads = n_heads
        self.bias = bias
        self.activation = activation
        self.alpha = alpha
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.token_dim = token_dim
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    @np.errstate(over="ignore", invalid="ignore")  # what overflows is refused in a sentence
    def fit(self, X: Any, y: Any) -> Self:
        """Fit the values of the heads."""
        checked = self._sequences(X, reset=True)
        Y = regression_targets(y, len(checked), "RandomAttentionRegressor")
        single = Y.ndim == 1
        Y = Y.reshape(len(Y), -1)
        if len(checked) < 2:
            raise InputError("X has 1 sample; a fit needs at least two")
        for name in ("heads_", "coef_", "X_fit_", "dual_coef_", "loo_errors_"):  # of an earlier fit
            if hasattr(self, name):
                delattr(self, name)
        self._freeze(checked)
        alphas = penalties_of(self.alpha, self.alphas)
        mean = Y.mean(0) if self.fit_intercept else np.zeros(Y.shape[1])
        self.intercept_ = float(mean[0]) if single else mean
        self.solver_, self.n_iter_ = self._solver(len(checked)), 0
        {"dual": self._fit_dual, "primal": self._fit_primal, "cg": self._fit_cg}[self.solver_](checked, Y, alphas)
        return self

    def _solver(self, n: int) -> str:
        if not isinstance(self.solver, str) or self.solver not in SOLVERS:
            raise InputError(f"solver must be one of {', '.join(SOLVERS)}; got {self.solver!r}")
        if self.n_heads == "infinite":
            if self.solver not in ("auto", "dual"):
                raise InputError(f"infinitely many heads need solver 'dual' or 'auto'; got {self.solver!r}")
            return "dual"
        if self.solver != "auto":
            return self.solver
        p = self.heads_.shape[0] * self.heads_.shape[1]
        return "cg" if min(n, p) > _DIRECT else "primal" if p < n else "dual"

    def _fit_dual(self, X: Array, Y: Array, alphas: Array) -> None:
        K = self._gram(X, None)
        scale = _scale(K, len(X))
        if self.alpha == "loo":
            path = dual_path(K, Y, alphas * scale, self.fit_intercept)
            self.loo_errors_, alphas = path.errors, alphas[[path.best]]
        self.alpha_ = float(alphas[0])
        dual = solve(factor(K, self.alpha_ * scale), Y - self.intercept_)
        if self.n_heads == "infinite":
            self.dual_coef_ = dual
        else:
            self.coef_ = np.concatenate([block.T @ dual for block in self._blocks(X)])

    def _fit_primal(self, X: Array, Y: Array, alphas: Array) -> None:
        def rows() -> Iterator[tuple[Array, slice]]:
            for start in range(0, len(X), _ROWS):
                part = slice(start, start + _ROWS)
                yield np.concatenate(list(self._blocks(X[part])), axis=1), part

        p = self.heads_.shape[0] * self.heads_.shape[1]
        G, B = np.zeros((p, p)), np.zeros((p, Y.shape[1]))
        for Phi, part in rows():
            G += Phi.T @ Phi
            B += Phi.T @ (Y[part] - self.intercept_)
        scale = _scale(finite(G, "the features"), len(X))
        if self.alpha == "loo":
            path = primal_path(G, Y, rows, alphas * scale, self.fit_intercept)
            self.loo_errors_, alphas = path.errors, alphas[[path.best]]
        self.alpha_ = float(alphas[0])
        self.coef_ = solve(factor(G, self.alpha_ * scale), B)

    def _fit_cg(self, X: Array, Y: Array, alphas: Array) -> None:
        if self.alpha == "loo":
            test, train = np.split(stream(0, "held out").permutation(len(X)), [max(len(X) // 10, 1)])
            columns = _Columns(self, X[train])
            mean = Y[train].mean(0) if self.fit_intercept else 0.0

            def error(alpha: float) -> Array:
                values = columns.solve(Y[train] - mean, alpha)[0]
                return np.asarray(np.mean((self._apply(X[test], values) + mean - Y[test]) ** 2, axis=0))

            self.loo_errors_ = np.array([error(alpha) for alpha in alphas])
            alphas = alphas[[Path(alphas, self.loo_errors_).best]]
        self.alpha_ = float(alphas[0])
        self.coef_, self.n_iter_ = _Columns(self, X).solve(Y - self.intercept_, self.alpha_)

    @np.errstate(over="ignore", invalid="ignore")
    def predict(self, X: Any) -> Array:
        """Return the predictions (n,) or (n, targets)."""
        check_is_fitted(self)
        checked = self._sequences(X, reset=False)
        if hasattr(self, "X_fit_"):
            found = attention_kernel(checked, self.X_fit_, bias=self.bias, activation=self.activation) @ self.dual_coef_
        else:
            found = finite(self._apply(checked, self.coef_), "the features")
        return np.asarray(found[:, 0] if np.ndim(self.intercept_) == 0 else found) + self.intercept_

    def kernel(self, X: Any, X2: Any = None) -> Array:
        """Return the Gram matrix of the fitted features between sequences, float64 sums of float32 products."""
        check_is_fitted(self)
        first = self._sequences(X, reset=False)
        second = None if X2 is None else self._sequences(X2, reset=False)
        return self._gram(first, second)

    def _freeze(self, X: Array) -> None:
        """Draw the heads, or keep the sequences."""
        if isinstance(self.n_heads, str):
            if self.n_heads != "infinite":
                raise InputError(f"n_heads must be a positive integer or 'infinite'; got {self.n_heads!r}")
            self.X_fit_ = X.copy()
        else:
            self.heads_ = draw_heads(self.n_heads, X.shape[2], self.bias, self.random_state)

    def _apply(self, X: Array, coefficients: Array) -> Array:
        """Return Phi coefficients."""
        found, start = np.zeros((len(X), coefficients.shape[1])), 0
        for block in self._blocks(X):
            found += block @ coefficients[start : start + block.shape[1]]
            start += block.shape[1]
        return found

    def _gram(self, X: Array, X2: Array | None) -> Array:
        if hasattr(self, "X_fit_"):
            return attention_kernel(X, X2, bias=self.bias, activation=self.activation)
        if X2 is None:
            K = np.zeros((len(X), len(X)))
            for block in self._blocks(X):
                K += block @ block.T
        else:
            K = np.zeros((len(X), len(X2)))
            for left, right in zip(self._blocks(X), self._blocks(X2), strict=True):
                K += left @ right.T
        return finite(K, "the features")

    def _blocks(self, X: Array) -> Any:
        """Yield the features of `_HEADS` heads at a time, (n, heads (d + 1)), in float32."""
        root = np.float32(np.sqrt(len(self.heads_)))
        for start in range(0, len(self.heads_), _HEADS):
            yield make_features(X, self.heads_[start : start + _HEADS], self.activation, np.dtype("float32")) / root


class _Columns:
    """Products with the Gram matrix of features that are held in memory, or made again each time, and its preconditioner."""

    def __init__(self, model: RandomAttentionRegressor, X: Array) -> None:
        self.model, self.X = model, X
        width = model.heads_.shape[0] * model.heads_.shape[1]
        self.held = list(model._blocks(X)) if 4 * len(X) * width <= _HELD else None
        chosen = stream(0, "preconditioner").permutation(len(X))[:_RANK]
        columns, trace = np.zeros((len(X), len(chosen))), 0.0
        for block in self.blocks():
            columns += block @ block[chosen].T
            trace += float(np.einsum("ij,ij->", block, block, dtype=float))
        self.nystrom = Nystrom.of(finite(columns, "the features"), chosen)
        self.scale = trace / len(X)

    def blocks(self) -> Iterable[Array]:
        """Yield the features in blocks of heads."""
        return self.model._blocks(self.X) if self.held is None else self.held

    def product(self, V: Array) -> Array:
        """Return K V."""
        found = np.zeros((len(self.X), V.shape[1]))
        for block in self.blocks():
            found += block @ (block.T @ V)
        return found

    def solve(self, Y: Array, alpha: float) -> tuple[Array, int]:
        """Return the values of the heads and the number of steps."""
        found = conjugate_gradients(self.product, Y, alpha * self.scale, self.nystrom, _TOLERANCE, _STEPS)
        if found.residual > _TOLERANCE:
            warnings.warn(
                f"conjugate gradients stopped after {found.steps} steps at a relative residual of {found.residual:.1e};"
                f" a larger alpha than {alpha:.1e} needs fewer",
                ConvergenceWarning,
                stacklevel=4,
            )
        return np.concatenate([block.T @ found.coefficients for block in self.blocks()]), found.steps


@np.errstate(over="ignore", invalid="ignore")
def learning_curve(
    model: RandomAttentionRegressor,
    X: Any,
    Y: Any,
    X_test: Any,
    Y_test: Any,
    *,
    sizes: ArrayLike | None = None,
    alphas: ArrayLike | None = None,
) -> Curve:
    """Return test, leave-one-out and forecast errors for every sample size, target and penalty, from one factorisation each.

    Parameters
    ----------
    model : RandomAttentionRegressor
        Its settings are used; it is not fitted.
    X, Y, X_test, Y_test : arrays
        Y may hold several targets in columns.
    sizes : increasing integers, optional
        Powers of two from 16, and n itself.
    alphas : array_like, optional
        Relative to tr(K)/n of all samples; those of the model, or its default grid, if not given.

    Returns
    -------
    Curve
        ``curve.test[penalty, size, target]`` and so on; ``curve.chosen()`` is the test error at the penalty that
        leave-one-out chooses.
    """
    from sklearn.base import clone

    if not isinstance(model, RandomAttentionRegressor):
        raise InputError(f"model must be a RandomAttentionRegressor; got {type(model).__name__}")
    fresh = clone(model)
    checked = fresh._sequences(X, reset=True)
    test = fresh._sequences(X_test, reset=False)
    targets = regression_targets(Y, len(checked), "learning_curve").reshape(len(checked), -1)
    expected = regression_targets(Y_test, len(test), "learning_curve").reshape(len(test), -1)
    if targets.shape[1] != expected.shape[1]:
        raise InputError(f"Y has {targets.shape[1]} targets and Y_test has {expected.shape[1]}")
    fresh._freeze(checked)
    n = len(checked)
    steps = _sizes([*(2**k for k in range(4, 40) if 2**k < n), n] if sizes is None else sizes, n)
    relative = penalties_of("loo", alphas) if alphas is not None else penalties_of(model.alpha, model.alphas)
    K, cross = fresh._gram(checked, None), fresh._gram(test, checked)
    return nested_curve(K, targets, cross, expected, steps, relative * _scale(K, n), model.fit_intercept)


def _sizes(sizes: Any, n: int) -> NDArray[np.intp]:
    given = np.asarray(sizes)
    if given.ndim != 1 or not len(given) or given.dtype.kind not in "iuf" or np.any(given != np.round(given)):
        raise InputError(f"sizes must be increasing integers; got {sizes!r}")
    if np.any(np.diff(given) <= 0) or given[0] < 2 or given[-1] > n:
        raise InputError(f"sizes must increase from at least 2 to at most n = {n}; got {given.tolist()}")
    return given.astype(np.intp)


def _scale(K: Array, n: int) -> float:
    """Return tr(K)/n, in units of which penalties are given."""
    scale = float(np.trace(K)) / n
    if scale <= 0:
        raise InputError("all features are zero: no head is active on these tokens; take more heads")
    return scale
