"""What happens to tokens before the frozen heads see them: position codes, a first layer, or nothing."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas.errors import InputError
from attlas.features.base import seed_of
from attlas.features.heads import attention_heads
from attlas.features.position_codes import score_scale, widened, with_positions
from attlas.features.sequences import bias_matrix
from attlas.features.stacked import FirstLayer
from attlas.inputs import integer, real

Array = NDArray[Any]


@dataclass(frozen=True)
class TokenMap:
    """A query, if the set has none of its own; a first layer, if there is one; then position codes for some keys.

    Attributes
    ----------
    first : FirstLayer, optional
    positions : float
        Weight gamma^2 of position codes.
    slots : int
        Places of keys that have a code.
    query : {"first", "mean", None}
        Token 0, the mean token, or every token in turn. In the last two cases all tokens are keys.
    """

    first: FirstLayer | None = None
    positions: float = 0.0
    slots: int = 0
    query: str | None = "first"

    def __call__(self, X: Array) -> Array:
        """Return the tokens that the heads see, the query before its keys; the keys alone if each of them is a query."""
        if self.query is None and not self.first and not self.positions:
            return X
        asked = X if self.query == "first" else with_query(X, self.query)
        seen = asked if self.first is None else self.first(asked)
        coded = with_positions(seen, self.positions, self.slots)
        return coded[:, 1:] if self.query is None else coded

    @property
    def codes(self) -> int:
        """How many of the last coordinates are position codes."""
        return self.slots if self.positions else 0


def with_query(X: Array, query: str | None) -> Array:
    """Return sets (n, k, d), missing tokens NaN, with their mean before them as the query, or any token for None."""
    if query is None:
        asks = X[:, :1]
    else:
        present = ~np.isnan(X[:, :, :1])
        asks = np.sum(X, axis=1, keepdims=True, where=present) / present.sum(1, keepdims=True).astype(X.dtype)
    return np.concatenate([asks, X], axis=1)


def draw_heads(
    n_heads: Any,
    X: Any,
    bias: Any,
    activation: Any,
    random_state: Any,
    positions: Any = 0.0,
    depth: Any = 1,
    query: str | None = "first",
) -> tuple[Array, TokenMap]:
    """Return the frozen heads for sequences or sets like X, bias included, and what tokens go through before them."""
    if integer(depth, "depth") > 2:
        raise InputError(f"depth must be 1 or 2; got {depth!r}")
    weight = real(positions, "positions", least=0)
    rng, count = seed_of(random_state), integer(n_heads, "n_heads")
    d, slots = X.shape[2], X.shape[1] - (query == "first")
    W0, first = bias_matrix(bias, d), None
    if depth == 2:
        first = FirstLayer.draw(W0, activation, rng)
        W0 = widened(W0, len(first.heads) * (d + 1))  # the bias is one of the tokens as they were
        d = len(W0) - 1
    if weight:
        heads = score_scale(weight) * attention_heads(count, d + slots, rng) + widened(W0, slots)
    else:
        heads = attention_heads(count, d, rng) + W0
    return heads, TokenMap(first, weight, slots, query)
