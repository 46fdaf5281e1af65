"""Kinks along a line: of functions whose kinks are known."""

import numpy as np
import pytest

from attlas.numerics import stream
from attlas.recovery.block.kinks import Line
from attlas.recovery.oracle import Lost


def bent(kinks, outputs, seed=0):
    bends = stream(seed, "bends").standard_normal((len(kinks), outputs))
    return lambda s: 0.3 + 0.7 * s + np.abs(s - np.asarray(kinks)) @ bends


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize(
    "kinks", [[], [0.0], [-2.0, 0.5, 0.5 + 1e-4, 40.0], [-9e4, -1e3, 1.0, 7e4], list(np.linspace(-1, 1, 25))]
)
def test_all_kinks_are_found(kinks, outputs):
    found = Line(bent(kinks, outputs)).kinks()
    assert np.allclose(found, sorted(kinks), rtol=1e-9, atol=1e-9)


def test_many_kinks_take_ten_queries_each():
    kinks = np.tan(np.pi * (stream(0, "kinks").random(60) - 0.5))  # Cauchy, as those of random networks
    asked = []
    f = bent(kinks, 4)
    found = Line(lambda s: asked.append(s) or f(s)).kinks()
    assert np.allclose(found, np.sort(kinks), rtol=1e-8)
    assert len(asked) < 12 * len(kinks)


@pytest.mark.parametrize(
    "f", [lambda s: np.tanh([s]), lambda s: np.array([s * s]), lambda s: np.log1p(np.exp([-abs(s)]))]
)
def test_what_is_smooth_is_refused(f):
    with pytest.raises(Lost, match="ReLUs"):
        Line(f).kinks()
