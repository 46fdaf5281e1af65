"""A fixed point of the state evolution: what the minimum of the loss has learned."""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attlas.errors import InputError
from attlas.inputs import described
from attlas.numerics import Solution, Status

Array = NDArray[np.float64]

Branch = Literal["positional", "semantic"]

BRANCHES: tuple[Branch, Branch] = ("positional", "semantic")
PRESENT = 0.01  # of m or theta, in their own units: below it a mechanism is not used
JUMPS = 1e-3  # share of the response carried by jumps that is still small beside other errors


def check_branch(branch: object) -> None:
    """Raise `InputError` if there is no such branch."""
    if not isinstance(branch, str) or branch not in BRANCHES:
        raise InputError(f'branch must be "positional" or "semantic"; got {described(branch)}')


def least_order(branch: Branch, token_scale: float, encoding: float) -> float:
    """Return the m or theta from which on a mechanism counts as used.

    theta = sigma^2 Q.Q*/d goes as sigma^2. m acts through c m, so that a strong encoding needs little of it.
    """
    return PRESENT / max(encoding, 1.0) if branch == "positional" else PRESENT * token_scale**2


class Order(NamedTuple):
    """Order parameters: q = sigma^2 |Q|^2/d, m = e.Q/sqrt(d) (position), theta = sigma^2 Q.Q*/d (meaning), and V."""

    q: float
    m: float
    theta: float
    V: float

    @property
    def order(self) -> "Order":
        """Itself, so that a solution can be started from either."""
        return self


@dataclass(frozen=True, repr=False)
class FixedPoint(Solution[float]):
    """One branch of the state evolution at one alpha.

    Attributes
    ----------
    value, loss : float
        Minimum of the objective over d.
    test : float
        E|y_hat - y|^2/d of a new sample (cui2024phase plots half of it).
    train : float
        The same mean over the data.
    q, m, theta, V : float
        Norm sigma^2 |Q|^2/d, position e.Q/sqrt(d), meaning sigma^2 Q.Q*/d, and response of the student.
    envelope : float
        d loss / d alpha.
    slope : float
        By how much a small amount of the other mechanism grows in one step of the state evolution: above 1 the branch is
        unstable to it.
    jump_share : float
        Share of the response that is carried by jumps of the proximal map. Where it is not zero replica symmetry is broken,
        and the numbers are an approximation.
    replica : float
        alpha E|dprox - I|^2: replica symmetry needs it below 1.
    cosine : float
        Q.Q*/(|Q| |Q*|).
    attention : array of shape (2, 2)
        Mean attention matrix of the student on new samples.
    branch : str
        "positional" or "semantic".
    alpha : float
        Samples over d.
    token_scale, encoding : float
        Of the model.
    rule_error : float
        Largest relative change of sd^2, V and m or theta from the coarse quadrature to the one used, which bounds its error;
        at the coarse one (tol = 1e-4) 1e-4, what it is good to.
    residual : float
        Largest relative change of q, V and m or theta in one step.
    history : array of shape (steps, 3)
        q, V and m (or theta), step by step.
    """

    test: float = np.nan
    train: float = np.nan
    q: float = np.nan
    m: float = np.nan
    theta: float = np.nan
    V: float = np.nan
    envelope: float = np.nan
    slope: float = np.nan
    jump_share: float = np.nan
    replica: float = np.nan
    cosine: float = np.nan
    attention: Array = field(default_factory=lambda: np.full((2, 2), np.nan))
    branch: str = ""
    alpha: float = np.nan
    rule_error: float = np.nan
    token_scale: float = 1.0
    encoding: float = 1.0

    @property
    def loss(self) -> float:
        """Minimum of the objective over d."""
        return self.value

    @property
    def order(self) -> Order:
        """The order parameters, to start another solution from."""
        return Order(self.q, self.m, self.theta, self.V)

    @property
    def mechanism(self) -> str:
        """What the layer attends by, "positional", "semantic", or "none" where m and theta are as good as zero."""
        used = (
            branch for branch, own in zip(BRANCHES, (self.m, self.theta), strict=True) if abs(own) > self._least(branch)
        )
        return next(used, "none")

    def _least(self, branch: Branch) -> float:
        return least_order(branch, self.token_scale, self.encoding)

    @property
    def stable(self) -> bool:
        """Whether the branch is a minimum also towards the other mechanism."""
        return self.slope < 1

    @property
    def exact(self) -> bool:
        """Whether replica symmetry holds, so that these are limits and no approximation."""
        return self.jump_share == 0 and self.replica < 1

    @property
    def reliable(self) -> bool:
        """Whether the theory is exact, or so close that other errors are larger (jumps carry 0.1 % at most)."""
        return self.jump_share <= JUMPS and self.replica < 1

    @property
    def standing(self) -> str:
        """How far to trust this point, in a few words, either "exact" or what to beware of, the worst first.

        "not converged (...)", "none" (the equations have no solution of this kind), "unstable" (a saddle, not a minimum),
        and, maybe after these, "approximate" (replica symmetry is broken) or "nearly exact" (jumps carry 0.1 % at most).
        """
        if not self.converged:
            return f"not converged ({self.status})"
        first = "none" if self.mechanism != self.branch else "" if self.stable else "unstable"
        second = "" if self.exact else "nearly exact" if self.reliable else "approximate"
        return ", ".join(word for word in (first, second) if word) or "exact"

    def __repr__(self) -> str:
        own = f"m={self.m:.6g}" if self.branch == "positional" else f"theta={self.theta:.6g}"
        return (
            f"FixedPoint({self.branch}, alpha={self.alpha:g}: loss={self.loss:.6g}, test={self.test:.6g}, q={self.q:.6g},"
            f" {own}; {self.standing})"
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know before this number is used; empty where all is well."""
        found = []
        if not self.converged:
            advice = "take a smaller tol" if self.status is Status.INACCURATE else self.status.advice
            found.append(f"Not converged: {self.status}; {advice}.")
        if self.jump_share > JUMPS:
            found.append(
                f"The theory is approximate here: jumps carry {self.jump_share:.2g} of the response, so replica symmetry is"
                " broken."
            )
        elif self.jump_share > 0:
            found.append(
                f"Jumps carry {self.jump_share:.1g} of the response: the theory is not exact, but close enough to use."
            )
        if self.replica >= 1:
            found.append(f"Replica symmetry is unstable here (alpha E|dprox - I|^2 = {self.replica:.3g}, not below 1).")
        if self.mechanism != self.branch:
            found.append(
                f"The equations have no {self.branch} solution here: what is found attends by neither mechanism."
            )
            if not self.exact:
                found.append(f"Training may still have a {self.branch} minimum, since the theory is not exact here.")
        elif not self.stable:
            found.append(
                "This branch is unstable: a trace of the other mechanism grows. It is a saddle, not a minimum."
            )
        return tuple(found)
