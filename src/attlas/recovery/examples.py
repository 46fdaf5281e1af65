"""Examples of a layer: contexts, the tokens that look at them, and the outputs seen."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attlas.errors import InputError
from attlas.inputs import array, flag, plain
from attlas.layers import softmax
from attlas.layers.masks import Mask, allowed, masked_softmax, padding_mask
from attlas.recovery.layer import Layer

Array = NDArray[np.float64]


SAME = 1e-6  # of the largest entry: tokens that differ by less are the same


@dataclass(frozen=True)
class Examples:
    """Contexts X (n, k, d), the queries of each that have an output (n, q, d), and their outputs Y (n, q, d_out).

    Attributes
    ----------
    allowed : array of bool of shape (n, q, k), optional
        Which tokens a query may attend to; all, if not given. A query that may attend to none counts for nothing.
    bias : bool
        Whether the layer that is looked for has a key bias u for each head and an output bias b. A matrix Theta is then
        (d + 1, d), with u as its last row, and values W have b as their last row.
    causal : bool
        Whether `allowed` is a causal mask, so that the layer that is found is called causal.
    cross : bool
        Whether the queries are tokens of another sequence than X, perhaps of another dimension.
    """

    X: Array
    queries: Array
    Y: Array
    allowed: Mask | None = None
    bias: bool = False
    causal: bool = False
    cross: bool = False

    @classmethod
    def of(
        cls,
        X: ArrayLike,
        Y: ArrayLike,
        *,
        keys: ArrayLike | None = None,
        bias: bool = False,
        causal: bool = False,
        padding: ArrayLike | None = None,
    ) -> "Examples":
        """Check (n, k, d) tokens and their outputs: (n, k, d_out) of every token, or (n, d_out) or (n,) of the last one.

        What X and Y have at tokens that are padding is ignored; the last token is then the last that is not. With `keys`
        (n, l, d_keys) the tokens of X attend to those, and `padding` is theirs.
        """
        tokens = array(X, "X", ("n", "k", "d"))
        n, k, _ = tokens.shape
        if k < 2 and keys is None:
            raise InputError("X has one token per sequence (k = 1); its attention is always 1, so Theta cannot be seen")
        outputs = _outputs(Y, n, k)
        bias, causal = flag(bias, "bias"), flag(causal, "causal")
        if keys is not None:
            if causal:
                raise InputError("a causal mask is for a sequence that attends to itself; leave out keys, or causal")
            return cls._across(tokens, keys, outputs, bias, padding)
        pads = None if padding is None else padding_mask(padding, n, k)
        mask = allowed(k, k, causal, pads)
        queries, last = tokens, np.full(n, k - 1)
        if pads is not None and mask is not None:
            if pads.all(1).any():
                raise InputError(f"all tokens of sequence {int(np.argmax(pads.all(1)))} are padding; leave it out")
            tokens = queries = np.where(pads[:, :, None], 0.0, tokens)
            last = k - 1 - np.argmax(~pads[:, ::-1], axis=1)
            mask = mask & ~pads[:, :, None]  # what padding would give is not asked
        mask = None if mask is None else np.broadcast_to(mask, (n, k, k))
        if outputs.ndim != 3:
            rows = np.arange(n)
            queries, outputs = tokens[rows, last][:, None], outputs.reshape(n, 1, -1)
            mask = None if mask is None else mask[rows, last][:, None]
        elif pads is not None:
            outputs = np.where(pads[:, :, None], 0.0, outputs)
        return replace(cls._checked(tokens, queries, outputs), allowed=mask, bias=bias, causal=causal)

    @classmethod
    def _across(cls, queries: Array, keys: ArrayLike, Y: Array, bias: bool, padding: ArrayLike | None) -> "Examples":
        n = len(queries)
        Z = array(keys, "keys", ("n", "l", "d_keys"), (n, None, None))
        length = Z.shape[1]
        if length < 2:
            raise InputError("keys has one token per sequence; its attention is always 1, so Theta cannot be seen")
        if Y.ndim != 3:
            queries, Y = queries[:, -1:], Y.reshape(n, 1, -1)
        mask = None
        if padding is not None:
            pads = padding_mask(padding, n, length)
            if pads.all(1).any():
                raise InputError(f"all keys of sequence {int(np.argmax(pads.all(1)))} are padding; leave it out")
            Z = np.where(pads[:, :, None], 0.0, Z)
            mask = np.broadcast_to(~pads[:, None, :], (n, queries.shape[1], length))
        if not 1e-100 < float(np.abs(queries).max()) < 1e100:
            raise InputError(f"X has a largest entry of {np.abs(queries).max():.1e}; scale it to about one")
        return replace(cls._checked(Z, queries, Y, "keys"), allowed=mask, bias=bias, cross=True)

    @classmethod
    def _checked(cls, X: Array, queries: Array, Y: Array, tokens: str = "X") -> "Examples":
        if not np.isfinite(Y).all():
            raise InputError("Y has entries that are not finite (NaN or infinite)")
        if not Y.shape[2]:
            raise InputError(f"Y has no outputs: shape {Y.shape}")
        if not np.any(Y):
            raise InputError("Y is zero everywhere; there is nothing to learn")
        for name, values in ((tokens, X), ("Y", Y)):
            if not 1e-100 < float(np.abs(values).max()) < 1e100:
                raise InputError(f"{name} has a largest entry of {np.abs(values).max():.1e}; scale it to about one")
        if np.all(X[:, :1] == X):
            raise InputError(
                "all tokens of a sequence are equal; whatever Theta is, attention averages the same tokens"
            )
        return cls(X.astype(float), queries.astype(float), Y)

    def split(self, share: float, rng: np.random.Generator) -> tuple["Examples", "Examples"]:
        """Return two parts, the second with this share of the different sequences: none of them stands in the first."""
        kinds = self.kinds()
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

    def kinds(self) -> NDArray[np.intp]:
        """Return the number of every sequence among the different ones; the same for those to which all layers do the same.

        Without a mask in their order, tokens that trade places trade outputs, so that another order tells nothing new.
        """
        n, k, d = self.X.shape
        kinds = _alike(self.sequences)
        if self.causal and self.queries.shape[1] > 1:
            return kinds
        words = _alike(self.X.reshape(-1, d)).reshape(n, k)
        if self.allowed is not None:
            words = np.where(self.allowed.any(1), words, -1)  # padding
        parts = [np.sort(words, axis=1)]
        if self.cross or self.queries.shape[1] == 1:
            asked = self.queries.reshape(-1, self.queries.shape[2])
            parts.append(np.sort(_alike(asked).reshape(n, -1), axis=1))
        _, first, same = np.unique(np.concatenate(parts, axis=1), axis=0, return_index=True, return_inverse=True)
        return np.unique(kinds[first][same.reshape(-1)], return_inverse=True)[1].reshape(-1)

    def take(self, rows: NDArray[np.intp] | slice) -> "Examples":
        """Return these sequences."""
        mask = None if self.allowed is None else self.allowed[rows]
        return replace(self, X=self.X[rows], queries=self.queries[rows], Y=self.Y[rows], allowed=mask)

    def blocks(self, numbers_per_sequence: int, numbers: int = 1 << 21) -> list["Examples"]:
        """Cut into parts whose scratch stays below `numbers`."""
        step = max(1, numbers // max(1, numbers_per_sequence))
        return [self.take(slice(start, start + step)) for start in range(0, len(self.X), step)]

    @property
    def sequences(self) -> Array:
        """All that is given of every sequence, (n, numbers): its tokens, and its queries where they are others."""
        flat = self.X.reshape(len(self.X), -1)
        return np.concatenate([flat, self.queries.reshape(len(flat), -1)], axis=1) if self.cross else flat

    @property
    def asking(self) -> Array:
        """What Theta is multiplied with: the queries, with a last entry of one where there is a key bias."""
        if not self.bias:
            return self.queries
        return np.concatenate([self.queries, np.ones((*self.queries.shape[:2], 1))], axis=2)

    @property
    def counted(self) -> Array:
        """One for every query that counts, (n, q, 1), and zero for those that may attend to nothing."""
        if self.allowed is None:
            return np.ones((*self.queries.shape[:2], 1))
        return self.allowed.any(2, keepdims=True).astype(float)

    def attend(self, Theta: Array) -> tuple[Array, Array]:
        """Return attention P (n, q, k) and attended tokens Z = P X (n, q, d) of one head."""
        scores = (self.asking @ Theta) @ self.X.transpose(0, 2, 1)
        P = softmax(scores) if self.allowed is None else masked_softmax(scores, self.allowed)
        return P, P @ self.X

    def output(self, Theta: Array, W: Array) -> Array:
        """Return what a layer would have given, of the shape of Y; with `bias`, of (m, d + 1, d) matrices and without b."""
        found = np.zeros((*self.Y.shape[:2], W.shape[2]))
        for theta, value in zip(Theta, W, strict=True):
            found += self.attend(theta)[1] @ value
        return found

    def predict(self, layer: Layer) -> Array:
        """Return what a layer gives, biases included, of the shape of Y; zero for queries that do not count."""
        found = self.output(layer.stacked() if self.bias else layer.Theta, layer.W)
        return found if layer.output_bias is None else found + self.counted * layer.output_bias

    def residual(self, Theta: Array, W: Array) -> float:
        """Return the relative error |F(X) - Y|/|Y| of a layer without biases."""
        return float(np.linalg.norm(self.output(Theta, W) - self.Y) / np.linalg.norm(self.Y))

    def missed(self, layer: Layer) -> float:
        """Return the relative error |F(X) - Y|/|Y| of a layer."""
        return float(np.linalg.norm(self.predict(layer) - self.Y) / np.linalg.norm(self.Y))

    def layer(self, Theta: Array, W: Array) -> Layer:
        """Return the layer of fitted Theta (m, d, d_keys) and W (m d_keys, d_out), each with one row more for a bias."""
        m, d = len(Theta), self.X.shape[2]
        if not self.bias:
            return Layer(Theta, W.reshape(m, d, -1), causal=self.causal)
        return Layer(Theta[:, :-1], W[:-1].reshape(m, d, -1), Theta[:, -1], W[-1], self.causal)

    def unknowns(self, layer: Layer) -> int:
        """Return how many numbers determine a layer of this rank: r (e + d - r) for each e x d matrix, and the values."""
        d, e, r = layer.d_keys, layer.d + self.bias, layer.rank
        return layer.heads * (r * (e + d - r) + d * layer.outputs) + self.bias * layer.outputs

    def second_order(self) -> Array:
        """Return what the outputs depend on to second order in Theta: the mean token, and x_r times the tokens' covariance.

        Of shape (rows, d + d^2 (d + 1)/2).
        """
        n, q, d = self.queries.shape
        upper = np.triu_indices(d)
        if self.allowed is not None:
            P, mean = self.attend(np.zeros((self.asking.shape[2], d)))  # uniform over what may be attended to
            second = (
                np.einsum("nqk,nka,nkb->nqab", P, self.X, self.X, optimize=True) - mean[..., None] * mean[:, :, None]
            )
            products = self.queries[:, :, :, None] * second[:, :, upper[0], upper[1]][:, :, None, :]
            return np.concatenate([mean.reshape(n * q, d), products.reshape(n * q, -1)], axis=1)
        mean = self.X.mean(1)
        C = (self.X.transpose(0, 2, 1) @ self.X) / self.X.shape[1] - mean[:, :, None] * mean[:, None, :]
        second = self.queries[:, :, :, None] * C[:, upper[0], upper[1]][:, None, None, :]
        return np.concatenate([np.repeat(mean, q, axis=0), second.reshape(n * q, -1)], axis=1)


def _alike(rows: Array) -> NDArray[np.intp]:
    """Return the number of every row among the different ones; rows that differ by rounding alone are the same.

    They are compared on two grids, of which one cuts fewer of them apart.
    """
    step = SAME * max(float(np.abs(rows).max(initial=0.0)), 1e-300)
    found = (
        np.unique(at, axis=0, return_inverse=True)[1] for at in (rows, *(np.round(rows / step + s) for s in (0, 0.5)))
    )
    return min((kinds.reshape(-1) for kinds in found), key=lambda kinds: int(kinds.max()))


def _outputs(Y: ArrayLike, n: int, k: int) -> Array:
    """Return outputs as floating numbers, or raise `InputError`: of n sequences, and of k tokens each or of the last one."""
    given = plain(Y, "Y", "an array of real numbers")
    if given.dtype.kind not in "iufb":
        raise InputError(f"Y must be an array of real numbers; got {given.dtype}")
    outputs = given.astype(float)
    if not outputs.ndim or len(outputs) != n:
        raise InputError(f"Y has {len(outputs) if outputs.ndim else 'no'} outputs for the {n} sequences of X")
    if not (outputs.ndim == 3 and outputs.shape[1] == k) and outputs.ndim not in (1, 2):
        raise InputError(
            f"Y must have shape (n, k, d_out) with n, k = {n}, {k}, or (n, d_out) or (n,) for the last token;"
            f" got {outputs.shape}"
        )
    return outputs
