"""The deterministic equations of ridge regression on random features, solved by Newton's method.

Unknown are Omega_b for every kind of sector and chi_g for every group of features. With D = n Omega, A = sum_g
a_g(chi) L_g, R = (A + lam/D)^-1 and h = R A/D,

    Omega_b = E_tau[tau_b/(1 + sum Q_b' tau_b')],  Q_b = sum_(sectors of kind b) mu tr h,  chi_g = sum mu tr(L_g R)/(M c_g).

The training energy of a target with coordinates theta is e = lam theta^T R theta; its test error is the total
derivative de/dt at t = 0 with Omega -> Omega + t/n in R and h. For label noise e = n E_tau[1/(1 + sum Q tau)].

References
----------
simon2023eigenlearning, cheng2024dimension for one kind and infinitely many features; defilippis2024dimension for finitely
many; the kinds (key norms) and groups (head offsets) are derived in `docs/features.md`.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from attlas.features.sharp.spectrum import Spectrum, Terms
from attlas.numerics import Solution, Status

Array = NDArray[np.float64]

TOL = 1e-10
MAX_STEPS = 200
_LONGEST = 1.5  # of a Newton step, in logarithms


@dataclass(frozen=True)
class Equations:
    """One setting: a spectrum, samples of the key norms, n samples, an absolute penalty and M heads (or infinity)."""

    spectrum: Spectrum
    tau: Array
    n: float
    ridge: float
    heads: float

    @property
    def kinds(self) -> int:
        """Number of the unknown Omega."""
        return self.tau.shape[1]

    @property
    def finite(self) -> bool:
        """Whether chi is unknown too; with infinitely many heads it is zero."""
        return bool(np.isfinite(self.heads))

    def split(self, logs: Array) -> tuple[Array, Array]:
        """Return D and chi."""
        values = np.exp(logs)
        chi = values[self.kinds :] if self.finite else np.zeros(len(self.spectrum.groups.widths))
        return self.n * values[: self.kinds], chi

    def image(self, logs: Array) -> "Image":
        """Return log g(u), its derivative by log u, and what they were made of."""
        D, chi = self.split(logs)
        a, slope = self.spectrum.groups.coefficients(chi)
        solved = [part.solved(D, a, self.ridge) for part in self.spectrum.parts]
        terms = _sum([part.terms(each) for part, each in zip(self.spectrum.parts, solved, strict=True)])
        mean, square = self._averages(terms.Q)
        by_log_omega, by_a = self.changes_of_Q(D, terms)
        top = -square @ by_log_omega / mean[:, None]
        if not self.finite:
            return Image(np.log(mean), top, terms, solved)
        scale = 1 / (self.heads * self.spectrum.groups.widths)
        found = terms.T * scale
        da = slope * chi  # by log chi
        jacobian = np.block(
            [
                [top, (-square @ by_a / mean[:, None]) @ da],
                [
                    self.ridge * (terms.P / D) * (scale / found)[:, None],
                    -terms.S @ da * (scale / found)[:, None],
                ],
            ]
        )
        return Image(np.log(np.concatenate([mean, found])), jacobian, terms, solved)

    def _averages(self, Q: Array) -> tuple[Array, Array]:
        """Return E[tau_b/(1 + Q tau)] and E[tau_b tau_b'/(1 + Q tau)^2]."""
        share = self.tau / (1 + self.tau @ Q)[:, None]
        return share.mean(0), share.T @ share / len(share)

    def changes_of_Q(self, D: Array, terms: Terms) -> tuple[Array, Array]:
        """Return the derivatives of Q by log Omega and by a_g."""
        return -terms.C * D, self.ridge * (terms.P / D**2).T


class Image(NamedTuple):
    """log g at a point, its derivative, and the sums and resolvents behind them."""

    logs: Array
    jacobian: Array
    terms: Terms
    solved: list[tuple[Array, Array, Array]]


class Response(NamedTuple):
    """What a solved setting does to any target: `error = sum of energies * H`.

    Attributes
    ----------
    H : array of shape (entries,)
        The test error of unit energy in each sector.
    noise : float
        The variance of the predictor from label noise of unit variance.
    freedom : float
        Effective degrees of freedom, sum mu tr(D h).
    """

    H: Array
    noise: float
    freedom: float


def solve(
    equations: Equations, start: Array | None = None, max_steps: int = MAX_STEPS
) -> tuple[Solution[Array], Image]:
    """Return the logarithms of Omega and chi that solve the equations, and their image.

    A few damped steps u <- (u + g(u))/2 lead into the reach of Newton's method, whose steps are clipped and are taken
    only if
    they shrink the residual; where they do not, the damped step is. The residual is the largest |log g(u) - log u|.
    """
    logs = _beginning(equations) if start is None else np.array(start)
    history: list[float] = []
    image = equations.image(logs)
    for _ in range(max_steps):
        size = float(np.abs(image.logs - logs).max())
        history.append(size)
        if not np.isfinite(size):
            return Solution(logs, Status.DIVERGED, np.inf, len(history), np.array(history)), image
        if size < TOL:
            return Solution(logs, Status.CONVERGED, size, len(history), np.array(history)), image
        logs, image = _step(equations, logs, image)
    size = float(np.abs(image.logs - logs).max())
    return Solution(logs, Status.OUT_OF_STEPS, size, max_steps, np.array(history)), image


def respond(equations: Equations, logs: Array, image: Image) -> Response:
    """Return what the solved setting does to targets and to noise."""
    D, chi = equations.split(logs)
    spectrum, terms = equations.spectrum, image.terms
    explicit = np.zeros(len(logs))
    explicit[: equations.kinds] = 1 / D  # d log Omega/dt of t/n, at fixed unknowns
    total = explicit + np.linalg.solve(np.eye(len(logs)) - image.jacobian, image.jacobian @ explicit)
    omega = total[: equations.kinds]
    change = np.zeros(len(spectrum.groups.widths))
    if equations.finite:
        change = spectrum.groups.coefficients(chi)[1] @ (chi * total[equations.kinds :])
    pairs = zip(spectrum.parts, image.solved, strict=True)
    H = np.concatenate([part.response(each, equations.ridge, omega, change) for part, each in pairs])
    by_log_omega, by_a = equations.changes_of_Q(D, terms)
    moved = by_log_omega @ omega + by_a @ change
    whole = 1 + equations.tau @ terms.Q
    noise = -equations.n * float(np.mean(equations.tau @ moved / whole**2))
    return Response(H, noise, float(D @ terms.Q))


def _beginning(equations: Equations) -> Array:
    """Return a start: Omega = 1 and chi = 1/e, then some damped steps."""
    count = equations.kinds + (len(equations.spectrum.groups.widths) if equations.finite else 0)
    logs = np.zeros(count)
    logs[equations.kinds :] = -1.0
    for _ in range(4):
        logs = np.logaddexp(logs, equations.image(logs).logs) - np.log(2)
    return logs


def _step(equations: Equations, logs: Array, image: Image) -> tuple[Array, Image]:
    """Return the next point with its image: Newton's if it helps, else a damped one."""
    miss = image.logs - logs
    size = np.abs(miss).max()
    try:
        newton = np.linalg.solve(np.eye(len(logs)) - image.jacobian, miss)
    except np.linalg.LinAlgError:
        newton = miss / 2
    longest = np.abs(newton).max()
    newton *= min(1.0, _LONGEST / longest) if longest > 0 else 1.0
    for share in (1.0, 0.5, 0.2, 0.05):
        at = logs + share * newton
        found = equations.image(at)
        if np.abs(found.logs - at).max() < (1 - share / 10) * size:
            return at, found
    at = np.logaddexp(logs, image.logs) - np.log(2)  # a mean keeps the matrices of paired features positive
    return at, equations.image(at)


def _sum(each: list[Terms]) -> Terms:
    if len(each) == 1:
        return each[0]
    return Terms(*(sum(values[1:], start=values[0]) for values in zip(*each, strict=True)))
