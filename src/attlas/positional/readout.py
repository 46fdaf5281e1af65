"""What outputs tell about the indices: attention matrices, and from them z up to one global sign."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.errors import InputError
from attlas.inputs import array, integer, real

Array = NDArray[np.float64]

_LEAST_ALONG = 1e-12  # (z - mean z).z/(|z - mean z| |z|), which is positive
_SMALLEST = 1e-15  # of an attention weight that can be told from zero


def read_attention(
    X: ArrayLike, y: ArrayLike, *, mixture: float = 0.0, positional_matrix: ArrayLike | None = None
) -> Array:
    """Return softmax(z z^T) of every sample, from tokens and outputs y = [(1 - omega) softmax(z z^T) + omega A] x.

    Exact to rounding, since L tokens in d >= L dimensions are independent.

    Parameters
    ----------
    X, y : arrays of shape (n, L, d)
        d >= L.
    mixture : float, default 0
        omega in [0, 1).
    positional_matrix : array of shape (L, L), optional
        A; needed with a mixture.

    Examples
    --------
    >>> import numpy as np
    >>> from attlas import layers, positional
    >>> task = positional.sample_teacher(tokens=2, d=20, alpha=2, seed=0)
    >>> attention = layers.softmax(task.z @ task.z.transpose(0, 2, 1))
    >>> bool(np.allclose(positional.read_attention(task.X, attention @ task.X), attention))
    True
    """
    X = array(X, "X", ("n", "L", "d"))
    n, L, d = X.shape
    y = array(y, "y", ("n", "L", "d"), (n, L, d))
    if d < L:
        raise InputError(f"attention is read off only if d >= L; got d = {d} and L = {L}")
    mixture = real(mixture, "mixture", least=0)
    if mixture >= 1:
        raise InputError(f"mixture must be in [0, 1); got {mixture:g}: with place alone there is nothing to read off")
    T = _solved(X, y)
    if mixture == 0:
        return T
    if positional_matrix is None:
        raise InputError("a mixture needs its positional_matrix; got none; give the matrix A, or mixture=0")
    A = array(positional_matrix, "positional_matrix", ("L", "L"), (L, L))
    return np.asarray((T - mixture * A) / (1 - mixture))


def _solved(X: Array, y: Array) -> Array:
    """Return T with y = T X, sample by sample."""
    size = float(np.abs(X).max())
    if size == 0:
        raise InputError("X is zero: attention is read off from tokens that are independent")
    with np.errstate(all="ignore"):  # what overflows is refused below
        X, y = X / size, y / size
        G = X @ X.transpose(0, 2, 1)
        try:
            T = np.linalg.solve(G, X @ y.transpose(0, 2, 1)).transpose(0, 2, 1)
        except np.linalg.LinAlgError:
            raise InputError(
                "a sequence of X holds tokens that are not independent, such as the same one twice"
            ) from None
    if not np.isfinite(T).all():
        raise InputError("y must be weighted means of the tokens X; got outputs of another size")
    return np.asarray(T)


def read_indices(attention: ArrayLike) -> Array:
    """Return z of shape (n, L), each up to one sign, from softmax(z z^T) of a teacher of rank one and L >= 2 tokens.

    The logarithm less its mean over each row is z (z - mean z)^T: its singular vectors are z and z - mean z, and the first
    gives the second, which fixes the scale.

    Examples
    --------
    >>> from attlas import layers, positional
    >>> positional.read_indices(layers.softmax([[[1.0, 2.0], [2.0, 4.0]]])).round(6).tolist()  # up to one sign
    [[-1.0, -2.0]]
    """
    logits = centred_logits(attention)
    L = logits.shape[1]
    if L < 2:
        raise InputError("the attention of one token is constant and tells nothing; give z itself")
    left, sizes, right = np.linalg.svd(logits)
    u, v = left[:, :, 0], right[:, 0, :]
    along = np.sum(v * (u - u.mean(1, keepdims=True)), axis=1)
    bad = int(np.sum(along <= _LEAST_ALONG))
    if bad:
        raise InputError(
            f"no z has the attention of {bad} of {len(along)} samples as its softmax(z z^T); do mixture and"
            " positional_matrix fit the outputs?"
        )
    return np.asarray(u * np.sqrt(sizes[:, 0] / along)[:, None])


def read_gram(attention: ArrayLike, rank: int) -> Array:
    """Return E[z z^T | outputs] of shape (n, L, L), from softmax(z z^T), z of this rank.

    All of G = z z^T is seen but for |r|^2, r = z^T 1/sqrt(L); its mean is that of the projection on the span of the
    differences of tokens plus (rank - L + 1)_+.

    Examples
    --------
    >>> from attlas import positional
    >>> positional.read_gram([[[0.5, 0.5], [0.5, 0.5]]], rank=1).shape
    (1, 2, 2)
    """
    rank = integer(rank, "rank")
    logits = centred_logits(attention)  # G (I - 1 1^T/L)
    L = logits.shape[1]
    if L < 2:
        raise InputError("the attention of one token is constant and tells nothing")
    basis = np.linalg.qr(np.column_stack([np.ones(L), np.eye(L)[:, 1:]]))[0]
    flat, spread = basis[:, :1], basis[:, 1:]
    seen = logits @ spread
    cross, inner = flat.T @ seen, spread.T @ seen
    inner = (inner + inner.transpose(0, 2, 1)) / 2
    hidden = cross @ np.linalg.pinv(inner, rcond=1e-8, hermitian=True) @ cross.transpose(0, 2, 1) + max(rank - L + 1, 0)
    G = spread @ inner @ spread.T + flat @ cross @ spread.T + (flat @ cross @ spread.T).transpose(0, 2, 1)
    return np.asarray(G + hidden * (flat @ flat.T))


def centred_logits(attention: ArrayLike) -> Array:
    """Return log softmax(z z^T) less its mean over each row."""
    weights = array(attention, "attention", ("n", "L", "L"))
    if weights.shape[1] != weights.shape[2]:
        raise InputError(f"attention must have shape (n, L, L); got {weights.shape}")
    if weights.min() < -1e-6 or np.abs(weights.sum(2) - 1).max() > 1e-6:
        raise InputError(
            "attention must hold weights of at least 0 that sum to one in each row; read off with the right mixture and"
            " positional_matrix they do"
        )
    logits = np.log(np.maximum(weights, _SMALLEST))
    return np.asarray(logits - logits.mean(2, keepdims=True))
