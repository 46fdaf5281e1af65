"""How many heads a user means."""

from typing import Any

import numpy as np

from attlas.errors import InputError
from attlas.inputs import real


def head_count(heads: Any) -> float:
    """Return a positive number of heads; infinity for "infinite"."""
    if isinstance(heads, str):
        if heads != "infinite":
            raise InputError(f"heads must be a positive number or 'infinite'; got {heads!r}")
        return float("inf")
    if isinstance(heads, float | np.floating) and np.isposinf(heads):
        return float("inf")
    return real(heads, "heads", above=0)
