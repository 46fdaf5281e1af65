"""A first random layer, whose features are tokens of a second: two layers learn functions of two keys, one cannot."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas.features.heads import attention_heads
from attlas.layers import random_feature_attention
from attlas.numerics import Seed

Array = NDArray[Any]

FIRST_HEADS = 4


@dataclass(frozen=True)
class FirstLayer:
    """A few frozen heads: every token attends to the keys, and its features are put beside it.

        z_q = [x_q/sqrt 2; phi(x_q; x_1..x_N)],    phi the features of M heads over sqrt(M), token q as the query.

    Attributes
    ----------
    heads : array of shape (M, d + 1, d + 1)
    activation : str or function
    """

    heads: Array = field(repr=False)
    activation: Any = "relu"

    @classmethod
    def draw(cls, bias: Array, activation: Any, seed: Seed) -> "FirstLayer":
        """Draw heads with a bias matrix (d + 1, d + 1)."""
        return cls(attention_heads(FIRST_HEADS, len(bias) - 1, seed) + bias, activation)

    def __call__(self, X: Array) -> Array:
        """Return the tokens of the second layer, (n, 1 + keys, d + M (d + 1)); missing keys stay missing."""
        missing = np.isnan(X[:, :, 0])
        known = np.nan_to_num(X)
        present = ~missing[:, 1:]
        parts = []
        for q in range(X.shape[1]):
            tokens = np.concatenate([known[:, q : q + 1], known[:, 1:]], axis=1)
            parts.append(random_feature_attention(tokens, self.heads, self.activation, present).reshape(len(X), -1))
        features = np.stack(parts, axis=1) / np.sqrt(len(self.heads))
        found = np.concatenate([known / np.sqrt(2), features], axis=2)
        found[missing] = np.nan
        return found
