"""Tasks: a teacher of mixed attention, an encoding, and data to learn from."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from attlas.errors import InputError
from attlas.inputs import described, integer, real, size
from attlas.numerics import stream
from attlas.positional.model import TOKENS, Model, check_model

Array = NDArray[np.float64]
Values = Literal["plain", "encoded"]

LARGEST = 1e6  # of an entry of Q


@dataclass(frozen=True, repr=False)
class Task:
    """A teacher and n = alpha d samples of it.

    Attributes
    ----------
    X : array of shape (n, 2, d)
        Tokens.
    targets : array of shape (n, 2)
        T_11 and T_22 of every sample.
    Q : array of shape (d,)
        The teacher Q*, |Q*|^2 = d.
    e : array of shape (d,)
        Direction of the encoding, a unit vector orthogonal to Q*.
    model : Model
    values : {"plain", "encoded"}
        What the student averages: the tokens, or the tokens with their encoding.
    seed : int
        What the task was drawn from; a random start takes its own stream of it.
    """

    X: Array
    targets: Array
    Q: Array
    e: Array
    model: Model
    values: Values
    seed: int

    def __repr__(self) -> str:
        sizes = f"d={self.d}, alpha={self.alpha:g}, n={len(self.X)}"
        return f"Task({sizes}, values={self.values!r}, seed={self.seed}, {self.model})"

    @property
    def d(self) -> int:
        """Dimension of a token."""
        return len(self.Q)

    @property
    def alpha(self) -> float:
        """Samples over d."""
        return len(self.X) / self.d

    @property
    def attention(self) -> Array:
        """T of every sample, of shape (n, 2, 2)."""
        first, second = self.targets.T
        return np.stack([np.stack([first, 1 - first], -1), np.stack([1 - second, second], -1)], 1)

    @property
    def y(self) -> Array:
        """Outputs T x, of shape (n, 2, d)."""
        return np.asarray(self.attention @ self.X)


def sample(model: Model, d: int, alpha: float, seed: int = 0, values: Values = "plain") -> Task:
    """Draw a teacher, an encoding, and n = alpha d sequences with their outputs.

    Teacher, encoding, tokens and a random start have streams of their own.

    Parameters
    ----------
    model : Model
    d : int
        Dimension of a token, at least 2.
    alpha : float
        Samples over d, positive.
    seed : int, default 0
    values : {"plain", "encoded"}
        Whether the student averages x (the encoding enters queries and keys only) or x + c p e^T. Both have the same limit;
        with "encoded" the loss is larger by alpha c^2 E[(2 s_1 - 1)^2 + (2 s_2 - 1)^2]/(2 d), 3 to 7 % at c = 3, d = 300.

    Examples
    --------
    >>> from attlas import positional
    >>> task = positional.sample(positional.Model(mixture=0.3, encoding=3.0), d=50, alpha=2, seed=0)
    >>> task.X.shape, task.targets.shape
    ((100, 2, 50), (100, 2))
    """
    d, alpha = integer(d, "d", least=2), real(alpha, "alpha", above=0)
    if not isinstance(values, str) or values not in ("plain", "encoded"):
        raise InputError(f'values must be "plain" or "encoded"; got {described(values)}')
    check_model(model)
    n = count_samples(alpha, d, TOKENS)
    Q = unit(stream(seed, "positional", "teacher").standard_normal(d)) * np.sqrt(d)
    e = stream(seed, "positional", "encoding").standard_normal(d)
    e = unit(e - Q * (Q @ e) / d)
    X = draw_tokens((n, TOKENS, d), seed, "positional", "tokens")
    X *= model.token_scale
    z = X @ Q / np.sqrt(d)
    S, R = (z[:, 0] - z[:, 1]) / np.sqrt(2), (z[:, 0] + z[:, 1]) / np.sqrt(2)
    return Task(X, np.stack(model.targets(S, R), -1), Q, e, model, values, int(seed))


def check_task(task: object) -> Task:
    """Return what was given if it is a task, or raise `InputError`."""
    if not isinstance(task, Task):
        raise InputError(f"task must be a Task, such as sample(model, d=250, alpha=3); got {described(task)}")
    return task


def count_samples(alpha: float, d: int, tokens: int) -> int:
    """Return n = alpha d, or raise `InputError` if that is no sample, or more than any memory holds."""
    n = size(round(alpha * d), "n = alpha d")
    if n < 1:
        raise InputError(f"alpha = {alpha:g} and d = {d} give no sample; take alpha of at least {1 / d:g}")
    size(float(n) * tokens * d, "the entries of all tokens, alpha L d^2,")
    return n


def draw_tokens(shape: tuple[int, int, int], seed: int, *names: str) -> Array:
    """Draw N(0, 1) tokens, or raise `InputError` if this machine has no memory for them."""
    try:
        return stream(seed, *names).standard_normal(shape)
    except MemoryError:
        need = 8 * float(np.prod(np.array(shape, float))) / 1e9
        raise InputError(f"{shape} tokens need {need:.3g} GB, more than there is; choose smaller sizes") from None


def check_size(Q: Array) -> Array:
    """Return a Q whose powers are numbers, or raise `InputError`."""
    largest = float(np.abs(Q).max())
    if largest > LARGEST:
        raise InputError(f"Q must have entries of size one or so, {LARGEST:g} at most; got {largest:g}")
    return Q


def unit(v: Array) -> Array:
    """Return v over its length."""
    return np.asarray(v / np.linalg.norm(v))
