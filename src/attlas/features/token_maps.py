"""What happens to tokens before the frozen heads see them: position codes, a first layer, or nothing."""

from dataclasses import dataclass
from typing import Any

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
    """A first layer, if there is one, then position codes of some weight for some keys."""

    first: FirstLayer | None = None
    positions: float = 0.0
    slots: int = 0

    def __call__(self, X: Array) -> Array:
        """Return the tokens that the heads see."""
        seen = X if self.first is None else self.first(X)
        return with_positions(seen, self.positions, self.slots)


def draw_heads(
    n_heads: Any, X: Array, bias: Any, activation: Any, random_state: Any, positions: Any = 0.0, depth: Any = 1
) -> tuple[Array, TokenMap]:
    """Return the frozen heads for sequences like X, bias included, and what tokens go through before them."""
    if integer(depth, "depth") > 2:
        raise InputError(f"depth must be 1 or 2; got {depth!r}")
    weight = real(positions, "positions", least=0)
    rng, count = seed_of(random_state), integer(n_heads, "n_heads")
    d, slots = X.shape[2], X.shape[1] - 1
    W0, first = bias_matrix(bias, d), None
    if depth == 2:
        first = FirstLayer.draw(W0, activation, rng)
        W0 = widened(W0, len(first.heads) * (d + 1))  # the bias is one of the tokens as they were
        d = len(W0) - 1
    if weight:
        heads = score_scale(weight) * attention_heads(count, d + slots, rng) + widened(W0, slots)
    else:
        heads = attention_heads(count, d, rng) + W0
    return heads, TokenMap(first, weight, slots)
