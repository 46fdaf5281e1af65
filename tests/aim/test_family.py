"""The scalar problem behind training, against matrices."""

import numpy as np
import pytest

from attlas import aim
from attlas.errors import InputError
from attlas.numerics import stream


@pytest.mark.parametrize(
    ("delta", "theta", "rho"), [(0.5, 0.3, 0.5), (1.0, 0.8, 0.2), (2.0, 0.1, 1.5), (0.01, 0.1, 0.5)]
)
def test_integrals_against_a_matrix(delta, theta, rho):
    """R of dimension 800 drawn and shrunk, four times: error, rank, trace and overlap to four standard errors and 3/d."""
    d = 800
    at = aim.family(delta, theta, rho)
    drawn = []
    for seed in range(4):
        S = aim.teacher(d, rho, stream(seed, "teacher"))
        G = stream(seed, "noise").standard_normal((d, d)) / np.sqrt(d)
        values, vectors = np.linalg.eigh(S + np.sqrt(delta / 2) * (G + G.T))
        shrunk = np.maximum(values - theta, 0)
        overlaps = np.einsum("ij,ij->j", vectors, S @ vectors)
        error = (np.sum(shrunk**2) - 2 * shrunk @ overlaps + np.sum(S * S)) / d
        gaps = values[:, None] - values[None, :] + np.eye(d)
        ratio = (shrunk[:, None] - shrunk[None, :]) / gaps
        drawn.append([error, (shrunk > 0).mean(), shrunk.mean(), shrunk @ overlaps / d, ratio.sum() / d**2])
    mean, spread = np.mean(drawn, 0), np.std(drawn, axis=0, ddof=1) / 2
    D = float(at.A - 2 * at.decay / theta)
    expected = [float(at.mse), float(at.rank), float(at.trace), float(at.overlap), D]
    assert np.all(np.abs(mean - expected) < 4 * spread + 3 / d)


def test_the_map_back():
    found = aim.trained(aim.Softmax(2), 0.1, 0.5, 0.03)
    back = aim.family([found.delta], [found.theta], 0.5)
    assert (back.A[0], back.decay[0], back.mse[0]) == pytest.approx((0.4, 0.03, found.value), rel=1e-10)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: aim.family([0.1, 0.2], [0.1, 0.2, 0.3], 0.5), "do not combine"),
        (lambda: aim.family(1e15, 0.0, 0.5), "delta must be at most"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call()
