"""Depth: T layers of linear attention take T - 1 more gradient steps on the context, and tend to the Bayes error."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.inputs import array, integer, real

Array = NDArray[np.float64]
_NODES = 400  # the integrals are exact for polynomials of twice this degree


def depth_error(layers: int, alpha: float, noise: float) -> float:
    """Return the error of the best T layers on new isotropic tasks, as d grows and after training on endless data.

    T layers reach every polynomial of degree T - 1 in S = (d/l) X'X, applied to h = (d/l) X'y. The best one is the
    projection of 1/(x + c), c = noise/alpha, in the square mean of x (x + c) dmu, mu the Marchenko-Pastur law of S:

        e_T = noise + 1 - sum_{t < T} <p_t, 1/(x + c)>^2 / <p_t, p_t>,

    p_t the orthogonal polynomials. e_1 = noise + q/(1 + q) is one layer's (`theory` without ridge), and e_T falls to
    `ridge_in_context`.

    Parameters
    ----------
    layers : int
        T.
    alpha : float
        Examples of a context over d.
    noise : float
        Variance of the noise of labels.

    Examples
    --------
    >>> from attlas import context
    >>> [round(context.depth_error(layers, alpha=2, noise=0.1), 3) for layers in (1, 2, 5)]  # towards the Bayes error, 0.184
    [0.455, 0.285, 0.191]

    References
    ----------
    Our own derivation; the recurrence is Stieltjes's.
    """  # fmt: skip
    layers = integer(layers, "layers")
    _, _, _, gains = _recurrence(layers, real(alpha, "alpha", above=0), real(noise, "noise", least=0))
    return float(noise + 1 - gains.sum())


@dataclass(frozen=True)
class DeepLinear:
    """T layers of linear attention, trained on endless contexts of alpha d examples; what `depth_error` predicts.

    Each layer multiplies by S = (d/l) X'X once more and adds a multiple of the result: a gradient step on the context with
    momentum.

    Attributes
    ----------
    layers : int
    alpha, noise : float
        What it was trained for. Contexts that it is given may differ.
    """

    layers: int
    alpha: float = 2.0
    noise: float = 0.1

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", integer(self.layers, "layers"))
        object.__setattr__(self, "alpha", real(self.alpha, "alpha", above=0))
        object.__setattr__(self, "noise", real(self.noise, "noise", least=0))

    def estimate(self, X: ArrayLike, y: ArrayLike) -> Array:
        """Return what each layer makes of the contexts: tasks, shape (layers, n, d).

        Parameters
        ----------
        X : array of shape (n, l, d)
        y : array of shape (n, l)
        """
        X = array(X, "X", ("n", "l", "d"))
        n, length, d = X.shape
        y = array(y, "y", ("n", "l"), (n, length))
        shift, scale, weight, _ = _recurrence(self.layers, float(self.alpha), float(self.noise))
        unit = np.sqrt(self.alpha)
        h = d / length * np.einsum("nld,nl->nd", X, y)
        before, now = np.zeros_like(h), h
        found = [weight[0] * h]
        for t in range(self.layers - 1):
            moved = d / length * np.einsum("nld,nl->nd", X, np.einsum("nld,nd->nl", X, now))
            before, now = now, unit * (moved - shift[t] * now) - scale[t] * before
            found.append(found[-1] + weight[t + 1] * now)
        return np.array(found)


@lru_cache(maxsize=64)
def _recurrence(layers: int, alpha: float, noise: float) -> tuple[Array, Array, Array, Array]:
    """Return shift and scale of p_{t+1} = sqrt(alpha) (x - shift_t) p_t - scale_t p_{t-1}, weights of the p_t, and gains.

    The factor sqrt(alpha) keeps p_t of order 1 at any depth: the law is 4/sqrt(alpha) wide.
    The law has an atom at 0 for alpha < 1; the factor x of the weight removes it.
    """
    c = noise / alpha
    count = max(_NODES, 2 * layers)
    angle = (np.arange(count) + 0.5) * np.pi / count
    x = 1 + 1 / alpha + 2 / np.sqrt(alpha) * np.cos(angle)
    first = 2 * np.sin(angle) ** 2 / count  # x dmu
    measure = first * (x + c)
    p, before, norm_before = np.ones(count), np.zeros(count), 1.0
    shift, scale, weight, gain = (np.zeros(layers) for _ in range(4))
    for t in range(layers):
        norm = float(measure @ p**2)
        weight[t] = float(first @ p) / norm
        gain[t] = weight[t] ** 2 * norm
        shift[t] = float(measure @ (x * p**2)) / norm
        scale[t] = norm / norm_before if t else 0.0
        p, before, norm_before = np.sqrt(alpha) * (x - shift[t]) * p - scale[t] * before, p, norm
    return shift, scale, weight, gain
