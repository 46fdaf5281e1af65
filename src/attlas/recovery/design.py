"""Which sequences to ask: the ones whose outputs together tell most about a layer.

With J_s the derivatives of the outputs of sequence s, chosen sequences S have the information M = sum_S J_s^T J_s, and the
volume of the parameters that noise leaves possible is det(M)^(-1/2). One more sequence gains

    log det(1 + J_s M^-1 J_s^T),

and the gain of a sequence never grows while others are added: the greedy choice looks again only at those that could win.
"""

import heapq

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.errors import InputError
from attlas.inputs import integer
from attlas.recovery.comparison import HasLayer
from attlas.recovery.fisher import Fisher, _biased, _checked, _jacobian, fisher
from attlas.recovery.tangent import numbers

Array = NDArray[np.float64]

_BEFORE = 1e-3  # of the information of all sequences, known before the first one is chosen
_MOST = 1 << 26  # numbers in the Jacobians of all sequences: half a gigabyte


def design(layer: HasLayer, X: ArrayLike, n: int, *, rank: int | None = None) -> NDArray[np.intp]:
    """Return which n of these sequences to ask, so that the outputs determine the layer best (D-optimal, greedy).

    Where outputs depend on the unknown parameters themselves, so does the design: give the layer that a few random queries
    led to.

    Parameters
    ----------
    layer : Layer, or what has one as its `layer`
        The best guess. Biases count as unknown if it has any.
    X : array of shape (N, k, d)
        Sequences that could be asked; a few times n of them. Their Jacobians, N k d_out times the number of unknowns, must
        have no more than 67 million numbers.
    n : int
        At most N.
    rank : int, optional
        As in `fisher`.

    Returns
    -------
    array of int of shape (n,)
        Places in X, in the order of the choice: its first half is a design of n/2.

    Raises
    ------
    InputError
        If n is more than there are, the Jacobians would be too large, or no sequence tells anything.

    Examples
    --------
    >>> from attlas import recovery, tokens
    >>> layer = recovery.Layer(*recovery.planted_layer(heads=1, d=3, seed=1))
    >>> X = tokens.gaussian(200, 4, 3, seed=2)
    >>> rows = recovery.design(layer, X, 20)
    >>> chosen, first = (recovery.fisher(layer, some, noise=0.1) for some in (X[rows], X[:20]))
    >>> bool(chosen.Theta_error < 0.7 * first.Theta_error)
    True

    References
    ----------
    kiefer1960equivalence for the criterion.
    """
    given, tokens = _checked(layer, X)
    count = integer(n, "n")
    if count > len(tokens):
        raise InputError(f"n = {count} sequences cannot be chosen from {len(tokens)}; give more of them")
    size = len(tokens) * tokens.shape[1] * given.outputs * numbers(given, _biased(given))
    if size > _MOST:
        raise InputError(
            f"the Jacobians of {len(tokens)} sequences have {size} numbers, and may have {_MOST}; give fewer sequences"
        )
    bound = fisher(given, tokens, 1.0, rank=rank)
    if not bound.unknowns:
        raise InputError("no sequence of X tells anything about the layer: all outputs are zero, whatever it is")
    J = _whitened(bound, tokens)
    C = np.eye(bound.unknowns) / _BEFORE  # of the parameters, given what is chosen
    queue = [(-np.inf, place) for place in range(len(J))]
    chosen: list[int] = []
    while len(chosen) < count:
        place = heapq.heappop(queue)[1]
        gain = _gain(J[place], C)
        if queue and gain < -queue[0][0]:
            heapq.heappush(queue, (-gain, place))
            continue
        chosen.append(place)
        spread = J[place] @ C
        C -= spread.T @ np.linalg.solve(np.eye(len(spread)) + spread @ J[place].T, spread)
    return np.array(chosen)


def _gain(J: Array, C: Array) -> float:
    return float(np.linalg.slogdet(np.eye(len(J)) + J @ C @ J.T)[1])


def _whitened(bound: Fisher, X: Array) -> Array:
    """Return J_s (N, k d_out, unknowns) of all sequences, in coordinates in which their information is the identity."""
    sizes = np.sqrt(np.diag(bound.covariance))
    sizes = np.where(sizes > 0, sizes, 1.0)
    values, vectors = np.linalg.eigh(bound.covariance / sizes[:, None] / sizes)
    root = sizes[:, None] * vectors[:, -bound.unknowns :] * np.sqrt(values[-bound.unknowns :])
    parts = ((J @ root).reshape(rows.stop - rows.start, -1, bound.unknowns) for J, rows in _jacobian(bound.layer, X))
    return np.concatenate(list(parts))
