"""features.target-degree: the order of costs decides."""

import numpy as np
import pytest

from attlas.claims import Measurement, Outcome
from attlas.claims.features import target_degree as claim
from attlas.features import complexity, targets

from .worlds import SIZES, curve

LAW = [complexity(targets.named(name, 4, 0), 4) for name in claim.TARGETS]
DEGREE = np.array([float(sum(law.degrees)) for law in LAW])
B = np.array([law.B for law in LAW])
PLACES = np.array([3.0, *SIZES[1:]])


def world(costs, seeds=6):
    rng = np.random.default_rng(0)
    law = {"degree": DEGREE, "B": B, "rkhs": B, "variance": np.ones(12), "sizes": PLACES}
    return [
        Measurement(
            claim.Point(),
            seed,
            law | {"curves": np.stack([curve(c, rng, PLACES) for c in costs], axis=1), "permuted": 1 + 0.01 * seed},
        )
        for seed in range(seeds)
    ]


TRUE = 12 * 2.0 ** (DEGREE - 1) * (1 + 0.02 * np.arange(12))


def outcome(measurements):
    return claim.CLAIM.verdict(measurements).outcome


def test_the_order_of_costs_decides():
    assert outcome(world(TRUE)) is Outcome.SUPPORTED
    assert outcome(world(20 * B**0.3)) is not Outcome.SUPPORTED  # in the order of B: the degree has no lead
    assert outcome(world(400 / DEGREE)) is Outcome.REFUTED
    assert outcome(world(TRUE, seeds=2)) is Outcome.INCONCLUSIVE
    assert outcome(world(np.full(12, 1e9))) is Outcome.REFUTED  # nothing is learned


@pytest.mark.parametrize("mutation", claim.CLAIM.mutations, ids=lambda m: m.name)
def test_mutations_refute_it(mutation):
    found = claim.CLAIM.verdict(mutation.applied(world(TRUE), mutation.sizes[-1], claim.CLAIM.own_seed))
    assert found.outcome is Outcome.REFUTED


def test_curves_are_those_of_the_targets():
    result = claim.measure(claim.Point(d=2, keys=3, n=200), 0)
    assert result["curves"].shape == (len(result["sizes"]), len(claim.TARGETS))
    last = dict(zip(claim.TARGETS, result["curves"][-1], strict=True))
    assert last["query 1"] < last["query 2"] < last["query 4"]
    assert result["degree"].tolist() == DEGREE.tolist()


def test_its_words_and_points():
    words = claim.CLAIM.found(claim.CLAIM.verdict(world(TRUE)))
    assert "orders the samples it needs better than B(f)" in words
    unlearned = TRUE.copy()
    unlearned[1] = 1e9  # the second target is never learned
    names = [s.name for s in claim.series(world(unlearned)) if s.x_name == "B(f)"]
    assert names == [name for name in claim.TARGETS if name != "query 2"]
    figure = claim.draw(world(unlearned))
    assert [text.get_text() for text in figure.axes[0].texts[:3]] == ["1", "3", "4"]  # powers
