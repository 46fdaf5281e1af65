"""Anything, given to any public function: a sentence, a finite answer or an honest status; nothing else."""

import inspect
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from attlas.errors import ConvergenceError, InputError

from .arguments import HOSTILE
from .calls import TRUSTED, outcome, parameters, public, rooms
from .classes import NOT_MADE_BY_USERS, USES

FUNCTIONS = public()
EXAMPLES = int(os.environ.get("ATTLAS_FUZZ", "4"))  # `make attack` asks for more


@pytest.fixture(params=FUNCTIONS, ids=str)
def case(request):
    return request.param, FUNCTIONS[request.param], *parameters(request.param, FUNCTIONS[request.param])


def test_functions_of_every_room_are_found():
    assert {"aim", "features", "layers", "numerics", "recovery", "tokens"} <= {name.split(".")[0] for name in FUNCTIONS}
    assert len(FUNCTIONS) > 150  # as docs/running.md says
    assert len(HOSTILE) == 42


def test_every_parameter_is_reached(case):
    """None is left out for want of a value, nor hidden behind *args or **kwargs."""
    _, function, chosen, _ = case
    assert chosen.keys() == inspect.signature(function).parameters.keys()


def test_classes_are_found():
    assert {"aim.Linear", "positional.Model", "recovery.Layer", "features.RandomAttentionRegressor"} <= FUNCTIONS.keys()
    assert {"features.RandomAttentionRegressor.predict", "features.RandomMLPFeatures.transform"} <= FUNCTIONS.keys()
    public_names = {f"{room.__name__.removeprefix('attlas.')}.{name}" for room in rooms() for name in dir(room)}
    assert NOT_MADE_BY_USERS.keys() | USES.keys() <= public_names, "a class that is no more"


def test_a_valid_call_is_answered(case):
    name, function, chosen, guessed = case
    arguments = {key: make() for key, make in chosen.items()}
    assert not outcome(function, arguments)
    try:
        function(**arguments)
    except InputError as error:
        note = f"no valid arguments of {name} known; add them to tests/fuzz/arguments.py: {error}"
        pytest.skip(note) if guessed else pytest.fail(note)
    except (ConvergenceError, ConvergenceWarning):
        pass  # small steps are enough to be checked


def test_one_argument_that_is_anything(case):
    name, function, chosen, _ = case
    valid = {key: make() for key, make in chosen.items()}
    wrong = [
        f"{name}({key}={value!r:.60}): {found}"
        for key in chosen.keys() - TRUSTED
        for value in HOSTILE
        if (found := outcome(function, valid | {key: value}))
    ]
    assert not wrong, "\n".join(sorted(wrong))


numbers = st.floats() | st.integers() | st.integers(-(10**40), 10**40)
anything = st.sampled_from(HOSTILE) | numbers | st.text(max_size=3) | st.lists(numbers, max_size=3)


@settings(
    max_examples=EXAMPLES, derandomize=bool(os.environ.get("CI")) or EXAMPLES < 10, deadline=None, database=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
@given(data=st.data())
def test_several_arguments_that_are_anything(case, data):
    _, function, chosen, _ = case
    arguments = {key: make() for key, make in chosen.items()}
    open_names = sorted(chosen.keys() - TRUSTED)
    for key in (
        data.draw(st.lists(st.sampled_from(open_names), min_size=1, max_size=3, unique=True)) if open_names else ()
    ):
        # sizes that are large but possible would only measure the memory of this machine
        arguments[key] = data.draw(anything.filter(lambda value: not _large(value)))
    assert not outcome(function, arguments)


def _large(value):
    return isinstance(value, int | float) and 50 < abs(value) < 1e18
