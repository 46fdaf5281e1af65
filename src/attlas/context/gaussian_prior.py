"""The best that a context allows on a new task: ridge regression on the context, the Bayes learner of Gaussian tasks."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.context.spectra import eigenvalues, positive_root
from attlas.inputs import array, real
from attlas.numerics import Solution, Status

Array = NDArray[np.float64]
_TOL = 1e-12  # of the equation of the posterior variance, relative


@dataclass(frozen=True)
class InContextRidge(Solution[float]):
    """The error of ridge regression on the context.

    Attributes
    ----------
    value : float
        noise + m: the error on a new task, label noise included.
    variance : float
        m: what of x.w is not known after the context.
    information : float
        What the context says of the task, in nats per dimension; infinite without noise.
    """

    variance: float = np.nan
    information: float = np.nan


def ridge_in_context(
    alpha: float, noise: float, spectrum: ArrayLike | None = None, *, throw: bool = True
) -> InContextRidge:
    """Return the Bayes error on new tasks N(0, C), as d grows: no learner that sees only the context is better.

    With penalty `noise`, the posterior variance m of x.w solves

        m = <c/(1 + c r)>,   r = alpha/(noise + m),

    <.> the mean over the eigenvalues c of C; for C = I a quadratic equation.

    Parameters
    ----------
    alpha : float
        Examples of a context over d.
    noise : float
        Variance of the noise of labels.
    spectrum : array_like, optional
        Eigenvalues of the covariance of tasks; all 1 by default.
    throw : bool, default True
        Raise `ConvergenceError` where the root is not found, else say so in `status`.

    Examples
    --------
    >>> from attlas import context
    >>> round(context.ridge_in_context(alpha=2, noise=0.1).value, 4)
    0.1844

    References
    ----------
    lu2024asymptotic for the isotropic case; derived again.
    """
    alpha, noise = real(alpha, "alpha", above=0), real(noise, "noise", least=0)
    c = np.ones(1) if spectrum is None else eigenvalues(spectrum, "spectrum")
    if np.ptp(c) == 0:
        m, residual = _isotropic(float(c[0]), alpha, noise), 0.0
    else:
        m, residual = _structured(c, alpha, noise)
    status = Status.CONVERGED if residual < _TOL else Status.OUT_OF_STEPS
    r = alpha / (noise + m) if noise + m > 0 else np.inf
    known = 0.5 * float(alpha * np.log1p(m / noise) + np.mean(np.log1p(c * r)) - r * m) if noise > 0 else np.inf
    found = InContextRidge(noise + m, status, residual, 0, variance=m, information=known)
    return found.or_raise("the posterior variance") if throw else found


def information(alpha: float, noise: float, spectrum: ArrayLike | None = None) -> float:
    """Return what a context says about its task, in nats per dimension.

        i = (1/2) [alpha log(1 + m/noise) + <log(1 + c r)> - r m]

    with m and r of `ridge_in_context`. A learner that knows fewer than e^(i d) tasks can tell which one it sees.

    Examples
    --------
    >>> from attlas import context
    >>> round(context.information(alpha=2, noise=0.1), 3)
    1.39

    References
    ----------
    Our own derivation: the mutual information of Gaussian linear regression.
    """  # fmt: skip
    return ridge_in_context(alpha, noise, spectrum).information


def ridge_estimate(X: ArrayLike, y: ArrayLike, noise: float, spectrum: ArrayLike | None = None) -> Array:
    """Return the posterior means of the tasks of drawn contexts, tasks N(0, diag c).

    Parameters
    ----------
    X : array of shape (n, l, d)
        The examples of n contexts.
    y : array of shape (n, l)
        Their labels.
    noise : float
        Variance of the noise of labels.
    spectrum : array of shape (d,), optional

    Returns
    -------
    array of shape (n, d)

    Examples
    --------
    >>> import numpy as np
    >>> from attlas import context
    >>> X, y = context.draw_contexts(np.ones((1, 4)), length=400, noise=0.01, seed=0)
    >>> context.ridge_estimate(X, y, noise=0.01).round(1).tolist()
    [[1.0, 1.0, 1.0, 1.0]]
    """
    X = array(X, "X", ("n", "l", "d"))
    y = array(y, "y", ("n", "l"), X.shape[:2])
    noise = real(noise, "noise", above=0)
    root = np.ones(X.shape[2]) if spectrum is None else np.sqrt(eigenvalues(spectrum, "spectrum", X.shape[2]))
    scaled = X * root  # w = root * white: no division by eigenvalues that may be zero
    gram = scaled.transpose(0, 2, 1) @ scaled + noise * np.eye(X.shape[2])
    return np.asarray(root * np.linalg.solve(gram, scaled.transpose(0, 2, 1) @ y[:, :, None])[:, :, 0])


def _isotropic(c: float, alpha: float, noise: float) -> float:
    """Return m of one eigenvalue, the positive root of m^2 + (noise + (alpha - 1) c) m = noise c; without noise a limit."""
    if noise == 0:
        return c * max(1 - alpha, 0.0)
    return positive_root(noise + (alpha - 1) * c, noise * c)


def _structured(c: Array, alpha: float, noise: float) -> tuple[float, float]:
    """Return m and by how much its equation is missed, relative.

    With t = noise + m the equation 1 - noise/t = <c/(t + alpha c)> has a left side that rises and a right side that falls.
    """
    from scipy.optimize import brentq

    if noise == 0 and alpha >= np.mean(c > 0):
        return 0.0, 0.0

    def excess(x: float) -> float:
        t = np.exp(x)
        return float(1 - noise / t - np.mean(c / (t + alpha * c)))

    top = np.log(noise + float(c.mean()))
    low = np.log(noise) if noise > 0 else top - 700
    t = float(np.exp(brentq(excess, low, top + 1e-12, xtol=1e-15, rtol=1e-15, maxiter=500)))
    m = float(np.mean(c * t / (t + alpha * c)))
    return m, abs(m - float(np.mean(c * (noise + m) / (noise + m + alpha * c)))) / m
