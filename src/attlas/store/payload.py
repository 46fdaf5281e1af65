"""Results as bytes: an uncompressed .npz with one .npy per name, the same bytes for the same result."""

import io
import math
import struct
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas.errors import DamagedStore, InputError

Result = dict[str, Any]

LARGEST = 16 << 20
_DEEPEST = 32  # axes
_HOLLOW = 1 << 16  # entries that need no bytes, such as those of an array of shape (1000, 0)
_LISTS = LARGEST // 8  # lists in the text of a result: as many as the rows of any matrix of floats
_LAST = 0x10FFFF  # character there is
_PART, _ENTRY = b"PK\x03\x04", b"PK\x01\x02"  # how a part and its place in the list begin (APPNOTE.TXT of PKWARE, 4.3)
_LOCAL, _CENTRAL, _END = struct.Struct("<4s5H3I2H"), struct.Struct("<4s6H3I5H2I"), struct.Struct("<4s4H2IH")
_UTF8 = 0x800  # the flag of a name that is not ASCII
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

    Examples
    --------
    >>> from attlas import store
    >>> isinstance(store.encode({"error": 0.25, "label": "a run"}), bytes)
    True
    """
    buffer, shapes = io.BytesIO(), []
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(result):
            entry = zipfile.ZipInfo(f"{name}.npy", _EPOCH)
            entry.create_system = 3  # the same bytes on every system
            archive.writestr(entry, _npy(name, result[name]))
            shapes.append(np.shape(result[name]))
    data = buffer.getvalue()
    if len(data) > LARGEST:
        raise InputError(f"a result is limited to {LARGEST >> 20} MiB; this one has {len(data) >> 20}")
    if fault := _excess(shapes, len(data)):
        raise InputError(
            f"{fault}; a result is limited to {LARGEST >> 20} MiB also when it is read and written as text"
        )
    return data


def decode(data: bytes) -> Result:
    """Return the result whose bytes these are. No pickled object is ever loaded.

    Examples
    --------
    >>> from attlas import store
    >>> store.decode(store.encode({"error": 0.25}))
    {'error': 0.25}
    """
    try:
        if len(data) > 2 * LARGEST:
            raise ValueError(f"it has {len(data) >> 20} MiB")
        files = _files(data)
        if fault := _excess([_header(_head(file))[1] for file in files.values()], len(data)):
            raise ValueError(fault)
        arrays = {name: _array(file) for name, file in files.items()}
        return {name: value if value.ndim else value.item() for name, value in arrays.items()}
    except Exception as error:  # damaged bytes can break any step
        raise DamagedStore(f"a result cannot be read: {error}") from error


def _files(data: bytes) -> dict[str, bytes]:
    """Return the parts of an archive as `encode` lays them out, one behind the other, whose list at the end says the same.

    `zipfile` takes any archive and ten times as long, which a hundred thousand results feel.
    """
    files, listed, place = {}, [], 0
    while data[place : place + 4] == _PART:
        _, _, flags, method, time, date, crc, size, full, length, extra = _LOCAL.unpack_from(data, place)
        start = place + _LOCAL.size + length
        name, file = data[start - length : start].decode(), data[start : start + size]
        if method:
            raise ValueError("it is compressed, which attlas never does")
        if not name.removesuffix(".npy").isidentifier() or name.removesuffix(".npy") in files:
            raise ValueError("its parts are not named as results are")
        if size != full or extra or flags & ~_UTF8 or len(file) < size or zlib.crc32(file) != crc:
            raise ValueError("its parts are not what they say they are")
        files[name.removesuffix(".npy")] = file
        listed.append((flags, method, time, date, crc, size, full, length, 0, 0, 0, place, name.encode()))
        place = start + size
    if _listed(data, place) != listed:
        raise ValueError("its parts are not those that it lists")
    return files


def _listed(data: bytes, place: int) -> list[tuple[Any, ...]]:
    """Return the list at the end of an archive: of each part what `_files` found of it."""
    found, first = [], place
    while data[place : place + 4] == _ENTRY:
        _, _, _, *facts, extra, comment, disk, internal, _, begin = _CENTRAL.unpack_from(data, place)
        start = place + _CENTRAL.size
        found.append((*facts, extra + comment, disk, internal, begin, data[start : start + facts[-1]]))
        place = start + facts[-1] + extra + comment
    end = _END.pack(b"PK\x05\x06", 0, 0, len(found), len(found), place - first, first, 0)
    if data[place:] != end:
        raise ValueError("it does not end as an archive does")
    return found


def _array(npy: bytes) -> NDArray[Any]:
    """Return the array of a .npy file, as `numpy.load` would; the files of a store share a few headers, read once."""
    head = _head(npy)
    dtype, shape, by_columns = _header(head)
    count = math.prod(shape)
    value = np.frombuffer(npy, dtype, count, len(head)) if count else np.empty(0, dtype)
    if dtype.kind == "U" and value.view(dtype.byteorder + "u4").max(initial=0) > _LAST:
        raise ValueError("its text is none")
    return value.reshape(shape, order="F" if by_columns else "C").copy()


def _excess(shapes: Iterable[tuple[int, ...]], size: int) -> str:
    """Return why arrays of these shapes are more than a result of `size` bytes has; nothing if they are not.

    An entry is a byte at least, so that there are no more entries than bytes. Arrays without an entry need no bytes whatever
    their shape says, and many axes of size 1 need none either, but both become lists when the result is written as text.
    So an axis counts as max(1, size): entries are prod_i max(1, n_i), lists are sum_k prod_(i < k) max(1, n_i).
    """
    entries = lists = 0
    for shape in shapes:
        product = 1
        for number in shape:
            lists += product
            product *= max(1, number)
        entries += product
    if entries > max(size, _HOLLOW):
        return f"its shapes have {entries:.3g} entries in {size} bytes"
    return f"its shapes are {lists:.3g} lists" if lists > _LISTS else ""


def _head(npy: bytes) -> bytes:
    return npy[: 10 + int.from_bytes(npy[8:10], "little")]


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
    if not dtype.itemsize:
        raise ValueError("its text has no width")
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
