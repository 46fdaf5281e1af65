"""Examples of a layer: contexts, the tokens that look at them, and the outputs seen."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.errors import InputError
from attlas.inputs import array
from attlas.layers import softmax

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Examples:
    """Contexts X (n, k, d), the queries of each that have an output (n, q, d), and their outputs Y (n, q, d_out)."""

    X: Array
    queries: Array
    Y: Array

    @classmethod
    def of(cls, X: ArrayLike, Y: ArrayLike) -> "Examples":
        """Check (n, k, d) tokens and their outputs: (n, k, d_out) of every token, or (n, d_out) or (n,) of the last one."""
        tokens = array(X, "X", ("n", "k", "d"))
        n, k, _ = tokens.shape
        if k < 2:
            raise InputError("X has one token per sequence (k = 1); its attention is always 1, so Theta cannot be seen")
        try:
            given = np.asarray(Y)
        except ValueError as error:
            raise InputError("Y must be an array of real numbers") from error
        if given.dtype.kind not in "iufb":
            raise InputError(f"Y must be an array of real numbers; got {given.dtype}")
        outputs = given.astype(float)
        if not outputs.ndim or len(outputs) != n:
            raise InputError(f"Y has {len(outputs) if outputs.ndim else 'no'} outputs for the {n} sequences of X")
        if outputs.ndim == 3 and outputs.shape[1] == k:
            return cls._checked(tokens, tokens, outputs)
        if outputs.ndim in (1, 2):
            return cls._checked(tokens, tokens[:, -1:], outputs.reshape(n, 1, -1))
        raise InputError(
            f"Y must have shape (n, k, d_out) with n, k = {n}, {k}, or (n, d_out) or (n,) for the last token;"
            f" got {outputs.shape}"
        )

    @classmethod
    def _checked(cls, X: Array, queries: Array, Y: Array) -> "Examples":
        if not np.isfinite(Y).all():
            raise InputError("Y has entries that are not finite (NaN or infinite)")
        if not Y.shape[2]:
            raise InputError(f"Y has no outputs: shape {Y.shape}")
        if not np.any(Y):
            raise InputError("Y is zero everywhere; there is nothing to learn")
        for name, values in (("X", X), ("Y", Y)):
            if not 1e-100 < np.abs(values).max() < 1e100:
                raise InputError(f"{name} has a largest entry of {np.abs(values).max():.1e}; scale it to about one")
        if np.all(X[:, :1] == X):
            raise InputError(
                "all tokens of a sequence are equal; whatever Theta is, attention averages the same tokens"
            )
        return cls(X.astype(float), queries.astype(float), Y)

    def split(self, share: float, rng: np.random.Generator) -> tuple["Examples", "Examples"]:
        """Return two parts, the second with this share of the different sequences: none of them stands in the first."""
        kinds = np.unique(self.X.reshape(len(self.X), -1), axis=0, return_inverse=True)[1].reshape(-1)
        order = rng.permutation(int(kinds.max()) + 1)
        held = max(1, round(share * len(order)))
        if held >= len(order):
            raise InputError(
                f"X has {len(order)} different sequences; one must be left to learn from besides those held out"
            )
        out = np.isin(kinds, order[:held])
        parts = self.take(np.flatnonzero(~out)), self.take(np.flatnonzero(out))
        if not all(np.any(part.Y) for part in parts):
            raise InputError("Y is zero on nearly all sequences; there is too little to learn from")
        return parts

    def take(self, rows: NDArray[np.intp] | slice) -> "Examples":
        """Return these sequences."""
        return Examples(self.X[rows], self.queries[rows], self.Y[rows])

    def blocks(self, numbers_per_sequence: int, numbers: int = 1 << 21) -> list["Examples"]:
        """Cut into parts whose scratch stays below `numbers`."""
        step = max(1, numbers // max(1, numbers_per_sequence))
        return [self.take(slice(start, start + step)) for start in range(0, len(self.X), step)]

    def attend(self, Theta: Array) -> tuple[Array, Array]:
        """Return attention P (n, q, k) and attended tokens Z = P X (n, q, d) of one head."""
        P = softmax((self.queries @ Theta) @ self.X.transpose(0, 2, 1))
        return P, P @ self.X

    def output(self, Theta: Array, W: Array) -> Array:
        """Return what a layer would have given, of the shape of Y."""
        found = np.zeros((*self.Y.shape[:2], W.shape[2]))
        for theta, value in zip(Theta, W, strict=True):
            found += self.attend(theta)[1] @ value
        return found

    def residual(self, Theta: Array, W: Array) -> float:
        """Return the relative error |F(X) - Y|/|Y|."""
        return float(np.linalg.norm(self.output(Theta, W) - self.Y) / np.linalg.norm(self.Y))

    def second_order(self) -> Array:
        """Return what the outputs depend on to second order in Theta: the mean token, and x_r times the tokens' covariance.

        Of shape (rows, d + d^2 (d + 1)/2).
        """
        mean = self.X.mean(1)
        n, q, d = self.queries.shape
        upper = np.triu_indices(d)
        C = (self.X.transpose(0, 2, 1) @ self.X) / self.X.shape[1] - mean[:, :, None] * mean[:, None, :]
        second = self.queries[:, :, :, None] * C[:, upper[0], upper[1]][:, None, None, :]
        return np.concatenate([np.repeat(mean, q, axis=0), second.reshape(n * q, -1)], axis=1)
