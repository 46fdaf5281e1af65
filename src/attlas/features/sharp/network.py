"""The spectrum of the random-feature network on the same tokens, in order.

K = kappa(rho), rho = (1 + sum_i u_i)/(N + 2), u_i = <x_i, x_i'> over all N + 1 tokens. Classes are the multisets {a_i}
of degrees; by parts on every sphere, with k = sum a_i,

    lam = prod_i 1/(d (d + 2) .. (d + 2 a_i - 2)) (N + 2)^-k E[kappa^(k)(rho)],

u_i of variance 1/(d + 2 a_i); rho is taken as normal. Multiplicity: arrangements times prod N_(a_i).
"""

from dataclasses import dataclass
from math import comb, factorial

import numpy as np
from numpy.typing import NDArray

from attlas.features.scoring import Scoring
from attlas.features.sharp.expansion import Expansion
from attlas.features.sharp.groups import Apart
from attlas.features.sharp.harmonics import harmonics
from attlas.features.sharp.model import Placed, place_in_sectors, spread
from attlas.features.sharp.spectrum import FLAT, Label, Sectors, Spectrum

Array = NDArray[np.float64]

DEGREE = 5
_TERMS = 400


@dataclass(frozen=True)
class Network:
    """Random neurons on the concatenated tokens, as a `Model`; a head counts as d + 1 of them."""

    d: int
    keys: int
    scoring: Scoring
    needs_blocks: bool = False

    @property
    def per_head(self) -> float:
        """A head has d + 1 trained numbers, a neuron one."""
        return self.d + 1.0

    def infinite(self) -> Spectrum:
        """Return the spectrum of infinitely many neurons."""
        return network_spectrum(self.d, self.keys, self.scoring)

    def finite(self, offset_nodes: int, norm_nodes: int) -> Spectrum:  # noqa: ARG002
        """Return the same: the features are one group, one a neuron."""
        return self.infinite()

    def norms(self, samples: int) -> Array:  # noqa: ARG002
        """Return ones: every sequence is as long as another."""
        return np.ones((1, 1))

    def place(self, spectrum: Spectrum, expansion: Expansion) -> Placed:
        """Return the energies by class: an average over keys and a contrast are alike to a network."""
        shared, contrasts = spread(expansion, self.keys)
        found: dict[Label, float] = {}
        for part in (shared, contrasts):
            for (a, b), energy in part.items():
                label = _padded(tuple(sorted((k for k in (a, b) if k), reverse=True)))
                found[label] = found.get(label, 0.0) + energy
        return place_in_sectors(spectrum.parts, found, expansion.outside)

    def limits(self, heads: float) -> tuple[float, str]:  # noqa: ARG002
        """Return the deviation from simulation."""
        return 0.10, ""


def network_spectrum(d: int, keys: int, scoring: Scoring, degree: int = DEGREE) -> Spectrum:
    """Return the spectrum of infinitely many neurons."""
    c = scoring.coefficients(0.0, 1.0, _TERMS) ** 2
    z, weights = np.polynomial.hermite_e.hermegauss(40)
    weights = weights / weights.sum()
    tokens = keys + 1
    labels: list[list[Label]] = []
    multiplicity, values = [], []
    for k in range(degree + 1):
        for parts in _partitions(k, tokens):
            spread_ = sum(1 / (d + 2 * a) for a in parts) + (tokens - len(parts)) / d
            rho = (1 + np.sqrt(spread_) * z) / (tokens + 1)
            own = weights * (np.abs(rho) < 1)  # a correlation; the normal law has a little mass beyond
            value = float(own @ _derivative(c, np.clip(rho, -1, 1), k)) / own.sum() / (tokens + 1.0) ** k
            count = float(comb(tokens, len(parts)) * factorial(len(parts)))
            for a in set(parts):
                count /= factorial(parts.count(a))
            for a in parts:
                value /= float(np.prod(d + 2.0 * np.arange(a)))
                count *= float(harmonics(a, d))
            labels.append([_padded(parts)])
            multiplicity.append(count)
            values.append(max(value, 0.0))
    trace = float(scoring.square(0.0, 1.0))
    rest = max(trace - float(np.dot(multiplicity, values)), 0.0)
    sectors = Sectors(
        [*labels, [(-1, -1)]],
        np.array([*multiplicity, FLAT]),
        np.array([[*values, rest / FLAT]]),
        np.ones((len(values) + 1, 1)),
    )
    return Spectrum([sectors], Apart(np.ones(1), np.ones(1)), trace, rest)


def _padded(parts: Label) -> Label:
    """Return the degrees of the tokens that have any, with zeros to make two."""
    return parts + (0,) * (2 - len(parts))


def _partitions(k: int, most: int, largest: int | None = None) -> list[Label]:
    """Return the ways to write k as a sum of at most `most` numbers, the largest first."""
    if k == 0:
        return [()]
    if most == 0:
        return []
    top = k if largest is None else min(k, largest)
    return [(a, *rest) for a in range(top, 0, -1) for rest in _partitions(k - a, most - 1, a)]


def _derivative(c: Array, rho: Array, order: int) -> Array:
    """Return the derivative of sum_k c_k rho^k."""
    return np.asarray(np.polynomial.polynomial.polyval(rho, np.polynomial.polynomial.polyder(c, order)))
