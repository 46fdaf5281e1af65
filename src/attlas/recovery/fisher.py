"""How precisely a layer can be known from noisy outputs: its Fisher information, before anything is fitted.

With Y = F(X) + noise x N(0, 1), the information about the parameters is J^T J / noise^2, J the Jacobian of all outputs. No
unbiased estimate has a smaller covariance than its inverse, and least squares attains it where outputs are many. Heads of
low rank move within their rank only: J is restricted to those directions. What no output shows (a direction that leaves all
of them as they are) has an infinite standard error.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.errors import InputError
from attlas.inputs import array, integer, real
from attlas.recovery.comparison import HasLayer, layer_of
from attlas.recovery.examples import Examples
from attlas.recovery.layer import Layer
from attlas.recovery.tangent import directions, numbers, tangent

Array = NDArray[np.float64]

_NULL = 1e-10  # of the largest eigenvalue, or derivative: directions of less information are not seen at all
_MOST = 6000  # parameters; the matrix of more would not be inverted within a minute
_NUMBERS = 1 << 22  # of a block of the Jacobian


@dataclass(frozen=True)
class Fisher:
    """Standard errors that no unbiased estimate can go below, and that least squares attains.

    Attributes
    ----------
    Theta : array of shape (m, d, d)
    W : array of shape (m, d, d_out)
    key_bias : array of shape (m, d), or None
    output_bias : array of shape (d_out,), or None
        Standard errors of the entries; infinite for what the tokens do not show.
    unknowns : int
        Numbers that the outputs determine.
    unseen : int
        Directions, within the rank, that leave all outputs as they are.
    noise : float
    covariance : array of shape (P, P)
        Of all parameters that are seen: for each head (Theta_i; u_i) by rows, then all of W, then b.
    """

    Theta: Array
    W: Array
    key_bias: Array | None
    output_bias: Array | None
    unknowns: int
    unseen: int
    noise: float
    covariance: Array = field(repr=False)
    layer: Layer = field(repr=False)

    @property
    def Theta_error(self) -> float:
        """Expected relative error of Theta, the root of the mean of |found - Theta|^2 over |Theta|."""
        return float(np.linalg.norm(self.Theta) / np.linalg.norm(self.layer.Theta))

    @property
    def W_error(self) -> float:
        """Expected relative error of W."""
        return float(np.linalg.norm(self.W) / np.linalg.norm(self.layer.W))

    def output_error(self, X: ArrayLike) -> float:
        """Return the expected root mean square error of the outputs for other tokens X (n, k, d), without their noise."""
        tokens = _tokens(X, self.layer)
        total, outputs = 0.0, 0
        for J, _ in _jacobian(self.layer, tokens):
            total += float(np.sum((J @ self.covariance) * J))
            outputs += len(J)
        return float(np.sqrt(max(total, 0.0) / outputs))


def fisher(layer: HasLayer, X: ArrayLike, noise: float, *, rank: int | None = None) -> Fisher:
    """Return how precisely a layer can be known from its outputs for tokens X under Gaussian noise.

    Parameters
    ----------
    layer : Layer, or what has one as its `layer`
        Of a guess, if the truth is not known: the information changes slowly with it. Biases count as unknown if it has any.
    X : array of shape (n, k, d)
        Tokens of which all outputs are seen.
    noise : float
        Standard deviation of the noise of every output.
    rank : int, optional
        Rank of every Theta_i and W_i, if the fit knows it; the layer must have no higher one.

    Returns
    -------
    Fisher

    Examples
    --------
    >>> from attlas import recovery, tokens
    >>> layer = recovery.Layer(*recovery.planted_layer(heads=2, d=4, seed=1))
    >>> few, many = (recovery.fisher(layer, tokens.boolean(n, 4, 4, seed=2), noise=0.1) for n in (200, 800))
    >>> bool(0.4 < many.Theta_error / few.Theta_error < 0.6)  # four times the examples, half of the error
    True

    References
    ----------
    Cramer and Rao's bound for least squares; the formula is in the docs, under "How precisely can it be known".
    """
    given, tokens = _checked(layer, X)
    sigma = real(noise, "noise", above=0)
    low = None if rank is None else integer(rank, "rank")
    moves = directions(given, _biased(given), low, low)
    if moves is None:
        moves = np.eye(numbers(given, _biased(given)))
    information = np.zeros((moves.shape[1],) * 2)
    for J, _ in _jacobian(given, tokens):
        part = J @ moves
        information += part.T @ part
    # coordinates of tokens may have different units: every direction in the unit in which it tells most
    units = np.sqrt(np.diag(information))
    units = np.where(units > _NULL * (largest := float(units.max())), units, largest or 1.0)  # less is rounding
    values, vectors = np.linalg.eigh(information / units[:, None] / units)
    seen = values > _NULL * max(float(values[-1]), np.finfo(float).tiny)
    root = moves @ (vectors[:, seen] / units[:, None] * (sigma / np.sqrt(values[seen])))
    in_units = moves / units
    unseen = np.linalg.norm(in_units @ vectors[:, ~seen], axis=1) > 1e-6 * np.linalg.norm(in_units, axis=1)
    errors = np.where(unseen, np.inf, np.linalg.norm(root, axis=1))
    Theta, u, W, b = _split(given, errors)
    biased = _biased(given)
    return Fisher(
        Theta,
        W,
        u if biased else None,
        b if biased else None,
        int(seen.sum()),
        int((~seen).sum()),
        sigma,
        root @ root.T,
        given,
    )


def information(layer: HasLayer, X: ArrayLike, *, rank: int | None = None) -> Array:
    """Return how much each sequence tells: its share of the unknowns, tr(J_s (J^T J)^+ J_s^T), which add up to their number.

    A sequence that tells more than the mean is worth asking again; where all tell the same, no design of so many queries has
    more information in all (the determinant of J^T J is largest).

    Parameters
    ----------
    layer : Layer, or what has one as its `layer`
    X : array of shape (n, k, d)
    rank : int, optional
        As in `fisher`.

    Returns
    -------
    array of shape (n,)

    Examples
    --------
    >>> from attlas import recovery, tokens
    >>> layer = recovery.Layer(*recovery.planted_layer(heads=1, d=3, seed=0))
    >>> share = recovery.information(layer, tokens.gaussian(30, 4, 3, seed=1))
    >>> share.shape, round(float(share.sum()))  # d^2 of Theta and d^2 of W
    ((30,), 18)

    References
    ----------
    kiefer1960equivalence.
    """
    given, tokens = _checked(layer, X)
    bound = fisher(given, tokens, 1.0, rank=rank)
    shares = np.zeros(len(tokens))
    for J, rows in _jacobian(given, tokens):
        shares[rows] = np.sum((J @ bound.covariance) * J, axis=1).reshape(rows.stop - rows.start, -1).sum(1)
    return shares


def _checked(layer: HasLayer, X: ArrayLike) -> tuple[Layer, Array]:
    given = layer_of(layer)
    if given.causal or given.d != given.d_keys:
        raise InputError(
            "the information is that of a layer whose tokens all attend to each other: no mask, no other keys"
        )
    count = numbers(given, _biased(given))
    if count > _MOST:
        raise InputError(f"the layer has {count} parameters; the information of more than {_MOST} is not computed")
    return given, _tokens(X, given)


def _tokens(X: ArrayLike, layer: Layer) -> Array:
    return np.asarray(array(X, "X", ("n", "k", "d"), (None, None, layer.d)), dtype=float)


def _biased(layer: Layer) -> bool:
    return layer.key_bias is not None or layer.output_bias is not None


def _split(layer: Layer, values: Array) -> tuple[Array, Array, Array, Array]:
    """Return what belongs to Theta, u, W and b."""
    m, d, d_out = layer.W.shape
    rows = d + int(_biased(layer))
    cut = m * rows * d
    heads = values[:cut].reshape(m, rows, d)
    return (
        heads[:, :d],
        heads[:, d:].reshape(m, -1),
        values[cut : cut + layer.W.size].reshape(m, d, d_out),
        values[cut + layer.W.size :],
    )


def _jacobian(layer: Layer, X: Array) -> Iterator[tuple[Array, slice]]:
    """Yield the derivatives of the outputs of some sequences, (sequences k d_out, P), and which sequences they are."""
    data = Examples(X, X, np.zeros((*X.shape[:2], layer.outputs)), bias=_biased(layer))
    start = 0
    for part in data.blocks(data.Y[0].size * numbers(layer, data.bias), _NUMBERS):
        J = tangent(part, layer)
        yield J.reshape(-1, J.shape[2]), slice(start, start + len(J))
        start += len(J)
