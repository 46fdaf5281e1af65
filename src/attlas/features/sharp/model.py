"""What a theory asks of a learner: its spectra, the lengths of its features, and where it holds a target."""

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from attlas.features.sharp.expansion import Expansion
from attlas.features.sharp.spectrum import Label, Part, Spectrum

Array = NDArray[np.float64]


class Model(Protocol):
    """A learner: attention without or with bias or with positions, or a network."""

    @property
    def d(self) -> int:
        """Dimension of a token."""

    @property
    def keys(self) -> int:
        """Keys beside the query."""

    @property
    def needs_blocks(self) -> bool:
        """Whether targets need coordinates in blocks."""

    @property
    def per_head(self) -> float:
        """Units of this learner with as many trained numbers as a head: d + 1 neurons, or the head itself."""

    def infinite(self) -> Spectrum:
        """Return the spectrum of infinitely many heads."""

    def finite(self, offset_nodes: int, norm_nodes: int) -> Spectrum:
        """Return the spectrum of finitely many heads, in groups."""

    def norms(self, samples: int) -> Array:
        """Return samples of the lengths of features by kind, (samples, kinds)."""

    def place(self, spectrum: Spectrum, expansion: Expansion) -> "Placed":
        """Return where the spectrum holds a target."""

    def limits(self, heads: float) -> tuple[float, str]:
        """Return the relative deviation from simulation that nine in ten settings keep, and what lies outside."""


@dataclass(frozen=True)
class Placed:
    """A target in a spectrum.

    Attributes
    ----------
    energies : array of shape (entries,)
        Aligned with the responses of the parts of the spectrum.
    outside : float
        Energy that no sector holds: it is never learned, and acts as noise.
    variance : float
    """

    energies: Array = field(repr=False)
    outside: float
    variance: float

    def __add__(self, other: "Placed") -> "Placed":
        return Placed(self.energies + other.energies, self.outside + other.outside, self.variance + other.variance)


def spread(expansion: Expansion, keys: int) -> tuple[dict[Label, float], dict[Label, float]]:
    """Return the energies of a target on sequences: of averages over keys, and of contrasts between keys.

    (1/N) sum_i s_i Y_a(x_0) Y_b(x_i) has mean(s)^2/N of the energy of Y_a Y_b in the average, var(s)/N in contrasts; with
    b = 0, mean(s)^2 and nothing.
    """
    mean, variance = 1.0, 0.0
    if expansion.weights is not None:
        mean, variance = float(np.mean(expansion.weights)), float(np.var(expansion.weights))
    shared = {label: e * mean**2 / (keys if label[1] else 1) for label, e in expansion.energies.items()}
    contrasts = {label: e * variance / keys for label, e in expansion.energies.items() if label[1] and variance}
    return shared, contrasts


def place_in_sectors(parts: list[Part], energies: dict[Any, float], outside: float = 0.0) -> Placed:
    """Return energies by label among sectors; what has no sector is outside. The label of the mean is (0, 0)."""
    index = {labels[0]: place for place, labels in enumerate(parts[0].labels)}
    found = np.zeros(sum(part.size for part in parts))
    for label, energy in energies.items():
        if label in index:
            found[index[label]] += energy
        else:
            outside += energy
    mean = found[index[(0, 0)]]
    return Placed(found, outside, float(found.sum() - mean + outside))
