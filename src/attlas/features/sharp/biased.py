"""The spectrum of random-feature attention with a bias W_0 = b [[I, 0], [0, 0]], by blocks of rotations.

A bias makes the scores depend on w = <x_0, x_i>, so only joint rotations of query and keys are left. With C_k = c_k(b
W), W the matrix of multiplication by w in a block (`rotation_blocks`), and T_k = diag(2 m_ka m_(k+1)b),

    block operator = D^(1/2) (sum_k C_k T_k C_k) D^(1/2),    scalar part with T_k = diag(m_ka m_kb).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attlas.features.scoring import Scoring
from attlas.features.sharp.expansion import Expansion
from attlas.features.sharp.groups import Apart
from attlas.features.sharp.harmonics import half_moments
from attlas.features.sharp.key_norms import key_norms, kind_of, kinds
from attlas.features.sharp.limits import head_limits
from attlas.features.sharp.model import Placed, spread
from attlas.features.sharp.offsets import offsets
from attlas.features.sharp.rotation_blocks import RotationBlock, rotation_block
from attlas.features.sharp.spectrum import FLAT, Block, Part, Sectors, Spectrum, one_hot
from attlas.features.sharp.traces import traces
from attlas.features.sharp.unbiased import offset_moments

Array = NDArray[np.float64]

TERMS = 61
DEGREE = 6  # largest L1 + L2


@dataclass(frozen=True)
class Biased:
    """Attention with heads of bias W_0 = b [[I, 0], [0, 0]], as a `Model`."""

    d: int
    keys: int
    scoring: Scoring
    bias: float
    needs_blocks: bool = True
    per_head: float = 1.0

    @property
    def cap(self) -> int:
        """The largest a + b of the basis; strong biases need more."""
        return 12 if abs(self.bias) < 4 else 14

    def infinite(self) -> Spectrum:
        """Return the spectrum of infinitely many heads."""
        return infinite_spectrum(self.d, self.keys, self.scoring, self.bias, DEGREE, self.cap)

    def finite(self, offset_nodes: int, norm_nodes: int) -> Spectrum:  # noqa: ARG002
        """Return the spectrum of finitely many heads, their offsets resolved; lengths of rows are not."""
        return finite_spectrum(self.d, self.keys, self.scoring, self.bias, DEGREE, self.cap, offset_nodes)

    def norms(self, samples: int) -> Array:
        """Return samples of tau_b; the lengths that the bias adds are neglected."""
        return key_norms(self.d, self.keys, samples)

    def place(self, spectrum: Spectrum, expansion: Expansion) -> Placed:
        """Return the energies by block, matrices; contrasts between keys are outside."""
        shared, contrasts = spread(expansion, self.keys)
        missing = dict(expansion.blocks or {})
        mean = 1.0 if expansion.weights is None else float(np.mean(expansion.weights))
        found, inside = [], 0.0
        for part in spectrum.parts:
            theta = np.zeros(len(part.labels[0]))
            known = missing.pop(getattr(part, "name", (-1, -1)), {})
            for place, label in enumerate(part.labels[0]):
                if label in known:
                    theta[place] = mean * known[label] / np.sqrt(self.keys if label[1] else 1)
            inside += float(theta @ theta)
            found.append(np.outer(theta, theta).ravel())
        total = sum(shared.values())
        outside = max(total - inside, 0.0) if total - inside > 1e-12 * total else 0.0
        outside += expansion.outside + sum(contrasts.values())
        return Placed(np.concatenate(found), outside, inside + outside - shared.get((0, 0), 0.0))

    def limits(self, heads: float) -> tuple[float, str]:
        """Return the deviation from simulation, and what lies outside."""
        return head_limits(heads, self.d, resolved=False)


def blocks(d: int, degree: int, cap: int) -> Iterator[RotationBlock]:
    """Yield the blocks with L1 + L2 <= degree."""
    for total in range(degree + 1):
        for L2 in range(total // 2 + 1):
            yield rotation_block(total - L2, L2, d, cap)


def infinite_spectrum(d: int, keys: int, scoring: Scoring, bias: float, degree: int, cap: int) -> Spectrum:
    """Return the spectrum of infinitely many heads: one group."""
    parts = [(block, _exact(block, d, keys, scoring, bias).sum(0)[None]) for block in blocks(d, degree, cap)]
    whole = traces(d, keys, scoring, bias).sum()
    return _spectrum(parts, np.array([whole]), np.ones(1), np.ones(1))


def finite_spectrum(d: int, keys: int, scoring: Scoring, bias: float, degree: int, cap: int, nodes: int) -> Spectrum:
    """Return the spectrum of finitely many heads, whose groups are as for the unbiased ones."""
    exact_traces = traces(d, keys, scoring, bias)
    if not nodes:
        two = [(block, _exact(block, d, keys, scoring, bias)) for block in blocks(d, degree, cap)]
        return _spectrum(two, exact_traces, np.ones(2), np.array([float(d), 1.0]))
    places, weights = offsets(nodes)
    T = offset_moments(d, cap + 1, TERMS)
    parts = []
    for block in blocks(d, degree, cap):
        a, b = np.array(block.basis).T
        root = np.sqrt(_shares(b, keys))
        values, vectors = np.linalg.eigh(block.W)
        c = scoring.coefficients(places[:, None] + bias * values, np.sqrt(0.75), TERMS)
        L = np.empty((2, nodes, len(a), len(a)))
        for q in range(nodes):
            C = np.einsum("ij,kj,lj->kil", vectors, c[:, q], vectors)
            for part in range(2):
                L[part, q] = np.einsum("kil,kl,klj->ij", C, T[part, :, a, b].T, C, optimize=True)
        L *= root[:, None] * root
        exact = _exact(block, d, keys, scoring, bias)
        mean = np.einsum("q,pqij->pij", weights, L)
        scale = np.sqrt(np.einsum("pii->pi", exact) / np.einsum("pii->pi", mean))  # their mean is known exactly
        L *= scale[:, None, :, None] * scale[:, None, None, :]
        parts.append((block, L.reshape(2 * nodes, len(a), len(a))))
    found = np.stack([traces(d, keys, scoring, bias, float(omega)) for omega in places], axis=1)
    found *= (exact_traces / (found @ weights))[:, None]
    return _spectrum(parts, found.ravel(), np.tile(weights, 2), np.repeat([float(d), 1.0], nodes))


def _exact(block: RotationBlock, d: int, keys: int, scoring: Scoring, bias: float) -> Array:
    """Return the operators of the vector and of the scalar part, (2, m, m)."""
    a, b = np.array(block.basis).T
    m = half_moments(d, TERMS + 1, max(a.max(), b.max()) + 1)
    root = np.sqrt(_shares(b, keys))
    values, vectors = np.linalg.eigh(block.W)
    c = scoring.coefficients(bias * values, 1.0, TERMS)
    C = np.einsum("ij,kj,lj->kil", vectors, c, vectors)
    whole = np.einsum("kil,kl,klj->ij", C, 2 * m[:-1][:, a] * m[1:][:, b], C, optimize=True)
    scalar = np.einsum("kil,kl,klj->ij", C, m[:-1][:, a] * m[:-1][:, b], C, optimize=True)
    return np.stack([whole - scalar, scalar]) * root[:, None] * root


def _shares(b: Array, keys: int) -> Array:
    """Return D_b: 1 on functions of the query alone, 1/N on others."""
    return np.where(b == 0, 1.0, 1 / keys)


def _spectrum(parts: list[tuple[RotationBlock, Array]], wholes: Array, weights: Array, widths: Array) -> Spectrum:
    """Return the blocks and the flat sector."""
    found: list[Part] = []
    rest = np.array(wholes)
    for block, L in parts:
        hot = one_hot([kind_of(b) for _, b in block.basis], kinds())
        found.append(Block(block.name, block.basis, block.dimension, np.ascontiguousarray(L), hot))
        rest -= block.dimension * np.einsum("gii->g", L)
    rest = np.maximum(rest, 0.0)
    found.append(Sectors([[(-1, -1)]], np.array([FLAT]), rest[:, None] / FLAT, one_hot([0], kinds())))
    return Spectrum(found, Apart(weights, widths), float(weights @ wholes), float(weights @ rest))
