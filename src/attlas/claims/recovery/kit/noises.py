"""Laws of noise, all of mean zero given the tokens and mean square one: of every output, or of whole sequences."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Law = Callable[[Array, np.random.Generator], Array]


def _outliers(F: Array, rng: np.random.Generator) -> Array:
    """Return Gaussian noise that is 30 times as large in one sequence of a hundred."""
    size = np.where(rng.random((len(F), 1, 1)) < 0.01, 30.0, 1.0)
    return np.asarray(size * rng.standard_normal(F.shape) / np.sqrt(0.99 + 0.01 * 900))


def _by_size(F: Array, rng: np.random.Generator) -> Array:
    return np.asarray(F / np.sqrt(np.mean(F**2)) * rng.standard_normal(F.shape))


def _scales(F: Array, rng: np.random.Generator) -> Array:
    return np.asarray(rng.standard_t(3, (len(F), 1, 1)) / np.sqrt(3) * rng.standard_normal(F.shape))


def _one_pattern(F: Array, rng: np.random.Generator) -> Array:
    pattern = rng.standard_normal((1, *F.shape[1:]))
    return np.asarray(rng.standard_normal((len(F), 1, 1)) * pattern / np.sqrt(np.mean(pattern**2)))


def _shared(F: Array, rng: np.random.Generator) -> Array:
    return np.repeat(rng.standard_normal((len(F), 1, F.shape[2])), F.shape[1], axis=1)


LAWS: dict[str, Law] = {
    "Gaussian": lambda F, rng: rng.standard_normal(F.shape),
    "Student's t, 3 degrees": lambda F, rng: rng.standard_t(3, F.shape) / np.sqrt(3),
    "exponential": lambda F, rng: rng.exponential(size=F.shape) - 1,
    "uniform": lambda F, rng: np.sqrt(12) * (rng.random(F.shape) - 0.5),
    "as large as the output": _by_size,
    "a scale for each sequence": _scales,
    "one pattern for each sequence": _one_pattern,
    "shared by all rows": _shared,
    "one outlier in a hundred": _outliers,
}
