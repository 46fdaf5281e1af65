"""Every public function has an example in its docstring, and every example gives what it says."""

import doctest
import importlib
import inspect
import sys
from pathlib import Path

import pytest

from attlas import lab
from attlas.claims import find
from attlas.store import Store

DOCS = Path(__file__).parent.parent / "docs"
ROOMS = (
    "layers", "tokens", "numerics", "features", "recovery", "aim", "context", "positional", "claims", "lab", "store",
)  # fmt: skip


def public(room):
    """Return the public functions and classes of a room, by name, as its page of the reference has them."""
    sys.path.insert(0, str(DOCS / "ext"))
    try:
        names = importlib.import_module("public_names").public_names
    finally:
        sys.path.remove(str(DOCS / "ext"))
    module = importlib.import_module(f"attlas.{room}")
    found = {name: inspect.unwrap(getattr(module, name)) for name in names(module) if callable(getattr(module, name))}
    return {name: value for name, value in found.items() if value.__module__.startswith("attlas")}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Stand in an empty folder with two small stores, whose names the examples of the store use."""
    records = lab.shipped(find(["features.invariance"]))
    monkeypatch.chdir(tmp_path)
    for name, own in (("attlas.db", records[:3]), ("other.db", records[2:5])):
        with Store(name) as store:
            for record in own:
                store.put(record)


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_function_has_an_example(room):
    functions = {name: value for name, value in public(room).items() if not inspect.isclass(value)}
    assert functions
    assert [name for name, value in functions.items() if ">>> " not in (inspect.getdoc(value) or "")] == []


@pytest.mark.parametrize("room", ROOMS)
def test_examples_give_what_they_say(room, here):
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner()
    for name, value in public(room).items():
        for example in finder.find(value, name):
            runner.run(example)
    assert runner.failures == 0
    assert runner.tries > 0
