import numpy as np
import pytest

from attlas import context
from attlas.claims import Outcome
from attlas.claims.context import kit


def test_seeds_of_different_names_differ():
    assert kit.own(0, "task", "20") != kit.own(0, "task", "24")
    assert kit.own(0, "task", "20") == kit.own(0, "task", "20")


def test_first_sequences():
    task = context.sample(6, 2, 0.5, 2, 0.1, seed=0)
    few = kit.first(task, 10)
    assert few.n == 10
    assert few.tau == pytest.approx(10 / 36)
    assert np.array_equal(few.H, task.H[:10])
    assert few.tasks is task.tasks
    assert kit.first(context.sample(6, 2, np.inf, 2, 0.1, seed=0), 10).chosen is None


def test_floors():
    assert kit.leaked(kit.floors([1.2, 3.0], [1.001])) is None
    for new, old in (([0.99, 2.0], [2.0]), ([2.0], [0.5])):
        assert kit.leaked(kit.floors(new, old)).outcome is Outcome.REFUTED
    assert len(kit.floors([2.0], [])) == 1
