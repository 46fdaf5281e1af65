"""The spectrum of random-feature attention without bias, exact for every pointwise scoring function.

The kernel k(u, v) = sum_k c_k^2 ((1 + u)/2)^k ((1 + v)/2)^k (1 + v) of two tokens, u = <x_0, x_0'>, v = <x_i, x_j'>, has the
sectors (a, b) of query and key harmonics. On sequences, Y_a(x_0) N^(-1/2) sum_i Y_b(x_i) are orthonormal (for b = 0,
Y_a alone):

    lam_ab = D_b E[k P_a(u) P_b(v)] = D_b sum_k c_k^2 m_ka 2 m_(k+1)b,   D_0 = 1, D_b = 1/N,   multiplicity N_a N_b.

The last value coordinate (the one) contributes the scalar part sum_k c_k^2 m_ka m_kb, the other d the vector part.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from attlas.features.scoring import Scoring
from attlas.features.sharp.expansion import Expansion
from attlas.features.sharp.groups import Apart, Paired
from attlas.features.sharp.harmonics import half_moments, harmonics, legendre, sphere_nodes
from attlas.features.sharp.head_laws import head_laws
from attlas.features.sharp.key_norms import key_norms, kind_of, kinds
from attlas.features.sharp.limits import head_limits
from attlas.features.sharp.model import Placed, place_in_sectors, spread
from attlas.features.sharp.offsets import offsets
from attlas.features.sharp.spectrum import FLAT, Groups, Label, Sectors, Spectrum, one_hot
from attlas.features.sharp.traces import traces

Array = NDArray[np.float64]

TERMS = 400  # of the Hermite series
INFINITE_DEGREES = 25
FINITE_DEGREES = 11


@dataclass(frozen=True)
class Unbiased:
    """Attention with unbiased heads, as a `Model`."""

    d: int
    keys: int
    scoring: Scoring
    needs_blocks: bool = False
    per_head: float = 1.0

    def infinite(self) -> Spectrum:
        """Return the spectrum of infinitely many heads."""
        return infinite_spectrum(self.d, self.keys, self.scoring, INFINITE_DEGREES)

    def finite(self, offset_nodes: int, norm_nodes: int) -> Spectrum:
        """Return the spectrum of finitely many heads."""
        if offset_nodes and norm_nodes:
            return paired_spectrum(self.d, self.keys, self.scoring, FINITE_DEGREES, offset_nodes, norm_nodes)
        return finite_spectrum(self.d, self.keys, self.scoring, FINITE_DEGREES, offset_nodes)

    def norms(self, samples: int) -> Array:
        """Return samples of tau_b."""
        return key_norms(self.d, self.keys, samples)

    def place(self, spectrum: Spectrum, expansion: Expansion) -> Placed:
        """Return the energies by sector; contrasts between keys are outside."""
        shared, contrasts = spread(expansion, self.keys)
        return place_in_sectors(spectrum.parts, shared, expansion.outside + sum(contrasts.values()))

    def limits(self, heads: float) -> tuple[float, str]:
        """Return the deviation from simulation, and what lies outside."""
        return head_limits(heads, self.d, resolved=True)


class Eigenvalues(NamedTuple):
    """lam_ab of the vector and of the scalar part, (degrees, degrees), and E[K(X, X)] of each."""

    vector: Array
    scalar: Array
    traces: Array


def eigenvalues(d: int, keys: int, scoring: Scoring, degrees: int, terms: int = TERMS) -> Eigenvalues:
    """Return the eigenvalues of sectors with a, b < degrees."""
    c = scoring.coefficients(0.0, 1.0, terms) ** 2
    m = half_moments(d, terms + 1, degrees)
    D = np.where(np.arange(degrees) == 0, 1.0, 1 / keys)
    whole = (m[:-1] * c[:, None]).T @ (2 * m[1:]) * D
    scalar = (m[:-1] * c[:, None]).T @ m[:-1] * D
    return Eigenvalues(whole - scalar, scalar, traces(d, keys, scoring))


def infinite_spectrum(d: int, keys: int, scoring: Scoring, degrees: int) -> Spectrum:
    """Return the spectrum of infinitely many heads: one group."""
    found = eigenvalues(d, keys, scoring, degrees)
    return _spectrum(d, (found.vector + found.scalar)[None], found.traces.sum()[None], Apart(np.ones(1), np.ones(1)))


def finite_spectrum(d: int, keys: int, scoring: Scoring, degrees: int, nodes: int) -> Spectrum:
    """Return the spectrum of finitely many heads: vector and scalar features, for each value of the heads' score offset.

    The offset omega = W[d, d] ~ N(0, 1/4) of a head does not concentrate. Given it, two scores have the correlation
    (u + v + uv)/3 and the variance 3/4. With `nodes` = 0 heads are taken as alike: two groups.
    """
    exact = eigenvalues(d, keys, scoring, degrees)
    if not nodes:
        two = Apart(np.ones(2), np.array([float(d), 1.0]))
        return _spectrum(d, np.stack([exact.vector, exact.scalar]), exact.traces, two)
    places, weights = offsets(nodes)
    L, found = np.empty((2, nodes, degrees, degrees)), np.empty((2, nodes))
    T = offset_moments(d, degrees)
    D = np.where(np.arange(degrees) == 0, 1.0, 1 / keys)
    for q, omega in enumerate(places):
        c = scoring.coefficients(omega, np.sqrt(0.75), T.shape[1]) ** 2
        L[:, q] = np.tensordot(T, c, (1, 0)) * D
        found[:, q] = traces(d, keys, scoring, offset=float(omega))
    for part, whole in enumerate((exact.vector, exact.scalar)):  # their mean is known exactly
        mean = np.tensordot(weights, L[part], 1)
        L[part] *= np.where(mean > 0, whole / np.where(mean > 0, mean, 1.0), 1.0)
        found[part] *= exact.traces[part] / (weights @ found[part])
    groups = Apart(np.tile(weights, 2), np.repeat([float(d), 1.0], nodes))
    return _spectrum(d, L.reshape(-1, degrees, degrees), found.ravel(), groups)


def paired_spectrum(d: int, keys: int, scoring: Scoring, degrees: int, offset_nodes: int, norm_nodes: int) -> Spectrum:
    """Return the spectrum of finitely many heads with all that does not concentrate in them: see `head_laws`, `Paired`."""
    exact = eigenvalues(d, keys, scoring, degrees)
    laws = head_laws(d, keys, scoring, degrees, offset_nodes, norm_nodes)
    scales = []
    for part, whole, trace in ((0, exact.scalar, exact.traces[1]), (3, exact.vector, exact.traces[0])):
        mean = np.tensordot(laws.shares, laws.L[part], 1)  # known exactly
        scale = np.where(mean > 0, whole / np.where(mean > 0, mean, 1.0), 1.0)
        scales.append((scale, trace / (laws.shares @ laws.traces[part])))
    (scalar, scalar_trace), (vector, vector_trace) = scales
    L = laws.L * np.stack([scalar, vector, np.sqrt(scalar * vector), vector])[:, None]
    wholes = laws.traces * np.array(
        [[scalar_trace], [vector_trace], [np.sqrt(scalar_trace * vector_trace)], [vector_trace]]
    )
    for array in (L, wholes):
        array[2] += (array[0] + array[1]) / 2  # of scalar and parallel together
        array[3] -= array[1]  # across
    return _spectrum(d, L.reshape(-1, degrees, degrees), wholes.ravel(), Paired(laws.shares, d))


def offset_moments(d: int, degrees: int, terms: int = 61) -> Array:
    """Return E[((u + v + uv)/3)^k f P_a(u) P_b(v)], f = v (vector features) and 1 (scalar), (2, terms, degrees, degrees)."""
    t, weights = sphere_nodes(terms // 2 + degrees + 8, d)
    P = legendre(degrees, t, d) * weights
    r = (t[:, None] + t + t[:, None] * t) / 3
    found, power = np.empty((2, terms, degrees, degrees)), np.ones_like(r)
    for k in range(terms):
        found[0, k] = P @ (power * t) @ P.T
        found[1, k] = P @ power @ P.T
        power = power * r
    return found


def _spectrum(d: int, L: Array, wholes: Array, groups: Groups) -> Spectrum:
    """Return the sectors, and the flat one that holds what the groups' traces have beyond them."""
    degrees = L.shape[1]
    a, b = (index.ravel() for index in np.indices((degrees, degrees)))
    multiplicity = harmonics(a, d) * harmonics(b, d)
    values = groups.positive(L.reshape(len(L), -1))
    rest = groups.positive((wholes - values @ multiplicity)[:, None])[:, 0]
    labels: list[list[Label]] = [[(int(i), int(j))] for i, j in zip(a, b, strict=True)]
    sectors = Sectors(
        [*labels, [(-1, -1)]],
        np.append(multiplicity, FLAT),
        np.concatenate([values, rest[:, None] / FLAT], axis=1),
        one_hot([*(kind_of(int(j)) for j in b), 0], kinds()),
    )
    weights = groups.coefficients(np.zeros(len(L)))[0]
    return Spectrum([sectors], groups, float(weights @ wholes), float(weights @ rest))
