"""Records as an xarray.Dataset."""

import json
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from attlas.errors import InputError, StoreError
from attlas.store.key import canonical
from attlas.store.record import Record
from attlas.store.table import encodable

if TYPE_CHECKING:
    import xarray

_INTEGERS = range(-(2**63), 2**63)
_PADDED, _TIMES = 128 << 20, 16  # bytes of an array with its padding: this many, or this many times what it holds


def view(records: Iterable[Record]) -> "xarray.Dataset":
    """Return the records of one claim as a Dataset along the dimension ``result``.

    Settings of the points, ``seed`` and ``seconds`` are coordinates, results are variables. Arrays get the dimensions
    ``name_0``, ``name_1``, ...; where their shapes differ between points the smaller ones are padded with NaN. Integers
    beyond 64 bits are text.
    ``view(...).set_index(result=["d", "seed"]).unstack()`` makes a grid of it.

    Raises
    ------
    InputError
        If the records are of several claims, or there are none.
    StoreError
        If their shapes differ so much that nearly all would be padding.

    Examples
    --------
    >>> from attlas import lab, store
    >>> from attlas.claims import find
    >>> data = store.view(lab.shipped(find(["features.invariance"])))
    >>> list(data.dims)
    ['result']
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
    """Return settings as an array: numbers if all are, else text (lists as JSON, a missing one as NaN or empty).

    Integers that no array of numbers holds are text, too.
    """
    if all(value is None or (isinstance(value, int | float) and not isinstance(value, bool)) for value in values):
        if all(value in _INTEGERS for value in values if isinstance(value, int)):
            return np.array([np.nan if value is None else value for value in values])
    elif all(isinstance(value, bool) for value in values):
        return np.array(values)
    return _texts(["" if value is None else value if isinstance(value, str) else canonical(value) for value in values])


def _stack(values: list[Any]) -> NDArray[Any]:
    """Return results along a first axis, padded with NaN where shapes differ or a result is missing."""
    present = [np.asarray(value) for value in values if value is not None]
    if any(a.dtype.kind == "U" for a in present):
        present = [_encodable(a) for a in present]
        widest, held = max(a.dtype.itemsize for a in present), sum(a.nbytes for a in present)
        _refuse_padding(widest * sum(a.size for a in present), held)
    kinds = {a.dtype.kind for a in present}
    apart = kinds == {"i", "u"} and np.result_type(*present).kind == "f"  # no integer type holds both
    if len({a.shape for a in present}) == 1 and len(present) == len(values) and not apart:
        return np.stack(present)
    if len({a.ndim for a in present}) > 1 or not kinds <= set("biuf") or apart:
        return _texts(["" if value is None else json.dumps(_listed(value)) for value in values])
    shape = tuple(max(sizes) for sizes in zip(*(a.shape for a in present), strict=True))
    _refuse_padding(8 * len(values) * math.prod(shape), 8 * sum(a.size for a in present))
    padded = np.full((len(values), *shape), np.nan)
    for i, value in enumerate(values):
        if value is not None:
            window = tuple(slice(size) for size in np.shape(value))
            padded[i : i + 1][(slice(None), *window)] = value
    return padded


def _listed(value: Any) -> Any:
    array = np.asarray(value)
    return (array.astype(str) if array.dtype.kind == "c" else array).tolist()


def _texts(texts: list[str]) -> NDArray[Any]:
    """Return texts as an array, in which each takes as much room as the longest."""
    texts = [encodable(text) for text in texts]
    _refuse_padding(4 * len(texts) * max(map(len, texts)), 4 * sum(map(len, texts)))
    return np.array(texts)


def _encodable(array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype.kind != "U" or not array.size:
        return array
    return np.array([encodable(text) for text in array.ravel().tolist()]).reshape(array.shape)


def _refuse_padding(size: int, held: int) -> None:
    """Refuse an array that is mostly padding: a few results of odd shapes would fill any memory."""
    if size > max(_PADDED, _TIMES * held):
        raise StoreError(
            f"results of such different shapes would be padded to {size / 1e9:.3g} GB, for {held / 1e6:.3g} MB of numbers;"
            " CSV and Parquet hold them as they are, or choose fewer claims"
        )
