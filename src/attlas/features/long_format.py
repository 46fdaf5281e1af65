"""Sets from a table of a long format: one row to a token, a column that says to which set it belongs."""

from collections.abc import Sequence
from datetime import date, timedelta
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas.errors import InputError
from attlas.features.sets import Sets
from attlas.inputs import described, plain

Array = NDArray[Any]


def sets_from_long(frame: Any, set_id: Any, tokens: Sequence[Any], order: Any = None) -> tuple[Sets, Array]:
    """Return the sets of a table that has one row per token.

    Parameters
    ----------
    frame : DataFrame, or a mapping of names to columns
        Anything whose columns are ``frame[name]`` and whose names are ``frame.columns``, ``frame.column_names`` or
        ``frame.keys()``.
    set_id : hashable
        The column that says which set a row belongs to. Rows of a set need not stand together.
    tokens : sequence of hashable
        The columns that are the coordinates of a token.
    order : hashable, optional
        The column that tokens of a set are sorted by: numbers, times, strings, or categories in their order; if not given
        they stay in the order of the rows. It matters for ``query="first"`` and for position codes.

    Returns
    -------
    sets : Sets
    ids : array of shape (n,)
        The id of every set, in the order in which they first appear: ``labels.loc[ids]`` aligns the labels of sets.

    Raises
    ------
    InputError
        If a column is missing or not of numbers, an id is missing, ids of a list are of different kinds, a token has NaN or
        infinite entries, or the order cannot be sorted.

    Examples
    --------
    >>> table = {"jet": ["b", "a", "b"], "energy": [1.0, 2.0, 3.0], "angle": [0.1, 0.2, 0.3]}
    >>> sets, ids = sets_from_long(table, "jet", ["energy", "angle"])
    >>> ids.tolist(), sets[0].tolist()
    (['b', 'a'], [[1.0, 0.1], [3.0, 0.3]])
    """
    names = _names(frame)
    coordinates = [tokens] if isinstance(tokens, str) else _listed(tokens)
    wanted = [set_id, *coordinates, *([] if order is None else [order])]
    absent = [name for name in wanted if not _in(name, names)]
    if absent:
        raise InputError(f"frame has no column {described(absent[0])}; it has {described(names)}")
    columns = [_numeric(frame[name], name) for name in coordinates]
    number, ids = _numbered(frame[set_id], set_id)
    sizes = {len(number), *(len(column) for column in columns)}
    if len(sizes) > 1 or not len(number):
        raise InputError(f"frame must have columns of one length of at least 1; got lengths {sorted(sizes)}")
    table = np.stack(columns, axis=1)
    bad = ~np.isfinite(table)
    if bad.any():
        row, column = (int(place[0]) for place in np.nonzero(bad))
        raise InputError(
            f"column {described(coordinates[column])} is {table[row, column]:g} at row {row}, in set"
            f" {described(ids[[number[row]]].tolist()[0])}; drop the row, or fill it"
        )
    if order is None:
        place = np.argsort(number, kind="stable")
    else:
        rank = _ranked(frame[order], order)
        if len(rank) != len(number):
            raise InputError(f"the column {described(order)} of the order has missing values, or another length")
        place = np.lexsort((rank, number))
    return Sets(table[place], np.concatenate([[0], np.cumsum(np.bincount(number))])), ids


def _names(frame: Any) -> list[Any]:
    found = getattr(frame, "column_names", getattr(frame, "columns", None))  # those of Arrow, then of all others
    if found is None and callable(getattr(frame, "keys", None)) and not isinstance(frame, type):
        found = frame.keys()
    if found is None or not hasattr(frame, "__getitem__"):
        raise InputError(f"frame must be a DataFrame, or a mapping of names to columns; got {described(frame)}")
    return list(found)


def _listed(tokens: Any) -> list[Any]:
    try:
        found = list(tokens)
    except TypeError as error:
        raise InputError(f"tokens must be the names of columns; got {described(tokens)}") from error
    if not found:
        raise InputError("tokens names no column; a token needs at least one coordinate")
    return found


def _in(name: Any, names: list[Any]) -> bool:
    try:
        return name in set(names)
    except TypeError:  # not hashable
        return False


def _numeric(column: Any, name: Any) -> Array:
    """Return a column as float64; float32 as it is."""
    given = plain(column, f"column {described(name)}", "numbers")
    try:
        if given.ndim != 1 or given.dtype.kind not in "iufbO" or any(isinstance(x, str) for x in _objects(given)):
            raise TypeError
        with np.errstate(over="ignore"):  # an infinity is refused later
            return given if given.dtype == np.float32 else given.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"column {described(name)} must be numbers; got {described(column)}; encode it as numbers first"
        ) from error


def _ranked(column: Any, name: Any) -> Array:
    """Return what sorts like a column: numbers and times as they are, else the rank of every entry."""
    categories: Any = getattr(column, "cat", None)
    if getattr(categories, "ordered", False):
        column = np.where(np.asarray(column.isna()), np.nan, np.asarray(categories.codes))
    given = _entries(column, name)
    if given.ndim != 1 or _gone(column, given).any():
        raise InputError(f"the column {described(name)} of the order has missing values, or more than one axis")
    try:
        return np.unique(given, return_inverse=True)[1]
    except TypeError as error:
        raise InputError(
            f"the column {described(name)} of the order cannot be sorted; give numbers, times or strings, all of one kind"
        ) from error


def _numbered(column: Any, name: Any) -> tuple[NDArray[np.intp], Array]:
    """Return the number of the set of every row, and the ids, both in the order of first appearance."""
    ids = _entries(column, name)
    if ids.ndim != 1:
        raise InputError(f"column {described(name)} must have one id to a row; got shape {ids.shape}")
    gone = _gone(column, ids)
    if gone.any():
        raise InputError(f"column {described(name)} has no id at row {int(np.flatnonzero(gone)[0])}; drop the row")
    first: dict[Any, int] = {}
    try:
        number = np.array([first.setdefault(value, len(first)) for value in ids.tolist()], dtype=np.intp)
    except TypeError as error:
        raise InputError(f"column {described(name)} must hold ids such as numbers or strings") from error
    chosen = np.unique(number, return_index=True)[1]
    return number, ids[chosen]


def _entries(column: Any, name: Any) -> Array:
    """Return a column as an array; of a list none of whose entries numpy would turn into strings."""
    given = plain(column, f"column {described(name)}", "ids, or what can be sorted")
    if not isinstance(column, list | tuple) or given.ndim != 1:
        return given
    present = [value for value in column if not _is_missing(value)]
    kinds: dict[str, Any] = {}
    for value in present:
        kinds.setdefault(_kind(value), value)
    if len(kinds) > 1:
        some, other = list(kinds.values())[:2]
        raise InputError(
            f"column {described(name)} must have entries of one kind; got {described(some)} and {described(other)}"
        )
    if len(present) == len(column):
        return given
    held = np.empty(len(column), dtype=object)
    held[:] = column
    return held


def _kind(value: Any) -> str:
    """Return what a value is compared with: numbers with numbers, strings with strings, times with times."""
    if isinstance(value, bool | np.bool_):
        return "truth value"
    if isinstance(value, Number) and not isinstance(value, np.timedelta64):
        return "number"
    known = {"string": str, "bytes": bytes, "time": date | np.datetime64, "duration": timedelta | np.timedelta64}
    return next((kind for kind, types in known.items() if isinstance(value, types)), type(value).__name__)


def _gone(column: Any, given: Array) -> NDArray[np.bool_]:
    """Return where entries are missing."""
    if callable(getattr(column, "isna", None)):
        return np.asarray(column.isna())
    if given.dtype.kind in "mM":
        return np.asarray(np.isnat(given))
    if given.dtype.kind == "O":
        return np.array([_is_missing(value) for value in given], dtype=bool)
    return np.asarray(np.isnan(given)) if given.dtype.kind in "fc" else np.zeros(len(given), dtype=bool)


def _is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, NaT or the like: it does not equal itself, or will not say."""
    if value is None:
        return True
    try:
        return not bool(value == value)  # noqa: PLR0124
    except (TypeError, ValueError):
        return np.ndim(value) == 0  # pandas.NA; an array is refused later


def _objects(given: Array) -> Any:
    return given if given.dtype.kind == "O" else ()
