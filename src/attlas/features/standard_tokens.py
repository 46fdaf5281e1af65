"""Tokens scaled to mean 0 and deviation 1, coordinate by coordinate, as a scikit-learn transformer."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from attlas.errors import InputError
from attlas.features.base import OnSequences
from attlas.features.checked_blocks import first_set, in_blocks, require_sets
from attlas.features.sequences import sequences
from attlas.features.sets import Sets, items_of

Array = NDArray[Any]


class StandardTokens(OneToOneFeatureMixin, TransformerMixin, OnSequences, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Scale every coordinate of tokens to mean 0 and deviation 1 over all tokens of all sets.

    x_c -> (x_c - mean_c) / deviation_c,  the mean and the deviation over the tokens that are present.

    Padding stays padding and is not counted. Coordinates that are constant are left as they are. What comes out is of the
    kind that went in: an array (n, tokens, d), a list of arrays (k_i, d), an array of objects, `Sets`, or rows of numbers; a
    `dask.array` (n, tokens, d) is scaled where its blocks are. It is never a DataFrame, whatever scikit-learn's
    ``transform_output`` says.

    Parameters
    ----------
    token_dim : int, optional
        For 2-D X: rows are tokens of this many numbers, end to end. If not given a row is one token.

    Attributes
    ----------
    mean_, var_ : arrays of shape (d,)
        Of the tokens seen.
    scale_ : array of shape (d,)
        The deviation; 1 for coordinates that are constant.
    n_tokens_seen_ : int

    Notes
    -----
    Masked tokens come out as rows of NaN of an array without a mask; tokens of a list that are NaN are left out.

    Examples
    --------
    >>> import numpy as np
    >>> sets = [np.array([[1.0, 5.0], [3.0, 5.0]]), np.array([[5.0, 5.0]])]
    >>> [one[:, 0].round(2).tolist() for one in StandardTokens().fit_transform(sets)]
    [[-1.22, 0.0], [1.22]]
    """

    query = None  # no token is a query here, so a set may have one only
    n_tokens_seen_: int
    mean_: Array
    var_: Array
    _low: Array
    _high: Array

    def __init__(self, *, token_dim: int | None = None) -> None:
        self.token_dim = token_dim

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the means and deviations of the tokens of X."""
        self.__dict__.pop("n_tokens_seen_", None)
        return self.partial_fit(X, y)

    def partial_fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Learn them from more tokens, beside those seen before."""
        fresh = not hasattr(self, "n_tokens_seen_")
        with np.errstate(over="ignore", invalid="ignore"):
            seen = self._in_blocks(X, fresh) if in_blocks(X) else _Moments.of(self._sequences(X, reset=fresh))
            if not fresh:
                before = _Moments(
                    self.n_tokens_seen_, self.mean_, self.var_ * self.n_tokens_seen_, self._low, self._high
                )
                seen = before.and_of(seen)
        if not np.isfinite(seen.square).all():
            raise InputError("X has entries so large that their squares overflow; scale the tokens down")
        self.n_tokens_seen_, self.mean_, self.var_ = seen.number, seen.mean, seen.square / seen.number
        self._low, self._high = low, high = seen.low, seen.high
        deviation = np.sqrt(self.var_)
        self._constant = (low == high) | (deviation == 0)
        self.scale_ = np.where(self._constant, 1.0, deviation)
        return self

    def transform(self, X: Any) -> Any:
        """Return X scaled."""
        return self._moved(X, back=False)

    def inverse_transform(self, X: Any) -> Any:
        """Return X as it was before it was scaled."""
        return self._moved(X, back=True)

    def _in_blocks(self, X: Any, fresh: bool) -> "_Moments":
        """Return the moments of an array in blocks, made where they are."""
        require_sets(X)
        d = self._sequences(np.nan_to_num(first_set(X)), reset=fresh).shape[2]
        X = X.rechunk({1: -1, 2: -1})
        chunks = ((1,) * len(X.chunks[0]), (5,), (d,))
        found = X.map_blocks(partial(_packed, d), chunks=chunks, dtype=float, meta=np.empty((0, 0, 0))).compute()
        first, *others = [_Moments(int(one[0, 0]), *one[1:]) for one in found if one[0, 0]]
        for one in others:
            first = first.and_of(one)
        return first

    def _moved(self, X: Any, back: bool) -> Any:
        check_is_fitted(self)
        centre = np.where(self._constant, 0.0, self.mean_)

        def move(tokens: Array) -> Array:
            found = tokens * self.scale_ + centre if back else (tokens - centre) / self.scale_
            return found.astype(tokens.dtype, copy=False)

        if in_blocks(X):
            require_sets(X)
            kind = np.dtype("float32" if X.dtype == np.float32 else "float64")
            one = partial(_moved_block, move, self.token_dim_)
            return X.rechunk({1: -1, 2: -1}).map_blocks(one, dtype=kind, meta=np.empty((0, 0, 0), kind))
        X = list(X) if isinstance(X, Iterator) else X
        checked = self._sequences(X, reset=False)
        moved = Sets(move(checked.tokens), checked.offsets) if isinstance(checked, Sets) else move(checked)
        return _like(X, moved)


class _Moments(NamedTuple):
    """How many tokens there are, their mean, the sum of squares about it, and the least and the greatest entries."""

    number: int
    mean: Array
    square: Array
    low: Array
    high: Array

    @classmethod
    def of(cls, X: Array | Sets) -> "_Moments":
        """Return those of the tokens that are present."""
        tokens = X.tokens if isinstance(X, Sets) else X[~np.isnan(X[:, :, 0])]
        tokens = tokens.astype(np.float64, copy=False)
        mean = tokens.mean(0)
        return cls(len(tokens), mean, np.square(tokens - mean).sum(0), tokens.min(0), tokens.max(0))

    def and_of(self, other: "_Moments") -> "_Moments":
        """Return those of these tokens and of others."""
        total, apart = self.number + other.number, other.mean - self.mean
        return _Moments(
            total,
            self.mean + apart * (other.number / total),
            self.square + other.square + apart**2 * (self.number * other.number / total),
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
        )


def _packed(d: int, block: Array) -> Array:
    """Return the moments of a block as one array (1, 5, d)."""
    if not len(block):
        return np.zeros((1, 5, d))
    with np.errstate(over="ignore", invalid="ignore"):
        found = _Moments.of(sequences(block, d=d, least=1, keep=True))
    return np.stack([np.full(d, float(found.number)), *found[1:]])[None]


def _moved_block(move: Callable[[Array], Array], d: int, block: Array) -> Array:
    return move(sequences(block, d=d, least=1, keep=True)) if len(block) else block


def _like(X: Any, found: Array | Sets) -> Any:
    """Return scaled sets in the kind of container that X is."""
    if isinstance(X, Sets):
        if isinstance(found, Sets):
            return found
        n, k, d = found.shape
        return Sets(found.reshape(-1, d), np.arange(n + 1) * k)
    if isinstance(X, np.ndarray) and X.dtype == object and X.ndim == 1:
        objects = np.empty(len(X), dtype=object)
        for i, one in enumerate(found):
            objects[i] = one
        return objects
    if not (isinstance(X, np.ndarray) or items_of(X) is None):
        return tuple(found) if isinstance(X, tuple) else list(found)
    dense = np.asarray(found)
    return dense if getattr(X, "ndim", 2) == 3 else dense.reshape(len(dense), -1)
