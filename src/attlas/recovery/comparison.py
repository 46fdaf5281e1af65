"""Comparing layers: by what they compute, and by their parameters."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from attlas.errors import InputError
from attlas.inputs import integer, real
from attlas.numerics import stream
from attlas.recovery.layer import Layer

Array = NDArray[np.float64]


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

    Examples
    --------
    >>> from attlas import recovery
    >>> layer = recovery.Layer(*recovery.planted_layer(heads=2, d=4, seed=0))
    >>> recovery.same_function(layer, recovery.Layer(layer.Theta[::-1], layer.W[::-1]))
    True
    """
    return difference(first, second, k) <= real(tol, "tol", least=0)


def difference(first: HasLayer, second: HasLayer, k: int | None = None) -> float:
    """Return the relative difference of the outputs of two layers on random tokens of standard normal entries.

    Examples
    --------
    >>> from attlas import recovery
    >>> layer = recovery.Layer(*recovery.planted_layer(heads=2, d=4, seed=0))
    >>> other = recovery.Layer(layer.Theta, 1.1 * layer.W)
    >>> round(recovery.difference(other, layer), 3)
    0.095
    """
    one, other = layer_of(first), layer_of(second)
    if k is not None:
        integer(k, "k")
    if (one.d, one.d_keys, one.outputs) != (other.d, other.d_keys, other.outputs):
        raise InputError(
            f"the layers have tokens of dimension {one.d} and {other.d}, keys of {one.d_keys} and {other.d_keys},"
            f" outputs of {one.outputs} and {other.outputs}"
        )
    rng, apart, size = stream(0, "same function"), 0.0, 0.0
    for length in (2, 3, 5) if k is None else (k,):
        X = rng.standard_normal((200, length, one.d))
        keys = None if one.d_keys == one.d else rng.standard_normal((200, length, one.d_keys))
        here, there = one(X, keys=keys), other(X, keys=keys)
        apart += float(np.sum((here - there) ** 2))
        size += float(np.sum(here**2) + np.sum(there**2)) / 2
    return float(np.sqrt(apart / size)) if size > 0 else 0.0


def parameter_error(found: HasLayer, truth: HasLayer) -> float:
    """Return the larger relative error of (Theta, u) and of (W, b), heads matched in the best way.

    Without biases these are the errors of Theta and of W. Infinite if the numbers of heads differ.

    Examples
    --------
    >>> from attlas import recovery
    >>> layer = recovery.Layer(*recovery.planted_layer(heads=2, d=4, seed=0))
    >>> swapped = recovery.Layer(layer.Theta[::-1], layer.W[::-1])
    >>> recovery.parameter_error(swapped, layer)  # the order of heads is a convention
    0.0
    """
    from scipy.optimize import linear_sum_assignment

    one, true = layer_of(found), layer_of(truth)
    if one.Theta.shape[1:] != true.Theta.shape[1:] or one.W.shape[1:] != true.W.shape[1:]:
        raise InputError(f"the layers have W of shapes {one.W.shape[1:]} and {true.W.shape[1:]}")
    if one.heads != true.heads:
        return float(np.inf)
    mine, theirs = one.stacked(), true.stacked()
    costs = np.array(
        [
            [np.sum((a - c) ** 2) + np.sum((b - e) ** 2) for c, e in zip(theirs, true.W, strict=True)]
            for a, b in zip(mine, one.W, strict=True)
        ]
    )
    rows, columns = linear_sum_assignment(costs)
    biases = [np.zeros(true.outputs) if each.output_bias is None else each.output_bias for each in (one, true)]
    attention = _apart((mine[rows], theirs[columns]))
    return max(attention, _apart((one.W[rows], true.W[columns]), (biases[0], biases[1])))


def _apart(*pairs: tuple[Array, Array]) -> float:
    """Return |found - true|/|true| over several arrays together."""
    apart = sum(float(np.sum((found - true) ** 2)) for found, true in pairs)
    size = sum(float(np.sum(true**2)) for _, true in pairs)
    return float(np.sqrt(apart)) / max(float(np.sqrt(size)), np.finfo(float).tiny)


def layer_of(given: HasLayer) -> Layer:
    """Return the layer of something that has one."""
    layer: Layer | None = getattr(given, "layer", None)
    if layer is None:
        raise InputError(f"give a Layer, such as Layer(Theta, W); got {type(given).__name__}")
    return layer
