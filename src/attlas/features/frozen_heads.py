"""Frozen heads, finitely or infinitely many, behind one interface: a regressor asks them, not how many there are."""

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.errors import InputError
from attlas.features.head_features import HeadFeatures, finite
from attlas.features.set_kernel import set_kernel
from attlas.features.sets import Sets
from attlas.features.token_maps import TokenMap, draw_heads
from attlas.numerics import Progress

Array = NDArray[Any]
Sequences = Array | Sets

DIRECT = 20_000  # the largest Gram matrix, n or p, that is factorised unless a direct solver is asked for


class Design(Protocol):
    """Sequences as frozen heads see them."""

    @property
    def X(self) -> Sequences:
        """The sequences (n, 1 + keys, d), or sets."""

    def gram(self, progress: Progress | None = None) -> Array:
        """Return K = Phi Phi^T, (n, n)."""

    def cross(self, X: Sequences, progress: Progress | None = None) -> Array:
        """Return the Gram matrix between other sequences and these, (len(X), n)."""

    def values(self, dual: Array) -> Array:
        """Return what predictions are made of, given the dual coefficients (n, targets)."""


class Heads(Protocol):
    """Frozen heads: what they make of sequences, and how they predict from what was learned."""

    def solver(self, wanted: str, n: int) -> str:
        """Return the solver for n samples: the one wanted, or the best one for "auto"."""

    def on(self, X: Sequences, hold: bool = True) -> Any:
        """Return the `Design` of sequences, whose features are held if they are small enough and `hold` says so."""

    def fitted(self, X: Sequences, values: Array) -> dict[str, Any]:
        """Return the fitted attributes of an estimator."""

    def predict(self, X: Sequences, model: Any) -> Array:
        """Return the predictions (n, targets), without intercept, of an estimator that has these attributes."""


def frozen_heads(
    n_heads: Any,
    X: Sequences,
    bias: float | ArrayLike,
    activation: Any,
    random_state: Any,
    positions: float = 0.0,
    depth: int = 1,
    query: str | None = "first",
    n_jobs: int | None = None,
) -> Heads:
    """Return the heads that a user means by `n_heads`, an integer or "infinite", for sequences or sets like X.

    `query` says which token asks: "first", the others being its keys; "mean", the mean token, or None, every token in turn,
    and then all tokens are keys.
    """
    if not isinstance(n_heads, str):
        heads, prepare = draw_heads(n_heads, X, bias, activation, random_state, positions, depth, query)
        return FiniteHeads(heads, activation, prepare, n_jobs)
    if n_heads != "infinite":
        raise InputError(f"n_heads must be a positive integer or 'infinite'; got {n_heads!r}")
    if depth != 1:
        raise InputError("two layers have no kernel in closed form; take finitely many heads, such as n_heads=1000")
    return InfiniteHeads(bias, activation, positions, query)


@dataclass(frozen=True)
class InfiniteHeads:
    """Infinitely many heads: a kernel."""

    bias: float | ArrayLike
    activation: Any
    positions: float = 0.0
    query: str | None = "first"

    def solver(self, wanted: str, n: int) -> str:  # noqa: ARG002
        """Return "dual": without features there is no other."""
        if wanted not in ("auto", "dual"):
            raise InputError(f"infinitely many heads need solver 'dual' or 'auto'; got {wanted!r}")
        return "dual"

    def on(self, X: Sequences, hold: bool = True) -> "KernelDesign":  # noqa: ARG002
        """Return the sequences as the kernel sees them."""
        return KernelDesign(
            X, {"bias": self.bias, "activation": self.activation, "positions": self.positions}, self.query
        )

    def fitted(self, X: Sequences, values: Array) -> dict[str, Any]:
        """Return a copy of the sequences, and their dual coefficients."""
        return {"X_fit_": X.copy(), "dual_coef_": values}

    def predict(self, X: Sequences, model: Any) -> Array:
        """Return K(X, X_fit) dual_coef."""
        return np.asarray(self.on(model.X_fit_).cross(X) @ model.dual_coef_)


@dataclass(frozen=True)
class KernelDesign:
    """Sequences or sets and the options of their kernel; dual coefficients are all that is learned."""

    X: Sequences
    options: dict[str, Any]
    query: str | None = "first"

    def gram(self, progress: Progress | None = None) -> Array:
        """Return K(X, X)."""
        return set_kernel(self.X, None, self.query, progress=progress, **self.options)

    def cross(self, X: Sequences, progress: Progress | None = None) -> Array:
        """Return the kernel between other sequences and these."""
        return set_kernel(X, self.X, self.query, progress=progress, **self.options)

    def values(self, dual: Array) -> Array:
        """Return the dual coefficients."""
        return dual


@dataclass(frozen=True)
class FiniteHeads:
    """M heads, (M, d + 1, d + 1), and what tokens go through before them."""

    heads: Array
    activation: Any
    prepare: TokenMap = field(default_factory=TokenMap)
    n_jobs: int | None = None

    def solver(self, wanted: str, n: int) -> str:
        """Return, for "auto", that of the smaller matrix, or conjugate gradients where both are large."""
        if wanted != "auto":
            return wanted
        p = self.heads.shape[0] * self.heads.shape[1]
        return "cg" if min(n, p) > DIRECT else "primal" if p < n else "dual"

    def on(self, X: Sequences, hold: bool = True) -> "HeadFeatures":
        """Return the features of sequences."""
        return HeadFeatures(X, self.heads, self.activation, hold, self.prepare, self.n_jobs)

    def fitted(self, X: Sequences, values: Array) -> dict[str, Any]:  # noqa: ARG002
        """Return the heads and their values."""
        return {"heads_": self.heads, "coef_": values}

    def predict(self, X: Sequences, model: Any) -> Array:
        """Return Phi coef."""
        return finite(self.on(X, hold=False).times(model.coef_), "the features")
