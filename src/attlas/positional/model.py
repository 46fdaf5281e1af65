"""The model: a teacher that attends by place and by meaning, and a student that can do either."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.errors import InputError
from attlas.inputs import array, described, integer, real

Array = NDArray[np.float64]

TOKENS = 2  # of the theory of training; the Bayes side takes any number
DIAGONAL = 0.6
LEAST_SCALE = 1e-3  # of the tokens, for the integrals of the theory


@dataclass(frozen=True)
class Model:
    """Two tokens, a teacher of mixed attention, a tied student of rank one with positional encodings.

    Tokens x_a ~ N(0, sigma^2 I_d), a = 1, 2. The teacher Q*, |Q*|^2 = d, has z_a = x_a . Q*/sqrt(d) and y = T x with

        T = (1 - omega) softmax(z z^T) + omega A.

    The student has h_a = (x_a + c p_a e) . Q/sqrt(d), p = (1, -1), and answers softmax(h h^T) x; the encoding e, |e| = 1, is
    orthogonal to Q*. It minimises, over Q,

        (1/2d) sum_mu |softmax(h h^T) x - y|^2 + (lambda/2) |Q|^2        (over n = alpha d samples).

    Parameters
    ----------
    mixture : float
        omega in [0, 1): the share of the teacher's attention that goes by place.
    encoding : float
        c >= 0: strength of the student's positional encoding. At 0 there is no positional minimum.
    token_scale : float, default 1
        sigma > 0.
    decay : float, default 0.5
        lambda > 0, beside the *sum* over samples. With a mean over n samples take decay/n, and for the weight decay of an
        optimiser on that mean decay d/n.
    positional_matrix : array_like of shape (2, 2), default [[0.6, 0.4], [0.4, 0.6]]
        A: rows of attention by place; not negative, each row sums to one.
    tokens : int, default 2
        L. The theory of training is for two; `bayes` and `weak_recovery` take any number.

    References
    ----------
    cui2024phase; the strength c, and an encoding in queries and keys alone, are ours.
    """

    mixture: float
    encoding: float
    token_scale: float = 1.0
    decay: float = 0.5
    positional_matrix: ArrayLike = ((DIAGONAL, 1 - DIAGONAL), (1 - DIAGONAL, DIAGONAL))
    tokens: int = TOKENS

    def __post_init__(self) -> None:
        if integer(self.tokens, "tokens") != TOKENS:
            raise InputError(
                f"the theory of training is for two tokens; got tokens={self.tokens}; take 2, or `bayes` and"
                " `weak_recovery`, which take any number"
            )
        mixture = real(self.mixture, "mixture", least=0)
        if mixture >= 1:
            raise InputError(
                f"mixture must be in [0, 1); got {mixture:g}: a teacher that goes by place alone has no meaning to find;"
                " take 0.99 at most"
            )
        A = array(self.positional_matrix, "positional_matrix", ("token", "token"))
        if A.shape != (TOKENS, TOKENS):
            raise InputError(
                f"positional_matrix must be 2 x 2: the theory of training is for two tokens; got shape {A.shape}"
            )
        if np.any(A < 0) or np.abs(A.sum(1) - 1).max() > 1e-9:
            raise InputError(
                "positional_matrix must hold no negative entry and every row must sum to one;"
                f" got rows that sum to {A[0].sum():g} and {A[1].sum():g}; divide each row by its sum"
            )
        fields = {
            "mixture": mixture,
            "encoding": real(self.encoding, "encoding", least=0),
            "token_scale": real(self.token_scale, "token_scale", above=0),
            "decay": real(self.decay, "decay", above=0),
            "positional_matrix": tuple(tuple(float(entry) for entry in row) for row in A),
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @property
    def diagonal(self) -> tuple[float, float]:
        """A_11 and A_22, which fix the rest of A."""
        A: Any = self.positional_matrix
        return A[0][0], A[1][1]

    @property
    def symmetric(self) -> bool:
        """Whether both tokens are alike, A_11 = A_22."""
        return self.diagonal[0] == self.diagonal[1]

    def targets(self, S: ArrayLike, R: ArrayLike) -> tuple[Array, Array]:
        """Return T_11 and T_22 for the teacher's rotated tokens S = (z_1 - z_2)/sqrt 2, R = (z_1 + z_2)/sqrt 2.

        T_11 = (1 - omega) sig(S(S + R)) + omega A_11,   T_22 = (1 - omega) sig(S(S - R)) + omega A_22.
        """
        (first, second), (A1, A2), share = attention(S, R), self.diagonal, self.mixture
        return (1 - share) * first + share * A1, (1 - share) * second + share * A2

    def loss(self, s: ArrayLike, r: ArrayLike, t1: ArrayLike, t2: ArrayLike) -> Array:
        """Return the loss of one sample as d grows, sigma^2 [(sig(s(s + r)) - t1)^2 + (sig(s(s - r)) - t2)^2].

        It is (1/2d) |softmax(h h^T) x - T x|^2 in the rotated tokens s = (h_1 - h_2)/sqrt 2, r = (h_1 + h_2)/sqrt 2, since
        x x^T/d tends to sigma^2 I. It is even: h and -h are the same layer.
        """
        first, second = attention(s, r)
        return np.asarray(self.token_scale**2 * ((first - np.asarray(t1)) ** 2 + (second - np.asarray(t2)) ** 2))


def check_model(model: object) -> Model:
    """Return what was given if it is a model, or raise `InputError`."""
    if not isinstance(model, Model):
        raise InputError(f"model must be a Model, such as Model(mixture=0.3, encoding=3.0); got {described(model)}")
    return model


def check_scale(model: object, most: float, what: str) -> float:
    """Return the token scale of a model, or raise `InputError` if it is outside the range of an integral."""
    scale = check_model(model).token_scale
    if not LEAST_SCALE <= scale <= most:
        raise InputError(
            f"{what} is computed for token_scale between {LEAST_SCALE:g} and {most:g}: the integrals behind it resolve no"
            f" others; got token_scale = {scale:g}"
        )
    return scale


def attention(s: ArrayLike, r: ArrayLike) -> tuple[Array, Array]:
    """Return softmax(h h^T)_11 = sig(s(s + r)) and softmax(h h^T)_22 = sig(s(s - r)) of rotated tokens."""
    from scipy.special import expit

    s, r = np.asarray(s, dtype=float), np.asarray(r, dtype=float)
    return np.asarray(expit(s * (s + r))), np.asarray(expit(s * (s - r)))
