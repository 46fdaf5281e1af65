"""Anything, given to any public function: a sentence, a finite answer or an honest status; nothing else."""

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from attlas.errors import InputError

from .arguments import HOSTILE
from .calls import TRUSTED, outcome, parameters, public

FUNCTIONS = public()
EXAMPLES = int(os.environ.get("ATTLAS_FUZZ", "4"))  # `make attack` asks for more


@pytest.fixture(params=FUNCTIONS, ids=str)
def case(request):
    return request.param, FUNCTIONS[request.param], *parameters(request.param, FUNCTIONS[request.param])


def test_functions_of_every_room_are_found():
    assert {"aim", "features", "layers", "numerics", "recovery", "tokens"} <= {name.split(".")[0] for name in FUNCTIONS}
    assert len(FUNCTIONS) > 40


def test_a_valid_call_is_answered(case):
    name, function, chosen, guessed = case
    arguments = {key: make() for key, make in chosen.items()}
    assert not outcome(function, arguments)
    if guessed or name == "numerics.stream":
        try:
            function(**arguments)
        except InputError as error:
            pytest.skip(
                f"no valid {', '.join(guessed) or 'arguments'} known; add them to tests/fuzz/arguments.py: {error}"
            )


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
