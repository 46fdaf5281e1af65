import numpy as np
import pytest

from attlas.context import contexts, depth, gaussian_prior
from attlas.errors import InputError
from attlas.numerics import stream

mp = pytest.importorskip("mpmath")

TABLE = {
    (2, 0.1): (0.2852825230, 0.2248346846, 0.1913455775, 0.1844288770),
    (1, 0.25): (0.6961538462, 0.6604308390, 0.6431105931, 0.6403882032),
    (0.5, 0.5): (1.2142857143, 1.2083333333, 1.2071428571, 1.2071067812),
}


@pytest.mark.parametrize(("alpha", "noise"), TABLE)
def test_table(alpha, noise):
    found = [depth.depth_error(layers, alpha, noise) for layers in (2, 3, 5, 60)]
    assert found == pytest.approx(TABLE[alpha, noise], abs=6e-11)
    assert found[-1] == pytest.approx(gaussian_prior.ridge_in_context(alpha, noise).value, abs=1e-12)
    q = (1 + noise) / alpha
    assert depth.depth_error(1, alpha, noise) == pytest.approx(noise + q / (1 + q), abs=1e-14)


@pytest.mark.parametrize(("alpha", "noise", "layers"), [(2, 0.1, 4), (0.4, 0.3, 3)])
def test_by_moments(alpha, noise, layers):
    """The same projection from the moments of the Marchenko-Pastur law (Narayana numbers), in 40 digits."""
    with mp.workdps(40):
        ratio, c = 1 / mp.mpf(alpha), mp.mpf(noise) / mp.mpf(alpha)

        def moment(k):
            return sum(mp.binomial(k, r) * mp.binomial(k - 1, r) * ratio**r / (r + 1) for r in range(k))

        gram = mp.matrix(layers, layers)
        right = mp.matrix(layers, 1)
        for i in range(layers):
            right[i] = moment(i + 1)
            for j in range(layers):
                gram[i, j] = moment(i + j + 2) + c * moment(i + j + 1)
        gain = (right.T * mp.lu_solve(gram, right))[0]
        expected = float(noise + 1 - gain)
    assert depth.depth_error(layers, alpha, noise) == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize(("alpha", "noise", "seed"), [(2, 0.1, 0), (1, 0.25, 1)])
def test_drawn_contexts(alpha, noise, seed):
    d, count = 120, 150
    rng = stream(seed, "test")
    w = rng.standard_normal((count, d))
    X, y = contexts.draw_contexts(w, alpha * d, noise, rng)
    found = depth.DeepLinear(6, alpha, noise).estimate(X, y)
    for layers, estimate in enumerate(found, 1):
        errors = contexts.task_errors(estimate, w, noise)
        theory = depth.depth_error(layers, alpha, noise)
        assert abs(errors.mean() - theory) < 4 * errors.std() / np.sqrt(count) + 0.3 / d


def test_many_layers_are_ridge_regression():
    d = 30
    rng = stream(0, "many")
    X, y = contexts.draw_contexts(rng.standard_normal((4, d)), 90, 0.3, rng)
    deep = depth.DeepLinear(80, 3.0, 0.3).estimate(X, y)[-1]
    assert deep == pytest.approx(gaussian_prior.ridge_estimate(X, y, 0.3), abs=1e-3)


def test_bad_input():
    for arguments in ((0, 2, 0.1), (1, 0, 0.1), (1, 2, -1)):
        with pytest.raises(InputError):
            depth.depth_error(*arguments)
        with pytest.raises(InputError):
            depth.DeepLinear(*arguments)


@pytest.mark.parametrize("alpha", [0.01, 1e4])
def test_very_deep_networks_neither_overflow_nor_underflow(alpha):
    assert depth.depth_error(400, alpha, 0.1) == pytest.approx(
        gaussian_prior.ridge_in_context(alpha, 0.1).value, rel=1e-12
    )
