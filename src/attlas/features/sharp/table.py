"""A spectrum as a labelled table."""

from typing import TYPE_CHECKING

import numpy as np

from attlas.features.sharp.model import Placed
from attlas.features.sharp.spectrum import Spectrum

if TYPE_CHECKING:
    import xarray


def spectrum_table(spectrum: Spectrum, target: Placed | None) -> "xarray.Dataset":
    """Return eigenvalues, largest first, with names, multiplicities and the shares of a target's energy.

    Sectors are named by degrees "(a, b)" of query and key, contrasts between keys "(a, b) contrast", classes of a network by
    the degrees of its tokens, eigenfunctions of a block by "[L1, L2] k"; "flat" holds what was cut off.
    """
    import xarray

    rows, start = [], 0
    for part in spectrum.parts:
        energies = np.zeros(part.size) if target is None else target.energies[start : start + part.size]
        rows += part.eigenvalues(spectrum.weights, energies)
        start += part.size
    rows.sort(key=lambda row: -row[2])
    names, multiplicity, values, energy = zip(*rows, strict=True)
    data = {"multiplicity": ("sector", list(multiplicity)), "eigenvalue": ("sector", list(values))}
    attributes = {"trace": spectrum.trace, "cut": spectrum.cut}
    if target is not None:
        total = sum(energy) + target.outside
        data["share"] = ("sector", [each / total for each in energy])
        attributes["outside"] = target.outside / total
    return xarray.Dataset(data, {"sector": list(names)}, attributes)
