"""What claims about random features share, and what all of them must say."""

import pytest

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
