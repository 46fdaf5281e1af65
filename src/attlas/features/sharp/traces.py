"""E[K(X, X)], by which the sum of all eigenvalues is known: what sectors leave out is what is missing from it.

E K(X, X) = (1/N) E[act(s_1)^2] t_11 + (1 - 1/N) E[act(s_1) act(s_2) t_12],    t = v + 1, vector and scalar part apart.
"""

import numpy as np
from numpy.typing import NDArray

from attlas.features.scoring import Scoring
from attlas.features.sharp.harmonics import sphere_nodes

Array = NDArray[np.float64]

_TERMS = 200
_NODES = 40


def traces(d: int, keys: int, scoring: Scoring, bias: float = 0.0, offset: float | None = None) -> Array:
    """Return the traces of the vector and of the scalar part.

    Parameters
    ----------
    d, keys : int
    scoring : Scoring
    bias : float
        Scores have the means bias <x_0, x_i>.
    offset : float, optional
        Of heads with this score offset alone: the rest of the score has the variance 3/4, and two scores of one query the
        correlation (1 + 2v)/3 instead of (1 + v)/2.
    """
    mean, deviation = (0.0, 1.0) if offset is None else (offset, np.sqrt(0.75))
    if bias == 0:
        t, weights = sphere_nodes(_TERMS // 2 + 2, d)
        c = scoring.coefficients(mean, deviation, _TERMS)[:, None]
        r = (1 + t) / 2 if offset is None else (1 + 2 * t) / 3
        values = np.sum(c**2 * r ** np.arange(_TERMS)[:, None], axis=0)
        apart = np.array([weights @ (values * t), weights @ values])
        square = float(scoring.square(mean, deviation))
    else:
        w, weights = sphere_nodes(_NODES, d)
        square = float(weights @ scoring.square(mean + bias * w, deviation))
        apart = _apart(w, weights, scoring.coefficients(mean + bias * w, deviation, _TERMS), d, offset is None)
    return np.asarray(square / keys + (1 - 1 / keys) * apart)


def _apart(w: Array, weights: Array, c: Array, d: int, whole: bool) -> Array:
    """Return E[act(s_1) act(s_2) {v, 1}]: v = w w' + sqrt(1 - w^2) sqrt(1 - w'^2) s, s a coordinate on the sphere of x_0."""
    s, own = sphere_nodes(_NODES, d - 1)
    side = np.sqrt(1 - w**2)
    found = np.zeros(2)
    for place, share in zip(s, own, strict=True):
        v = w[:, None] * w + side[:, None] * side * place
        r = (1 + v) / 2 if whole else (1 + 2 * v) / 3
        values, power = np.zeros_like(v), np.ones_like(v)
        for row in c:
            values += row[:, None] * row * power
            power *= r
        values *= share * weights[:, None] * weights
        found += [np.sum(values * v), np.sum(values)]
    return found
