"""A spectrum: what the fixed point needs to know of a kernel, as sectors (numbers) or blocks (small matrices).

The features of a head fall into groups g of weight w_g with c_g features each; a group has the operator L_g, and the kernel
of infinitely many heads is sum_g w_g L_g. Every sector has a kind: sequences have the same length of features in sectors of
one kind (see `key_norms`).
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Label = tuple[
    int, ...
]  # degrees (a, b); (a, b, -1) is a contrast between keys; in a network, the degrees of all tokens

FLAT = 1e12  # multiplicity of the flat sector that holds what was cut off


class Terms(NamedTuple):
    """Sums over sectors at some D = n Omega, a_g = w_g/(1 + chi_g) and penalty, with R = (A + lam/D)^-1, h = R A/D.

    Attributes
    ----------
    Q : array of shape (kinds,)
        sum mu tr h.
    T : array of shape (groups,)
        sum mu tr(L_g R).
    P : array of shape (groups, kinds)
        sum mu diag(R L_g R).
    S : array of shape (groups, groups)
        sum mu tr(L_g R L_g' R).
    C : array of shape (kinds, kinds)
        sum mu h_ij^2.
    """

    Q: Array
    T: Array
    P: Array
    S: Array
    C: Array


class Groups(Protocol):
    """The groups of features of a head."""

    @property
    def widths(self) -> Array:
        """The features c_g of a head in each group."""

    def positive(self, L: Array) -> Array:
        """Return operators (groups, sectors) without what rounding made negative."""

    def coefficients(self, chi: Array) -> tuple[Array, Array]:
        """Return a, in which A = sum_g a_g L_g, and its derivatives by chi, (groups, groups)."""


class Part(Protocol):
    """Sectors of one shape."""

    @property
    def labels(self) -> list[list[Label]]:
        """Degrees (a, b) in query and key of the basis, for each sector or block."""

    @property
    def size(self) -> int:
        """Entries of the symmetric matrices of energies: one for each sector, m x m for a block."""

    def solved(self, D: Array, a: Array, ridge: float) -> tuple[Array, Array, Array]:
        """Return R, h and the own D of each basis function."""

    def terms(self, solved: tuple[Array, Array, Array]) -> Terms:
        """Return the sums."""

    def response(self, solved: tuple[Array, Array, Array], ridge: float, omega: Array, change: Array) -> Array:
        """Return H: the test error of a target is sum of energies * H (flattened).

        H = lam^2 R diag(omega/D) R - lam sum_g change_g R L_g R: derivative of lam R along d log D = omega, d a = change.
        """

    def eigenvalues(self, weights: Array, energies: Array) -> "list[tuple[str, float, float, float]]":
        """Return name, multiplicity, eigenvalue and a target's energy of each eigenspace of the infinite-head kernel."""


@dataclass(frozen=True)
class Sectors:
    """Sectors with one number each, all at once.

    Attributes
    ----------
    labels : list
        Degrees (a, b), in a list of one each; (-1, -1) is the flat sector.
    multiplicity : array of shape (S,)
    L : array of shape (groups, S)
    kinds : array of shape (S, kinds)
        One-hot.
    """

    labels: list[list[Label]] = field(repr=False)
    multiplicity: Array = field(repr=False)
    L: Array = field(repr=False)
    kinds: Array = field(repr=False)

    @property
    def size(self) -> int:
        """One energy for each sector."""
        return len(self.multiplicity)

    def solved(self, D: Array, a: Array, ridge: float) -> tuple[Array, Array, Array]:
        """Return R, h and D of each sector."""
        A, own = a @ self.L, self.kinds @ D
        below = own * A + ridge
        return own / below, A / below, own

    def terms(self, solved: tuple[Array, Array, Array]) -> Terms:
        """Return the sums."""
        R, h, _ = solved
        twice = self.L * (self.multiplicity * R * R)
        return Terms(
            (self.multiplicity * h) @ self.kinds,
            self.L @ (self.multiplicity * R),
            twice @ self.kinds,
            twice @ self.L.T,
            np.diag((self.multiplicity * h * h) @ self.kinds),
        )

    def response(self, solved: tuple[Array, Array, Array], ridge: float, omega: Array, change: Array) -> Array:
        """Return H."""
        R, _, own = solved
        return np.asarray(R * R * (ridge**2 * (self.kinds @ omega) / own - ridge * (change @ self.L)))

    def eigenvalues(self, weights: Array, energies: Array) -> list[tuple[str, float, float, float]]:
        """Return the sectors, named by their degrees."""
        names = [_name(labels[0]) for labels in self.labels]
        return list(zip(names, self.multiplicity, weights @ self.L, energies, strict=True))


@dataclass(frozen=True)
class Block:
    """One block of m basis functions, the same for every one of `multiplicity` copies.

    Attributes
    ----------
    name : tuple
        (L1, L2), the representation of the rotations.
    basis : list
        Degrees (a, b) of the m basis functions.
    multiplicity : float
    L : array of shape (groups, m, m)
    kinds : array of shape (m, kinds)
    """

    name: Label
    basis: list[Label] = field(repr=False)
    multiplicity: float
    L: Array = field(repr=False)
    kinds: Array = field(repr=False)

    @property
    def labels(self) -> list[list[Label]]:
        """The basis of the one block."""
        return [self.basis]

    @property
    def size(self) -> int:
        """A matrix of energies."""
        return len(self.basis) ** 2

    @cached_property
    def wide(self) -> Array:
        """All L_g side by side, (m, groups m), for one product."""
        G, m, _ = self.L.shape
        return np.ascontiguousarray(self.L.transpose(1, 0, 2).reshape(m, G * m))

    def solved(self, D: Array, a: Array, ridge: float) -> tuple[Array, Array, Array]:
        """Return R, h = R A/D and D. With S = sqrt(D) A sqrt(D): R = sqrt(D) (S + lam)^-1 sqrt(D)."""
        G, m, _ = self.L.shape
        A = (a @ self.L.reshape(G, m * m)).reshape(m, m)
        own = self.kinds @ D
        root = np.sqrt(own)
        scale = root[:, None] * root
        inner = scale * A
        inner.flat[:: m + 1] += ridge
        R = np.linalg.inv(inner) * scale
        return R, (R @ A) / own[:, None], own

    def terms(self, solved: tuple[Array, Array, Array]) -> Terms:
        """Return the sums."""
        R, h, _ = solved
        G, m, _ = self.L.shape
        RL = (R @ self.wide).reshape(m, G, m).transpose(1, 0, 2)
        flat = RL.reshape(G, m * m)
        turned = RL.transpose(0, 2, 1).reshape(G, m * m)
        mu = self.multiplicity
        return Terms(
            mu * (h.diagonal() @ self.kinds),
            mu * flat[:, :: m + 1].sum(1),
            mu * ((RL * R).sum(2) @ self.kinds),
            mu * (flat @ turned.T),
            mu * (self.kinds.T @ (h * h.T) @ self.kinds),
        )

    def response(self, solved: tuple[Array, Array, Array], ridge: float, omega: Array, change: Array) -> Array:
        """Return H."""
        R, _, own = solved
        G, m, _ = self.L.shape
        inner = -ridge * (change @ self.L.reshape(G, m * m)).reshape(m, m)
        inner.flat[:: m + 1] += ridge**2 * (self.kinds @ omega) / own
        return np.asarray((R @ inner @ R).ravel())

    def eigenvalues(self, weights: Array, energies: Array) -> list[tuple[str, float, float, float]]:
        """Return the eigenfunctions of the block, largest first."""
        m = len(self.basis)
        values, vectors = np.linalg.eigh(np.tensordot(weights, self.L, 1))
        shares = np.einsum("ik,ij,jk->k", vectors, energies.reshape(m, m), vectors)
        names = [f"[{self.name[0]}, {self.name[1]}] {k}" for k in range(m)]
        return list(zip(names, [self.multiplicity] * m, values[::-1], shares[::-1], strict=True))


@dataclass(frozen=True)
class Spectrum:
    """The spectrum of a kernel, and of the groups of features that make it.

    Attributes
    ----------
    parts : list
        `Sectors` and `Block` objects; the last sector is flat and holds what was cut off.
    groups : Groups
        The groups of features of a head: how many, and how they act together.
    trace : float
        Of the kernel: E[K(X, X)].
    cut : float
        The part of the trace that the flat sector holds.
    """

    parts: list[Part]
    groups: Groups
    trace: float
    cut: float

    @property
    def weights(self) -> Array:
        """In which the groups make the kernel of infinitely many heads."""
        return self.groups.coefficients(np.zeros(len(self.groups.widths)))[0]


def one_hot(kinds: "list[int] | NDArray[np.intp]", count: int) -> Array:
    """Return the kinds as rows of zeros and a one."""
    return np.eye(count)[np.asarray(kinds, dtype=int)]


def _name(label: Label) -> str:
    if label == (-1, -1):
        return "flat"
    return f"({label[0]}, {label[1]}) contrast" if label[-1] == -1 else str(label)
