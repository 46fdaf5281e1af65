"""Results as bytes: an uncompressed .npz with one .npy per name, the same bytes for the same result."""

import io
import math
import zipfile
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas.errors import DamagedStore, InputError

Result = dict[str, Any]

LARGEST = 16 << 20
_DEEPEST = 32  # axes
_LAST = 0x10FFFF  # character there is
_EPOCH = (1980, 1, 1, 0, 0, 0)
# extended precision is not among them: it does not travel between machines
_FLOATS = (np.float16, np.float32, np.float64, np.complex64, np.complex128)


def encode(result: Mapping[str, Any]) -> bytes:
    """Return the bytes of a result: a mapping from names to numbers, text, or arrays of them.

    Scalars, whether Python's or NumPy's, come back as Python's; arrays keep dtype and shape.

    Raises
    ------
    InputError
        If a value is an object, a date or an extended-precision float, or if all together exceed 16 MiB.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(result):
            entry = zipfile.ZipInfo(f"{name}.npy", _EPOCH)
            entry.create_system = 3  # the same bytes on every system
            archive.writestr(entry, _npy(name, result[name]))
    data = buffer.getvalue()
    if len(data) > LARGEST:
        raise InputError(f"a result is limited to {LARGEST >> 20} MiB; this one has {len(data) >> 20}")
    return data


def decode(data: bytes) -> Result:
    """Return the result whose bytes these are. No pickled object is ever loaded."""
    try:
        if len(data) > 2 * LARGEST:
            raise ValueError(f"it has {len(data) >> 20} MiB")
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
                raise ValueError("it is compressed, which attlas never does")
            if sum(entry.file_size for entry in entries) > len(data):
                raise ValueError("its parts overlap")
            names = [entry.filename.removesuffix(".npy") for entry in entries]
            if len(set(names)) < len(names) or not all(name.isidentifier() for name in names):
                raise ValueError("its parts are not named as results are")
            arrays = {name: _array(archive.read(entry)) for name, entry in zip(names, entries, strict=True)}
        return {name: value if value.ndim else value.item() for name, value in arrays.items()}
    except Exception as error:  # damaged bytes can break any step
        raise DamagedStore(f"a result cannot be read: {error}") from error


def _array(npy: bytes) -> NDArray[Any]:
    """Return the array of a .npy file, as `numpy.load` would; the files of a store share a few headers, read once."""
    start = 10 + int.from_bytes(npy[8:10], "little")
    dtype, shape, by_columns = _header(npy[:start])
    count = math.prod(shape)
    value = np.frombuffer(npy, dtype, count, start) if count * dtype.itemsize else np.empty(count, dtype)
    if (
        dtype.kind == "U"
        and (value.view(dtype.byteorder + "u4") if dtype.itemsize else value[:0]).max(initial=0) > _LAST
    ):
        raise ValueError("its text is none")
    return value.reshape(shape, order="F" if by_columns else "C").copy()


@lru_cache(maxsize=4096)
def _header(head: bytes) -> tuple[np.dtype[Any], tuple[int, ...], bool]:
    """Return dtype, shape and order of a .npy file by its first bytes. Objects, which would be pickles, are refused."""
    file = io.BytesIO(head)
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError("its arrays are of a format that attlas does not write")
    shape, by_columns, dtype = np.lib.format.read_array_header_1_0(file)
    if dtype.hasobject:
        raise ValueError("it holds a pickled object")
    if dtype.kind not in "biuU" and dtype.type not in _FLOATS:
        raise ValueError(f"it holds {dtype}, which attlas never writes")
    if any(size < 0 or size > LARGEST for size in shape) or len(shape) > _DEEPEST:
        raise ValueError(f"an array of shape {shape} is more than a result has")
    return dtype, shape, by_columns


def _npy(name: str, value: Any) -> bytes:
    if not isinstance(name, str) or not name.isidentifier():
        raise InputError(f"the names of a result are identifiers; got {name!r}")
    try:
        data = np.asarray(value)
    except (ValueError, OverflowError) as error:
        raise InputError(f"{name}: not a number, text or array of them ({error})") from error
    if data.dtype.kind not in "biuU" and data.dtype.type not in _FLOATS:
        raise InputError(f"{name}: a result holds numbers, text or arrays of them; got dtype {data.dtype}")
    if data.dtype.kind == "U" and any("\0" in text for text in np.asarray(value, dtype=object).ravel()):
        raise InputError(f"{name}: text with a NUL character cannot be kept")
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.ascontiguousarray(data) if data.ndim else data, allow_pickle=False)
    return buffer.getvalue()
