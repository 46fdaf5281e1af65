"""Tasks: a teacher of mixed attention, an encoding, and data to learn from."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from attlas.errors import InputError
from attlas.inputs import integer, real
from attlas.numerics import stream
from attlas.positional.model import TOKENS, Model

Array = NDArray[np.float64]
Values = Literal["plain", "encoded"]


@dataclass(frozen=True)
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
    """
    d, alpha = integer(d, "d", least=2), real(alpha, "alpha", above=0)
    if values not in ("plain", "encoded"):
        raise InputError(f'values must be "plain" or "encoded"; got {values!r}')
    n = round(alpha * d)
    if n < 1:
        raise InputError(f"alpha = {alpha:g} and d = {d} give no sample; take alpha of at least {1 / d:g}")
    Q = unit(stream(seed, "positional", "teacher").standard_normal(d)) * np.sqrt(d)
    e = stream(seed, "positional", "encoding").standard_normal(d)
    e = unit(e - Q * (Q @ e) / d)
    X = model.token_scale * stream(seed, "positional", "tokens").standard_normal((n, TOKENS, d))
    z = X @ Q / np.sqrt(d)
    S, R = (z[:, 0] - z[:, 1]) / np.sqrt(2), (z[:, 0] + z[:, 1]) / np.sqrt(2)
    return Task(X, np.stack(model.targets(S, R), -1), Q, e, model, values, int(seed))


def unit(v: Array) -> Array:
    """Return v over its length."""
    return np.asarray(v / np.linalg.norm(v))
