"""recovery.identifiability holds at small size; different functions refute it."""

import numpy as np

from attlas.claims import Outcome
from attlas.claims.recovery import identifiability
from attlas.claims.recovery.identifiability import CLAIM, PAIRS, Point
from attlas.recovery import Layer

from ..broken import verdict_of
from .small import holds, worded


def test_it_holds_at_small_size():
    worded(CLAIM, holds(CLAIM, [Point(pair=pair) for pair in PAIRS], 2), "have the same canonical form")


def test_different_functions_are_not_the_same_layer(monkeypatch):
    rng = np.random.default_rng(0)
    other = Layer(*rng.standard_normal((2, 1, 5, 5)))
    monkeypatch.setattr(identifiability, "_pair", lambda *a: (other, Layer(other.Theta + 1e-6, other.W)))
    assert verdict_of(CLAIM, seeds=1).outcome is Outcome.REFUTED


def test_pairs_of_one_kind_leave_it_undecided():
    """No number stands for what was not measured."""
    verdict = verdict_of(CLAIM, [Point(pair="order")], seeds=1)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert "inf" not in verdict.reason
