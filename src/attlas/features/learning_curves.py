"""Learning curves: of a regressor on any data, and of several learners on one draw of sequences and targets."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas import tokens
from attlas.errors import InputError
from attlas.features import targets
from attlas.features.base import penalties_of, regression_targets
from attlas.features.kernels import mlp_kernel
from attlas.features.nested_curve import Curve, nested_curve
from attlas.features.regressor import RandomAttentionRegressor
from attlas.features.ridge import GRID
from attlas.features.ridge_fit import mean_square
from attlas.inputs import described, integer, numbers
from attlas.numerics import Progress, stream

Array = NDArray[np.float64]


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
    progress: Progress | None = None,
) -> Curve:
    """Return test, leave-one-out and forecast errors for every sample size, target and penalty, from one factorisation each.

    Parameters
    ----------
    model : RandomAttentionRegressor
        Its settings are used; it is not fitted. Anything else with its method `design`, and `alpha`, `alphas` and
        `fit_intercept`, will do.
    X, Y, X_test, Y_test : arrays
        Y may hold several targets in columns.
    sizes : increasing integers, optional
        Powers of two from 16, and n itself.
    alphas : array_like, optional
        Relative to tr(K)/n of all samples; those of the model, or its default grid, if not given.
    progress : callable, optional
        Called with an `Event` as the two Gram matrices and then the penalties proceed.

    Returns
    -------
    Curve
        ``curve.test[penalty, size, target]`` and so on; ``curve.chosen()`` is the test error at the penalty that
        leave-one-out chooses.

    Examples
    --------
    >>> from attlas import features, tokens
    >>> from attlas.features import targets
    >>> X = tokens.sphere(120, 5, 4, seed=0)
    >>> y = targets.Correlation(power=1)(X)
    >>> model = features.RandomAttentionRegressor("infinite")
    >>> curve = features.learning_curve(model, X[:80], y[:80], X[80:], y[80:], sizes=[20, 80])
    >>> error = curve.chosen()[:, 0]  # at the penalty that leave-one-out chooses
    >>> curve.sizes.tolist(), bool(error[1] < error[0])
    ([20, 80], True)
    """
    if not callable(getattr(model, "design", None)):
        raise InputError(f"model must be a RandomAttentionRegressor, or have its methods; got {type(model).__name__}")
    try:
        design, test = model.design(X, X_test)
    except (TypeError, ValueError, OverflowError) as error:  # of scikit-learn's checks
        raise error if isinstance(error, InputError) else InputError(f"X or X_test: {error}") from error
    n = len(design.X)
    given = regression_targets(Y, n, "learning_curve").reshape(n, -1)
    expected = regression_targets(Y_test, len(test), "learning_curve").reshape(len(test), -1)
    if given.shape[1] != expected.shape[1]:
        raise InputError(f"Y has {given.shape[1]} targets and Y_test has {expected.shape[1]}")
    steps = _increasing([*(2**k for k in range(4, 40) if 2**k < n), n] if sizes is None else sizes, n)
    relative = penalties_of("loo", alphas) if alphas is not None else penalties_of(model.alpha, model.alphas)
    K, cross = design.gram(progress), design.cross(test, progress)
    return nested_curve(K, given, cross, expected, steps, relative * mean_square(K, n), model.fit_intercept, progress)


class TargetData:
    """One draw of sequences on the unit sphere and of targets on them: what learners are compared on.

    Targets are divided by their standard deviation over the test sequences, so that a squared error is relative to the
    variance (a constant predictor scores 1). The same arguments give the same numbers, whichever learner asks.

    Parameters
    ----------
    names : sequence of str
        Targets, as `targets.named` knows them: ``["keys 2", "correlation 1"]``.
    d, keys : int
        Dimension of a token, keys beside the query.
    n, n_test : int
        Training and test sequences.
    seed : int

    Attributes
    ----------
    X, Y, X_test, Y_test : arrays
        Sequences (n, 1 + keys, d), and their values (n, targets).
    variance : array of shape (targets,)
        Of each target before it was scaled.

    Examples
    --------
    >>> data = TargetData(["keys 1", "correlation 1"], d=4, keys=4, n=64, n_test=100, seed=0)
    >>> data.attention([16, 64]).shape  # sizes, targets
    (2, 2)
    """

    def __init__(self, names: Sequence[str], d: int, keys: int, n: int, n_test: int, seed: int) -> None:
        if not isinstance(names, Sequence | Mapping) or not len(names):
            raise InputError(f"names must be a list of targets such as ['keys 2']; got {described(names)}")
        keys = integer(keys, "keys")
        self.X = tokens.sphere(n, keys + 1, d, stream(seed, "train"))
        self.X_test = tokens.sphere(n_test, keys + 1, d, stream(seed, "test"))
        functions = [targets.named(name, d, seed) for name in names]
        Y, expected = (np.stack([f(x) for f in functions], axis=1) for x in (self.X, self.X_test))
        self.variance = expected.var(0)
        self.Y, self.Y_test = Y / expected.std(0), expected / expected.std(0)

    def attention(self, sizes: Sequence[int], bias: float = 0.0, progress: Progress | None = None) -> Array:
        """Return the learning curves of attention with infinitely many random heads.

        Parameters
        ----------
        sizes : increasing integers
            See `sample_sizes`.
        bias : float, default 0
            Strength b of the bias of the heads, W_0 = b [[I, 0], [0, 0]].
        progress : callable, optional
            As for `learning_curve`.

        Returns
        -------
        array of shape (sizes, targets)
            Test error over variance, at the penalty that leave-one-out chooses.
        """
        model = RandomAttentionRegressor("infinite", bias=bias, fit_intercept=False)
        curve = learning_curve(model, self.X, self.Y, self.X_test, self.Y_test, sizes=sizes, progress=progress)
        return curve.chosen()

    def network(self, sizes: Sequence[int], progress: Progress | None = None) -> Array:
        """Return the same for a network of infinitely many random neurons on the tokens in order."""
        return self._ridge(mlp_kernel(self.X), mlp_kernel(self.X_test, self.X), sizes, progress)

    def features(self, model: Any, sizes: Sequence[int], progress: Progress | None = None) -> Array:
        """Return the same for ridge regression on the features of a transformer, such as `RandomMLPFeatures`."""
        F = model.fit(self.X).transform(self.X)
        return self._ridge(F @ F.T, model.transform(self.X_test) @ F.T, sizes, progress)

    def _ridge(self, K: Array, cross: Array, sizes: Sequence[int], progress: Progress | None) -> Array:
        penalties = np.array(GRID) * np.trace(K) / len(K)
        return nested_curve(K, self.Y, cross, self.Y_test, np.array(sizes), penalties, progress=progress).chosen()


def sample_sizes(low: int, high: int, per_doubling: int = 2) -> list[int]:
    """Return sample sizes from low to high, evenly spaced in logarithms.

    Raises
    ------
    InputError
        Unless 0 < low < high.

    Examples
    --------
    >>> from attlas import features
    >>> features.sample_sizes(100, 400)
    [100, 141, 200, 283, 400]
    """
    low, high, per_doubling = (integer(*one) for one in ((low, "low"), (high, "high"), (per_doubling, "per_doubling")))
    if not 0 < low < high:
        raise InputError(f"sample sizes must grow from {low}; the largest, {high}, is too small")
    count = max(2, round(per_doubling * np.log2(high / low)) + 1)
    return sorted({round(n) for n in np.geomspace(low, high, count)})


def _increasing(sizes: Any, n: int) -> NDArray[np.intp]:
    given = np.atleast_1d(numbers(sizes, "sizes"))
    if given.ndim != 1 or not len(given) or given.dtype.kind not in "iuf" or np.any(given != np.round(given)):
        raise InputError(f"sizes must be increasing integers; got {sizes!r}")
    if np.any(np.diff(given) <= 0) or given[0] < 2 or given[-1] > n:
        raise InputError(f"sizes must increase from at least 2 to at most n = {n}; got {given.tolist()}")
    return given.astype(np.intp)
