"""Examples in docstrings give what they say."""

import doctest
from importlib import import_module

import pytest


@pytest.mark.parametrize("name", ["best_ridge", "curve", "fit", "population", "theory"])
def test_examples(name):
    found = doctest.testmod(import_module(f"attlas.context.{name}"))
    assert found.attempted > 0
    assert found.failed == 0
