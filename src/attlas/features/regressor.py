"""Ridge regression on random-feature attention as a scikit-learn estimator."""

import warnings
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from attlas.errors import InputError
from attlas.features.base import OnSequences, penalties_of, regression_targets
from attlas.features.frozen_heads import Design, Heads, frozen_heads
from attlas.features.ridge_fit import SOLVERS

Array = NDArray[Any]


class RandomAttentionRegressor(RegressorMixin, OnSequences):
    """Ridge regression on random-feature attention: frozen query-key matrices, trained values.

    min_v sum_n (y_n - sum_m <v_m, phi_m(X_n)>)^2 + lam ||v||^2,   lam = alpha tr(K)/n,

    with K the Gram matrix of the features, and y minus its mean unless `fit_intercept` is False.

    Parameters
    ----------
    n_heads : int or "infinite", default 1000
        "infinite" is the kernel limit, without the noise of finitely many heads; not for softmax, nor for two layers.
    bias, activation, positions, depth, token_dim, random_state
        As for `RandomAttentionFeatures`.
    alpha : float or "loo", default "loo"
        Penalty relative to tr(K)/n, or the best of `alphas` by leave-one-out.
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
    Memory, in float64: 2 n^2 numbers and n^2 float32 ones for the dual, 2 p^2 for the primal, 300 n for conjugate gradients.
    Features are float32, and their products are summed in float64. A fit makes them once and keeps them if 1 GB holds them
    (conjugate gradients that also choose the penalty make them twice);
    else it makes them in blocks whenever it needs them. Penalties below the rounding of float32 are left out of the path.

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
        activation: Any = "relu",
        positions: float = 0.0,
        depth: int = 1,
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
        self.positions = positions
        self.depth = depth
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

    @np.errstate(over="ignore", invalid="ignore")  # overflow raises an InputError
    def fit(self, X: Any, y: Any) -> Self:
        """Fit the values of the heads."""
        checked = self._sequences(X, reset=True)
        Y = regression_targets(y, len(checked), "RandomAttentionRegressor")
        single = Y.ndim == 1
        Y = Y.reshape(len(Y), -1)
        if len(checked) < 2:
            raise InputError("X has 1 sample; a fit needs at least two")
        heads = self._draw(checked)
        alphas = penalties_of(self.alpha, self.alphas)
        if not isinstance(self.solver, str) or self.solver not in ("auto", *SOLVERS):
            raise InputError(f"solver must be one of {', '.join(('auto', *SOLVERS))}; got {self.solver!r}")
        solver = heads.solver(self.solver, len(checked))
        found = SOLVERS[solver](heads.on(checked), Y, alphas, self.alpha == "loo", self.fit_intercept)
        for alpha, stopped in found.unfinished:
            warnings.warn(
                f"conjugate gradients stopped after {stopped.steps} steps at a relative residual of"
                f" {stopped.residual:.1e} ({stopped.status}); a larger alpha than {alpha:.1e} needs fewer",
                ConvergenceWarning,
                stacklevel=3,
            )
        mean = Y.mean(0) if self.fit_intercept else np.zeros(Y.shape[1])
        self.intercept_ = float(mean[0]) if single else mean
        self._heads, self.solver_, self.alpha_ = heads, solver, found.alpha
        self.n_iter_, self.status_ = found.steps, found.status
        for name in ("heads_", "coef_", "X_fit_", "dual_coef_", "loo_errors_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        self.__dict__ |= heads.fitted(checked, found.values)
        if found.errors is not None:
            self.loo_errors_ = found.errors
        return self

    @np.errstate(over="ignore", invalid="ignore")
    def predict(self, X: Any) -> Array:
        """Return the predictions (n,) or (n, targets)."""
        check_is_fitted(self)
        found = self._heads.predict(self._sequences(X, reset=False), self)
        return np.asarray(found[:, 0] if np.ndim(self.intercept_) == 0 else found) + self.intercept_

    def kernel(self, X: Any, X2: Any = None) -> Array:
        """Return the Gram matrix of the fitted features between sequences, float64 sums of float32 products."""
        check_is_fitted(self)
        first = self._sequences(X, reset=False)
        if X2 is None:
            return self._heads.on(first, hold=False).gram()
        return self._heads.on(self._sequences(X2, reset=False), hold=False).cross(first)

    def design(self, X: Any, X_test: Any) -> tuple[Design, Array]:
        """Return training sequences as freshly drawn heads see them, and test sequences, checked. Self is not fitted."""
        fresh = clone(self)
        train, test = fresh._sequences(X, reset=True), fresh._sequences(X_test, reset=False)
        return fresh._draw(train).on(train), test

    def _draw(self, X: Array) -> Heads:
        return frozen_heads(self.n_heads, X, self.bias, self.activation, self.random_state, self.positions, self.depth)
