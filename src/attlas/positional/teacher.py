"""Teachers that go by meaning alone, of any rank and number of tokens: what message passing and spectra are tried on."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attlas.errors import InputError
from attlas.inputs import integer, real, size
from attlas.numerics import stream
from attlas.positional.task import count_samples, draw_tokens

Array = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class TeacherTask:
    """Sequences and their indices under a teacher of rank r.

    Attributes
    ----------
    X : array of shape (n, L, d)
        Tokens N(0, I).
    W : array of shape (d, r)
        The teacher; its columns are orthogonal and of squared length d. At rank one its column is Q*.
    z : array of shape (n, L, r)
        X W/sqrt(d).
    """

    X: Array
    W: Array
    z: Array

    def __repr__(self) -> str:
        n, L, d = self.X.shape
        return f"TeacherTask(tokens={L}, d={d}, alpha={n / d:g}, n={n}, rank={self.W.shape[1]})"

    @property
    def attention(self) -> Array:
        """softmax(z z^T) of every sample, of shape (n, L, L)."""
        logits = self.z @ self.z.transpose(0, 2, 1)
        weights = np.exp(logits - logits.max(2, keepdims=True))
        return np.asarray(weights / weights.sum(2, keepdims=True))

    @property
    def y(self) -> Array:
        """Outputs softmax(z z^T) x."""
        return np.asarray(self.attention @ self.X)


def sample_teacher(tokens: int, d: int, alpha: float, seed: int = 0, rank: int = 1) -> TeacherTask:
    """Draw a teacher and n = alpha d sequences of it; teacher and tokens have streams of their own.

    Parameters
    ----------
    tokens, d, rank : int
        L, the dimension of a token, and r <= d.
    alpha : float
        Samples over d, positive.
    seed : int, default 0

    Examples
    --------
    >>> from attlas import positional
    >>> task = positional.sample_teacher(tokens=2, d=50, alpha=2, seed=0, rank=2)
    >>> task.X.shape, task.W.shape, task.z.shape
    ((100, 2, 50), (50, 2), (100, 2, 2))
    """
    L, d, r = integer(tokens, "tokens"), integer(d, "d", least=2), integer(rank, "rank")
    if r > d:
        raise InputError(f"rank must be at most d; got rank = {r} and d = {d}")
    n = count_samples(real(alpha, "alpha", above=0), d, L)
    size(float(r) * d, "the entries of W, r d,")
    X = draw_tokens((n, L, d), seed, "positional", "bayes", "tokens")
    W = np.linalg.qr(stream(seed, "positional", "bayes", "teacher").standard_normal((d, r)))[0] * np.sqrt(d)
    return TeacherTask(X, W, X @ W / np.sqrt(d))
