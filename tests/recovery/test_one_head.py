"""One head from queries, in closed form."""

import numpy as np
import pytest

from attlas.numerics import stream
from attlas.recovery import learn_from_queries, planted_layer

from .tasks import oracle_of, planted


@pytest.mark.parametrize("d", [1, 3, 8, 20])
@pytest.mark.parametrize("d_out", [1, None])
def test_one_head_from_d_squared_plus_d_queries(d, d_out):
    Theta, W = planted(1, d, d_out=d_out)
    found = learn_from_queries(oracle_of(Theta, W), d)
    assert found.certificate.queries == d * d + d
    assert np.abs(found.Theta - Theta).max() < 1e-12
    assert np.abs(found.W - W).max() < 1e-14
    assert found.certificate.met


def test_steep_heads_cost_more_queries_but_are_found():
    Theta, W = planted_layer(1, 6, stream(0, "teacher"), 300.0)
    found = learn_from_queries(oracle_of(Theta, W), 6)
    assert found.certificate.queries > 42
    np.testing.assert_allclose(found.Theta, Theta, rtol=1e-6, atol=1e-6 * np.abs(Theta).max())


@pytest.mark.parametrize(("d", "rank"), [(10, 1), (20, 2)])
def test_low_rank_needs_fewer(d, rank):
    rng = stream(1, "teacher")
    Theta = rng.standard_normal((d, rank)) @ rng.standard_normal((rank, d)) / d
    W = rng.standard_normal((d, d)) / np.sqrt(d)
    found = learn_from_queries(oracle_of(Theta[None], W[None]), d, rank=rank)
    assert found.certificate.queries == 2 * rank * d + d
    assert np.abs(found.Theta - Theta).max() < 1e-9


def test_noise_costs_in_proportion_and_repeats_help():
    Theta, W = planted(1, 6)
    size = np.linalg.norm(Theta)

    def error(noise, repeats=1):
        found = [
            learn_from_queries(oracle_of(Theta, W, noise, seed), 6, noise=noise, repeats=repeats) for seed in range(4)
        ]
        assert all(f.certificate.met for f in found)
        return np.mean([np.linalg.norm(f.Theta - Theta) / size for f in found])

    assert error(1e-4) == pytest.approx(100 * error(1e-6), rel=0.3)
    assert error(1e-4, repeats=9) == pytest.approx(error(1e-4) / 3, rel=0.5)
