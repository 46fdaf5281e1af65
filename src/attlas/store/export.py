"""Results for other programs: CSV, Parquet, NetCDF."""

import os
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from attlas.errors import AttlasError, InputError
from attlas.store.key import canonical
from attlas.store.record import Record
from attlas.store.view import view

if TYPE_CHECKING:
    import pandas

FORMATS = {".csv": "CSV", ".parquet": "Parquet", ".nc": "NetCDF"}


def export(records: Iterable[Record], target: Path | str) -> int:
    """Write records to a file whose ending chooses the format; return how many.

    CSV and Parquet have one row per result, settings prefixed ``point.`` and results ``result.``; arrays are lists in
    Parquet, JSON in CSV and wherever a column mixes kinds. NetCDF has one group per claim and version, as
    `attlas.store.view` gives it. The file appears whole or not at all.
    """
    target, records = Path(target), list(records)
    if target.suffix not in FORMATS:
        raise InputError(f"{target}: the ending chooses the format; use one of {', '.join(FORMATS)}")
    if target.is_dir() or not target.parent.is_dir():
        raise InputError(f"{target}: give a file in a folder that exists")
    if not records:
        raise InputError("there are no results to export; `attlas run` makes some")
    unfinished = target.with_name(f".{target.name}.unfinished")
    try:
        if target.suffix == ".csv":
            _table(records, as_text=True).to_csv(unfinished, index=False)
        elif target.suffix == ".parquet":
            _table(records, as_text=False).to_parquet(unfinished, index=False, engine="pyarrow")
        else:
            _netcdf(records, unfinished)
        os.replace(unfinished, target)
    except OSError as error:
        raise InputError(f"{target}: cannot be written ({error.strerror or error})") from error
    except ImportError as error:
        raise AttlasError(
            f"{FORMATS[target.suffix]} needs more: pip install '.[export]' in the source of attlas ({error})"
        ) from error
    finally:
        unfinished.unlink(missing_ok=True)
    return len(records)


def _table(records: list[Record], *, as_text: bool) -> "pandas.DataFrame":
    import pandas

    def cell(value: Any) -> Any:
        if isinstance(value, np.ndarray) and value.dtype.kind == "c":
            value = value.astype(str)
        if isinstance(value, np.ndarray):
            value = value.tolist()
        if isinstance(value, complex):
            return str(value)
        return _json(value) if as_text and isinstance(value, list | dict) else value

    table = pandas.DataFrame(
        [
            {
                "claim": record.claim,
                "version": record.version,
                "seed": record.seed,
                **{f"point.{name}": cell(value) for name, value in record.point.items()},
                **{f"result.{name}": cell(value) for name, value in record.result.items()},
                "seconds": record.seconds,
                "versions": canonical(record.versions),
                "key": record.key,
            }
            for record in records
        ]
    )
    for name in table.columns:
        kinds = {_kind(value) for value in table[name] if isinstance(value, list) or not pandas.isna(value)}
        if len(kinds) > 1:
            table[name] = [value if isinstance(value, str) else _json(value) for value in table[name]]
    return table


def _kind(value: Any) -> str:
    """Return what a column must not mix: numbers, text, flags, lists of one depth."""
    depth = 0
    while isinstance(value, list) and value:
        value, depth = value[0], depth + 1
    if isinstance(value, bool | str):
        return f"{type(value).__name__} {depth}"
    large = isinstance(value, int) and not -(2**63) <= value < 2**63
    return f"{'large' if large else 'number'} {depth}"


def _json(value: Any) -> str:
    import json

    return json.dumps(value)  # NaN and Infinity as Python and JavaScript libraries read them


def _netcdf(records: list[Record], target: Path) -> None:
    import h5netcdf  # noqa: F401  # so that its absence is an ImportError

    mode = "w"
    for (claim, version), group in groupby(records, key=lambda r: (r.claim, r.version)):
        view(group).to_netcdf(target, mode=mode, group=f"{claim}-v{version}", engine="h5netcdf")  # type: ignore[call-overload]
        mode = "a"
