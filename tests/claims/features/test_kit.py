"""What claims about random features share, and what all of them must say."""

import numpy as np
import pytest

from attlas import features
from attlas.claims import find, names
from attlas.claims.features import kit
from attlas.claims.features.bias_misaligned import Point


@pytest.mark.parametrize("claim", find([n for n in names() if n.startswith("features.")]), ids=lambda claim: claim.id)
def test_every_claim_has_words_and_points(claim):
    assert claim.caption.endswith(".")
    assert claim.series is not None
    with pytest.raises(LookupError):
        claim.finding({})
    for difference in claim.differs:
        assert difference.statement.endswith(".")
        with pytest.raises(LookupError):
            difference.ours({})


def test_points_are_named_by_what_differs():
    points = [Point(d=8), Point(d=8, bias=2.0), Point(d=12)]
    assert list(kit.labels(points).values()) == ["bias=1.0 d=8", "bias=2.0 d=8", "bias=1.0 d=12"]


def test_the_floor_of_linear_learners_holds_and_is_attained():
    """Least squares on n random labels leaves 1 - n/D of a linear function, averaged over its direction."""
    rng = np.random.default_rng(0)
    d, n = 6, 3
    left = []
    for _ in range(4000):
        beta, X = rng.standard_normal(d) / np.sqrt(d), rng.standard_normal((n, d))
        left.append(np.sum((beta - np.linalg.pinv(X) @ (X @ beta)) ** 2))
    assert np.mean(left) == pytest.approx(kit.linear_floor("query 1", n, d), rel=0.05)
    assert kit.linear_floor("keys 2", 3, 6) == pytest.approx(1 - 3 / 20)
    assert kit.linear_floor("correlation 1", 40, 6) == 0
    assert kit.linear_floor("keys 3", 1, 6) == 0


def test_permuted_labels_are_a_target_of_their_own():
    data = kit.with_control(features.TargetData(["keys 1"], 3, 4, 40, 30, 0), 0)
    assert sorted(data.Y[:, 1]) == pytest.approx(sorted(data.Y[:, 0]))
    assert not np.allclose(data.Y[:, 1], data.Y[:, 0])
    assert np.array_equal(data.Y_test[:, 1], data.Y_test[:, 0])


def test_a_delayed_curve_costs_as_much_more():
    sizes = np.geomspace(8, 2048, 20)
    curve = 1 / (1 + (sizes / 100) ** 2)
    before, after = (kit.cost_of(sizes, c, 0.2) for c in (curve, kit.delayed(sizes, curve[:, None], 1.5)[:, 0]))
    assert after / before == pytest.approx(1.5, rel=0.05)
