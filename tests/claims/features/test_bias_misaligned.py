"""features.bias-misaligned: only an aligned correlation may gain."""

import numpy as np
import pytest

from attlas.claims import Measurement, Outcome
from attlas.claims.features import bias_misaligned as claim


def misaligned(aligned=0.5, rotated=0.0, loss=0.4):
    """Results as if the bias changed the logarithms of costs and of the last error by these amounts."""
    rng = np.random.default_rng(0)
    rows = []
    for d in (8, 12):
        for seed in range(6):
            plain, biased = np.full((3, 3), 0.3), np.full((3, 3), 0.3)
            biased[-1, 2] *= np.exp(loss + rng.normal(0, 0.02))
            gains = np.array([aligned, rotated, 0.0]) + rng.normal(0, 0.05, 3)
            result = {"plain": plain, "biased": biased, "sizes": np.array([16.0, 32.0, 64.0])}
            result |= {"plain_cost": np.full(3, 50.0), "biased_cost": 50 / np.exp(gains)}
            rows.append(Measurement(claim.Point(d=d), seed, result))
    return rows


def test_only_an_aligned_correlation_may_gain():
    judge = claim.judge
    assert judge(misaligned()).outcome is Outcome.SUPPORTED
    assert judge(misaligned(rotated=0.3)).outcome is Outcome.REFUTED
    assert judge(misaligned(aligned=0.0)).outcome is Outcome.INCONCLUSIVE
    assert judge(misaligned(aligned=-0.5)).outcome is Outcome.REFUTED
    assert judge(misaligned(loss=-0.3)).outcome is Outcome.REFUTED
    blurred = misaligned()
    for m in blurred:
        m.result["biased_cost"][1] *= np.exp(0.6 * (-1) ** m.seed)
    assert judge(blurred).outcome is Outcome.INCONCLUSIVE  # no gain was seen, but none could have been
    assert judge(misaligned(loss=0.0)).outcome is Outcome.INCONCLUSIVE
    censored = misaligned()
    for m in censored:
        m.result["plain_cost"][1] = np.inf
    assert judge(censored).outcome is Outcome.INCONCLUSIVE
    assert len(claim.draw(misaligned()).axes) == 3


def test_its_words_and_points():
    numbers = {"d=8 log gain, aligned": 9.0, "d=12 log gain, aligned": np.log(1.5)}
    numbers |= {"d=12 log gain, rotated": 0.0, "d=12 log loss on key averages": np.log(1.2)}
    assert all(part in claim.finding(numbers) for part in ("by 1.50", "by 1.00", "by 1.20"))  # at the last point
    found = claim.series(misaligned())
    assert len(found) == 2 * 3 * 2  # learners, targets, dimensions
    (one,) = [s for s in found if (s.name, *s.settings.values()) == ("biased", "keys 2", 12, 16, 1.0)]
    assert one.x == (16, 32, 64)
    assert one.mean[-1] == pytest.approx(0.3 * np.exp(0.4), rel=0.05)
