"""Results for other programs: CSV, Parquet, NetCDF."""

import csv
import os
from collections.abc import Callable, Iterable
from itertools import chain, groupby
from pathlib import Path

from attlas.errors import AttlasError, InputError
from attlas.store.record import Record
from attlas.store.table import Table
from attlas.store.view import view

FORMATS = {".csv": "CSV", ".parquet": "Parquet", ".nc": "NetCDF"}
_TOGETHER = 5000  # rows of a Parquet file that are in memory at a time
_FORMULA = tuple("=+-@\t\n＝＋－＠")  # some spreadsheets read the wide ones as the others


def export(records: Iterable[Record], target: Path | str) -> int:
    """Write records to a file whose ending chooses the format; return how many.

    CSV and Parquet have one row per result, settings prefixed ``point.`` and results ``result.``; arrays are lists in
    Parquet and JSON in CSV. A column of Parquet that mixes kinds, or has integers beyond 64 bits, is JSON. In CSV, text that
    a spreadsheet would take for a formula begins with an apostrophe; a number never does. NetCDF is the Dataset that
    `attlas.store.view` gives; records of several claims or versions become one file each, ``results.CLAIM-vVERSION.nc`` for
    the target ``results.nc``. A file appears whole or not at all.

    Examples
    --------
    >>> import tempfile
    >>> from attlas import lab, store
    >>> from attlas.claims import find
    >>> records = lab.shipped(find(["features.invariance"]))[:5]
    >>> with tempfile.TemporaryDirectory() as folder: print(store.export(records, f"{folder}/results.csv"))
    ...
    5
    """
    target, records = Path(target), iter(records)
    if target.suffix not in FORMATS:
        raise InputError(f"{target}: the ending chooses the format; use one of {', '.join(FORMATS)}")
    if not target.parent.is_dir():
        raise InputError(f"{target}: give a file in a folder that exists")
    if target.exists() and not target.is_file():
        raise InputError(f"{target} is a folder, pipe or device, not a file; give another name")
    first = next(records, None)
    if first is None:
        raise InputError("there are no results to export; `attlas run` makes some")
    records = chain([first], records)
    try:
        if target.suffix == ".nc":
            return _netcdf(records, target)
        with Table(as_text=target.suffix == ".csv") as table:
            for record in records:
                table.add(record)
            _whole(target, lambda path: (_csv if table.as_text else _parquet)(table, path))
            return table.rows
    except OSError as error:
        raise InputError(f"{target}: cannot be written ({error.strerror or error})") from error
    except ImportError as error:
        raise AttlasError(
            f'{FORMATS[target.suffix]} needs more than is installed: pip install "attlas[export]" ({error})'
        ) from error


def _whole(target: Path, write: Callable[[Path], object]) -> None:
    """Have a file written, and show it under its name once it is complete."""
    unfinished = target.with_name(f".{target.name}.unfinished")
    try:
        write(unfinished)
        os.replace(unfinished, target)
    finally:
        unfinished.unlink(missing_ok=True)


def inert(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula or for the end of a row."""
    text = text.replace("\r", "\\r")
    return f"'{text}" if text.startswith(_FORMULA) else text


def _csv(table: Table, target: Path) -> None:
    with target.open("w", newline="", encoding="utf-8", errors="backslashreplace") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table.columns)
        for row in table:
            cells = (row.get(name, "") for name in table.columns)
            writer.writerow(inert(cell) if isinstance(cell, str) else cell for cell in cells)


def _parquet(table: Table, target: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    def kind(name: str) -> "pyarrow.DataType":
        base, depth = table.kind(name)
        found = {"bool": pyarrow.bool_(), "int": pyarrow.int64(), "float": pyarrow.float64()}.get(
            base, pyarrow.string()
        )
        for _ in range(depth):
            found = pyarrow.list_(found)
        return found

    schema = pyarrow.schema([(name, kind(name)) for name in table.columns])
    with parquet.ParquetWriter(target, schema) as writer:
        rows: list[dict[str, object]] = []
        for number, row in enumerate(table, 1):
            rows.append(row)
            if len(rows) == _TOGETHER or number == table.rows:
                writer.write_table(pyarrow.Table.from_pylist(rows, schema=schema))
                rows = []


def _netcdf(records: Iterable[Record], target: Path) -> int:
    import h5netcdf  # noqa: F401  # so that its absence is an ImportError

    groups = groupby(records, key=lambda r: (r.claim, r.version))
    (claim, version), first = next(groups)
    own, count, several = list(first), 0, False
    for (following, number), group in groups:
        several = True
        count += _dataset(own, target.with_name(f"{target.stem}.{claim}-v{version}.nc"))
        claim, version, own = following, number, list(group)
    return count + _dataset(own, target.with_name(f"{target.stem}.{claim}-v{version}.nc") if several else target)


def _dataset(records: list[Record], target: Path) -> int:
    _whole(target, lambda path: view(records).to_netcdf(path, engine="h5netcdf"))
    return len(records)
