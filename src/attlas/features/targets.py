"""Functions of a query and its keys that a learner is asked to find. A target of your own is any function X -> (n,).

References
----------
fu2023random, section 3.2, where these are the examples.
"""

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.errors import InputError
from attlas.features.sequences import sequences
from attlas.inputs import array, integer, real
from attlas.numerics import Seed, generator, stream

if TYPE_CHECKING:
    from attlas.features.sharp.expansion import Expansion

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

    def expansion(self, d: int) -> "Expansion":
        """Return the target in harmonics, for the theory."""
        from attlas.features.sharp.expansion import query_expansion

        return query_expansion(self.norm(d) ** (1 / self.power), self.power, d)

    def __call__(self, X: ArrayLike) -> Array:
        """Return the values (n,)."""
        X = sequences(X)
        return np.asarray((X[:, 0] @ _fitting(self.beta, X)) ** self.power)


@dataclass(frozen=True)
class KeyAverage:
    """(1/N) sum_i s_i <beta, x_i>^power: the query does not matter, nor, without weights s, does the order of the keys."""

    beta: ArrayLike = field(repr=False)
    power: int = 1
    weights: ArrayLike | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        _direction(self.beta, self.power)
        _weights(self.weights)

    @property
    def degrees(self) -> tuple[int, int]:
        """(0, power)."""
        return 0, self.power

    def norm(self, d: int) -> float:  # noqa: ARG002
        """|beta|^power."""
        return float(np.linalg.norm(np.asarray(self.beta)) ** self.power)

    symmetric_norm = norm

    def expansion(self, d: int) -> "Expansion":
        """Return the target in harmonics, for the theory."""
        from attlas.features.sharp.expansion import key_expansion

        return key_expansion(self.norm(d) ** (1 / self.power), self.power, d, _weights(self.weights))

    def __call__(self, X: ArrayLike) -> Array:
        """Return the values (n,)."""
        X = sequences(X)
        return _average((X[:, 1:] @ _fitting(self.beta, X)) ** self.power, self.weights)


@dataclass(frozen=True)
class Correlation:
    """(1/N) sum_i s_i <x_0, S x_i>^power <beta, x_i>^key_power: how far keys look like the query, or like S^T of it.

    Parameters
    ----------
    power : int
    S : array of shape (d, d), optional
        The identity if not given.
    beta : array of shape (d,), optional
        Weighs the keys; needed for key_power > 0.
    key_power : int, default 0
    weights : array of shape (keys,), optional
        s_i, ones if not given: with them the order of the keys matters.
    """

    power: int = 1
    S: ArrayLike | None = field(default=None, repr=False)
    beta: ArrayLike | None = field(default=None, repr=False)
    key_power: int = 0
    weights: ArrayLike | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        integer(self.power, "power")
        _weights(self.weights)
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
        return _average(values, self.weights)

    def expansion(self, d: int) -> "Expansion":
        """Return the target in harmonics, for the theory."""
        from attlas.features.sharp.expansion import correlation_expansion

        S = None if self.S is None else array(self.S, "S", ("d", "d"), (d, d))
        size = 1.0 if self.beta is None else float(np.linalg.norm(np.asarray(self.beta)))
        return correlation_expansion(self.power, d, S, size, self.key_power, _weights(self.weights))


@dataclass(frozen=True)
class Outputs:
    """Several targets as the outputs of one: values (n, outputs), whose squared errors add up.

    (1/N) sum_i <x_0, x_i> x_i, for one, is d weighted correlations along the axes.
    """

    parts: tuple[Any, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        if not self.parts:
            raise InputError("a target needs at least one output; parts is empty")

    def expansion(self, d: int) -> "list[Expansion]":
        """Return the outputs in harmonics, for the theory."""
        from attlas.features.sharp.expansion import expansions

        return [each for part in self.parts for each in expansions(part, d, False)]

    def __call__(self, X: ArrayLike) -> Array:
        """Return the values (n, outputs)."""
        return np.stack([part(X) for part in self.parts], axis=1)


def named(name: str, d: int, seed: int) -> Query | KeyAverage | Correlation:
    """Return the target of a family and power, its direction and its rotation drawn at random.

    ===============  ========  ============================================
    "query 2"        query2    <beta, x_0>^2
    "keys 2"         keys2     (1/N) sum_i <beta, x_i>^2
    "correlation 2"  corr2     (1/N) sum_i <x_0, x_i>^2
    "rotated 2"      scorr2    (1/N) sum_i <x_0, S x_i>^2, S a rotation
    "weighted 2"     wcorr21   (1/N) sum_i <x_0, x_i>^2 <beta, x_i>
    "weighted 2 3"   wcorr23   (1/N) sum_i <x_0, x_i>^2 <beta, x_i>^3
    ===============  ========  ============================================

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
    family, *powers = _words(name)
    if not 1 <= len(powers) <= 2 or not all(power.isdigit() for power in powers):
        raise InputError(f"a target is named by its family and power, such as 'keys 2'; got {name!r}")
    power, key_power = int(powers[0]), int(powers[-1]) if len(powers) == 2 else 1
    if len(powers) == 2 and family != "weighted":
        raise InputError(f"a second power is that of the weight of 'weighted 1 2'; got {name!r}")
    rng = stream(seed, "target")
    beta = rng.standard_normal(integer(d, "d"))
    beta /= np.linalg.norm(beta)
    rotation = np.linalg.qr(rng.standard_normal((d, d)))[0]
    match family:
        case "query":
            return Query(beta, power)
        case "keys":
            return KeyAverage(beta, power)
        case "correlation":
            return Correlation(power)
        case "rotated":
            return Correlation(power, S=rotation)
        case "weighted":
            return Correlation(power, beta=beta, key_power=key_power)
    raise InputError(f"no target family {family!r}; available: query, keys, correlation, rotated, weighted")


def _words(name: str) -> list[str]:
    """Return family and powers of "keys 2" or "keys2", "weighted 1 2" or "wcorr12"."""
    words = str(name).split()
    short = re.fullmatch(r"(query|keys|corr|scorr|wcorr)(\d+)", str(name).strip())
    if short:
        family = {"corr": "correlation", "scorr": "rotated", "wcorr": "weighted"}.get(short[1], short[1])
        return [family, *short[2]] if family == "weighted" and len(short[2]) == 2 else [family, short[2]]
    return words or [""]


def noisy(values: ArrayLike, ratio: float, seed: Seed) -> Array:
    """Return y/std(y) + sqrt(ratio) xi: values of unit variance and Gaussian noise of variance `ratio`."""
    y = array(values, "values", ("n",))
    spread = float(y.std())
    if spread <= 1e-12 * float(np.abs(y).max()):
        raise InputError("the target is constant on these sequences; it has no variance to normalise by")
    return np.asarray(y / spread + np.sqrt(real(ratio, "ratio", least=0)) * generator(seed).standard_normal(len(y)))


def _weights(weights: ArrayLike | None) -> Array | None:
    return None if weights is None else np.asarray(array(weights, "weights", ("keys",)))


def _average(values: Array, weights: ArrayLike | None) -> Array:
    """Return the average over keys, weighted."""
    if weights is not None:
        values = values * array(weights, "weights", ("keys",), (values.shape[1],))
    return np.asarray(np.nanmean(values, axis=1))


def _direction(beta: ArrayLike, power: int) -> None:
    array(beta, "beta", ("d",))
    integer(power, "power")


def _fitting(beta: ArrayLike | None, X: Array) -> Array:
    return np.asarray(array(np.asarray(beta), "beta", ("d",), (X.shape[2],)))
