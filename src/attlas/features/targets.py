"""Functions of a query and its keys that a learner is asked to find. A target of your own is any function X -> (n,).

References
----------
fu2023random, section 3.2, where these are the examples.
"""

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.errors import InputError
from attlas.features.sequences import sequences
from attlas.inputs import array, integer, real
from attlas.numerics import Seed, generator, stream

Array = NDArray[np.float64]


class Target(Protocol):
    """A target whose complexity is known: an average over keys of <A, x_0^(r) (x) x_i^(s)>."""

    @property
    def degrees(self) -> tuple[int, int]:
        """Degrees (r, s) in the query and in a key."""

    def norm(self, d: int) -> float:
        """The Frobenius norm of the coefficient tensor A."""

    def symmetric_norm(self, d: int) -> float:
        """The Frobenius norm of A made symmetric in the query slots and in the key slots."""

    def __call__(self, X: ArrayLike) -> Array:
        """Return the values (n,)."""


@dataclass(frozen=True)
class Query:
    """<beta, x_0>^power: the keys do not matter."""

    beta: ArrayLike = field(repr=False)
    power: int = 1

    def __post_init__(self) -> None:
        _direction(self.beta, self.power)

    @property
    def degrees(self) -> tuple[int, int]:
        """(power, 0)."""
        return self.power, 0

    def norm(self, d: int) -> float:  # noqa: ARG002
        """|beta|^power."""
        return float(np.linalg.norm(np.asarray(self.beta)) ** self.power)

    symmetric_norm = norm

    def __call__(self, X: ArrayLike) -> Array:
        """Return the values (n,)."""
        X = sequences(X)
        return np.asarray((X[:, 0] @ _fitting(self.beta, X)) ** self.power)


@dataclass(frozen=True)
class KeyAverage:
    """(1/N) sum_i <beta, x_i>^power: the query does not matter, nor does the order of the keys."""

    beta: ArrayLike = field(repr=False)
    power: int = 1

    def __post_init__(self) -> None:
        _direction(self.beta, self.power)

    @property
    def degrees(self) -> tuple[int, int]:
        """(0, power)."""
        return 0, self.power

    def norm(self, d: int) -> float:  # noqa: ARG002
        """|beta|^power."""
        return float(np.linalg.norm(np.asarray(self.beta)) ** self.power)

    symmetric_norm = norm

    def __call__(self, X: ArrayLike) -> Array:
        """Return the values (n,)."""
        X = sequences(X)
        return np.asarray(np.nanmean((X[:, 1:] @ _fitting(self.beta, X)) ** self.power, axis=1))


@dataclass(frozen=True)
class Correlation:
    """(1/N) sum_i <x_0, S x_i>^power <beta, x_i>^key_power: how far keys look like the query, or like S^T of it.

    Parameters
    ----------
    power : int
    S : array of shape (d, d), optional
        The identity if not given.
    beta : array of shape (d,), optional
        Weighs the keys; needed for key_power > 0.
    key_power : int, default 0
    """

    power: int = 1
    S: ArrayLike | None = field(default=None, repr=False)
    beta: ArrayLike | None = field(default=None, repr=False)
    key_power: int = 0

    def __post_init__(self) -> None:
        integer(self.power, "power")
        if integer(self.key_power, "key_power", least=0) and self.beta is None:
            raise InputError("a weighted correlation needs beta")
        if self.beta is not None:
            array(self.beta, "beta", ("d",))
        if self.S is not None:
            S = array(self.S, "S", ("d", "d"))
            if S.shape[0] != S.shape[1]:
                raise InputError(f"S must be a square matrix (d, d); got {S.shape}")

    @property
    def degrees(self) -> tuple[int, int]:
        """(power, power + key_power)."""
        return self.power, self.power + self.key_power

    def norm(self, d: int) -> float:
        """|S|_F^power |beta|^key_power."""
        size = np.sqrt(d) if self.S is None else float(np.linalg.norm(np.asarray(self.S)))
        weight = 1.0 if self.beta is None else float(np.linalg.norm(np.asarray(self.beta))) ** self.key_power
        return float(size**self.power * weight)

    def symmetric_norm(self, d: int) -> float:
        """For orthogonal S without weights sqrt(C(d + power - 1, power)), the identity on symmetric tensors; else `norm`."""
        from scipy.special import comb

        S = np.eye(d) if self.S is None else np.asarray(self.S)
        if self.key_power == 0 and np.allclose(S @ S.T, np.eye(d), atol=1e-8):
            return float(np.sqrt(comb(d + self.power - 1, self.power)))
        return self.norm(d)

    def __call__(self, X: ArrayLike) -> Array:
        """Return the values (n,)."""
        X = sequences(X)
        d = X.shape[2]
        query = X[:, 0] if self.S is None else X[:, 0] @ array(self.S, "S", ("d", "d"), (d, d))
        values = np.einsum("nd,nkd->nk", query, X[:, 1:]) ** self.power
        if self.key_power:
            values = values * (X[:, 1:] @ _fitting(self.beta, X)) ** self.key_power
        return np.asarray(np.nanmean(values, axis=1))


def named(name: str, d: int, seed: int) -> Query | KeyAverage | Correlation:
    """Return the target of a family and power, its direction and its rotation drawn at random.

    ===============  ============================================
    "query 2"        <beta, x_0>^2
    "keys 2"         (1/N) sum_i <beta, x_i>^2
    "correlation 2"  (1/N) sum_i <x_0, x_i>^2
    "rotated 2"      (1/N) sum_i <x_0, S x_i>^2, S a rotation
    "weighted 2"     (1/N) sum_i <x_0, x_i>^2 <beta, x_i>
    ===============  ============================================

    Parameters
    ----------
    name : str
        As in the table, with any power of at least 1.
    d : int
    seed : int
        Targets of one seed share beta and S.

    Raises
    ------
    InputError
        If there is no such family, or the power is not an integer.
    """
    family, _, power = name.partition(" ")
    if not power.isdigit():
        raise InputError(f"a target is named by its family and power, such as 'keys 2'; got {name!r}")
    rng = stream(seed, "target")
    beta = rng.standard_normal(integer(d, "d"))
    beta /= np.linalg.norm(beta)
    rotation = np.linalg.qr(rng.standard_normal((d, d)))[0]
    match family:
        case "query":
            return Query(beta, int(power))
        case "keys":
            return KeyAverage(beta, int(power))
        case "correlation":
            return Correlation(int(power))
        case "rotated":
            return Correlation(int(power), S=rotation)
        case "weighted":
            return Correlation(int(power), beta=beta, key_power=1)
    raise InputError(f"no target family {family!r}; available: query, keys, correlation, rotated, weighted")


def noisy(values: ArrayLike, ratio: float, seed: Seed) -> Array:
    """Return y/std(y) + sqrt(ratio) xi: values of unit variance and Gaussian noise of variance `ratio`."""
    y = array(values, "values", ("n",))
    spread = float(y.std())
    if spread <= 1e-12 * float(np.abs(y).max()):
        raise InputError("the target is constant on these sequences; it has no variance to normalise by")
    return np.asarray(y / spread + np.sqrt(real(ratio, "ratio", least=0)) * generator(seed).standard_normal(len(y)))


def _direction(beta: ArrayLike, power: int) -> None:
    array(beta, "beta", ("d",))
    integer(power, "power")


def _fitting(beta: ArrayLike | None, X: Array) -> Array:
    return np.asarray(array(np.asarray(beta), "beta", ("d",), (X.shape[2],)))
