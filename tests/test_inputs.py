"""What attlas says of arguments that it cannot use: one sentence each, from one place."""

import numpy as np
import pytest

from attlas import aim, layers, numerics, recovery
from attlas.errors import InputError
from attlas.inputs import array, choice, described, flag, integer, numbers, real

MASKED = np.ma.masked_array(np.eye(2), np.eye(2) > 0)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: array(MASKED, "S", ("d", "d")), "S is masked; fill it"),
        (lambda: numbers(MASKED, "rho"), "rho is masked"),
        (lambda: choice(np.array(["cg", "cg"]), "solver", ("cg", "dual")), "solver must be one of cg, dual; got array"),
        (lambda: choice("CG", "solver", ("cg", "dual")), "solver must be one of cg, dual; got 'CG'"),
        (lambda: choice("x", "error", ("icl",), "icl (new tasks)"), "error must be icl (new tasks); got 'x'"),
        (lambda: choice(["cg"], "solver", {"cg": 1}), "solver must be one of cg; got"),
        (lambda: flag(np.ones(2), "column"), "column must be True or False; got array"),
        (lambda: flag(0.5, "column"), "column must be True or False; got 0.5"),
        (lambda: flag("no", "column"), "column must be True or False; got 'no'"),
        (lambda: flag(2, "column"), "column must be True or False; got 2"),
        (lambda: numerics.stream(0, 1), "name the purpose of the stream"),
        (lambda: numerics.stream(0, "\ud800"), "text that UTF-8 can write"),
        (lambda: numbers([np.ma.masked, 1.0], "rho"), "rho is masked"),
        (lambda: layers.softmax(MASKED), "h is masked"),
        (lambda: real(10**400, "alpha"), "alpha must be a finite number; got an integer that is larger than any float"),
        (lambda: integer(10**5000, "d"), "got an integer of more than 30 digits"),
        (lambda: integer(-(10**5000), "d"), "d must be an integer of at least 1"),
        (lambda: aim.iterate(aim.Softmax(2), 0.1, 0.5, 10**30), "steps must be an integer of at most"),
        (
            lambda: numerics.mean_interval([1.0, 2.0], 1.5),
            "level must be a finite number greater than 0 and less than 1",
        ),
        (lambda: numerics.share_interval(1, 2, 0.0), "level must be"),
        (lambda: numerics.share_interval(1.5, 2), "hits must be an integer"),
        (lambda: numerics.rank_correlation(range(6), range(6), 1), "level must be"),
        (lambda: aim.state_evolution("softmax", 0.1, 0.5), "channel must be a channel such as"),
        (lambda: aim.phase_diagram([1, 2], [0.1, 0.2]), "channel must be a channel such as"),
        (lambda: recovery.control_layer("layer", 0), "give a Layer"),
        (lambda: recovery.on_slice_accuracy(None, None, np.ones((1, 2, 3))), "give a Layer"),
        (lambda: layers.softmax([[np.inf, 1.0]]), "h must be finite"),
        (lambda: layers.hardmax([[-np.inf, 1.0]]), "h must be finite"),
        (lambda: layers.softmax(np.zeros((2, 0))), "h must be an array of numbers"),
        (lambda: aim.Linear(2, 1e-320), "noise must lie between"),
        (lambda: aim.mmse(1e-320, 0.5), "delta must lie between"),
        (lambda: aim.trained(aim.Softmax(2), 1e-200, 0.5, 0.1), "alpha must lie between"),
        (
            lambda: aim.trained(aim.Softmax(2), 1e-12, 0.5, 0.1),
            "alpha must be at least 1e-08 for the theory of training",
        ),
        (lambda: aim.teacher(10**9, 1e9, 0), "more than any memory holds"),
        (lambda: aim.sample(aim.Softmax(2), 10**6, 10.0, 0.5, 0), "more than any memory holds"),
    ],
)
def test_a_sentence_each(call, sentence):
    with pytest.raises(InputError) as caught:
        call()
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_was_accepted_still_is():
    assert real(np.float32(0.5), "x") == 0.5
    assert real(0, "x", least=0) == 0.0
    assert integer(np.int8(3), "n") == 3
    assert choice("cg", "solver", ("cg", "dual")) == "cg"
    assert [flag(value, "column") for value in (True, np.False_, 1, np.int8(0))] == [True, False, True, False]
    assert numbers([0.0, 1.0], "x", least=0).tolist() == [0, 1]
    assert aim.trained(aim.Softmax(2), 1e-7, 0.5, 0.1).value == pytest.approx(
        1.5, abs=1e-6
    )  # nothing is learned: 1 + rho


@pytest.mark.parametrize("value", [np.eye(40), object(), "x" * 500, 10**4000, [1] * 500, float("nan")])
def test_anything_is_quoted_on_one_short_line(value):
    assert len(described(value)) <= 100
    assert "\n" not in described(value)
