"""Records as rows of a table whose columns are known only at the end: kept on disk, so that memory does not grow."""

import json
import tempfile
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

import numpy as np

from attlas.store.key import canonical
from attlas.store.record import Record

_FRONT, _BACK = ("claim", "version", "seed"), ("seconds", "versions", "key")
_INTEGERS = range(-(2**63), 2**63)


class Table:
    """Rows of results: settings are columns ``point.NAME``, results ``result.NAME``.

    Parameters
    ----------
    as_text : bool
        Lists become JSON text.
    """

    def __init__(self, *, as_text: bool) -> None:
        self.as_text, self.rows = as_text, 0
        self._kinds: dict[str, set[tuple[str, int]]] = {}
        self._spool = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - closed by __exit__

    def add(self, record: Record) -> None:
        """Append a result."""
        row = {
            "claim": record.claim,
            "version": record.version,
            "seed": record.seed,
            **{f"point.{name}": _cell(value) for name, value in record.point.items()},
            **{f"result.{name}": _cell(value) for name, value in record.decoded().items()},
            "seconds": record.seconds,
            "versions": canonical(record.versions),
            "key": record.key,
        }
        for name, value in row.items():
            if value is not None:
                if self.as_text and isinstance(value, list | dict):
                    row[name] = json.dumps(value)
                self._kinds.setdefault(name, set()).update(_kinds(row[name]))
        self._spool.write(json.dumps(row) + "\n")
        self.rows += 1

    @property
    def columns(self) -> list[str]:
        """The names of all columns: what it is, its settings, its results, where it came from."""
        between = [name for name in self._kinds if name not in _FRONT + _BACK]
        return [*_FRONT, *sorted(between, key=lambda name: not name.startswith("point.")), *_BACK]

    def kind(self, name: str) -> tuple[str, int]:
        """Return what a column holds ("int", "float", "bool" or "str") and how deep its lists are; "str" if kinds mix."""
        kinds = {(base, depth) for base, depth in self._kinds[name] if base != "empty"} or {("float", 1)}
        if kinds <= {("int", depth := next(iter(kinds))[1]), ("float", depth)} and len(kinds) == 2:
            return "float", depth
        empty = [depth for base, depth in self._kinds[name] if base == "empty"]
        found = next(iter(kinds))
        if found[0] in ("large", "other"):
            return "str", 0
        return found if len(kinds) == 1 and max(empty, default=0) <= found[1] else ("str", 0)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the rows, their values of the kind of their column; as text a number is itself in every column."""
        mixed = set() if self.as_text else {name for name in self._kinds if self.kind(name) == ("str", 0)}
        self._spool.seek(0)
        for line in self._spool:
            row = json.loads(line)
            for name, value in row.items():
                if name in mixed and value is not None and not isinstance(value, str):
                    row[name] = json.dumps(value)
            yield {name: value for name, value in row.items() if value is not None}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._spool.close()


def _cell(value: Any) -> Any:
    """Return a value as JSON has it; complex numbers as text, NaN and infinities as Python and JavaScript read them."""
    if isinstance(value, np.ndarray) and value.dtype.kind == "c":
        value = value.astype(str)
    if isinstance(value, np.ndarray):
        return _texts(value.tolist()) if value.dtype.kind == "U" else value.tolist()
    return str(value) if isinstance(value, complex) else _texts(value)


def _texts(value: Any) -> Any:
    """Return a value with every text in it as a file can hold it."""
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, dict):
        return {_texts(name): _texts(item) for name, item in value.items()}
    return [_texts(item) for item in value] if isinstance(value, list) else value


def encodable(text: str) -> str:
    """Return a text with an escape for what no file of text holds: halves of characters, and NUL."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")


def _kinds(value: Any, depth: int = 0) -> set[tuple[str, int]]:
    if isinstance(value, list):
        if not value:
            return {("empty", depth + 1)}
        if isinstance(value[0], list):
            return set().union(*(_kinds(item, depth + 1) for item in value))
        return {found for kind in {type(item) for item in value} for found in _kinds_of(kind, value, depth + 1)}
    return _kinds_of(type(value), [value], depth)


def _kinds_of(kind: type, values: list[Any], depth: int) -> set[tuple[str, int]]:
    if kind is int and any(value not in _INTEGERS for value in values if type(value) is int):
        return {("large", depth)}
    name = kind.__name__ if kind in (bool, int, float, str) else "other"
    return {(name, depth)}
