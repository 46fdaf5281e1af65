"""Random features as scikit-learn transformers: of frozen heads, and of frozen neurons on the same tokens."""

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from attlas.errors import InputError
from attlas.features.base import OnSequences, query_of, seed_of
from attlas.features.head_features import features_of
from attlas.features.heads import mlp_neurons
from attlas.features.sets import Sets
from attlas.features.threads import threads
from attlas.features.token_maps import draw_heads
from attlas.inputs import integer
from attlas.layers import random_feature_mlp

Array = NDArray[Any]


class RandomAttentionFeatures(TransformerMixin, OnSequences):
    """Features of random-feature attention with frozen random heads.

    phi_m(X) = (1/N) sum_i act(xt_0^T W_m xt_i) xt_i / sqrt(M),  W_m = W_0 + N(0, 1/4), xt = [x; 1],

    one block of d + 1 numbers per head (more with position codes or two layers); inner products of features tend to
    `attention_kernel` as M grows. X is an array (n, 1 + keys, d), token 0 the query, missing keys rows of NaN; or a list of
    arrays (k_i, d), one to a set, of any sizes; or `Sets`; or rows of numbers (see `token_dim`).

    Parameters
    ----------
    n_heads : int, default 1000
    bias : float or array, default 0
        W_0: a strength b for b [[I, 0], [0, 0]], or a matrix (d, d) or (d + 1, d + 1).
    activation : {"relu", "exp", "sigmoid", "erf", "tanh", "relu2", "softmax"} or function
        What turns scores into weights. A function takes an array of scores and returns one weight for each. Sigmoid
        learns key
        averages and correlations from fewer samples than relu, squares of the query from more (`docs/features.md`).
    positions : float, default 0
        gamma^2, the squared length of one-hot position codes on the keys: with them the order of the keys can be learned.
    depth : {1, 2}
        2 puts a first random layer before the heads, whose outputs are their tokens: functions of two keys can then be
        learned.
    query : {"first", "mean", None}, default "first"
        Which token asks: the first, the others being its keys; the mean token, all tokens being keys; or, for None, every
        token in turn, all tokens being keys, and the features are averaged over them:
        phi_m(X) = (1/k) sum_q (1/k) sum_i act(xt_q^T W_m xt_i) xt_i / sqrt(M). The last two are for sets without order; None
        costs k times as much. Position codes and a first layer are those of (x_q; x_1..x_k), for every query q.
    token_dim : int, optional
        For 2-D X: rows are tokens of this many numbers, end to end, the first the query. If not given a row is one token,
        both the query and the only key.
    random_state : int, RandomState or None
    dtype : {"float32", "float64"}, optional
        That of X if not given: float32 features for float32 tokens, else float64.
    n_jobs : int, optional
        Threads that make features; None is one, -1 one for every core. The numbers are the same for any.

    Attributes
    ----------
    heads_ : array of shape (n_heads, d + 1, d + 1)

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(5, 4, 3))  # five sequences: a query and three keys in three dimensions
    >>> RandomAttentionFeatures(n_heads=10, random_state=0).fit_transform(X).shape
    (5, 40)
    >>> sets = [X[0], X[1, :2], X[2, :1]]  # sets of four tokens, two and one
    >>> RandomAttentionFeatures(n_heads=10, query=None, random_state=0).fit_transform(sets).shape
    (3, 40)
    """

    def __init__(
        self,
        n_heads: int = 1000,
        *,
        bias: float | ArrayLike = 0.0,
        activation: Any = "relu",
        positions: float = 0.0,
        depth: int = 1,
        query: Literal["first", "mean"] | None = "first",
        token_dim: int | None = None,
        random_state: Any = None,
        dtype: Literal["float32", "float64"] | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_heads = n_heads
        self.bias = bias
        self.activation = activation
        self.positions = positions
        self.depth = depth
        self.query = query
        self.token_dim = token_dim
        self.random_state = random_state
        self.dtype = dtype
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"] if self.dtype is None else [self.dtype]
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Draw the heads for tokens of the dimension of X."""
        checked = self._sequences(X, reset=True)
        if self.dtype is not None and not (isinstance(self.dtype, str) and self.dtype in ("float32", "float64")):
            raise InputError(f"dtype must be 'float32', 'float64', or None for that of X; got {self.dtype!r}")
        threads(self.n_jobs)
        options = (self.bias, self.activation, self.random_state, self.positions, self.depth, query_of(self))
        self.heads_, self._prepare = draw_heads(self.n_heads, checked, *options)
        self._n_features_out = self.heads_.shape[0] * self.heads_.shape[1]
        return self

    def transform(self, X: Any) -> Array:
        """Return the features (n, n_heads (d + 1))."""
        check_is_fitted(self)
        checked = self._sequences(X, reset=False)
        dtype = np.dtype(checked.dtype if self.dtype is None else self.dtype)
        return features_of(checked, self.heads_, self.activation, dtype, self._prepare, self.n_jobs)

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
        checked = _even(self._sequences(X, reset=True))
        d = checked.shape[2]
        count = integer(self.n_heads, "n_heads") * (d + 1) if self.n_neurons is None else self.n_neurons
        self._tokens = checked.shape[1]
        self.neurons_ = mlp_neurons(count, checked.shape[1], d, seed_of(self.random_state))
        self._n_features_out = len(self.neurons_)
        return self

    def transform(self, X: Any) -> Array:
        """Return the features (n, n_neurons)."""
        check_is_fitted(self)
        checked = _even(self._sequences(X, reset=False))
        if np.isnan(checked).any():
            raise InputError("X has missing tokens (NaN); an MLP on concatenated tokens needs all of them")
        if checked.shape[1] != self._tokens:
            raise InputError(f"X has {checked.shape[1]} tokens to a sequence, the network was made for {self._tokens}")
        return np.asarray(random_feature_mlp(checked, self.neurons_) / np.sqrt(len(self.neurons_)))

    def get_feature_names_out(self, input_features: Any = None) -> Array:  # noqa: ARG002
        """Return neuron0, neuron1, ..."""
        check_is_fitted(self)
        return np.array([f"neuron{m}" for m in range(len(self.neurons_))], dtype=object)


def _even(X: Array | Sets) -> Array:
    if isinstance(X, Sets):
        raise InputError(
            f"X has sets of {X.lengths.min()} to {X.lengths.max()} tokens; an MLP on concatenated tokens needs equal sizes"
        )
    return X
