"""A target as a sum of harmonics: its coordinates in the blocks of two tokens, or its energy in sectors.

A target (1/N) sum_i s_i g(x_0, x_i) is expanded through g. In the unbiased theory the energy of g in each sector (a,
b) is all that matters; with a bias its coordinates in the blocks of `rotation_blocks` do.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas.errors import InputError
from attlas.features.sharp.harmonics import harmonics, power_moment
from attlas.features.sharp.rotation_blocks import rotation_block
from attlas.features.sharp.spectrum import Label

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Expansion:
    """What a theory needs of a target.

    Attributes
    ----------
    blocks : dict
        Coordinates {(L1, L2): {(a, b): value}} of g, for theories with a bias; None if only energies are known.
    energies : dict
        {(a, b): energy} of g: the variance it has in that sector on two tokens.
    weights : array of shape (keys,), optional
        s_i; ones if not given.
    outside : float
        Variance of the target that no sector holds: it cannot be learned by one layer, whatever n.
    """

    energies: dict[Label, float]
    blocks: dict[Label, dict[Label, float]] | None = None
    weights: Array | None = field(default=None, repr=False)
    outside: float = 0.0


def expansions(target: Any, d: int, biased: bool) -> list[Expansion]:
    """Return the expansions of the outputs of a target; most have one.

    Parameters
    ----------
    target : object
        A target of `attlas.features.targets`; or a mapping {(a, b): energy}; or anything with a method ``expansion(d)``
        that returns such a mapping, an `Expansion`, or a list of them.
    d : int
    biased : bool
        Whether coordinates in blocks are needed, which a mapping does not give.

    Raises
    ------
    InputError
        If there is no expansion.
    """
    if isinstance(target, Mapping):
        found = [Expansion(_energies(target))]
    elif callable(getattr(target, "expansion", None)):
        given = target.expansion(d)
        each = given if isinstance(given, list) else [given]
        found = [one if isinstance(one, Expansion) else Expansion(_energies(one)) for one in each]
    else:
        raise InputError(
            f"{target!r} has no expansion in harmonics, so no theory; give a target of attlas.features.targets, energies"
            " such as {(1, 1): 0.5}, or use features.theory_of with its values on your tokens"
        )
    if biased and any(one.blocks is None for one in found):
        raise InputError(
            f"{target!r} has no expansion for a theory with a bias, which needs coordinates in blocks of rotations, not"
            " energies alone; take bias=0, or features.theory_of"
        )
    return found


def query_expansion(size: float, power: int, d: int) -> Expansion:
    """Return <beta, x_0>^power, |beta| = size: (a, 0) in block (a, 0)."""
    blocks: dict[Label, dict[Label, float]] = {(a, 0): {(a, 0): value} for a, value in _powers(size, power, d).items()}
    return Expansion(_squares(blocks), blocks)


def key_expansion(size: float, power: int, d: int, weights: Array | None = None) -> Expansion:
    """Return <beta, x>^power: (0, b) in block (b, 0)."""
    blocks: dict[Label, dict[Label, float]] = {(b, 0): {(0, b): value} for b, value in _powers(size, power, d).items()}
    return Expansion(_squares(blocks), blocks, weights)


def correlation_expansion(
    power: int, d: int, S: Array | None = None, size: float = 1.0, key_power: int = 0, weights: Array | None = None
) -> Expansion:
    """Return <x_0, S x>^power <beta, x>^key_power, |beta| = size: W^power on (0, b) in block (b, 0).

    An orthogonal S turns the query, which changes no energy of the unbiased theory; a general one of power 1 has its trace,
    symmetric and antisymmetric part in the blocks (0, 0), (2, 0) and (1, 1).
    """
    scale, turned = 1.0, False
    if S is not None:
        scale = float(np.sqrt((S * S).sum() / d))
        if scale == 0:
            raise InputError("S of the target is zero")
        unit = S / scale
        if power == 1 and key_power == 0:
            return _bilinear(S, d, weights)
        if np.allclose(unit, np.sign(unit[0, 0]) * np.eye(d), atol=1e-8):
            scale *= float(np.sign(unit[0, 0]))
        elif np.allclose(unit @ unit.T, np.eye(d), atol=1e-8):
            turned = True
        else:
            raise InputError(
                f"a correlation of power {power} has an expansion for orthogonal S only; take power 1, or features.theory_of"
            )
    blocks: dict[Label, dict[Label, float]] = {}
    for b, value in _powers(size, key_power, d).items():
        block = rotation_block(b, 0, d, 2 * power + b)
        theta = np.zeros(len(block.basis))
        theta[block.basis.index((0, b))] = value * scale**power
        for _ in range(power):
            theta = block.W @ theta
        blocks[b, 0] = {label: float(each) for label, each in zip(block.basis, theta, strict=True) if abs(each) > 1e-15}
    return Expansion(_squares(blocks), None if turned else blocks, weights)


def _bilinear(S: Array, d: int, weights: Array | None) -> Expansion:
    trace = np.trace(S)
    symmetric = (S + S.T) / 2 - trace / d * np.eye(d)
    parts = {
        (0, 0): float(trace / np.sqrt(d) / d),
        (2, 0): float(np.linalg.norm(symmetric) / d),
        (1, 1): float(np.linalg.norm((S - S.T) / 2) / d),
    }
    blocks: dict[Label, dict[Label, float]] = {name: {(1, 1): value} for name, value in parts.items() if value}
    return Expansion(_squares(blocks), blocks, weights)


def _powers(size: float, power: int, d: int) -> dict[int, float]:
    """Return the coordinates of (size t)^power along the normalised harmonics sqrt(N_a) P_a."""
    degrees = range(power % 2, power + 1, 2)
    return {a: float(size**power * np.sqrt(harmonics(a, d)) * power_moment(power, a, d)) for a in degrees}


def _squares(blocks: dict[Label, dict[Label, float]]) -> dict[Label, float]:
    found: dict[Label, float] = {}
    for coordinates in blocks.values():
        for label, value in coordinates.items():
            found[label] = found.get(label, 0.0) + value**2
    return found


def _energies(given: Mapping[Any, Any]) -> dict[Label, float]:
    """Return a user's mapping, checked."""
    found: dict[Label, float] = {}
    for label, value in given.items():
        good = isinstance(label, tuple) and len(label) == 2 and all(isinstance(k, int) and k >= 0 for k in label)
        if not good or not isinstance(value, int | float) or not np.isfinite(value) or value < 0:
            raise InputError(f"energies are {{(a, b): energy}}, degrees of query and key; got {label!r}: {value!r}")
        found[label] = float(value)
    if not any(value > 0 for label, value in found.items() if label != (0, 0)):
        raise InputError("the energies of a target must not all be zero, beside its mean (0, 0)")
    return found
