"""Ridge regression on random-feature attention as a scikit-learn estimator."""

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.metaestimators import available_if

from attlas.errors import InputError
from attlas.features.base import regression_targets, whole_or_not_at_all
from attlas.features.checked_blocks import in_blocks, target_blocks
from attlas.features.ridge_model import OnFrozenHeads, can_stream, output_dtype
from attlas.features.weights import batch_weights, sample_weights

Array = NDArray[Any]


class RandomAttentionRegressor(RegressorMixin, OnFrozenHeads):
    """Ridge regression on random-feature attention: frozen query-key matrices, trained values.

    min_v sum_n w_n (y_n - sum_m <v_m, phi_m(X_n)>)^2 + lam ||v||^2,   lam = alpha sum_n w_n K_nn / sum_n w_n,

    with K the Gram matrix of the features, weights w of one unless they are given, and y minus its mean unless
    `fit_intercept` is False.

    Parameters
    ----------
    n_heads : int or "infinite", default 1000
        "infinite" is the kernel limit, without the noise of finitely many heads; not for softmax, nor for two layers.
    query : {"first", "mean"} or None, default "first"
        "first": token 0 asks, the others are keys. None: every token asks in turn, and the features are averaged. "mean":
        the mean token asks, and all tokens are keys.
    bias, activation, positions, depth, token_dim, random_state, n_jobs
        As for `RandomAttentionFeatures`.
    alpha : float or "loo", default "loo"
        Penalty relative to tr(K)/n (weighted), or the best of `alphas` by leave-one-out.
    alphas : array_like, optional
        Powers of ten from 1e-6 to 1e3 if not given.
    fit_intercept : bool, default True
        Learn y minus its mean, and add the mean to predictions. The layer has no constant of its own, though it comes close
        to one; without the intercept this is the paper's model.
    solver : {"auto", "dual", "primal", "cg"}
        With p = n_heads (d + 1): "dual" factorises the n x n Gram matrix, "primal" the p x p one, "cg" none: conjugate
        gradients to a relative residual of 1e-6, preconditioned by a Nystrom approximation of rank 300. "auto" takes the
        smaller matrix, and conjugate gradients where both exceed 20,000. Infinitely many heads are dual.

    Attributes
    ----------
    alpha_ : float
        The relative penalty used.
    loo_errors_ : array of shape (alphas, targets)
        Mean squared leave-one-out errors, if alpha is "loo". Conjugate gradients give none; these are then the errors on a
        held-out tenth of the samples.
    intercept_ : float or array of shape (targets,)
    heads_, coef_ : arrays
        Heads and their values (n_heads (d + 1), targets); for infinitely many heads `X_fit_` and `dual_coef_`.
    solver_ : str
    n_iter_ : int
        Steps of conjugate gradients; 0 for the others.
    status_ : Status
        "converged" unless conjugate gradients stopped early, which is also a `ConvergenceWarning`.

    Notes
    -----
    Memory, in float64: 3 n^2 numbers for the dual (one more n^2 with weights), 4 p^2 for the primal, 300 n for conjugate
    gradients. Features are float32, and their products are summed in float64. A fit makes them once and keeps them if 1 GB
    holds them (conjugate gradients that also choose the penalty make them twice); else it makes them in blocks
    whenever it needs them. Leave-one-out errors carry the rounding of float32 features, a few per
    cent of themselves at a penalty of 1e-6, less than 1 % from 1e-4 on; a penalty at which a factorisation fails has none.

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
        query: Literal["first", "mean"] | None = "first",
        bias: float | ArrayLike = 0.0,
        activation: Any = "relu",
        positions: float = 0.0,
        depth: int = 1,
        alpha: float | Literal["loo"] = "loo",
        alphas: ArrayLike | None = None,
        fit_intercept: bool = True,
        solver: Literal["auto", "dual", "primal", "cg"] = "auto",
        token_dim: int | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_heads = n_heads
        self.query = query
        self.bias = bias
        self.activation = activation
        self.positions = positions
        self.depth = depth
        self.alpha = alpha
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.token_dim = token_dim
        self.random_state = random_state
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    @whole_or_not_at_all
    @np.errstate(over="ignore", invalid="ignore")  # overflow raises an InputError
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the values of the heads.

        Parameters
        ----------
        X : list of arrays (k_i, d), or array of shape (n, tokens, d) or (n, numbers)
            A `dask.array` (n, tokens, d) is fitted where its blocks are, in the primal; `y` and weights then are, too.
        y : array_like of shape (n,) or (n, targets)
        sample_weight : array_like of shape (n,), optional
            w_n >= 0. At a fixed alpha a weight of 2 is a sample given twice; leave-one-out leaves it out with its whole
            weight. Weights that sum to 1 are as few as one sample: let them be about 1 on average.
        """
        if in_blocks(X):
            single = getattr(y, "ndim", 1) == 1
            self._ridge_blocks(X, target_blocks(y, "RandomAttentionRegressor"), sample_weight, left_out=False)
            self.intercept_ = float(self.intercept_[0]) if single else self.intercept_
            return self
        checked = self._sequences(X, reset=True)
        Y = regression_targets(y, len(checked), "RandomAttentionRegressor")
        if len(checked) < 2:
            raise InputError("X has 1 sample; a fit needs at least two")
        self._ridge(checked, Y.reshape(len(Y), -1), sample_weights(sample_weight, len(Y)), left_out=False)
        self.intercept_ = float(self.intercept_[0]) if Y.ndim == 1 else self.intercept_
        return self

    @available_if(can_stream)
    @whole_or_not_at_all
    @np.errstate(over="ignore", invalid="ignore")
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Add a batch of samples to the fit, in the primal: only sums over them are kept, p^2 numbers.

        Heads are drawn at the first call, and anew after a `fit`. At a fixed alpha any batches give what `fit` with
        ``solver="primal"`` gives on all of them. For "loo" the penalty is chosen by 1,000 samples drawn from all so far,
        each left out of all others; at the first call, and whenever the samples have doubled since. Arguments as for `fit`.
        """
        first = not hasattr(self, "_sums")
        checked = self._sequences(X, reset=first)
        Y = regression_targets(y, len(checked), "RandomAttentionRegressor")
        if not first and Y.shape[1:] != np.shape(self.intercept_):
            raise InputError(f"y has targets of shape {Y.shape[1:]}, in earlier batches {np.shape(self.intercept_)}")
        self._add(checked, Y.reshape(len(Y), -1), batch_weights(sample_weight, len(Y)), left_out=False)
        self.intercept_ = float(self.intercept_[0]) if Y.ndim == 1 else self.intercept_
        return self

    @np.errstate(over="ignore", invalid="ignore")
    def predict(self, X: Any) -> Array:
        """Return the predictions (n,) or (n, targets), in float32 for float32 input; in blocks for an array in blocks."""
        if in_blocks(X):
            scores = self._scores_in_blocks(X)
            return (scores[:, 0] if self._single else scores).astype(output_dtype(X))
        checked = self._read(X)
        found = self._outputs(checked)
        return np.asarray(found[:, 0] if self._single else found, dtype=output_dtype(checked))

    def _outputs(self, X: Any) -> Array:
        return self._scores(X)

    @property
    def _single(self) -> bool:
        return np.ndim(self.intercept_) == 0
