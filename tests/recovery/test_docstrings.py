"""The examples of docstrings are true."""

import doctest
import sys

import pytest

import attlas.recovery  # noqa: F401


@pytest.mark.parametrize("name", ["learn", "queries", "sculpt"])
def test_the_example_of_a_docstring_runs(name):
    found = doctest.testmod(sys.modules[f"attlas.recovery.{name}"])
    assert found.attempted > 3
    assert not found.failed
