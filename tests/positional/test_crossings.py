"""Where the minima change places, and where meaning beats the best layer by place."""

import pytest

from attlas.errors import ConvergenceError
from attlas.positional import Model, baseline, crossing, switch
from tests.positional.settings import HALF, F, G, P


def test_the_switch_of_the_flagship():
    """2.565915; at it the test error falls from 0.095626 to 0.052489, m from 0.14998 to 0, theta rises to 0.45780."""
    found = switch(F)
    assert found.value == pytest.approx(2.565915, abs=6e-7)
    assert found.positional.test == pytest.approx(0.095626, abs=6e-7)
    assert found.semantic.test == pytest.approx(0.052489, abs=6e-7)
    assert found.positional.m == pytest.approx(0.14998, abs=6e-6)
    assert found.semantic.theta == pytest.approx(0.45780, abs=6e-6)
    assert found.positional.loss == pytest.approx(found.semantic.loss, rel=1e-6)
    assert found.converged


@pytest.mark.parametrize(("model", "before", "after"), [(P, "0.006791", "0.004693"), (G, "0.005626", "0.002746")])
def test_errors_at_the_switch_of_the_published_setting(model, before, after):
    """At the switch attention by meaning of P is still worse than fixed weights, 0.003943; c = 2 changes that."""
    found = switch(model)
    assert f"{found.positional.test:.6f}" == before
    assert f"{found.semantic.test:.6f}" == after
    assert (found.semantic.test > baseline(model)) == (model is P)
    assert any(note.startswith("By position: ") for note in found.notes)
    stands = ("approximate", "approximate") if model is P else ("nearly exact", "nearly exact")
    assert "by position {}, by meaning {}".format(*stands) in repr(found)


@pytest.mark.parametrize(
    ("model", "value", "accuracy"),
    [
        (P, 1.25154, 4e-4),
        (G, 2.03593, 4e-4),
        (Model(0.3, 1.0, 0.5, 0.03), 3.169, 1.2e-3),
        (Model(0.3, 2.0), 1.855, 1.2e-3),
        (Model(0.3, 5.0), 3.161, 1.5e-3),
        (Model(0.1, 3.0), 1.783, 1.2e-3),
        (HALF, 4.730, 2e-3),
    ],
)
def test_other_switches(model, value, accuracy):
    """Numbers of an independent program, good to 1e-3 but for the first two; here by the coarse rule."""
    assert switch(model, tol=1e-4).value == pytest.approx(value, abs=accuracy)


def test_a_stronger_encoding_and_more_place_delay_meaning():
    values = [switch(Model(0.3, c), tol=1e-4).value for c in (2.0, 4.0)]
    assert values[0] < values[1]


def test_where_meaning_beats_the_best_layer_by_place():
    """1.835, before the switch; in the published setting 1.492, after it."""
    found = crossing(F, tol=1e-4)
    assert found.value == pytest.approx(1.835, abs=1e-3)
    assert found.semantic.test == pytest.approx(baseline(F), rel=1e-3)
    assert found.positional is None
    assert crossing(P, tol=1e-4).value == pytest.approx(1.492, abs=1e-3)


def test_no_crossing_is_said():
    found = crossing(Model(0.7, 3.0), tol=1e-4, throw=False)
    assert not found.converged
    assert "none between" in found.reason
    with pytest.raises(ConvergenceError, match="encoding is too weak"):
        switch(Model(0.3, 0.3), tol=1e-4)
    assert "approximate there (jump share 0.5" in switch(Model(0.0, 1.5), tol=1e-4, throw=False).reason
