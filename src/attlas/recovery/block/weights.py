"""A block as people write it down, and blocks to be recovered."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.errors import InputError
from attlas.inputs import array, flag, integer, real
from attlas.layers import transformer_block
from attlas.numerics import stream

Array = NDArray[np.float64]


@dataclass(frozen=True)
class BlockWeights:
    """g(a(X)), a(X) = r_a x + sum_i softmax(x^T Theta_i X^T) X W_i, g(z) = r_g z + B relu(A z + a0) + b0.

    Attributes
    ----------
    Theta, W : arrays of shape (m, d, d)
    A, a0 : arrays of shape (h, d) and (h,)
    B, b0 : arrays of shape (d_out, h) and (d_out,)
    attention_residual, network_residual : bool
        r_a and r_g.
    """

    Theta: Array
    W: Array
    A: Array
    a0: Array
    B: Array
    b0: Array
    attention_residual: bool = True
    network_residual: bool = False

    def __post_init__(self) -> None:
        Theta = array(self.Theta, "Theta", ("m", "d", "d"))
        m, d, other = Theta.shape
        if d != other:
            raise InputError(f"Theta must have shape (m, d, d); got {Theta.shape}")
        W = array(self.W, "W", ("m", "d", "d"), (m, d, d))
        A = array(self.A, "A", ("h", "d"), (None, d))
        a0 = array(self.a0, "a0", ("h",), (len(A),))
        B = array(self.B, "B", ("d_out", "h"), (None, len(A)))
        b0 = array(self.b0, "b0", ("d_out",), (len(B),))
        flag(self.attention_residual, "attention_residual")
        if flag(self.network_residual, "network_residual") and len(B) != d:
            raise InputError(f"a residual around the network needs d_out = d = {d}; got {len(B)} outputs")
        for name, value in zip(("Theta", "W", "A", "a0", "B", "b0"), (Theta, W, A, a0, B, b0), strict=True):
            object.__setattr__(self, name, value)

    @property
    def d(self) -> int:
        """Dimension of a token."""
        return int(self.Theta.shape[1])

    def __call__(self, X: ArrayLike) -> Array:
        """Return the output (d_out,) of the last of the tokens X (k, d)."""
        X = array(X, "X", ("k", "d"), (None, self.d))
        parts = (self.Theta, self.W, self.A, self.a0, self.B, self.b0, self.attention_residual, self.network_residual)
        return np.asarray(transformer_block(X[None], *parts)[0, -1])


def planted_block(
    heads: int,
    d: int,
    hidden: int,
    seed: int,
    *,
    d_out: int | None = None,
    attention_residual: bool = True,
    network_residual: bool = False,
    scale: float = 1.0,
) -> BlockWeights:
    """Draw a generic block: Theta N(0, s^2/d), W and A N(0, 1/d), a0 N(0, 1/4), B N(0, 1/h), b0 N(0, 1).

    Parameters
    ----------
    heads, d, hidden : int
        Heads H, dimension of a token, hidden neurons h.
    seed : int
    d_out : int, optional
        Output dimension; d if not given.
    attention_residual, network_residual : bool
        r_a and r_g.
    scale : float, default 1
        Of the logits, s.

    Examples
    --------
    >>> from attlas import recovery
    >>> truth = recovery.planted_block(heads=1, d=4, hidden=6, seed=0)
    >>> truth([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]]).shape
    (4,)
    """
    heads, d, hidden = integer(heads, "heads"), integer(d, "d"), integer(hidden, "hidden")
    outputs = d if d_out is None else integer(d_out, "d_out")

    def drawn(name: str, shape: tuple[int, ...], variance: float) -> Array:
        return np.asarray(np.sqrt(variance) * stream(seed, "planted block", name).standard_normal(shape))

    return BlockWeights(
        drawn("Theta", (heads, d, d), real(scale, "scale", least=0) ** 2 / d),
        drawn("W", (heads, d, d), 1 / d),
        drawn("A", (hidden, d), 1 / d),
        drawn("a0", (hidden,), 1 / 4),
        drawn("B", (outputs, hidden), 1 / hidden),
        drawn("b0", (outputs,), 1.0),
        attention_residual,
        network_residual,
    )
