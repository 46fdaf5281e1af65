"""Calibration against a general minimiser, and its edges."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_softmax

from attlas.features.calibration import calibrate, with_common_mean
from attlas.numerics import stream


def test_two_classes_are_platts():
    """Against Nelder-Mead on Platt's own formula, (N+ + 1)/(N+ + 2) and 1/(N- + 2) for targets."""
    rng = stream(0, "platt")
    s = rng.normal(size=200)
    own = rng.random(200) < expit(1.5 * s - 0.7)
    t = np.where(own, (own.sum() + 1) / (own.sum() + 2), 1 / ((~own).sum() + 2))

    def loss(theta):
        p = expit(theta[0] * s + theta[1])
        return -np.sum(t * np.log(p) + (1 - t) * np.log(1 - p))

    peer = minimize(loss, [1.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-10}).x
    found = calibrate(s[:, None], np.where(own, 1.0, -1.0)[:, None])
    np.testing.assert_allclose([found.slope[0], found.shift[0]], peer, rtol=1e-5)


def test_many_classes_share_a_slope():
    rng = stream(0, "classes")
    scores = rng.normal(size=(300, 3))
    own = np.argmax(2 * scores + [0.5, 0, -1] + rng.gumbel(size=(300, 3)), axis=1)
    codes, w = 2.0 * (own[:, None] == np.arange(3)) - 1, rng.random(300)
    w /= w.mean()
    counts = np.bincount(own, w)
    t = np.where(codes > 0, 1 + counts[own][:, None], 1.0) / (counts[own][:, None] + 3)

    def loss(theta):
        return -np.sum(w[:, None] * t * log_softmax(theta[0] * scores + np.append(theta[1:], 0.0), axis=1))

    peer = minimize(loss, [1.0, 0.0, 0.0], method="BFGS", options={"gtol": 1e-8}).x
    found = calibrate(scores, codes, 7 * w, exclusive=True)  # weights are relative
    np.testing.assert_allclose(found.slope, peer[0], rtol=1e-4)
    np.testing.assert_allclose(found.shift[:2] - found.shift[2], peer[1:], atol=1e-4)
    np.testing.assert_allclose(found(scores), found.slope * scores + found.shift)


def test_scores_that_separate_have_a_finite_slope():
    s = np.array([-1.0, -0.5, 0.5, 1.0] * 5)[:, None]
    found = calibrate(s, np.sign(s))
    assert 1 < found.slope[0] < 100
    assert expit(found(s)).max() < 1


def test_scores_that_point_the_wrong_way_are_not_turned_around():
    s = np.linspace(-1, 1, 40)[:, None]
    found = calibrate(s, -np.sign(s))
    assert found.slope[0] == 0
    np.testing.assert_allclose(expit(found.shift), 0.5)


def test_samples_without_a_score_or_a_weight_do_not_count():
    rng = stream(0, "unscored")
    s, codes = rng.normal(size=(60, 1)), np.sign(rng.normal(size=(60, 1)))
    expected = calibrate(s[:40], codes[:40])
    hidden = np.where(np.arange(60)[:, None] < 40, s, np.nan)
    for found in (calibrate(hidden, codes), calibrate(s, codes, (np.arange(60) < 40).astype(float))):
        np.testing.assert_allclose([found.slope, found.shift], [expected.slope, expected.shift], rtol=1e-6)


def test_without_a_score_of_some_class_scores_are_taken_at_face_value():
    codes = np.array([[1.0], [1.0], [-1.0]])
    found = calibrate(np.array([[0.2], [0.4], [np.nan]]), codes)
    h = 1e-6  # (1 + s)/2 at s = 0
    assert expit(found(np.array([[h]])) - found(np.array([[0.0]])))[0, 0] - 0.5 == pytest.approx(h / 2, rel=1e-3)


def test_the_common_mean_is_put_back():
    rng = stream(0, "mean")
    codes, w = np.sign(rng.normal(size=(30, 2))), rng.random(30) + 0.5
    mean = w @ codes / w.sum()
    without = np.stack([np.delete(w, i) @ np.delete(codes, i, 0) / np.delete(w, i).sum() for i in range(30)])
    np.testing.assert_allclose(with_common_mean(without, codes, w, mean, w.sum()), np.tile(mean, (30, 1)), atol=1e-12)


def test_rounding_is_not_amplified():
    codes = np.where(np.arange(40)[:, None] % 4 == 0, 1.0, -1.0)
    found = calibrate(0.3 + 1e-15 * codes, codes)
    assert found.slope[0] == 0
    assert 0.2 < 1 / (1 + np.exp(-found(np.full((1, 1), 0.3))[0, 0])) < 0.3  # the frequency
