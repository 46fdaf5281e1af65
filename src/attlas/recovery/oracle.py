"""Asking: an oracle gives the last token's output for any sequence one cares to send."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas.errors import InputError

Array = NDArray[np.float64]
Oracle = Callable[[Array], Any]


class CountingOracle:
    """An oracle that counts its queries, repeats and averages them, and checks every answer."""

    def __init__(self, oracle: Oracle, d: int, repeats: int = 1) -> None:
        if not callable(oracle):
            raise InputError("oracle must be a function of an array (k, d) that returns the last token's output")
        self._oracle, self._d, self._repeats = oracle, d, repeats
        self.queries = 0
        self.outputs: int | None = None

    def __call__(self, X: Array) -> Array:
        """Return the answer (d_out,), averaged over repeats."""
        return np.asarray(sum(self._ask(X) for _ in range(self._repeats)) / self._repeats)

    def _ask(self, X: Array) -> Array:
        self.queries += 1
        try:
            answer = self._oracle(X.copy())
        except Exception as error:
            raise InputError(f"the oracle raised {type(error).__name__} at query {self.queries}: {error}") from error
        try:
            if np.iscomplexobj(answer):
                raise TypeError
            found = np.atleast_1d(np.asarray(answer, dtype=float))
        except (TypeError, ValueError) as error:
            raise InputError(
                f"the oracle must return real numbers of shape (d_out,); got {type(answer).__name__}"
            ) from error
        if found.ndim != 1 or not len(found) or (self.outputs is not None and len(found) != self.outputs):
            expected = "(d_out,)" if self.outputs is None else f"({self.outputs},), as before"
            raise InputError(
                f"the oracle must return the last token's output, shape {expected}; for {X.shape} tokens it returned shape"
                f" {np.shape(answer)}"
            )
        if not np.isfinite(found).all():
            raise InputError(f"the oracle's answer to query {self.queries} is not finite")
        self.outputs = len(found)
        return found
