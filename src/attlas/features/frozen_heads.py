"""Frozen heads, finitely or infinitely many, behind one interface: a regressor asks them, not how many there are."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.errors import InputError
from attlas.features.base import seed_of
from attlas.features.head_features import HeadFeatures, finite
from attlas.features.heads import attention_heads
from attlas.features.kernels import attention_kernel
from attlas.features.sequences import bias_matrix
from attlas.inputs import integer
from attlas.numerics import Progress

Array = NDArray[Any]

DIRECT = 20_000  # the largest Gram matrix, n or p, that is factorised unless a direct solver is asked for


class Design(Protocol):
    """Sequences as frozen heads see them."""

    @property
    def X(self) -> Array:
        """The sequences (n, 1 + keys, d)."""

    def gram(self, progress: Progress | None = None) -> Array:
        """Return K = Phi Phi^T, (n, n)."""

    def cross(self, X: Array, progress: Progress | None = None) -> Array:
        """Return the Gram matrix between other sequences and these, (len(X), n)."""

    def values(self, dual: Array) -> Array:
        """Return what predictions are made of, given the dual coefficients (n, targets)."""


class Heads(Protocol):
    """Frozen heads: what they make of sequences, and how they predict from what was learned."""

    def solver(self, wanted: str, n: int) -> str:
        """Return the solver for n samples: the one wanted, or the best one for "auto"."""

    def on(self, X: Array, hold: bool = True) -> Any:
        """Return the `Design` of sequences, whose features are held if they are small enough and `hold` says so."""

    def fitted(self, X: Array, values: Array) -> dict[str, Array]:
        """Return the fitted attributes of an estimator."""

    def predict(self, X: Array, model: Any) -> Array:
        """Return the predictions (n, targets), without intercept, of an estimator that has these attributes."""


def frozen_heads(n_heads: Any, d: int, bias: float | ArrayLike, activation: str, random_state: Any) -> Heads:
    """Return the heads that a user means by `n_heads`: an integer, or "infinite"."""
    if not isinstance(n_heads, str):
        return FiniteHeads(draw_heads(n_heads, d, bias, random_state), activation)
    if n_heads != "infinite":
        raise InputError(f"n_heads must be a positive integer or 'infinite'; got {n_heads!r}")
    return InfiniteHeads(bias, activation)


@dataclass(frozen=True)
class InfiniteHeads:
    """Infinitely many heads: a kernel."""

    bias: float | ArrayLike
    activation: str

    def solver(self, wanted: str, n: int) -> str:  # noqa: ARG002
        """Return "dual": without features there is no other."""
        if wanted not in ("auto", "dual"):
            raise InputError(f"infinitely many heads need solver 'dual' or 'auto'; got {wanted!r}")
        return "dual"

    def on(self, X: Array, hold: bool = True) -> "KernelDesign":  # noqa: ARG002
        """Return the sequences as the kernel sees them."""
        return KernelDesign(X, {"bias": self.bias, "activation": self.activation})

    def fitted(self, X: Array, values: Array) -> dict[str, Array]:
        """Return a copy of the sequences, and their dual coefficients."""
        return {"X_fit_": X.copy(), "dual_coef_": values}

    def predict(self, X: Array, model: Any) -> Array:
        """Return K(X, X_fit) dual_coef."""
        return np.asarray(self.on(model.X_fit_).cross(X) @ model.dual_coef_)


@dataclass(frozen=True)
class KernelDesign:
    """Sequences and the options of their kernel; dual coefficients are all that is learned."""

    X: Array
    options: dict[str, Any]

    def gram(self, progress: Progress | None = None) -> Array:
        """Return K(X, X)."""
        return attention_kernel(self.X, progress=progress, **self.options)

    def cross(self, X: Array, progress: Progress | None = None) -> Array:
        """Return the kernel between other sequences and these."""
        return attention_kernel(X, self.X, progress=progress, **self.options)

    def values(self, dual: Array) -> Array:
        """Return the dual coefficients."""
        return dual


@dataclass(frozen=True)
class FiniteHeads:
    """M heads, (M, d + 1, d + 1)."""

    heads: Array
    activation: str

    def solver(self, wanted: str, n: int) -> str:
        """Return, for "auto", that of the smaller matrix, or conjugate gradients where both are large."""
        if wanted != "auto":
            return wanted
        p = self.heads.shape[0] * self.heads.shape[1]
        return "cg" if min(n, p) > DIRECT else "primal" if p < n else "dual"

    def on(self, X: Array, hold: bool = True) -> "HeadFeatures":
        """Return the features of sequences."""
        return HeadFeatures(X, self.heads, self.activation, hold)

    def fitted(self, X: Array, values: Array) -> dict[str, Array]:  # noqa: ARG002
        """Return the heads and their values."""
        return {"heads_": self.heads, "coef_": values}

    def predict(self, X: Array, model: Any) -> Array:
        """Return Phi coef."""
        return finite(self.on(X, hold=False).times(model.coef_), "the features")


def draw_heads(n_heads: Any, d: int, bias: Any, random_state: Any) -> Array:
    """Return the frozen heads (n_heads, d + 1, d + 1), bias included."""
    return attention_heads(integer(n_heads, "n_heads"), d, seed_of(random_state)) + bias_matrix(bias, d)
