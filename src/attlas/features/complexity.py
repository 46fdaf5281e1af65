"""How hard a target is for random-feature attention, in theory."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attlas.errors import InputError
from attlas.features.targets import Target
from attlas.inputs import integer, real

Array = NDArray[np.float64]

_TERMS = 400


@dataclass(frozen=True)
class Complexity:
    """What `complexity` returns.

    Attributes
    ----------
    B : float
        The paper's B(f) = C_k |A|_F^2, C_k = max(1, k^4.5 4^k), k = max(r, s - 1). It ranks targets; it does not predict how
        many samples they need.
    rkhs : float
        A bound on the squared norm of f in the space of the infinite-head kernel, |sym A|_F^2 / A_rs. Sharp in structure.
    degrees : tuple
    """

    B: float
    rkhs: float
    degrees: tuple[int, int]
    d: int

    def risk_bound(self, n: int, n_heads: int, keys: int, confidence: float = 0.05) -> float:
        """Return sqrt(B) (sqrt(log(d M) log(n N M)/n) + sqrt((d^2 log M + log 1/confidence)/M)).

        The paper proves this rate up to a constant, which is set to one here. At sizes one can run, the bound is vacuous.
        """
        n, M, N = integer(n, "n"), integer(n_heads, "n_heads", least=2), integer(keys, "keys")
        if not 0 < real(confidence, "confidence") < 1:
            raise InputError(f"confidence must lie between 0 and 1; got {confidence!r}")
        share = np.log(1 / confidence)
        samples = np.sqrt(np.log(self.d * M) * np.log(n * N * M) / n)
        return float(np.sqrt(self.B) * (samples + np.sqrt((self.d**2 * np.log(M) + share) / M)))


def complexity(target: Target, d: int) -> Complexity:
    """Return B(f), the bound on the RKHS norm and the degrees of a target on tokens of dimension d.

    On the sphere K = sum_k a_k 4^-k c^k t^(k+1), c = 1 + <x_0, x_0'>, t = 1 + <x_i, x_j'>, a_k the Taylor coefficients of
    the arc-cosine function. The part of degrees (r, s) has the coefficient A_rs = sum_k a_k 4^-k C(k, r) C(k + 1, s), so
    that ||f||^2 <= |sym A|_F^2 / A_rs.

    Examples
    --------
    >>> from attlas import features
    >>> from attlas.features import targets
    >>> found = features.complexity(targets.Correlation(power=1), d=8)
    >>> found.degrees, round(found.B, 2)
    ((1, 1), 32.0)

    References
    ----------
    fu2023random, theorem 1 and its examples, for B; the RKHS norm is derived here.
    """
    d = integer(d, "d")
    if not hasattr(target, "degrees"):
        raise InputError(
            f"the complexity of {target!r} is not known: it has no degrees; use a target of attlas.features.targets"
        )
    for name in ("beta", "S"):
        given = getattr(target, name, None)
        if given is not None and np.shape(given)[0] != d:
            raise InputError(f"{name} of the target has dimension {np.shape(given)[0]}, not d = {d}")
    r, s = target.degrees
    if max(r, s) > 100:
        raise InputError(f"the target has degrees {r}, {s}; complexities are computed up to 100")
    k = max(r, s - 1)
    constant = max(1.0, k**4.5 * 4.0**k) if k > 0 else 1.0
    return Complexity(constant * target.norm(d) ** 2, target.symmetric_norm(d) ** 2 / _coefficient(r, s), (r, s), d)


def _coefficient(r: int, s: int) -> float:
    """Return A_rs."""
    from scipy.special import comb

    k = np.arange(_TERMS)
    return float(np.sum(_taylor() * 4.0**-k * comb(k, r) * comb(k + 1, s)))


def _taylor() -> Array:
    """Return the Taylor coefficients of kappa: 1/2pi, 1/4, then those of its second derivative 1/(2 pi sqrt(1 - rho^2))."""
    a = np.zeros(_TERMS)
    a[0], a[1] = 1 / (2 * np.pi), 0.25
    term = 1 / (2 * np.pi)  # of rho^(2 j) in kappa''
    for j in range((_TERMS - 2) // 2):
        a[2 * j + 2] = term / ((2 * j + 2) * (2 * j + 1))
        term *= (2 * j + 1) / (2 * j + 2)
    return a
