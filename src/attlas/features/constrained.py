"""The estimator of the theory: empirical risk over values of bounded norm."""

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, column_or_1d

from attlas.errors import InputError
from attlas.features.base import OnSequences, regression_targets, spread_of
from attlas.features.group_ball import BallMinimum, GroupBall, huber, minimise
from attlas.features.head_features import features_of, finite
from attlas.features.ridge import GRID, dual_path, factor, solve
from attlas.features.token_maps import draw_heads
from attlas.inputs import flag, integer, real
from attlas.numerics import stream

Array = NDArray[Any]


class ConstrainedAttentionRegressor(RegressorMixin, OnSequences):
    """The estimator of the theory: empirical risk over values of bounded norm, with a Lipschitz loss.

    min_v (1/n) sum_n loss(y_n - sum_m <v_m, phi_m(X_n)>)   over   sum_m |v_m| <= radius,  sum_m |v_m|^2 <= energy/M,

    phi_m as in `RandomAttentionFeatures` but without the factor 1/sqrt(M). The loss is Huber's, |r| - delta/2 beyond delta
    and r^2/(2 delta) within it: 1-Lipschitz, and within delta/2 of |r|. The first bound is a norm over groups: it switches
    whole heads off.

    Parameters
    ----------
    n_heads, bias, activation, token_dim, random_state
        As for `RandomAttentionFeatures`.
    radius : float, optional
        In units of y. If not given, the best of eight radii on a held-out fifth of the samples, from a sixteenth to eight
        times the norm of the ridge fit on the same heads. Which fifth is held out depends on the order of the samples.
    energy : float, optional
        No second bound if not given. Energies above M radius^2 do not bind.
    delta : float, default 0.01
        Relative to the standard deviation of y.
    tol : float, default 1e-4
        On the certified gap of the empirical risk, relative to the standard deviation of y.
    max_iter : int, default 5000
    fit_intercept : bool, default True
        Learn y minus its mean. Without it this is the paper's estimator.

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
    status_ : Status
        "converged" if the gap is within `tol`; else there is a `ConvergenceWarning`, too.

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
        activation: Any = "relu",
        radius: float | None = None,
        energy: float | None = None,
        delta: float = 0.01,
        tol: float = 1e-4,
        max_iter: int = 5000,
        fit_intercept: bool = True,
        token_dim: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_heads = n_heads
        self.bias = bias
        self.activation = activation
        self.radius = radius
        self.energy = energy
        self.delta = delta
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.token_dim = token_dim
        self.random_state = random_state

    @np.errstate(over="ignore", invalid="ignore")  # overflow raises an InputError
    def fit(self, X: Any, y: Any) -> Self:
        """Fit the values of the heads."""
        checked = self._sequences(X, reset=True)
        target = regression_targets(y, len(checked), "ConstrainedAttentionRegressor")
        if target.ndim == 2 and target.shape[1] == 1:
            target = column_or_1d(target, warn=True)
        if target.ndim != 1:
            raise InputError(f"y must have shape (n,): one target; got {target.shape}")
        if len(checked) < 2:
            raise InputError("X has 1 sample; a fit needs at least two")
        radius = None if self.radius is None else real(self.radius, "radius", above=0)
        real(self.delta, "delta", above=0)
        real(self.tol, "tol", above=0)
        integer(self.max_iter, "max_iter")
        energy = np.inf if self.energy is None else real(self.energy, "energy", above=0)
        self.heads_, _ = draw_heads(self.n_heads, checked, self.bias, self.activation, self.random_state)
        F = finite(features_of(checked, self.heads_, self.activation, np.dtype("float32"), over=1), "the features")
        finite(np.einsum("ij,ij->", F, F), "squares of the features")
        self.intercept_ = float(target.mean()) if flag(self.fit_intercept, "fit_intercept") else 0.0
        scale, target = spread_of(target), target - self.intercept_
        target[np.abs(target) < 1e-12 * scale] = 0.0  # the mean of equal numbers is off by rounding
        if radius is None:
            radius = self._choose(F, target, energy, scale)
        found = self._minimise(F, target, radius, energy, scale)
        self.radius_, self.coef_, self.risk_, self.gap_ = float(radius), found.value, found.risk, found.residual
        self.n_iter_, self.status_ = found.steps, found.status
        norms = np.linalg.norm(self.coef_, axis=1)
        order = np.argsort(-norms, kind="stable")
        self.kept_heads_ = order[norms[order] > 0]
        if not found.converged:
            warnings.warn(
                f"after {self.n_iter_} steps the risk {self.risk_:.3g} is known to be within {self.gap_:.1e} of the"
                f" smallest, not {self.tol * scale:.1e}; raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    @np.errstate(over="ignore", invalid="ignore")
    def predict(self, X: Any) -> Array:
        """Return the predictions (n,)."""
        check_is_fitted(self)
        checked = self._sequences(X, reset=False)
        F = features_of(checked, self.heads_, self.activation, np.dtype("float64"), over=1)
        return np.asarray(finite(F @ self.coef_.ravel(), "the features") + self.intercept_)

    def _choose(self, F: Array, y: Array, energy: float, scale: float) -> float:
        """Return the radius with the smallest risk on held-out samples."""
        test, train = np.split(stream(0, "held out").permutation(len(y)), [max(len(y) // 5, 1)])
        K = np.asarray(F[train] @ F[train].T, dtype=float)
        path = dual_path(K, y[train, None], np.array(GRID) * max(float(np.trace(K)) / len(train), np.finfo(float).tiny))
        ridge = F[train].T @ solve(factor(K, path.penalties[path.best]), y[train, None])
        size = float(np.linalg.norm(ridge.reshape(self.heads_.shape[:2]), axis=1).sum()) or 1.0
        radii = size * 2.0 ** np.arange(-4, 4)
        found = [self._minimise(F[train], y[train], radius, energy, scale).value for radius in radii]
        risks = [float(huber(y[test] - F[test] @ V.ravel(), self.delta * scale).mean()) for V in found]
        return float(radii[int(np.argmin(risks))])

    def _minimise(self, F: Array, y: Array, radius: float, energy: float, scale: float) -> BallMinimum:
        heads = len(self.heads_)
        options: dict[str, Any] = {"tol": self.tol * scale, "max_steps": self.max_iter, "throw": False}
        return minimise(F, y, GroupBall(radius, energy / heads), heads, self.delta * scale, **options)
