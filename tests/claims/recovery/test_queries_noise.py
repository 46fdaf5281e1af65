"""recovery.queries-noise holds at small size; another power, another factor or repeats that do not help refute it."""

import numpy as np
import pytest

from attlas.claims import Measurement, Outcome
from attlas.claims.recovery.queries_noise import CLAIM, Point, first_order
from attlas.numerics import stream
from attlas.recovery import Layer, learn_from_queries, planted_layer

from .small import worded

POINTS = [*(Point(noise=10.0**-e) for e in (6, 5, 4)), Point(noise=1e-4, repeats=4)]


def test_it_can_be_measured_and_drawn():
    points = [point.model_copy(update={"d": 5}) for point in POINTS]
    results = [Measurement(p, s, CLAIM.measure(p, s)) for p in points for s in range(4)]
    series = CLAIM.series(results)[0]
    assert series.x == (-6, -5, -4)
    assert np.allclose(np.diff(series.mean), 1, atol=0.01)  # the same noise but for its size
    assert np.allclose(series.mean, series.theory, atol=0.2)
    assert CLAIM.draw(results).axes
    assert all(CLAIM.cost(p).seconds > 0 for p in points)


@pytest.mark.parametrize(("noise", "scale"), [(1e-6, 3.0), (1e-3, 30.0)])  # ordinary steps, and shortened ones
def test_first_order_theory_is_what_fresh_noise_does(noise, scale):
    truth = Layer(*planted_layer(1, 5, stream(3, "teacher"), scale, d_out=4))
    squares = []
    for seed in range(150):
        rng = np.random.default_rng(seed)

        def oracle(X, rng=rng):
            answer = truth(X[None])[0, -1]
            return answer + noise * np.sqrt(np.mean(answer**2)) * rng.standard_normal(answer.shape)

        found = learn_from_queries(oracle, 5, noise=noise)
        squares.append(np.sum((found.Theta - truth.Theta) ** 2) / np.sum(truth.Theta**2))
    error = np.std(squares) / np.sqrt(len(squares))
    assert np.mean(squares) == pytest.approx(first_order(truth, noise) ** 2, abs=4 * error)


def world(power=1.0, factor=1.0, repeats=-0.5, seeds=60):
    """Errors of first-order theory with the scatter of a pilot: by head, and between one and several repeats."""
    rng = np.random.default_rng(0)
    found = []
    for seed in range(seeds):
        own = 4 * np.exp(rng.normal(0, 0.3))
        luck = np.exp(rng.normal(0, 0.08, 2))
        for p in POINTS:
            error = own * factor * 1e-5 * (p.noise / 1e-5) ** power * p.repeats**repeats * luck[int(p.repeats > 1)]
            found.append(
                Measurement(p, seed, {"error": error, "expected": own * p.noise / np.sqrt(p.repeats), "queries": 110.0})
            )
    return found


def test_theory_is_supported_in_its_words():
    assert CLAIM.verdict(world()).outcome is Outcome.SUPPORTED
    worded(CLAIM, world(), "times the noise of the answers")


@pytest.mark.parametrize("wrong", [{"power": 0.9}, {"factor": 1.2}, {"factor": 0.8}, {"factor": 0.0}, {"repeats": 0.0}])
def test_other_worlds_are_refuted(wrong):
    assert CLAIM.verdict(world(**wrong)).outcome is Outcome.REFUTED


def test_few_decide_nothing():
    assert CLAIM.verdict(world(seeds=4)).outcome is Outcome.INCONCLUSIVE
    assert CLAIM.verdict(world()[:2]).outcome is Outcome.INCONCLUSIVE  # two levels of noise, and no repeats
