"""The errors of ridge-trained linear attention on new and on training tasks, as d grows.

Given its task w, what the layer reads off a context is h = w + sqrt(q) noise, q = (<c> + rho)/alpha. Training is ridge
regression with d^2 parameters whose covariates have covariance (1/d) I x B, B = R + q, R = (1/k) sum w w^T. The formulas are
written so that all their terms are positive: nothing cancels, at any ridge and any tau.
"""

from dataclasses import dataclass
from math import exp, inf, isfinite, isinf, log, nan
from typing import Any, NamedTuple

from numpy.typing import ArrayLike

from attlas.context.spectra import Law, law
from attlas.errors import InputError
from attlas.inputs import real
from attlas.numerics import Solution, Status

RESIDUAL = 1e-10  # relative error of the effective ridge: what counts as solved


@dataclass(frozen=True)
class Theory(Solution[float]):
    """What the trained layer reaches. Every error includes the label noise; predicting zero costs <c> + noise.

    Attributes
    ----------
    value, icl : float
        Error on new tasks.
    idg : float
        Error on fresh sequences of the training tasks.
    training : float
        Mean square of the residuals on the training sequences.
    effective : float
        Effective ridge xi.
    s : float
        (R + q + xi)^-1 acts as (s C + q + xi)^-1.
    residual : float
        By how much the equation of the effective ridge is missed, relative to xi.
    """

    idg: float = nan
    training: float = nan
    effective: float = nan
    s: float = nan

    @property
    def icl(self) -> float:
        """Error on new tasks."""
        return self.value


def theory(
    alpha: float,
    kappa: float,
    tau: float,
    ridge: float = 0.0,
    noise: float = 0.0,
    *,
    test_alpha: float | None = None,
    spectrum: ArrayLike | None = None,
    test_spectrum: ArrayLike | None = None,
    throw: bool = True,
) -> Theory:
    """Return the errors of the trained layer on new tasks and on training tasks, its training error and effective ridge.

    With nu = q + xi, F = 1/(s c + nu) and m = <c F^2>,

        s (1 + <c F>/kappa) = 1,      tau (1 - ridge/xi) = <(s c + q) F>,
        s' = (s/kappa) m/(1 + nu m/kappa),      s - xi s' = s (1 + q m/kappa)/(1 + nu m/kappa),
        idg = [noise + <(q s^2 c^2 + nu^2 c (s - xi s')) F^2>] / (ridge/xi + (xi/tau) <f>),   f = (q + c (s - xi s')) F^2,
        icl = noise + nu^2 <t (1 + s' c) F^2> + q_t <(s^2 c^2 + nu^2 s' c) F^2> + (idg/tau) <(t + q_t) f>,
        training = (ridge/xi)^2 idg.

    Parameters
    ----------
    alpha : float
        Examples of a context over d, positive and finite.
    kappa : float
        Training tasks over d, positive; ``inf`` gives every sequence its own task.
    tau : float
        Training sequences over d^2, positive; ``inf`` is the population.
    ridge : float, default 0
        The penalty is (n/d) ridge |Gamma|^2 beside the *sum* of squares; beside their mean it is ridge/d. 0 stands for the
        limit, the smallest Gamma of all that fit best.
    noise : float, default 0
        Variance rho of the label noise.
    test_alpha : float, optional
        Examples of a test context over d, if other than `alpha`; may be ``inf``.
    spectrum : array_like of shape (d,), optional
        Eigenvalues c of the covariance of training tasks; isotropic if not given.
    test_spectrum : array_like of shape (d,), optional
        Diagonal t of the covariance of test tasks in the eigenbasis of the training tasks; `spectrum` if not given.
    throw : bool, default True
        Raise `ConvergenceError` if the effective ridge is not found; otherwise the status says so.

    Raises
    ------
    InputError
        For values that make no sense, and at tau = 1 without ridge, where all errors are infinite.

    Examples
    --------
    >>> from attlas import context
    >>> found = context.theory(alpha=2, kappa=0.5, tau=2, noise=0.1)
    >>> print(f"{found.icl:.6f} {found.idg:.6f} {found.training:.6f}")
    1.338451 0.586280 0.146570

    References
    ----------
    lu2024asymptotic for isotropic tasks, letey2025pretrain for structured ones; derived again here in a form without
    differences of nearly equal terms.
    """
    point = setting(alpha, kappa, tau, ridge, noise, test_alpha, law(spectrum, test_spectrum))
    if point.tau == 1 and point.ridge == 0:
        raise InputError(
            "tau = 1 without ridge is the interpolation point, where all errors are infinite; give a positive ridge,"
            " or a tau other than 1"
        )
    found = solve(point)
    return found.or_raise("the theory of learning in context") if throw else found


class Setting(NamedTuple):
    """A point of the theory: the arguments of `theory`, checked, with q of training and of test contexts."""

    kappa: float
    tau: float
    ridge: float
    noise: float
    q: float
    q_test: float
    law: Law


def setting(
    alpha: float, kappa: float, tau: float, ridge: float, noise: float, test_alpha: float | None, tasks: Law
) -> Setting:
    """Return the arguments of `theory`, checked."""
    alpha, noise = real(alpha, "alpha", above=0), real(noise, "noise", least=0)
    longer = alpha if test_alpha is None else positive(test_alpha, "test_alpha")
    q, q_test = (tasks.mean(tasks.c) + noise) / alpha, (tasks.mean(tasks.t) + noise) / longer
    return Setting(
        positive(kappa, "kappa"), positive(tau, "tau"), real(ridge, "ridge", least=0), noise, q, q_test, tasks
    )


def positive(value: float, name: str) -> float:
    """Return a positive number that may be infinite."""
    if isinstance(value, float) and value == inf:
        return inf
    return real(value, name, above=0)


def solve(at: Setting) -> Theory:
    """Return the theory at a point other than tau = 1 without ridge."""
    xi, share, missed = _effective(at)
    q, nu, tau, tasks = at.q, at.q + xi, at.tau, at.law
    c, t, mean = tasks.c, tasks.t, tasks.mean
    s, slope, rest, F = _resolvent(at, xi)
    square = F * F
    f = (q + c * rest) * square
    signal = at.noise + mean((q * (s * c) ** 2 + nu * nu * c * rest) * square)
    idg = signal / (share + xi / tau * mean(f))
    icl = (
        at.noise
        + nu * nu * mean(t * (1 + slope * c) * square)
        + at.q_test * mean(((s * c) ** 2 + nu * nu * slope * c) * square)
        + idg / tau * mean((t + at.q_test) * f)
    )
    status = Status.CONVERGED if missed < RESIDUAL else Status.OUT_OF_STEPS
    if not (isfinite(icl) and isfinite(idg)):
        status, missed = Status.DIVERGED, nan
    return Theory(icl, status, missed, 0, idg=idg, training=share * share * idg, effective=xi, s=s)


def _effective(at: Setting) -> tuple[float, float, float]:
    """Return xi, ridge/xi and by how much the equation of xi is missed, relative to xi."""
    if at.tau == inf or (at.ridge == 0 and at.tau > 1):
        ridgeless = at.ridge == 0 and at.tau != inf
        return at.ridge, (at.tau - 1) / at.tau if ridgeless else 1.0, 0.0  # 1 - 1/tau would cancel near the peak
    total = at.law.mean(at.law.c)
    closed = at.law.ridgeless(at.q, at.kappa, at.tau) if at.ridge == 0 else None
    if closed is not None:
        return closed, 0.0, 0.0
    # xi = ridge + delta; b = <(s c + q) F> is at most (total + q)/xi and at least q/(q + xi)
    high = (total + at.q) / at.tau
    low = at.ridge * at.q / (at.q + at.ridge + high) / at.tau if at.ridge else at.q * (1 - at.tau) / at.tau
    from scipy.optimize import brentq

    if not (low > 0 and at.q + at.ridge + high < 1e150):  # squares would leave what floats can hold
        return nan, nan, nan
    delta = exp(brentq(lambda x: _excess(at, exp(x))[0], log(low) - 1e-9, log(high) + 1e-9, xtol=1e-14, rtol=1e-14))
    for _ in range(2):  # Newton's steps clear the last digits
        value, slope = _excess(at, delta)
        step = value / slope * (at.ridge + delta)
        if abs(step) < 0.1 * delta:
            delta -= step
    value, slope = _excess(at, delta)
    xi = at.ridge + delta
    return xi, at.ridge / xi, abs(value / slope)


def _excess(at: Setting, delta: float) -> tuple[float, float]:
    """Return tau (1 - ridge/xi) - <(s c + q) F> at xi = ridge + delta, and its slope in log xi.

    Near the interpolation point, where both sides are near 1, they are taken less 1: (tau - 1) - tau ridge/xi + xi <F>.
    """
    xi = at.ridge + delta
    s, _, rest, F = _resolvent(at, xi)
    mean, c = at.law.mean, at.law.c
    right = mean((s * c + at.q) * F)
    less_one = (at.tau - 1) - at.tau * at.ridge / xi + xi * mean(F)
    value = at.tau * delta / xi - right if right < 0.5 or at.tau > 2 else less_one
    return value, at.tau * at.ridge / xi + xi * mean((at.q + c * rest) * F * F)


def _resolvent(at: Setting, xi: float) -> tuple[float, float, float, Any]:
    """Return s, its derivative s' by nu, s - xi s' and F = 1/(s c + nu), at nu = q + xi; F is what the eigenvalues are."""
    nu, c = at.q + xi, at.law.c
    s = at.law.s(nu, at.kappa)
    F = 1 / (s * c + nu)
    if isinf(at.kappa):
        return s, 0.0, s, F
    m = at.law.mean(c * F * F) / at.kappa
    return s, s * m / (1 + nu * m), s * (1 + at.q * m) / (1 + nu * m), F
