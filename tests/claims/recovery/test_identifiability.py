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
