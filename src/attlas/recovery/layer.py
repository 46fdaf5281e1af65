"""A layer and what can be known of it: different parameters can give the same function."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.errors import InputError
from attlas.inputs import array, integer, real
from attlas.layers import multi_head_attention, softmax
from attlas.numerics import stream

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Layer:
    """F(X) = sum_i softmax(X Theta_i X^T) X W_i.

    Attributes
    ----------
    Theta : array of shape (m, d, d)
    W : array of shape (m, d, d_out)
    """

    Theta: Array
    W: Array

    def __post_init__(self) -> None:
        Theta = array(self.Theta, "Theta", ("m", "d", "d"))
        m, d, other = Theta.shape
        if d != other:
            raise InputError(f"Theta must have shape (m, d, d); got {Theta.shape}")
        object.__setattr__(self, "Theta", Theta)
        object.__setattr__(self, "W", array(self.W, "W", ("m", "d", "d_out"), (m, d, None)))

    @property
    def layer(self) -> "Layer":
        """Itself, so that it can stand wherever something with a layer can."""
        return self

    @property
    def heads(self) -> int:
        """Number of heads."""
        return len(self.Theta)

    @property
    def d(self) -> int:
        """Dimension of a token."""
        return int(self.Theta.shape[1])

    def __call__(self, X: ArrayLike) -> Array:
        """Return the outputs (n, k, d_out) of all tokens."""
        return multi_head_attention(X, self.Theta, self.W)

    def canonical(self, k: int | None = None, tol: float = 1e-8) -> "Layer":
        """Return the canonical layer of the same function: heads of equal attention merged, those without effect dropped.

        Heads are in the order of their norm |W_i|, the largest first. What is equal and what has no effect is decided on
        outputs for random tokens, to `tol` of the whole.

        Parameters
        ----------
        k : int, optional
            Length of the sequences, if it is always the same. At k = 2 alone, head (T, A) equals head (-T, -A) plus head
            (0, 2 A); the sign is then chosen so that the largest entry of T is positive, and a head (0, B) may be added.
        """
        if k is not None:
            integer(k, "k", least=2)
        Theta, W = (self.Theta, self.W) if k != 2 else self._one_sign()
        X = stream(0, "canonical").standard_normal((200, 3 if k is None else k, self.d))
        tol = real(tol, "tol", above=0)
        groups: list[tuple[Array, Array, Array]] = []  # Theta, attention, W
        before = 0.0
        for theta, value in zip(Theta, W, strict=True):
            P = softmax((X @ theta) @ X.transpose(0, 2, 1))
            before = float(np.hypot(before, np.linalg.norm((P @ X) @ value)))
            for place, (first, attention, total) in enumerate(groups):
                if np.abs(P - attention).mean() < tol:
                    groups[place] = (first, attention, total + value)
                    break
            else:
                groups.append((theta, P, value))
        effects = [float(np.linalg.norm((P @ X) @ total)) for _, P, total in groups]
        whole = max(float(np.linalg.norm(effects)), 1e-12 * before)  # what cancels leaves its rounding
        kept = [group for group, effect in zip(groups, effects, strict=True) if effect > tol * whole]
        kept.sort(key=lambda group: -float(np.linalg.norm(group[2])))
        if not kept:  # the zero function
            return Layer(np.zeros((1, self.d, self.d)), np.zeros((1, *self.W.shape[1:])))
        return Layer(np.array([group[0] for group in kept]), np.array([group[2] for group in kept]))

    def _one_sign(self) -> tuple[Array, Array]:
        """Return the heads with the sign of k = 2 chosen, and the uniform head that this leaves."""
        largest = self.Theta.reshape(self.heads, -1)
        places = np.argmax(np.abs(largest), axis=1)
        flip = largest[np.arange(self.heads), places] < 0
        sign = np.where(flip, -1.0, 1.0)[:, None, None]
        uniform = 2 * self.W[flip].sum(0)
        return (
            np.concatenate([self.Theta * sign, np.zeros((1, self.d, self.d))]),
            np.concatenate([self.W * sign, uniform[None]]),
        )


class HasLayer(Protocol):
    """A `Layer`, what `learn` and `learn_from_queries` return, or anything else with a `layer`."""

    @property
    def layer(self) -> Layer: ...  # noqa: D102


def same_function(first: HasLayer, second: HasLayer, k: int | None = None, tol: float = 1e-9) -> bool:
    """Return whether two layers give the same outputs, to a relative difference of `tol`, on random sequences.

    Parameters
    ----------
    first, second : Layer, or what has one as its `layer`, such as what `learn` returns
    k : int, optional
        Length of the sequences; 2, 3 and 5 if not given. Some layers agree at length two alone.
    """
    return difference(first, second, k) <= real(tol, "tol", least=0)


def difference(first: HasLayer, second: HasLayer, k: int | None = None) -> float:
    """Return the relative difference of the outputs of two layers on random tokens of standard normal entries."""
    one, other = layer_of(first), layer_of(second)
    if k is not None:
        integer(k, "k")
    if one.d != other.d or one.W.shape[2] != other.W.shape[2]:
        raise InputError(
            f"the layers have tokens of dimension {one.d} and {other.d},"
            f" outputs of {one.W.shape[2]} and {other.W.shape[2]}"
        )
    rng, apart, size = stream(0, "same function"), 0.0, 0.0
    for length in (2, 3, 5) if k is None else (k,):
        X = rng.standard_normal((200, length, one.d))
        here, there = one(X), other(X)
        apart += float(np.sum((here - there) ** 2))
        size += float(np.sum(here**2) + np.sum(there**2)) / 2
    return float(np.sqrt(apart / size)) if size > 0 else 0.0


def parameter_error(found: HasLayer, truth: HasLayer) -> float:
    """Return the larger relative error of Theta and W, heads matched in the best way; infinite if their numbers differ."""
    from scipy.optimize import linear_sum_assignment

    one, true = layer_of(found), layer_of(truth)
    if one.Theta.shape[1:] != true.Theta.shape[1:] or one.W.shape[1:] != true.W.shape[1:]:
        raise InputError(f"the layers have W of shapes {one.W.shape[1:]} and {true.W.shape[1:]}")
    if one.heads != true.heads:
        return float(np.inf)
    costs = np.array(
        [
            [np.sum((a - c) ** 2) + np.sum((b - e) ** 2) for c, e in zip(true.Theta, true.W, strict=True)]
            for a, b in zip(one.Theta, one.W, strict=True)
        ]
    )
    rows, columns = linear_sum_assignment(costs)
    errors = []
    for mine, theirs in ((one.Theta[rows], true.Theta[columns]), (one.W[rows], true.W[columns])):
        errors.append(float(np.linalg.norm(mine - theirs)) / max(float(np.linalg.norm(theirs)), np.finfo(float).tiny))
    return max(errors)


def layer_of(given: HasLayer) -> Layer:
    """Return the layer of something that has one."""
    layer: Layer | None = getattr(given, "layer", None)
    if layer is None:
        raise InputError(f"give a Layer, such as Layer(Theta, W); got {type(given).__name__}")
    return layer
