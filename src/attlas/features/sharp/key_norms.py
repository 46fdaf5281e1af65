"""How long the features of a sequence are: it depends on how its keys lie to each other.

In a sector of key degree b the squared length of the features of a sequence is N_a N_b tau_b,

    tau_b = (1/N) sum_ij P_b(<x_i, x_j>),

of mean one. A few numbers per sequence that do not concentrate: they are sampled, once.
"""

import numpy as np
from numpy.typing import NDArray

from attlas import tokens
from attlas.features.sharp.harmonics import legendre
from attlas.numerics import stream

Array = NDArray[np.float64]

LARGEST = 5  # key degree with a kind of its own; larger ones share the kind of b = 0, tau = 1


def kinds() -> int:
    """Return the number of kinds of sectors."""
    return LARGEST + 1


def kind_of(b: int) -> int:
    """Return the kind of a sector of key degree b."""
    return b if b <= LARGEST else 0


def key_norms(d: int, keys: int, samples: int, seed: int = 0) -> Array:
    """Return tau_b of sampled key sets, (samples, kinds), scaled to a mean of exactly one; ones for 0 samples.

    Parameters
    ----------
    d, keys : int
    samples : int
        0 takes tau = 1, the usual estimate without this correction.
    seed : int
    """
    if not samples or keys == 1:
        return np.ones((1, kinds()))
    tau = np.empty((samples, kinds()))
    step = max(1, 2_000_000 // keys**2)
    rng = stream(seed, "key norms")
    for start in range(0, samples, step):
        count = min(step, samples - start)
        X = tokens.sphere(count, keys, d, rng)
        P = legendre(kinds(), np.clip(X @ X.transpose(0, 2, 1), -1, 1), d)
        tau[start : start + count] = P.sum((2, 3)).T / keys
    tau[:, 0] = 1
    return tau / tau.mean(0)
