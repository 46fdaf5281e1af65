import numpy as np
import pytest

from attlas.claims import Outcome
from attlas.claims.finite_size import finite_size_verdict


def rows(truth, noise, seed, sizes=(50, 100, 200), repeats=20):
    """Ratios truth + 3/d of two settings, with noise."""
    rng = np.random.default_rng(seed)
    return [(k, d, truth + 3 / d + rng.normal(0, noise)) for k in ("a", "b") for d in sizes for _ in range(repeats)]


def test_a_right_theory_is_seldom_refuted_and_a_wrong_one_always():
    right = [finite_size_verdict(rows(1.0, 0.02, s), "k", "x").outcome for s in range(200)]
    assert right.count(Outcome.REFUTED) <= 8  # one in a hundred is expected
    wrong = [finite_size_verdict(rows(1.06, 0.02, s), "k", "x").outcome for s in range(20)]
    assert wrong.count(Outcome.REFUTED) == 20


def test_noise_is_inconclusive_not_support():
    assert finite_size_verdict(rows(1.0, 0.5, 0), "k", "x").outcome is Outcome.INCONCLUSIVE
    assert finite_size_verdict(rows(1.0, 0.02, 0, repeats=1), "k", "x").outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_a_number_refutes(bad):
    assert finite_size_verdict([*rows(1.0, 0.02, 0), ("a", 50, bad)], "k", "x").outcome is Outcome.REFUTED


def test_a_gap_that_grows_decides_nothing():
    rng = np.random.default_rng(0)
    rows = [("a", d, mean + rng.normal(0, 0.01)) for d, mean in ((40, 1.0), (80, 1.02), (120, 1.06)) for _ in range(8)]
    assert finite_size_verdict(rows, "setting", "ratio").outcome is not Outcome.SUPPORTED


def test_uneven_data_decide_nothing():
    rows = [
        ("a", 40, 1.0),
        ("a", 40, 1.1),
        ("a", 80, 1.0),
        ("b", 40, 1.0),
        ("b", 40, 1.0),
        ("b", 40, 1.02),
        ("b", 40, 1.0),
    ]
    assert finite_size_verdict(rows, "setting", "ratio").outcome is Outcome.INCONCLUSIVE
