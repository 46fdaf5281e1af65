"""features.target-degree: costs must be the predicted ones, in size and in order."""

import numpy as np
import pytest

from attlas import lab
from attlas.claims import Measurement, Outcome
from attlas.claims.features import target_degree as claim
from attlas.features import complexity, sample_cost, targets

from .worlds import SIZES, curve

LAW = [complexity(targets.named(name, 4, 0), 4) for name in claim.TARGETS]
DEGREE = np.array([float(sum(law.degrees)) for law in LAW])
B = np.array([law.B for law in LAW])
PLACES = np.array([3.0, *SIZES[1:]])


TRUE = 12 * 2.0 ** (DEGREE - 1) * np.exp(0.15 * np.sin(np.arange(12)))  # to a half of the variance
PREDICTED = 3 * TRUE  # to a tenth, on the curves of this world


def world(costs=TRUE, predicted=PREDICTED, seeds=8):
    rng = np.random.default_rng(0)
    law = {"degree": DEGREE, "B": B, "rkhs": B, "variance": np.ones(12), "sizes": PLACES, "costs": predicted}
    return [
        Measurement(
            claim.Point(),
            seed,
            law | {"curves": np.stack([curve(c, rng, PLACES) for c in costs], axis=1), "permuted": 1 + 0.01 * seed},
        )
        for seed in range(seeds)
    ]


def outcome(measurements):
    return claim.CLAIM.verdict(measurements).outcome


def test_costs_and_their_order_are_compared_with_the_predicted_ones():
    assert outcome(world()) is Outcome.SUPPORTED
    assert outcome(world(predicted=1.2 * PREDICTED)) is Outcome.REFUTED
    assert outcome(world(predicted=PREDICTED * np.exp(0.3 * (-1) ** np.arange(12)))) is Outcome.REFUTED
    assert outcome(world(20 * B**0.3)) is Outcome.REFUTED
    assert outcome(world(seeds=2)) is Outcome.INCONCLUSIVE
    assert outcome(world(np.full(12, 1e9))) is Outcome.REFUTED  # nothing is learned


def test_costs_at_once_are_those_of_single_curves():
    runs = np.stack([m.result["curves"] for m in world()])
    for level in (0.1, 0.5, 1e-9):
        expected = [sample_cost(PLACES, one, level) for one in runs.mean(0).T]
        assert claim._costs(PLACES, runs, level) == pytest.approx(expected)


@pytest.mark.parametrize("mutation", claim.CLAIM.mutations, ids=lambda m: m.name)
def test_mutations_refute_it(mutation):
    found = claim.CLAIM.verdict(mutation.applied(world(), mutation.sizes[-1], claim.CLAIM.own_seed))
    assert found.outcome is Outcome.REFUTED


def test_curves_are_those_of_the_targets():
    result = claim.measure(claim.Point(d=3, keys=3, n=200), 0)
    assert result["curves"].shape == (len(result["sizes"]), len(claim.TARGETS))
    last = dict(zip(claim.TARGETS, result["curves"][-1], strict=True))
    assert last["query 1"] < last["query 2"] < last["query 4"]
    assert result["degree"].tolist() == DEGREE.tolist()
    assert result["costs"].shape == (len(claim.TARGETS),)


def test_its_words_and_points():
    words = claim.CLAIM.found(claim.CLAIM.verdict(world()))
    assert "rank correlation with the predicted cost is 1.000" in words
    unlearned = TRUE.copy()
    unlearned[1] = 1e9  # the second target is never learned
    names = [s.name for s in claim.series(world(unlearned)) if s.x_name == "B(f)"]
    assert names == [name for name in claim.TARGETS if name != "query 2"]
    figure = claim.draw(world(unlearned))
    assert [text.get_text() for text in figure.axes[0].texts[:3]] == ["1", "3", "4"]  # powers


def test_an_order_that_no_draw_changes_has_no_interval_of_rounding(tmp_path):
    (entry,) = lab.verdicts(["features.target-degree"], "full", store=tmp_path / "none.db", shipped=True)
    said = entry.claim.found(entry.verdict)
    assert "with the degree 0.977, with B(f)" in said
    assert "e-" not in said
