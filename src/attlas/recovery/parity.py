"""Layers that hide a parity: m heads, and a target that no local statistic betrays."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.errors import InputError
from attlas.inputs import array, integer, real
from attlas.numerics import stream
from attlas.recovery.comparison import layer_of
from attlas.recovery.layer import Layer

Array = NDArray[np.float64]


def parity_layer(heads: int, d: int, seed: int, sharpness: float = 1.0) -> Layer:
    """Return a layer that computes the parity of `heads` hidden coordinates, exactly, on half of all Boolean pairs.

    Theta_i = B (1_S - tau_i e_d) e_d^T and W_i = w_i e_d e_d^T, tau_i = -m+1, -m+3, .., m-1. On two tokens that differ in
    their last coordinate, F_r[d] = sum_i w_i tanh(B (x_r(S) -+ tau_i)), and the m symmetric weights w are solved for so that
    this is prod_{j in S} x_rj for every value of the sum x_r(S). On the others F[d] is the last coordinate times sum_i w_i.

    Parameters
    ----------
    heads : odd int
        m, the number of heads and of hidden coordinates.
    d : int
        More than m.
    seed : int
        Draws S among the first d - 1 coordinates.
    sharpness : float, default 1
        B.

    Examples
    --------
    >>> from attlas import recovery
    >>> recovery.parity_layer(heads=3, d=6, seed=0).heads
    3

    References
    ----------
    chen2024provably, the lower bound; this construction is ours.
    """
    m, d = integer(heads, "heads"), integer(d, "d")
    B = real(sharpness, "sharpness", above=0)
    if m % 2 == 0:
        raise InputError(f"heads must be odd for the weights to be symmetric; got {m}")
    if d <= m:
        raise InputError(f"d must exceed the number of heads, {m}, to hide as many coordinates; got {d}")
    tau = np.arange(-m + 1, m, 2)
    sums = np.arange(-m, m + 1, 2)
    signs = (-1.0) ** ((m - sums) // 2)  # as many minus ones as (m - sum)/2
    w = np.linalg.lstsq(np.tanh(B * (sums[:, None] - tau)), signs, rcond=None)[0]
    if np.abs(np.tanh(B * (sums[:, None] - tau)) @ w - signs).max() > 1e-10:
        raise InputError(f"a sharpness of {B:g} is too small for {m} heads to make a parity in double precision")
    hidden = np.zeros(d)
    hidden[stream(seed, "teacher").choice(d - 1, m, replace=False)] = 1.0
    last = np.eye(d)[-1]
    Theta = np.array([B * np.outer(hidden - t * last, last) for t in tau])
    return Layer(Theta, w[:, None, None] * np.outer(last, last))


def control_layer(layer: Layer, seed: int) -> Layer:
    """Return a layer with as many heads and the same norms, |Theta_i| and |W_i|, in random directions: no parity, full W.

    Examples
    --------
    >>> from attlas import recovery
    >>> layer = recovery.parity_layer(heads=3, d=6, seed=0)
    >>> control = recovery.control_layer(layer, seed=1)
    >>> control.Theta.shape == layer.Theta.shape
    True
    """
    layer, rng = layer_of(layer), stream(seed, "control")

    def like(matrices: Array) -> Array:
        drawn = rng.standard_normal(matrices.shape)
        sizes = np.linalg.norm(matrices, axis=(1, 2)) / np.linalg.norm(drawn, axis=(1, 2))
        return np.asarray(drawn * sizes[:, None, None])

    return Layer(like(layer.Theta), like(layer.W))


def hidden_coordinates(layer: Layer) -> NDArray[np.intp]:
    """Return the coordinates whose parity a layer of `parity_layer` computes."""
    return np.flatnonzero(np.abs(layer.Theta[:, :-1, -1]).sum(0) > 0)


def on_slice_accuracy(layer: Layer, guess: Layer, X: ArrayLike) -> float:
    """Return how often the sign of the guess is the parity, where the two tokens differ in their last coordinate.

    Elsewhere the output betrays nothing of the hidden coordinates, and a learner gets it right at once: half of the signal
    is trivial, and a relative error of 0.7 means that nothing was learned.

    Examples
    --------
    >>> from attlas import recovery, tokens
    >>> layer = recovery.parity_layer(heads=3, d=6, seed=0)
    >>> recovery.on_slice_accuracy(layer, layer, tokens.boolean(100, 2, 6, seed=1))
    1.0
    """
    layer, guess = layer_of(layer), layer_of(guess)
    tokens = array(X, "X", ("n", "k", "d"), (None, 2, layer.d))
    pairs = tokens[tokens[:, 0, -1] != tokens[:, 1, -1]]
    if not len(pairs):
        raise InputError("no pair of X differs in its last coordinate")
    parity = np.prod(pairs[:, :, hidden_coordinates(layer)], axis=2)
    return float(np.mean(np.sign(guess(pairs)[:, :, -1]) == parity))
