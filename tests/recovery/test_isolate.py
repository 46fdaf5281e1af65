"""Many heads from queries: saturated and isolated."""

import numpy as np
import pytest

from attlas.errors import ConvergenceError
from attlas.numerics import Status, stream
from attlas.recovery import Layer, learn_from_queries, parameter_error, planted_layer, same_function

from .tasks import oracle_of, planted


@pytest.mark.parametrize(("heads", "d", "d_out"), [(1, 2, 1), (3, 6, 1), (8, 8, 1), (4, 5, 3)])
@pytest.mark.parametrize("seed", [0, 1])
def test_isolated_heads(heads, d, d_out, seed):
    Theta, W = planted(heads, d, seed, d_out)
    found = learn_from_queries(oracle_of(Theta, W), d, heads=None, seed=seed)
    assert found.layer.heads == heads
    assert 0 < parameter_error(found, Layer(Theta, W)) < 1e-8
    assert found.certificate.met
    if d >= 6:
        assert found.certificate.queries < 4 * heads * d**2 - 2 * heads + 1


@pytest.mark.parametrize("scale", [0.1, 10.0])
def test_isolation_does_not_mind_the_size_of_theta(scale):
    Theta, W = planted(3, 5)
    found = learn_from_queries(oracle_of(scale * Theta, W), 5, heads=None, method="isolate")
    assert parameter_error(found, Layer(scale * Theta, W)) < 1e-6


def test_the_canonical_form_comes_out_by_itself():
    Theta, W = planted(3, 5)
    silent = W.copy()
    silent[1] = 0
    equal = Theta.copy()
    equal[2] = Theta[0]
    pair = Theta.copy(), W.copy()
    pair[0][1], pair[1][1] = Theta[0], -W[0]
    uniform = Theta.copy()
    uniform[1] = 0
    for parameters, heads in (((Theta, silent), 2), ((equal, W), 2), (pair, 1), ((uniform, W), 3)):
        found = learn_from_queries(oracle_of(*parameters), 5, heads=None)
        assert found.layer.heads == heads
        assert same_function(found, Layer(*parameters), tol=1e-8)


@pytest.mark.parametrize("seed", range(8))
def test_a_head_that_looks_at_all_alike_does_not_confuse_the_signs(seed):
    Theta, W = planted(3, 4, seed)
    Theta[0] = 0
    found = learn_from_queries(oracle_of(Theta, W), 4, heads=None, method="isolate", seed=seed)
    assert found.certificate.met
    assert same_function(found, Layer(Theta, W), tol=1e-7)


@pytest.mark.parametrize(("noise", "told"), [(1e-8, 1e-8), (1e-6, 1e-6), (1e-5, 1e-5), (3e-9, 0.0)])
def test_isolation_under_noise_is_polished(noise, told):
    """Off by a thousand times the noise after isolation, by about once the noise after the fit; also if nobody told."""
    Theta, W = planted(4, 8, d_out=1)
    found = learn_from_queries(oracle_of(Theta, W, noise), 8, heads=None, method="isolate", noise=told)
    assert found.layer.heads == 4
    assert 0.1 * noise < parameter_error(found, Layer(Theta, W)) < 5 * noise
    assert found.certificate.met


def test_a_single_precision_oracle_is_noisy_and_no_trap():
    Theta, W = planted(3, 6, d_out=2)
    exact = oracle_of(Theta, W)
    found = learn_from_queries(lambda X: exact(X).astype(np.float32), 6, heads=None)
    assert found.certificate.met
    assert parameter_error(found, Layer(Theta, W)) < 1e-6


def test_answers_that_are_not_those_of_heads_end():
    """A curved function has no steps; the search for them is bounded, and says that it found nothing."""
    asked = []

    def curved(X):
        asked.append(1)
        return np.sin(np.arange(1, 4) @ X[-1]) + np.abs(X).sum()

    found = learn_from_queries(curved, 3, heads=None, method="isolate")
    assert len(asked) < 20_000
    assert found.status is Status.INACCURATE
    assert "no attempt separated the heads" in found.certificate.reason
    with pytest.raises(ConvergenceError, match="no attempt separated the heads") as error:
        learn_from_queries(curved, 3, heads=None, method="isolate", throw=True)
    np.testing.assert_array_equal(error.value.solution.W, found.W)  # what single tokens tell is the best guess


def test_noise_that_nobody_told_is_measured_and_ends_in_a_certificate():
    Theta, W = planted_layer(2, 3, 4, d_out=1)
    exact, rng = Layer(Theta, W), stream(0, "noise")
    found = learn_from_queries(lambda X: exact(X[None])[0, -1] * (1 + 1e-5 * rng.standard_normal()), 3, heads=None)
    assert found.layer.heads == 2
    assert found.certificate.met
    assert parameter_error(found, exact) < 2e-4


@pytest.mark.parametrize("scale", [0.01, 0.1])
def test_flat_heads_are_saturated_by_longer_tokens(scale):
    Theta, W = planted_layer(3, 5, 0, scale)
    found = learn_from_queries(oracle_of(Theta, W), 5, heads=None, method="isolate")
    assert parameter_error(found, Layer(Theta, W)) < 1e-9
