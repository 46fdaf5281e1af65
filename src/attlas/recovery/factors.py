"""A layer as the factors that people train: queries, keys, values and output, all heads side by side.

With D = heads x rank, tokens x as columns, and head i owning `rank` rows of A, B, V and as many columns of O,

    Q = A x + a,   K = B x,   U = V x,   y_r = b + sum_i O_i sum_c softmax_c(Q_r^i . K_c^i) U_c^i,

so Theta_i = A_i^T B_i, the key bias is u_i = B_i^T a_i, and W_i = V_i^T O_i^T. A bias of the keys adds the same to all
logits of a row and is invisible; a bias of the values adds the same to all outputs and is part of b. Factors are known up to
an invertible map in each head, A_i -> S A_i and B_i -> S^-T B_i, and likewise V_i and O_i.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Sizes(NamedTuple):
    """Heads, the rank of each, the dimensions of tokens and outputs, and whether there are biases."""

    heads: int
    rank: int
    d: int
    d_out: int
    biased: bool = False

    @property
    def width(self) -> int:
        """D, the width of all heads together."""
        return self.heads * self.rank

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Of A, B, V, O, a and b."""
        D, biases = self.width, int(self.biased)
        return (D, self.d), (D, self.d), (D, self.d), (self.d_out, D), (D * biases,), (self.d_out * biases,)

    @property
    def numbers(self) -> int:
        """Of all factors together."""
        return sum(int(np.prod(shape)) for shape in self.shapes)

    @property
    def unknowns(self) -> int:
        """Numbers that the function determines: those of the factors, less the maps that leave it as it is."""
        rank = min(self.rank, self.d)
        of_values = min(self.rank, self.d, self.d_out)
        of_heads = rank * (2 * self.d - rank) + of_values * (self.d + self.d_out - of_values)
        return self.heads * (of_heads + rank * int(self.biased)) + self.d_out * int(self.biased)


class Factors(NamedTuple):
    """The factors A, B, V (D, d), O (d_out, D) and biases a (D), b (d_out); biases are empty where there are none."""

    A: Array
    B: Array
    V: Array
    O: Array  # noqa: E741
    a: Array
    b: Array

    @classmethod
    def of(cls, v: Array, sizes: Sizes) -> "Factors":
        """Return views into one vector."""
        parts, start = [], 0
        for shape in sizes.shapes:
            stop = start + int(np.prod(shape))
            parts.append(v[start:stop].reshape(shape))
            start = stop
        return cls(*parts)

    def heads(self, sizes: Sizes) -> tuple[Array, Array, Array, Array]:
        """Return Theta (m, d, d), W (m, d, d_out), the key biases u (m, d) and the output bias b (d_out)."""
        A, B, V = (M.reshape(sizes.heads, sizes.rank, sizes.d) for M in (self.A, self.B, self.V))
        O = self.O.reshape(sizes.d_out, sizes.heads, sizes.rank)  # noqa: E741
        Theta = A.transpose(0, 2, 1) @ B
        W = V.transpose(0, 2, 1) @ O.transpose(1, 2, 0)
        if not sizes.biased:
            return Theta, W, np.zeros((sizes.heads, sizes.d)), np.zeros(sizes.d_out)
        a = self.a.reshape(sizes.heads, 1, sizes.rank)
        return Theta, W, (a @ B)[:, 0], self.b.copy()
