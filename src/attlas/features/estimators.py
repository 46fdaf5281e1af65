"""Random-feature attention as scikit-learn estimators."""

import warnings
from collections.abc import Iterable, Iterator
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from attlas.errors import InputError
from attlas.features.group_ball import GroupBall, Minimum, huber, minimise
from attlas.features.heads import attention_heads, mlp_neurons
from attlas.features.kernels import attention_kernel
from attlas.features.ridge import (
    GRID,
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
from attlas.features.sequences import bias_matrix, sequences
from attlas.inputs import integer, real
from attlas.layers import random_feature_attention, random_feature_mlp
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


class _OnSequences(BaseEstimator):
    """What the estimators share: checking X, 3-D or 2-D, and the frozen heads."""

    token_dim: int | None
    token_dim_: int

    def _sequences(self, X: Any, reset: bool) -> Array:
        """Return X as (n, 1 + keys, d). A 2-D row is one token, query and only key, or `token_dim`-long tokens."""
        given = X if hasattr(X, "columns") else np.asarray(X) if not hasattr(X, "shape") else X
        if getattr(given, "ndim", 2) == 3:
            checked = sequences(given, d=None if reset else self.token_dim_)
            if reset:
                self.n_features_in_ = checked.shape[2]
        else:
            finite = "allow-nan" if self.token_dim is not None else True
            flat = validate_data(self, X, reset=reset, dtype=np.float64, ensure_all_finite=finite)
            d = flat.shape[1] if self.token_dim is None else self.token_dim
            if flat.shape[1] % d:
                raise InputError(f"X has rows of {flat.shape[1]} numbers, which token_dim = {d} does not divide")
            shaped = flat.reshape(len(flat), -1, d)
            checked = sequences(np.repeat(shaped, 2, axis=1) if self.token_dim is None else shaped)
        if reset:
            self.token_dim_ = checked.shape[2]
        return np.asarray(checked)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.two_d_array = True
        tags.input_tags.allow_nan = self.token_dim is not None
        return tags


class RandomAttentionFeatures(TransformerMixin, _OnSequences):
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
        self.heads_ = _draw(self.n_heads, checked.shape[2], self.bias, self.random_state)
        self._n_features_out = self.heads_.shape[0] * self.heads_.shape[1]
        return self

    def transform(self, X: Any) -> Array:
        """Return the features (n, n_heads (d + 1))."""
        check_is_fitted(self)
        checked = self._sequences(X, reset=False)
        found = _features(checked, self.heads_, self.activation, np.dtype(self.dtype))
        return np.asarray(found / found.dtype.type(np.sqrt(len(self.heads_))))

    def get_feature_names_out(self, input_features: Any = None) -> Array:  # noqa: ARG002
        """Return head0_value0, head0_value1, ..."""
        check_is_fitted(self)
        M, D = self.heads_.shape[:2]
        return np.array([f"head{m}_value{k}" for m in range(M) for k in range(D)], dtype=object)


class RandomMLPFeatures(TransformerMixin, _OnSequences):
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
        count = self.n_heads * (d + 1) if self.n_neurons is None else self.n_neurons
        self.neurons_ = mlp_neurons(count, checked.shape[1], d, _seed(self.random_state))
        self._n_features_out = len(self.neurons_)
        return self

    def transform(self, X: Any) -> Array:
        """Return the features (n, n_neurons)."""
        check_is_fitted(self)
        checked = self._sequences(X, reset=False)
        if np.isnan(checked).any():
            raise InputError("X has missing tokens (NaN); an MLP on concatenated tokens needs all of them")
        return np.asarray(random_feature_mlp(checked, self.neurons_) / np.sqrt(len(self.neurons_)))

    def get_feature_names_out(self, input_features: Any = None) -> Array:  # noqa: ARG002
        """Return neuron0, neuron1, ..."""
        check_is_fitted(self)
        return np.array([f"neuron{m}" for m in range(len(self.neurons_))], dtype=object)


class RandomAttentionRegressor(RegressorMixin, _OnSequences):
    """Ridge regression on random-feature attention: frozen query-key matrices, trained values.

    min_v sum_n (y_n - sum_m <v_m, phi_m(X_n)>)^2 + lam ||v||^2,   lam = alpha tr(K)/n,

    with K the Gram matrix of the features. The constant is among the features, so there is no intercept.

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
        solver: Literal["auto", "dual", "primal", "cg"] = "auto",
        token_dim: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_heads = n_heads
        self.bias = bias
        self.activation = activation
        self.alpha = alpha
        self.alphas = alphas
        self.solver = solver
        self.token_dim = token_dim
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the values of the heads."""
        checked = self._sequences(X, reset=True)
        if y is None:
            raise InputError("RandomAttentionRegressor requires y to be passed, but the target y is None")
        Y = _targets(y, len(checked))
        self._single = Y.ndim == 1
        Y = Y.reshape(len(Y), -1)
        if len(checked) < 2:
            raise InputError("X has 1 sample; a fit needs at least two")
        self._freeze(checked)
        alphas = _penalties(self.alpha, self.alphas)
        self.solver_, self.n_iter_ = self._solver(len(checked)), 0
        {"dual": self._fit_dual, "primal": self._fit_primal, "cg": self._fit_cg}[self.solver_](checked, Y, alphas)
        return self

    def _solver(self, n: int) -> str:
        if self.solver not in SOLVERS:
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
        scale = float(np.trace(K)) / len(X)
        if len(alphas) > 1:
            path = dual_path(K, Y, alphas * scale)
            self.loo_errors_, alphas = path.errors, alphas[[path.best]]
        self.alpha_ = float(alphas[0])
        dual = solve(factor(K, self.alpha_ * scale), Y)
        if self.n_heads == "infinite":
            self.dual_coef_ = dual
        else:
            self.coef_ = np.concatenate([block.T @ dual for block in self._blocks(X)])

    def _fit_primal(self, X: Array, Y: Array, alphas: Array) -> None:
        def rows() -> Iterator[tuple[Array, Array]]:
            for start in range(0, len(X), _ROWS):
                part = slice(start, start + _ROWS)
                yield np.concatenate(list(self._blocks(X[part])), axis=1), Y[part]

        p = self.heads_.shape[0] * self.heads_.shape[1]
        G, B = np.zeros((p, p)), np.zeros((p, Y.shape[1]))
        for Phi, part in rows():
            G += Phi.T @ Phi
            B += Phi.T @ part
        scale = float(np.trace(G)) / len(X)
        if len(alphas) > 1:
            path = primal_path(G, B, rows, alphas * scale)
            self.loo_errors_, alphas = path.errors, alphas[[path.best]]
        self.alpha_ = float(alphas[0])
        self.coef_ = solve(factor(G, self.alpha_ * scale), B)

    def _fit_cg(self, X: Array, Y: Array, alphas: Array) -> None:
        if len(alphas) > 1:
            test, train = np.split(stream(0, "held out").permutation(len(X)), [max(len(X) // 10, 1)])
            columns = _Columns(self, X[train])
            self.loo_errors_ = np.array(
                [
                    np.mean((self._apply(X[test], columns.solve(Y[train], alpha)[0]) - Y[test]) ** 2, 0)
                    for alpha in alphas
                ]
            )
            alphas = alphas[[Path(alphas, self.loo_errors_).best]]
        self.alpha_ = float(alphas[0])
        self.coef_, self.n_iter_ = _Columns(self, X).solve(Y, self.alpha_)

    def predict(self, X: Any) -> Array:
        """Return the predictions (n,) or (n, targets)."""
        check_is_fitted(self)
        checked = self._sequences(X, reset=False)
        if self.n_heads == "infinite":
            found = attention_kernel(checked, self.X_fit_, bias=self.bias, activation=self.activation) @ self.dual_coef_
        else:
            found = self._apply(checked, self.coef_)
        return np.asarray(found[:, 0] if self._single else found)

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
            self.X_fit_ = X
        else:
            self.heads_ = _draw(self.n_heads, X.shape[2], self.bias, self.random_state)

    def _apply(self, X: Array, coefficients: Array) -> Array:
        """Return Phi coefficients."""
        found, start = np.zeros((len(X), coefficients.shape[1])), 0
        for block in self._blocks(X):
            found += block @ coefficients[start : start + block.shape[1]]
            start += block.shape[1]
        return found

    def _gram(self, X: Array, X2: Array | None) -> Array:
        if self.n_heads == "infinite":
            return attention_kernel(X, X2, bias=self.bias, activation=self.activation)
        if X2 is None:
            K = np.zeros((len(X), len(X)))
            for block in self._blocks(X):
                K += block @ block.T
            return K
        K = np.zeros((len(X), len(X2)))
        for left, right in zip(self._blocks(X), self._blocks(X2), strict=True):
            K += left @ right.T
        return K

    def _blocks(self, X: Array) -> Any:
        """Yield the features of `_HEADS` heads at a time, (n, heads (d + 1)), in float32."""
        root = np.float32(np.sqrt(len(self.heads_)))
        for start in range(0, len(self.heads_), _HEADS):
            yield _features(X, self.heads_[start : start + _HEADS], self.activation, np.dtype("float32")) / root


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
        self.nystrom, self.scale = Nystrom.of(columns, chosen), trace / len(X)

    def blocks(self) -> Iterable[Array]:
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


class ConstrainedAttentionRegressor(RegressorMixin, _OnSequences):
    """The estimator the theory is about: empirical risk over values of bounded norm, with a Lipschitz loss.

    min_v (1/n) sum_n loss(y_n - sum_m <v_m, phi_m(X_n)>)   over   sum_m |v_m| <= radius,  sum_m |v_m|^2 <= energy/M,

    phi_m as in `RandomAttentionFeatures` but without the factor 1/sqrt(M). The loss is Huber's, |r| - delta/2 beyond delta
    and r^2/(2 delta) within it: 1-Lipschitz, and within delta/2 of |r|. The first bound is a norm over groups: it switches
    whole heads off.

    Parameters
    ----------
    n_heads, bias, activation, token_dim, random_state
        As for `RandomAttentionFeatures`.
    radius : float, optional
        In units of y. If not given, the best of eight on a fifth of the samples, held out: from a sixteenth to eight times
        the norm of the ridge fit on the same heads.
    energy : float, optional
        No second bound if not given. Energies above M radius^2 do not bind.
    delta : float, default 0.01
        Relative to the standard deviation of y.
    tolerance : float, default 1e-4
        On the certified gap of the empirical risk, relative to the standard deviation of y.
    max_iter : int, default 5000

    Attributes
    ----------
    radius_ : float
    coef_ : array of shape (n_heads, d + 1)
        The values v_m.
    kept_heads_ : array of int
        Heads whose values are not zero, the largest norm first.
    risk_, gap_ : float
        The empirical risk, and a bound on how far it is above the smallest possible.
    n_iter_ : int

    Notes
    -----
    Holds the n x M (d + 1) features in float32, and one more copy of them.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 5, 3))
    >>> y = X[:, 1:, 0].mean(1)
    >>> model = ConstrainedAttentionRegressor(n_heads=60, random_state=0).fit(X[:150], y[:150])
    >>> bool(model.score(X[150:], y[150:]) > 0.9), bool(len(model.kept_heads_) < 60)
    (True, True)

    References
    ----------
    fu2023random, theorem 2.
    """

    def __init__(
        self,
        n_heads: int = 1000,
        *,
        bias: float | ArrayLike = 0.0,
        activation: str = "relu",
        radius: float | None = None,
        energy: float | None = None,
        delta: float = 0.01,
        tolerance: float = 1e-4,
        max_iter: int = 5000,
        token_dim: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_heads = n_heads
        self.bias = bias
        self.activation = activation
        self.radius = radius
        self.energy = energy
        self.delta = delta
        self.tolerance = tolerance
        self.max_iter = max_iter
        self.token_dim = token_dim
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the values of the heads."""
        checked = self._sequences(X, reset=True)
        if y is None:
            raise InputError("ConstrainedAttentionRegressor requires y to be passed, but the target y is None")
        target = _targets(y, len(checked))
        if target.ndim == 2 and target.shape[1] == 1:
            target = column_or_1d(target, warn=True)
        if target.ndim != 1:
            raise InputError(f"y must have shape (n,): one target; got {target.shape}")
        if len(checked) < 2:
            raise InputError("X has 1 sample; a fit needs at least two")
        radius = None if self.radius is None else real(self.radius, "radius", above=0)
        real(self.delta, "delta", above=0)
        real(self.tolerance, "tolerance", above=0)
        integer(self.max_iter, "max_iter")
        energy = np.inf if self.energy is None else real(self.energy, "energy", above=0)
        self.heads_ = _draw(self.n_heads, checked.shape[2], self.bias, self.random_state)
        F = _features(checked, self.heads_, self.activation, np.dtype("float32"))
        if radius is None:
            radius = self._choose(F, target, energy)
        found = self._minimise(F, target, radius, energy)
        self.radius_, self.coef_, self.risk_, self.gap_, self.n_iter_ = float(radius), *found
        norms = np.linalg.norm(self.coef_, axis=1)
        order = np.argsort(-norms, kind="stable")
        self.kept_heads_ = order[norms[order] > 0]
        goal = self.tolerance * (float(target.std()) or 1.0)
        if self.gap_ > goal:
            warnings.warn(
                f"after {self.n_iter_} steps the risk {self.risk_:.3g} is known to be within {self.gap_:.1e} of the"
                f" smallest, not {goal:.1e}; raise max_iter or tolerance",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def predict(self, X: Any) -> Array:
        """Return the predictions (n,)."""
        check_is_fitted(self)
        checked = self._sequences(X, reset=False)
        return np.asarray(_features(checked, self.heads_, self.activation, np.dtype("float64")) @ self.coef_.ravel())

    def _choose(self, F: Array, y: Array, energy: float) -> float:
        """Return the radius with the smallest risk on held-out samples."""
        test, train = np.split(stream(0, "held out").permutation(len(y)), [max(len(y) // 5, 1)])
        K = np.asarray(F[train] @ F[train].T, dtype=float)
        path = dual_path(K, y[train, None], np.array(GRID) * max(float(np.trace(K)) / len(train), np.finfo(float).tiny))
        ridge = F[train].T @ solve(factor(K, path.penalties[path.best]), y[train, None])
        size = float(np.linalg.norm(ridge.reshape(self.heads_.shape[:2]), axis=1).sum()) or 1.0
        radii = size * 2.0 ** np.arange(-4, 4)
        found = [self._minimise(F[train], y[train], radius, energy).V for radius in radii]
        risks = [float(huber(y[test] - F[test] @ V.ravel(), self._width(y)).mean()) for V in found]
        return float(radii[int(np.argmin(risks))])

    def _minimise(self, F: Array, y: Array, radius: float, energy: float) -> Minimum:
        heads = len(self.heads_)
        goal = self.tolerance * (float(y.std()) or 1.0)
        return minimise(F, y, GroupBall(radius, energy / heads), heads, self._width(y), goal, self.max_iter)

    def _width(self, y: Array) -> float:
        return self.delta * (float(y.std()) or 1.0)


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

    fresh = clone(model)
    checked = fresh._sequences(X, reset=True)
    test = fresh._sequences(X_test, reset=False)
    targets, expected = (_targets(y, len(x)).reshape(len(x), -1) for y, x in ((Y, checked), (Y_test, test)))
    fresh._freeze(checked)
    K = fresh._gram(checked, None)
    n = len(checked)
    steps = np.array([*(2**k for k in range(4, 40) if 2**k < n), n] if sizes is None else sizes, dtype=np.intp)
    if steps.ndim != 1 or not len(steps) or np.any(np.diff(steps) <= 0) or steps[0] < 2 or steps[-1] > n:
        raise InputError(f"sizes must increase from at least 2 to at most n = {n}; got {steps.tolist()}")
    relative = _penalties("loo", model.alphas if alphas is None else alphas)
    return nested_curve(K, targets, fresh._gram(test, checked), expected, steps, relative * float(np.trace(K)) / n)


def _draw(n_heads: Any, d: int, bias: Any, random_state: Any) -> Array:
    if isinstance(n_heads, bool) or not isinstance(n_heads, int | np.integer) or n_heads < 1:
        raise InputError(f"n_heads must be a positive integer; got {n_heads!r}")
    return attention_heads(int(n_heads), d, _seed(random_state)) + bias_matrix(bias, d)


def _seed(random_state: Any) -> np.random.Generator:
    return np.random.default_rng(check_random_state(random_state).randint(0, 2**31 - 1, size=4))


def _features(X: Array, heads: Array, activation: str, dtype: np.dtype[Any]) -> Array:
    missing = np.isnan(X[:, 1:, 0])
    tokens = np.nan_to_num(X.astype(dtype)) if missing.any() else X.astype(dtype)
    found = random_feature_attention(tokens, heads.astype(dtype), activation, ~missing if missing.any() else None)
    return found.reshape(len(X), -1)


def _targets(y: Any, n: int) -> Array:
    try:
        checked = np.asarray(y, dtype=float)
    except (TypeError, ValueError) as error:
        raise InputError("y must be numbers of shape (n,) or (n, targets)") from error
    if checked.ndim not in (1, 2) or len(checked) != n:
        raise InputError(f"y must have shape (n,) or (n, targets) with n = {n}; got {checked.shape}")
    if not np.isfinite(checked).all():
        raise InputError("y has entries that are not finite (NaN or infinite)")
    return checked


def _penalties(alpha: Any, alphas: Any) -> Array:
    if isinstance(alpha, str):
        if alpha != "loo":
            raise InputError(f"alpha must be a positive number or 'loo'; got {alpha!r}")
        grid = np.atleast_1d(np.asarray(GRID if alphas is None else alphas, dtype=float))
    else:
        grid = np.atleast_1d(np.asarray(alpha, dtype=float))
    if grid.ndim != 1 or not len(grid) or not np.all(np.isfinite(grid) & (grid > 0)):
        raise InputError(f"alpha must be positive and finite; got {alpha if not isinstance(alpha, str) else alphas!r}")
    return grid
