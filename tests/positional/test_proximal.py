"""The proximal map against a grid search, and its law: one change of sign, a jump where the criterion says so."""

import numpy as np
import pytest

from attlas.positional import Model, proximal_map
from attlas.positional.proximal import split


def energy(s, r, w_s, w_r, t1, t2, V, sigma):
    return ((s - w_s) ** 2 + (r - w_r) ** 2) / (2 * V) + Model(0.3, 1.0, sigma).loss(s, r, t1, t2)


def test_against_a_grid_search():
    """No point of a fine grid is lower, wherever w is and however large V: also where there are several minima."""
    rng, grid = np.random.default_rng(0), np.linspace(-5, 5, 241)
    for sigma, most in ((1.0, 10.0), (0.5, 40.0)):
        for _ in range(150):
            V = np.exp(rng.uniform(np.log(0.1), np.log(most)))
            w_s, w_r = rng.choice([0.1, 0.3, 1.0, 3.0]) * rng.standard_normal(2)
            t1, t2 = 0.7 * rng.random(2) + 0.18
            s, r = proximal_map(w_s, w_r, t1, t2, V, sigma)
            best = energy(grid[:, None], w_r + grid, w_s, w_r, t1, t2, V, sigma).min()
            assert energy(s, r, w_s, w_r, t1, t2, V, sigma) <= best + 1e-12


def test_it_is_stationary():
    rng = np.random.default_rng(1)
    w_s, w_r = 0.5 * rng.standard_normal((2, 200))
    t1, t2 = 0.7 * rng.random((2, 200)) + 0.18
    s, r = proximal_map(w_s, w_r, t1, t2, 3.0, 0.8)
    step = 1e-5
    for d_s, d_r in ((step, 0), (0, step)):
        up, down = (energy(s + i * d_s, r + i * d_r, w_s, w_r, t1, t2, 3.0, 0.8) for i in (1, -1))
        assert np.abs(up - down).max() / (2 * step) < 1e-9


def crossing(w_r, t1, t2, V):
    """Where s changes its sign, and s on either side."""
    low, high = -6.0, 6.0
    for _ in range(48):
        mid = (low + high) / 2
        low, high = (low, mid) if proximal_map(mid, w_r, t1, t2, V)[0] > 0 else (mid, high)
    return low, proximal_map([low - 1e-10, high + 1e-10], w_r, t1, t2, V)[0]


@pytest.mark.parametrize("V", [0.9, 1.5, 4.0, 12.0])
def test_s_grows_with_w_and_jumps_where_the_criterion_says(V):
    """With w_r (t1 - t2) = 0; for V below 1 always."""
    rng, kinds = np.random.default_rng(2), set()
    for i, (w_r, t1, t2) in enumerate(
        zip(0.4 * rng.standard_normal(40), *(0.7 * rng.random((2, 40)) + 0.18), strict=True)
    ):
        if V > 1:
            w_r, t2 = (0.0, t2) if i % 2 else (w_r, t1)
        s, _ = proximal_map(np.linspace(-1.5, 1.5, 101), w_r, t1, t2, V)
        assert np.all(np.diff(s) > -1e-9)
        star, (below, above) = crossing(w_r, t1, t2, V)
        threshold = t1 + t2 - 1 + V * (t1 - t2) ** 2 / 4 - 1 / V - w_r**2 / 4
        if abs(threshold) > 1e-3:
            assert (above - below > 5e-3) == (threshold > 0)
            kinds.add(threshold > 0)
        if threshold < 0:
            assert star == pytest.approx(-V * (t1 - t2) * w_r / 2, abs=1e-8)
    assert kinds == ({False} if V < 1 else {True, False})


def test_jumps_on_one_side_of_zero():
    """Where w_r (t1 - t2) is not zero there are jumps before the criterion at s = 0 sees them, and away from its w*."""
    w_r, t1, t2, V = 0.92188, 0.2972, 0.8073, 4.0
    assert t1 + t2 - 1 + V * (t1 - t2) ** 2 / 4 - 1 / V - w_r**2 / 4 < -0.09
    star, (below, above) = crossing(w_r, t1, t2, V)
    assert above - below > 0.5
    assert star < -V * (t1 - t2) * w_r / 2 - 0.01
    found = split(w_r, t1, t2, V, 1.0)  # what the integrals use
    assert found[:2] == (pytest.approx(star, abs=1e-7), True)
    assert (found[5], found[3]) == (pytest.approx(below, abs=1e-6), pytest.approx(above, abs=1e-6))


def test_the_criterion_misses_jumps_far_out():
    """With |w_r| above 3 and V large there are jumps that the criterion does not know; the map is global all the same."""
    w_s, w_r, t1, t2, V = 2.6918243404217517, -3.1244422689975586, 0.8188407651246596, 0.2873378418644563, 5.583162638
    assert t1 + t2 - 1 + V * (t1 - t2) ** 2 / 4 - 1 / V - w_r**2 / 4 < 0
    assert w_s < -V * (t1 - t2) * w_r / 2
    s, r = proximal_map(w_s, w_r, t1, t2, V)
    assert s > 1
    assert (
        energy(s, r, w_s, w_r, t1, t2, V, 1.0) < energy(-0.1328721211154071, -3.23756, w_s, w_r, t1, t2, V, 1.0) - 0.2
    )
