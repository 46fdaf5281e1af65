"""Random-feature attention as scikit-learn estimators."""

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from attlas.errors import InputError
from attlas.features.heads import attention_heads, mlp_neurons
from attlas.features.kernels import attention_kernel
from attlas.features.ridge import GRID, Curve, dual_path, factor, nested_curve, solve
from attlas.features.sequences import bias_matrix, sequences
from attlas.layers import random_feature_attention, random_feature_mlp

Array = NDArray[Any]

_HEADS = 128  # used at a time: beside its Gram matrix a fit holds n x 128 (d + 1) float32 numbers


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

    Attributes
    ----------
    alpha_ : float
        The relative penalty used.
    loo_errors_ : array of shape (alphas, targets)
        Mean squared leave-one-out errors, if alpha is "loo".
    heads_, coef_ : arrays
        Heads and their values (n_heads (d + 1), targets); for infinitely many heads `X_fit_` and `dual_coef_`.

    Notes
    -----
    Memory: 2 n^2 numbers for the Gram matrix and its factor;
    features are made and used in blocks of 128 heads, in float32, and summed in float64. Penalties below the rounding of
    that are left out of the path.

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
        token_dim: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_heads = n_heads
        self.bias = bias
        self.activation = activation
        self.alpha = alpha
        self.alphas = alphas
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
        K = self._start(checked)
        scale = float(np.trace(K)) / len(checked)
        alphas = _penalties(self.alpha, self.alphas)
        if len(alphas) > 1:
            path = dual_path(K, Y, alphas * scale)
            self.loo_errors_ = path.errors
            self.alpha_ = float(alphas[path.best])
        else:
            self.alpha_ = float(alphas[0])
        dual = solve(factor(K, self.alpha_ * scale), Y)
        if self.n_heads == "infinite":
            self.dual_coef_ = dual
        else:
            self.coef_ = np.concatenate([block.T @ dual for block in self._blocks(checked)])
        return self

    def predict(self, X: Any) -> Array:
        """Return the predictions (n,) or (n, targets)."""
        check_is_fitted(self)
        checked = self._sequences(X, reset=False)
        if self.n_heads == "infinite":
            found = attention_kernel(checked, self.X_fit_, bias=self.bias, activation=self.activation) @ self.dual_coef_
        else:
            found, start = np.zeros((len(checked), self.coef_.shape[1])), 0
            for block in self._blocks(checked):
                found += block @ self.coef_[start : start + block.shape[1]]
                start += block.shape[1]
        return np.asarray(found[:, 0] if self._single else found)

    def kernel(self, X: Any, X2: Any = None) -> Array:
        """Return the Gram matrix of the fitted features between sequences, float64 sums of float32 products."""
        check_is_fitted(self)
        first = self._sequences(X, reset=False)
        second = None if X2 is None else self._sequences(X2, reset=False)
        return self._gram(first, second)

    def _start(self, X: Array) -> Array:
        """Draw the heads, or keep the sequences, and return the Gram matrix."""
        if isinstance(self.n_heads, str):
            if self.n_heads != "infinite":
                raise InputError(f"n_heads must be a positive integer or 'infinite'; got {self.n_heads!r}")
            self.X_fit_ = X
        else:
            self.heads_ = _draw(self.n_heads, X.shape[2], self.bias, self.random_state)
        return self._gram(X, None)

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
    K = fresh._start(checked)
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
