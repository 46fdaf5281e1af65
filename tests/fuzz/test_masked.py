"""Masked arrays, given to any public function: refused in a sentence or honoured, never ignored."""

import warnings
from dataclasses import fields, is_dataclass

import numpy as np
import pytest

from attlas import aim, features, layers, recovery
from attlas.errors import AttlasError, InputError

from .arguments import sequences
from .calls import TRUSTED, parameters, public

FUNCTIONS = public()


def numbers_in(value):
    """Yield every number of a result, whatever it is made of."""
    if isinstance(value, np.ndarray | np.generic | int | float | complex):
        yield np.asarray(value).ravel()
    elif isinstance(value, tuple | list):
        for item in value:
            yield from numbers_in(item)
    elif hasattr(value, "data_vars"):
        for name in value.data_vars:
            yield np.asarray(value[name].values).ravel()
    elif is_dataclass(value):
        for one in fields(value):
            yield from numbers_in(getattr(value, one.name))


def ignored(function, valid, key):
    """Return whether what lies under a mask changes the answer."""
    answers = []
    for change in (0.0, 0.125):
        data = np.array(valid[key], dtype=float)
        mask = np.zeros(data.shape, dtype=bool)
        mask.flat[0] = True
        data.flat[0] += change
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                answers.append(list(numbers_in(function(**valid | {key: np.ma.masked_array(data, mask)}))))
        except AttlasError:
            return False
    return str(answers[0]) != str(answers[1])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_mask_is_refused_or_honoured(name):
    chosen, _ = parameters(name, FUNCTIONS[name])
    valid = {key: make() for key, make in chosen.items()}
    arrays = [
        key
        for key, value in valid.items()
        if key not in TRUSTED and isinstance(value, np.ndarray | list) and np.asarray(value).dtype.kind in "iuf"
    ]
    wrong = [key for key in arrays if ignored(FUNCTIONS[name], valid, key)]
    assert not wrong, f"{name} ignores the mask of {', '.join(wrong)}"


def hidden(values):
    return np.ma.masked_array(values, np.asarray(values) == np.max(values))


@pytest.mark.parametrize(
    "call",
    [
        lambda: layers.random_feature_attention(np.ones((2, 3, 2)), np.ones((3, 3, 3)), hidden),
        lambda: features.attention_kernel(sequences(), activation=hidden),
        lambda: features.theory_of(sequences()).curve(hidden(np.arange(30.0)), [2, 3]),
        lambda: aim.Custom(hidden, 2, 0.1),
        lambda: recovery.learn_from_queries(lambda X: hidden(X.sum(0)), 3),
    ],
)
def test_a_mask_that_a_function_of_the_user_returns_is_refused(call):
    with pytest.raises(InputError, match="mask"):
        call()
