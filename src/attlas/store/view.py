"""Records as an xarray.Dataset."""

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from attlas.errors import InputError
from attlas.store.key import canonical
from attlas.store.record import Record

if TYPE_CHECKING:
    import xarray


def view(records: Iterable[Record]) -> "xarray.Dataset":
    """Return the records of one claim as a Dataset along the dimension ``result``.

    Settings of the points, ``seed`` and ``seconds`` are coordinates, results are variables. Arrays get the dimensions
    ``name_0``, ``name_1``, ...; where their shapes differ between points the smaller ones are padded with NaN.
    ``view(...).set_index(result=["d", "seed"]).unstack()`` makes a grid of it.

    Raises
    ------
    InputError
        If the records are of several claims, or there are none.
    """
    import xarray

    records = list(records)
    claims = {(record.claim, record.version) for record in records}
    if len(claims) != 1:
        raise InputError(f"a view is of one claim and version; got {sorted(claims) or 'no results'}")
    settings = sorted({name for record in records for name in record.point})
    names = sorted({name for record in records for name in record.result})
    coordinates: dict[str, Any] = {
        name: ("result", column([record.point.get(name) for record in records])) for name in settings
    }
    coordinates["seed"] = ("result", [record.seed for record in records])
    coordinates["seconds"] = ("result", [record.seconds for record in records])
    variables = {}
    for name in names:
        data = _stack([record.result.get(name) for record in records])
        label = f"{name}_result" if name in coordinates else name
        variables[label] = (("result", *(f"{name}_{i}" for i in range(data.ndim - 1))), data)
    ((claim, version),) = claims
    return xarray.Dataset(variables, coordinates, {"claim": claim, "version": version})


def column(values: list[Any]) -> NDArray[Any]:
    """Return settings as an array: numbers if all are, else text (lists as JSON, a missing one as NaN or empty)."""
    if all(value is None or (isinstance(value, int | float) and not isinstance(value, bool)) for value in values):
        if None not in values:
            return np.array(values)
        return np.array([np.nan if value is None else value for value in values])
    if all(isinstance(value, bool) for value in values):
        return np.array(values)
    return np.array(
        ["" if value is None else value if isinstance(value, str) else canonical(value) for value in values]
    )


def _stack(values: list[Any]) -> NDArray[Any]:
    """Return results along a first axis, padded with NaN where shapes differ or a result is missing."""
    present = [np.asarray(value) for value in values if value is not None]
    if len({a.shape for a in present}) == 1 and len(present) == len(values):
        return np.stack(present)
    if len({a.ndim for a in present}) > 1 or any(a.dtype.kind not in "biuf" for a in present):
        return np.array(["" if value is None else json.dumps(np.asarray(value).tolist()) for value in values])
    shape = tuple(max(sizes) for sizes in zip(*(a.shape for a in present), strict=True))
    padded = np.full((len(values), *shape), np.nan)
    for i, value in enumerate(values):
        if value is not None:
            window = tuple(slice(size) for size in np.shape(value))
            padded[i : i + 1][(slice(None), *window)] = value
    return padded
