"""recovery.queries-noise holds at small size; another power of the noise refutes it."""

import numpy as np

from attlas.claims import Measurement, Outcome
from attlas.claims.recovery.queries_noise import CLAIM, Point

from .small import holds, worded


def test_it_holds_at_small_size():
    results = holds(CLAIM, [Point(noise=10.0**-e, d=5) for e in (6, 5, 4)], 5)
    (series,) = CLAIM.series(results)
    assert series.x == (-6, -5, -4)
    assert np.allclose(np.diff(series.mean), 1, atol=0.1)
    worded(CLAIM, results, "times the noise of the answers")


def noisy(power):
    rng = np.random.default_rng(0)
    return [
        Measurement(Point(noise=s), seed, {"error": 3 * s**power * np.exp(rng.normal(0, 0.05))})
        for s in (1e-6, 1e-5, 1e-4)
        for seed in range(4)
    ]


def test_noise_with_another_power_refutes():
    assert CLAIM.verdict(noisy(1.0)).outcome is Outcome.SUPPORTED
    assert CLAIM.verdict(noisy(0.5)).outcome is Outcome.REFUTED
    assert CLAIM.verdict(noisy(1.0)[:4]).outcome is Outcome.INCONCLUSIVE  # one level of noise
