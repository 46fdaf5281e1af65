"""Sets of tokens of any size, without padding: all tokens end to end, and where each set begins."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas.errors import InputError
from attlas.inputs import described, plain

Array = NDArray[Any]

WASTE = 0.25  # the share of padding that a bucket may have
NUMBERS = 1 << 20  # in one padded piece of a bucket, or one set


@dataclass(frozen=True, eq=False)
class Sets:
    """Sets of tokens of any size: set i is ``tokens[offsets[i] : offsets[i + 1]]``.

    Estimators take these, or lists of arrays (k_i, d), which they turn into these. Memory is that of the tokens, not of the
    longest set times n.

    Parameters
    ----------
    tokens : array of shape (total, d)
        All tokens end to end, float32 or float64.
    offsets : integers of shape (n + 1,)
        Where each set begins, from 0 to `total`; every set has at least one token.

    Examples
    --------
    >>> import numpy as np
    >>> sets = Sets.of([np.ones((2, 3)), np.zeros((1, 3)), np.ones((4, 3))])
    >>> len(sets), sets[1].shape, sets[[0, 2]].lengths.tolist()
    (3, (1, 3), [2, 4])
    """

    tokens: Array
    offsets: NDArray[np.intp]

    def __post_init__(self) -> None:
        tokens, offsets = plain(self.tokens, "tokens", "an array"), plain(self.offsets, "offsets", "integers")
        if tokens.ndim != 2 or 0 in tokens.shape or tokens.dtype not in (np.float32, np.float64):
            raise InputError(
                f"tokens must be floats of shape (total, d); got shape {tokens.shape}, dtype {tokens.dtype}"
            )
        if offsets.ndim != 1 or len(offsets) < 2 or offsets.dtype.kind not in "iu":
            raise InputError(f"offsets must be n + 1 integers; got {described(self.offsets)}")
        offsets = offsets.astype(np.intp, copy=False)
        if offsets[0] != 0 or offsets[-1] != len(tokens) or np.any(np.diff(offsets) < 1):
            raise InputError(f"offsets must increase from 0 to {len(tokens)}, the number of tokens")
        object.__setattr__(self, "tokens", tokens)
        object.__setattr__(self, "offsets", offsets)

    @classmethod
    def of(cls, items: Any, name: str = "X", least: int = 1) -> "Sets":
        """Return sets given as arrays (k_i, d), nested lists or the like; tokens that are all NaN are left out.

        Parameters
        ----------
        items : iterable
        name : str
            What the caller calls them; used in messages.
        least : int
            Tokens that a set needs: 2 if its first one is the query.

        Raises
        ------
        InputError
            If a set is empty, or its tokens are of another dimension than those of the first, NaN in part or infinite.
        """
        return cls.joined(items, name).checked(name, least)

    @classmethod
    def joined(cls, items: Any, name: str = "X") -> "Sets":
        """Return sets as `of` does, with the tokens that are all NaN, and others not checked either."""
        tables = [_table(item, f"{name}: set {i}") for i, item in enumerate(items)]
        if not tables:
            raise InputError(f"{name} has no sets")
        d = tables[0].shape[1]
        for i, table in enumerate(tables):
            if table.shape[1] != d:
                raise InputError(f"{name}: set {i} has tokens of dimension {table.shape[1]}, set 0 of dimension {d}")
        kind = np.float32 if all(table.dtype == np.float32 for table in tables) else np.float64
        with np.errstate(over="ignore"):  # an infinity is refused below
            tokens = np.concatenate(tables, dtype=kind, casting="same_kind")
        offsets = np.concatenate([[0], np.cumsum([len(table) for table in tables])])
        return cls(tokens, offsets)

    def checked(self, name: str = "X", least: int = 1) -> "Sets":
        """Return the sets without tokens that are all NaN, or raise `InputError`; arguments as for `of`."""
        found = self
        if not np.isfinite(self.tokens).all():
            found = self._present(name, least)
        short = found.lengths < least
        if short.any():
            raise InputError(
                f"{name}: set {int(np.flatnonzero(short)[0])} has the query token only; attention with query='first' needs"
                " at least one key; in sets without a query every token asks with query=None"
            )
        return found

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape (n, longest, d) that padding would give."""
        return len(self), int(self.lengths.max()), self.tokens.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the tokens."""
        return self.tokens.dtype

    @cached_property
    def lengths(self) -> NDArray[np.intp]:
        """Tokens of each set."""
        return np.diff(self.offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[Array]:
        return (self.tokens[start:stop] for start, stop in zip(self.offsets[:-1], self.offsets[1:], strict=True))

    def __getitem__(self, key: Any) -> Any:
        """Return one set (k, d) for an integer; `Sets` for a slice, integers or a mask."""
        if isinstance(key, tuple) and len(key) == 2 and key[1] is Ellipsis:  # as scikit-learn indexes
            key = key[0]
        if isinstance(key, int | np.integer):
            i = range(len(self))[key]
            return self.tokens[self.offsets[i] : self.offsets[i + 1]]
        rows = np.arange(len(self))[key]
        if not len(rows):
            raise InputError("this selects no set at all; take at least one")
        lengths = self.lengths[rows]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        if isinstance(key, slice) and key.step in (None, 1):
            return Sets(self.tokens[self.offsets[rows[0]] : self.offsets[rows[-1] + 1]], offsets)
        places = np.arange(offsets[-1]) + np.repeat(self.offsets[rows] - offsets[:-1], lengths)
        return Sets(self.tokens[places], offsets)

    def copy(self) -> "Sets":
        """Return sets that share no memory with these."""
        return Sets(self.tokens.copy(), self.offsets.copy())

    def astype(self, dtype: Any) -> "Sets":
        """Return the sets in another precision, themselves if it is theirs."""
        return self if self.tokens.dtype == dtype else Sets(self.tokens.astype(dtype), self.offsets)

    def dense(self) -> Array | None:
        """Return the sets as one array (n, k, d) if all have k tokens, else None."""
        n, longest, d = self.shape
        return self.tokens.reshape(n, longest, d) if len(self.tokens) == n * longest else None

    def padded(self, rows: Any = slice(None)) -> Array:
        """Return some sets as one array (rows, longest, d), padded with rows of NaN."""
        starts, lengths = self.offsets[:-1][rows], self.lengths[rows]
        place = np.arange(lengths.max())
        present = place < lengths[:, None]
        found = np.full((*present.shape, self.tokens.shape[1]), np.nan, dtype=self.tokens.dtype)
        found[present] = self.tokens[(starts[:, None] + place)[present]]
        return found

    def buckets(self, numbers: int | None = None, most: int | None = None) -> Iterator[NDArray[np.intp]]:
        """Yield groups of sets of similar length, of whose padded array at most a quarter is padding.

        Parameters
        ----------
        numbers : int, optional
            In the padded array of a group (one set at the least); no limit if not given.
        most : int, optional
            Sets in a group; no limit if not given.
        """
        order = np.argsort(self.lengths, kind="stable")
        lengths = self.lengths[order]
        stop, d = len(order), self.tokens.shape[1]
        while stop:
            longest = int(lengths[stop - 1])
            start = int(np.searchsorted(lengths, (1 - WASTE) * longest))
            rows = np.sort(order[start:stop])
            step = min(len(rows) if most is None else most, len(rows))
            step = step if numbers is None else max(1, min(step, numbers // (longest * d)))
            yield from (rows[i : i + step] for i in range(0, len(rows), step))
            stop = start

    def _present(self, name: str, least: int) -> "Sets":
        missing: NDArray[np.bool_] = np.asarray(np.isnan(self.tokens))
        whole, owner = np.asarray(missing.all(1)), np.repeat(np.arange(len(self)), self.lengths)
        if np.isinf(self.tokens).any():
            raise InputError(f"{name}: set {owner[np.isinf(self.tokens).any(1)][0]} has infinite entries")
        part = missing.any(1) & ~whole
        if part.any():
            raise InputError(
                f"{name}: set {owner[part][0]} has a token that is NaN in part; a missing token is NaN in all of its entries"
            )
        if least > 1 and whole[self.offsets[:-1]].any():
            first = int(np.flatnonzero(whole[self.offsets[:-1]])[0])
            raise InputError(f"{name}: set {first} has a missing query (NaN in its first token)")
        lengths = np.bincount(owner[~whole], minlength=len(self))
        if not lengths.all():
            raise InputError(f"{name}: set {int(np.argmin(lengths))} has no token left: all of them are NaN")
        return Sets(self.tokens[~whole], np.concatenate([[0], np.cumsum(lengths)]))


def compact(X: Array) -> "Sets | Array":
    """Return a padded array (n, tokens, d) as sets if tokens are missing, else as it is."""
    present = ~np.isnan(X[:, :, 0])
    if present.all():
        return X
    return Sets(X[present], np.concatenate([[0], np.cumsum(present.sum(1))]))


def items_of(X: Any) -> Any:
    """Return the sets that X is a collection of, one item each; None if it is something else, such as one array."""
    if isinstance(X, np.ndarray):
        return list(X) if X.dtype == object and X.ndim == 1 and any(map(_is_table, X)) else None
    if callable(getattr(X, "to_list", None)) and not isinstance(X, type):
        X = X.to_list()
    elif not isinstance(X, list | tuple):
        if any(hasattr(X, name) for name in ("shape", "__array__", "__dataframe__", "keys")) or isinstance(X, str):
            return None
        if not hasattr(X, "__iter__"):
            return None
        X = list(X)
    return X if any(map(_is_table, X)) else None


def _is_table(item: Any) -> bool:
    if hasattr(item, "ndim"):
        return bool(item.ndim >= 2)
    if callable(getattr(item, "to_list", None)):
        item = item.to_list()
    return isinstance(item, list | tuple) and (
        not item or any(isinstance(row, list | tuple) or getattr(row, "ndim", 0) > 0 for row in item)
    )


def _table(item: Any, name: str) -> Array:
    """Return the tokens of one set, (k, d), as floats; tokens that are masked are NaN."""
    if type(item) is np.ndarray and item.dtype in (np.float32, np.float64) and item.ndim == 2 and item.size:
        return item
    wanted = "an array of numbers of shape (tokens, d)"
    if hasattr(item, "nnz"):
        raise InputError(f"{name} is sparse; tokens are dense: give its .toarray()")
    if callable(getattr(item, "to_list", None)) and not hasattr(item, "__array__"):
        item = item.to_list()
    mask = np.ma.getmaskarray(item) if isinstance(item, np.ma.MaskedArray) else None
    given = plain(item if mask is None else item.data, name, wanted)
    if not given.size:
        raise InputError(f"{name} is empty; every set needs at least one token")
    if given.ndim != 2:
        raise InputError(f"{name} must have shape (tokens, d); got {given.shape}")
    if given.dtype.kind == "c":
        raise InputError(f"{name} must be real numbers; got complex ones")
    try:
        if given.dtype.kind not in "iufbO":
            raise TypeError
        with np.errstate(over="ignore"):  # an infinity is refused later
            found: Array = given if given.dtype == np.float32 else given.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name} must be {wanted}; got dtype {given.dtype}") from error
    if mask is not None and mask.any():
        if not np.array_equal(mask.any(1), mask.all(1)):
            raise InputError(
                f"{name} has a token that is masked in part; mask all of its entries, or fill them (.filled)"
            )
        found = np.where(mask, np.nan, found).astype(found.dtype)
    return found
