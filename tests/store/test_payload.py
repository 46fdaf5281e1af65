import datetime
import io
import time
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from attlas.errors import DamagedStore, InputError
from attlas.store import decode, encode
from attlas.store.payload import LARGEST

names = st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,10}", fullmatch=True)
kinds = st.sampled_from(["?", "i1", "u2", "<i4", ">i8", "f2", "f4", "<f8", ">f8", "c8", "c16"])
arrays = kinds.flatmap(lambda kind: hnp.arrays(kind, hnp.array_shapes(max_dims=3, max_side=4, min_side=0)))
scalars = (
    st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.complex_numbers()
    | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
)  # fmt: skip
results = st.dictionaries(names, arrays | scalars, max_size=5)


@settings(max_examples=1)
@given(st.just(0.3))
def test_an_example_may_take_its_time(seconds):
    """Longer than Hypothesis allows by default: on a busy machine any example does."""
    time.sleep(seconds)


@given(results)
def test_what_goes_in_comes_out(result):
    back = decode(encode(result))
    assert set(back) == set(result)
    for name, value in result.items():
        if isinstance(value, np.ndarray):
            assert back[name].dtype == value.dtype
            assert back[name].shape == value.shape
            assert back[name].tobytes() == value.tobytes()
        else:
            assert type(back[name]) is type(value)
            assert back[name] == value or value != value  # NaN


@given(results)
def test_same_result_same_bytes(result):
    assert encode(dict(reversed(result.items()))) == encode(result)
    assert encode(decode(encode(result))) == encode(result)


def test_layout_in_memory_does_not_matter():
    x = np.arange(12.0).reshape(3, 4)
    assert (
        encode({"x": np.asfortranarray(x)})
        == encode({"x": x})
        == encode({"x": np.arange(24.0).reshape(3, 8)[:, :4] * 0 + x})
    )


@pytest.mark.parametrize(
    "value",
    [object(), [object()], datetime.datetime(2020, 1, 1), np.array("2020", "M8"), np.longdouble(1), b"bytes", "nul\0",
     [[1], [1, 2]], 2**70, None, {"nested": 1}],
)  # fmt: skip
def test_what_is_not_numbers_or_text_is_refused(value):
    with pytest.raises(InputError, match="x"):
        encode({"x": value})


@pytest.mark.parametrize("name", ["", "a b", "../x", "1x", 3])
def test_names_are_identifiers(name):
    with pytest.raises((InputError, TypeError)):
        encode({name: 1.0})


def test_too_large_is_refused():
    with pytest.raises(InputError, match="16 MiB"):
        encode({"x": np.zeros(LARGEST // 8 + 1)})


def test_pickles_are_never_loaded():
    buffer = io.BytesIO()
    np.savez(buffer, x=np.array([{"a": 1}], dtype=object))
    with pytest.raises(DamagedStore):
        decode(buffer.getvalue())


@given(st.binary(max_size=200))
def test_garbage_is_damage(data):
    with pytest.raises(DamagedStore):
        decode(data)


@given(results)
def test_any_reader_of_npz_reads_them(result):
    with np.load(io.BytesIO(encode(result)), allow_pickle=False) as archive:
        for name, value in decode(encode(result)).items():
            assert np.asarray(value).tobytes() == archive[name].tobytes()


def test_what_unfolds_when_read_is_refused():
    buffer = io.BytesIO()
    np.savez_compressed(buffer, x=np.zeros(1 << 20))
    with pytest.raises(DamagedStore, match="compressed"):
        decode(buffer.getvalue())


def test_a_header_that_promises_more_than_there_is_is_refused():
    npy = io.BytesIO()
    np.save(npy, np.zeros(4))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("x.npy", npy.getvalue().replace(b"'shape': (4,)", b"'shape': (9,)"))
    with pytest.raises(DamagedStore, match="cannot be read"):
        decode(buffer.getvalue())
