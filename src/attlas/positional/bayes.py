"""The best that any learner can do: alpha as a function of the error, in closed form.

T is read off exactly from tokens and outputs (d >= L), and softmax(z z^T) gives z_a (z_b - z_c), hence z up to one global
sign, whatever the mixture, the positional matrix and the scale of the tokens: the best learner ignores place. With unit
tokens its error V = |Q* - Q_hat|^2/d satisfies

    V = 1/(1 + qhat),   qhat = alpha (L/V - T(V)/V^2),   T(V) = E[R D(kappa R)],   R ~ chi^2_L,   kappa = (1 - V)/V,
    D(x) = E[1 - tanh(x + sqrt(x) G)] = e^(-x/2) E sech(sqrt(x) G),

so that alpha(V) = V (1 - V)/(L V - T(V)).
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.errors import InputError
from attlas.inputs import integer, numbers, real
from attlas.numerics import Solution, Status
from attlas.positional.model import TOKENS, Model, attention, check_scale
from attlas.positional.panels import panels

Array = NDArray[np.float64]

_LEAST = 1e-9  # of V and 1 - V, where alpha is told by its limits
_NODES = 64  # in each of four variables: 1e-9 for sigma = 1
_REACH = 10.0  # of sqrt(R/V) beyond its typical value
_WIDEST = 2.0  # token scale up to which these nodes suffice


@dataclass(frozen=True)
class BayesPoint(Solution[float]):
    """The best error at one alpha.

    Attributes
    ----------
    value : float
        V = |Q* - Q_hat|^2/d of the best learner, up to the sign of Q*; 1 is that of guessing zero, 0 is exact recovery.
    algorithm : float
        V that message passing reaches from no knowledge; larger than `value` in a hard phase.
    residual : float
        By how much alpha(V) misses alpha, relative.
    """

    algorithm: float = np.nan

    @property
    def hard(self) -> bool:
        """Whether the best error is out of reach of message passing."""
        return self.algorithm > self.value


def bayes(tokens: int, alpha: float, *, throw: bool = True) -> BayesPoint:
    """Return the error of the best learner from n = alpha d sequences of L tokens, for a teacher of rank one.

    It is 1 up to alpha = 1/(L^2 + L) and 0 from 1/L on. With one token, where |z| itself is seen (phase retrieval), message
    passing stays behind between alpha = 1 and 1.128; with two or more there is no such phase.

    Parameters
    ----------
    tokens : int
        L. One token stands for phase retrieval: its attention is constant, and |z| is taken as seen.
    alpha : float
        Samples over d, positive.
    throw : bool, default True
        Raise `ConvergenceError` if the equation is not solved; otherwise the status says so.

    Examples
    --------
    >>> from attlas import positional
    >>> print(f"{positional.bayes(tokens=2, alpha=0.3).value:.6f}")
    0.731989

    References
    ----------
    In the spirit of troiani2025fundamental; derived here. barbier2019optimal for one token.
    """
    L, alpha = integer(tokens, "tokens"), real(alpha, "alpha", above=0)
    V = _largest(L, alpha)
    best = 0.0 if alpha >= exact_recovery(L) else V
    residual = 0.0 if V in (0.0, 1.0) else float(abs(bayes_alpha(L, V) / alpha - 1))
    status = Status.CONVERGED if residual < 1e-8 else Status.OUT_OF_STEPS
    found = BayesPoint(best, status, residual, 0, algorithm=V)
    return found.or_raise("the best error") if throw else found


def weak_recovery(tokens: int, rank: int = 1) -> float:
    """Return the alpha = n/d above which something can be learned about a teacher softmax(z z^T) of this rank.

        alpha_w = r^2/((L^2 + L - 2) r + 2 min(r, L - 1)) = 1/E Tr(E[G|y]/r - I)^2,   G = z z^T.

    with z of shape (L, r). At rank one it is 1/(L^2 + L); for large rank alpha_w/r tends to 1/(L^2 + L - 2), the threshold
    of a teacher of extensive width (boncoraglio2025bayes) in the limit of small width. One token stands for |z|^2 seen: r/2.

    Examples
    --------
    >>> from attlas import positional
    >>> round(positional.weak_recovery(tokens=2), 4)  # 1/(L^2 + L) at rank one
    0.1667
    """
    L, r = integer(tokens, "tokens"), integer(rank, "rank")
    if L == 1:
        return r / 2
    return r * r / ((L * L + L - 2) * r + 2 * min(r, L - 1))


def exact_recovery(tokens: int) -> float:
    """Return 1/L, the alpha = n/d above which the best learner finds a teacher of rank one exactly.

    Examples
    --------
    >>> from attlas import positional
    >>> positional.exact_recovery(tokens=2)
    0.5
    """
    return 1 / integer(tokens, "tokens")


def hard_phase(tokens: int) -> tuple[float, float] | None:
    """Return the alphas between which exact recovery is possible and message passing does not find it; None without any.

    Examples
    --------
    >>> from attlas import positional
    >>> positional.hard_phase(tokens=2) is None  # message passing finds what can be found
    True
    >>> low, high = positional.hard_phase(tokens=1)
    >>> round(low, 3), round(high, 3)
    (1.0, 1.128)
    """
    L = integer(tokens, "tokens")
    V, most = _summit(L)
    return (exact_recovery(L), most) if V > 0 else None


def bayes_alpha(tokens: int, V: ArrayLike) -> Array:
    """Return alpha(V), the samples over d at which message passing has the fixed point V in [0, 1].

    Examples
    --------
    >>> from attlas import positional
    >>> positional.bayes_alpha(2, [0.9548496, 0.0878201]).round(3).tolist()
    [0.2, 0.48]
    """
    L, V = integer(tokens, "tokens"), numbers(V, "V", least=0)
    if V.max() > 1:
        raise InputError(f"V must be in [0, 1]: guessing zero gives 1; got {V.max():g}")
    inner = np.clip(V, _LEAST, 1 - 1e-7)
    found = (1 - inner) / (L - _overlap(L, inner))
    found = np.where(V <= _LEAST, exact_recovery(L), found)
    return np.asarray(np.where(V > 1 - 1e-7, 1 / (L * L + L), found))


def bayes_error(model: Model, alpha: float) -> float:
    """Return the test error of the best learner, in the units of `FixedPoint.test`.

        4 sigma^2 (1 - omega)^2 E Var(sig(S(S + R)) | w),   (S, R) ~ N(w, sigma^2 V I),   w ~ N(0, sigma^2 (1 - V) I),

    with V that of `bayes` for two tokens. Good to 1e-9 for sigma up to 1 and to 1e-4 at sigma = 2; larger ones are
    refused.

    Examples
    --------
    >>> from attlas import positional
    >>> round(positional.bayes_error(positional.Model(mixture=0.3, encoding=3.0), alpha=0.3), 5)
    0.06891
    """
    V, sigma = bayes(TOKENS, alpha).value, check_scale(model, _WIDEST, "the best test error")
    if V == 0:
        return 0.0
    x, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    weights = weights / weights.sum()
    kept = weights > 1e-13
    x, weights = sigma * x[kept], weights[kept]
    total = 0.0
    R = (np.sqrt(1 - V) * x[:, None] + np.sqrt(V) * x)[:, None, :]
    for w_s, weight in zip(x, weights, strict=True):
        S = (np.sqrt(1 - V) * w_s + np.sqrt(V) * x)[:, None]
        p, _ = attention(S, R)  # over w_r, S and R
        mean = p @ weights @ weights
        total += weight * float(weights @ ((p - mean[:, None, None]) ** 2 @ weights @ weights))
    return float(4 * sigma**2 * (1 - model.mixture) ** 2 * total)


def _overlap(L: int, V: Array) -> Array:
    """Return T(V)/V.

    With R = V u^2 it is V^(L/2) (2/(2^(L/2) Gamma(L/2))) int u^(L + 1) e^(-u^2/2) E sech(sqrt(1 - V) u G) du.
    """
    from scipy.special import gammaln

    u, weights = panels(np.linspace(0, np.sqrt(L) + _REACH, 9), 24)
    log_weight = (L + 1) * np.log(u) - u * u / 2 + np.log(2) - L / 2 * np.log(2) - gammaln(L / 2)
    b = np.sqrt(1 - V)[..., None] * u
    integral = (mean_sech(b) * np.exp(log_weight) * weights).sum(-1)
    return np.asarray(V ** (L / 2) * integral)


def mean_sech(b: Array) -> Array:
    """Return E sech(b G), b >= 0 and G standard normal, by the trapezoidal rule: in G for small b, in b G for large."""
    small = b < 2
    G = 0.1 * np.arange(1, 91)
    a = 0.1 * np.arange(1, 391)
    inner = 1 + 2 * (np.exp(-0.5 * G**2) / np.cosh(np.where(small, b, 0.0)[..., None] * G)).sum(-1)
    large = np.where(small, 2.0, b)[..., None]
    outer = 1 + 2 * (np.exp(-0.5 * (a / large) ** 2) / np.cosh(a)).sum(-1)
    return np.asarray(0.1 / np.sqrt(2 * np.pi) * np.where(small, inner, outer / large[..., 0]))


def _largest(L: int, alpha: float) -> float:
    """Return the largest V with alpha(V) = alpha: 1 below weak recovery, 0 beyond the summit of alpha(V)."""
    from scipy.optimize import brentq

    if alpha <= 1 / (L * L + L):
        return 1.0
    summit, most = _summit(L)
    if alpha >= most:
        return 0.0
    return float(brentq(lambda V: float(bayes_alpha(L, V)) - alpha, summit, 1.0, xtol=1e-15, rtol=1e-14))


@cache
def _summit(L: int) -> tuple[float, float]:
    """Return the V of the largest alpha(V), and that alpha: V = 0 where alpha(V) falls all the way."""
    from scipy.optimize import minimize_scalar

    V = np.linspace(0, 1, 141)
    at = int(np.argmax(bayes_alpha(L, V)))
    if at == 0:
        return 0.0, exact_recovery(L)
    found = minimize_scalar(
        lambda v: -float(bayes_alpha(L, v)), bounds=(V[at - 1], V[at + 1]), method="bounded", options={"xatol": 1e-10}
    )
    return float(found.x), -float(found.fun)
