import hashlib
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attlas.errors import InputError
from attlas.store import canonical, key

scalars = st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | st.text()
values = st.recursive(scalars | st.none(), lambda inner: st.lists(inner, max_size=4), max_leaves=8)
points = st.dictionaries(st.text(max_size=8), values, max_size=6)


def typed(value):
    """A form in which Python's 1 == True does not hide a difference, but 1 == 1.0 is none."""
    if isinstance(value, bool) or value is None:
        return ("constant", value)
    if isinstance(value, dict):
        return {name: typed(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [typed(item) for item in value]
    return value


@given(points)
def test_order_of_names_does_not_matter(point):
    assert canonical(dict(reversed(point.items()))) == canonical(point)


@given(points, points)
def test_equal_keys_exactly_for_equal_points(a, b):
    assert (key("c", 1, a, 0) == key("c", 1, b, 0)) == (typed(a) == typed(b))


@given(points)
def test_canonical_text_is_json_of_the_same_value_and_stable(point):
    text = canonical(point)
    assert typed(json.loads(text)) == typed(point)
    assert canonical(json.loads(text)) == text
    assert text.isascii()


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_are_exact_and_of_one_form(x):
    assert json.loads(canonical(x)) == x
    assert canonical(np.float64(x)) == canonical(x)
    if x.is_integer() and abs(x) < 2**53:
        assert canonical(x) == canonical(int(x))


@given(points, st.integers(0, 10**6))
def test_every_part_of_the_key_counts(point, seed):
    keys = {key("c", 1, point, seed), key("d", 1, point, seed), key("c", 2, point, seed), key("c", 1, point, seed + 1)}
    keys.add(key("c", 1, {**point, "another name": 1}, seed))
    assert len(keys) == 5


def test_key_is_the_sha256_of_the_canonical_json():
    """Pinned: keys in stores must never change."""
    text = '{"claim":"a.b","point":{"d":16,"rho":0.5},"seed":3,"version":1}'
    assert key("a.b", 1, {"rho": 0.5, "d": np.int64(16)}, 3) == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("bad", [math.nan, math.inf, {1: 2}, object(), {"a": {2}}, np.array([np.nan])])
def test_what_has_no_json_is_refused(bad):
    with pytest.raises(InputError):
        canonical({"x": bad})


@given(st.text(), points, st.integers(-5, 10**6), st.integers(0, 100))
def test_a_key_is_the_digest_of_one_canonical_text(claim, point, seed, version):
    whole = canonical({"claim": claim, "version": version, "point": point, "seed": seed})
    assert key(claim, version, point, seed) == hashlib.sha256(whole.encode()).hexdigest()
