"""The spectrum of attention whose keys carry their position: a one-hot code of squared length gamma^2 beside every key.

With t_ij = 1 + v + gamma^2 delta_ij, scores of unit variance have the correlation rho = (1 + u) t/(2 (2 + gamma^2)),
and pairs of
keys at the same position are more alike than others. With same_ab, diff_ab = E[kappa(rho) t P_a P_b] at i = j and i != j,

    averages  N^(-1/2) sum_i Y_b(x_i):                (same + (N - 1) diff)/N^2   (times N for b = 0),   multiplicity N_a N_b
    contrasts sum_i s_i Y_b(x_i), sum_i s_i = 0:      (same - diff)/N^2,                                 N_a N_b (N - 1).

The lengths of the features in contrasts follow from those of averages: (N - tau_b)/(N - 1).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attlas.features.scoring import Scoring
from attlas.features.sharp.expansion import Expansion
from attlas.features.sharp.groups import Apart
from attlas.features.sharp.harmonics import half_moments, harmonics, legendre, sphere_nodes
from attlas.features.sharp.key_norms import LARGEST, key_norms, kind_of, kinds
from attlas.features.sharp.model import Placed, place_in_sectors, spread
from attlas.features.sharp.spectrum import FLAT, Label, Sectors, Spectrum, one_hot

Array = NDArray[np.float64]

DEGREES = 15
_TERMS = 200


@dataclass(frozen=True)
class Positions:
    """Attention with position codes of weight gamma^2 on its keys, as a `Model`."""

    d: int
    keys: int
    scoring: Scoring
    positions: float
    needs_blocks: bool = False
    per_head: float = 1.0

    def infinite(self) -> Spectrum:
        """Return the spectrum of infinitely many heads."""
        L, wholes = _operators(self.d, self.keys, self.scoring, self.positions)
        return _spectrum(self.d, self.keys, L.sum(0)[None], wholes.sum()[None], np.ones(1))

    def finite(self, offset_nodes: int, norm_nodes: int) -> Spectrum:  # noqa: ARG002
        """Return the spectrum of vector, scalar and position features; heads are taken as alike."""
        L, wholes = _operators(self.d, self.keys, self.scoring, self.positions)
        return _spectrum(self.d, self.keys, L, wholes, np.array([self.d, 1.0, self.keys]))

    def norms(self, samples: int) -> Array:
        """Return samples of tau_b, and of (N - tau_b)/(N - 1) for contrasts."""
        tau = key_norms(self.d, self.keys, samples)
        others = (self.keys - tau[:, 1:]) / (self.keys - 1) if self.keys > 1 else tau[:, 1:]  # one key has no contrast
        return np.concatenate([tau, others], axis=1)

    def place(self, spectrum: Spectrum, expansion: Expansion) -> Placed:
        """Return the energies by sector, those of contrasts among them."""
        shared, contrasts = spread(expansion, self.keys)
        marked = {(*label, -1): energy for label, energy in contrasts.items()}
        return place_in_sectors(spectrum.parts, shared | marked, expansion.outside)

    def limits(self, heads: float) -> tuple[float, str]:
        """Return the deviation from simulation, and what lies outside."""
        if np.isinf(heads):
            return 0.10, ""
        few = float(np.sqrt(100 / heads))
        return min(0.5, 0.10 + 0.25 * few), (
            "position codes with finitely many heads: head offsets are not resolved; low degrees of the query come out too"
            " low by 45 % at 60 heads, 30 % at 200 and 12 % at 600, averages of single keys by 30 %, 15 % and less, other"
            " targets by up to 17 % at 100 heads (d = 6 and 8)"
        )


def _operators(d: int, keys: int, scoring: Scoring, weight: float) -> tuple[Array, Array]:
    """Return same and diff of vector, scalar and position features, as (3, 2, a, b), and the traces of the three."""
    c = scoring.coefficients(0.0, 1.0, _TERMS) ** 2
    v, weights = sphere_nodes(_TERMS // 2 + DEGREES + 8, d)
    P = legendre(DEGREES, v, d) * weights
    m = half_moments(d, _TERMS, DEGREES)
    values = np.zeros((3, 2, DEGREES, DEGREES))
    wholes = np.zeros(3)
    power = np.arange(_TERMS)[:, None]
    for place, extra in enumerate((weight, 0.0)):
        r = ((1 + v + extra) / (2 + weight)) ** power
        for part, factor in enumerate((v, np.ones_like(v), np.full_like(v, extra))):
            values[part, place] = (m * c[:, None]).T @ ((r * factor) @ P.T)
            if place:  # two different keys of one sequence
                wholes[part] += (1 - 1 / keys) * float(np.sum(c[:, None] * r * factor * weights))
    wholes += float(scoring.square(0.0, 1.0)) * np.array([1.0, 1.0, weight]) / keys
    return values, wholes


def _spectrum(d: int, keys: int, values: Array, wholes: Array, widths: Array) -> Spectrum:
    same, diff = values[:, 0], values[:, 1]
    degrees = same.shape[1]
    a, b = (index.ravel() for index in np.indices((degrees, degrees)))
    average = (same + (keys - 1) * diff) / keys**2
    average[:, :, 0] *= keys
    inner = b > 0
    contrast = ((same - diff) / keys**2).reshape(len(same), -1)[:, inner]
    L = np.maximum(np.concatenate([average.reshape(len(same), -1), contrast], axis=1), 0.0)
    count = harmonics(a, d) * harmonics(b, d)
    multiplicity = np.concatenate([count, (keys - 1) * count[inner]])
    rest = np.maximum(wholes - L @ multiplicity, 0.0)
    labels: list[list[Label]] = [[(int(i), int(j))] for i, j in zip(a, b, strict=True)]
    labels += [[(int(i), int(j), -1)] for i, j in zip(a[inner], b[inner], strict=True)]
    own = [kind_of(int(j)) for j in b]
    own += [LARGEST + kind_of(int(j)) if kind_of(int(j)) else 0 for j in b[inner]]
    sectors = Sectors(
        [*labels, [(-1, -1)]],
        np.append(multiplicity, FLAT),
        np.concatenate([L, rest[:, None] / FLAT], axis=1),
        one_hot([*own, 0], kinds() + LARGEST),
    )
    return Spectrum([sectors], Apart(np.ones(len(L)), widths), float(wholes.sum()), float(rest.sum()))
