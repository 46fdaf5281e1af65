"""What the tests of these claims share: a claim at small size, its words, and what its mutations do."""

import pytest

from attlas.claims import Measurement, Outcome
from attlas.claims.power import detect


def holds(claim, points, seeds):
    """Measure a claim, see that it is supported and can be drawn; return the results."""
    results = [Measurement(p, s, claim.measure(p, s)) for p in points for s in range(seeds)]
    assert claim.verdict(results).outcome is Outcome.SUPPORTED
    assert claim.draw(results).axes
    assert all(claim.cost(p).seconds > 0 for p in points)
    return results


def worded(claim, results, *parts):
    """See that a claim has a caption, and a finding and differences made of its own numbers and of nothing else."""
    numbers = claim.judge(results).numbers
    assert claim.caption.endswith(".")
    sentences = [claim.finding, *(difference.ours for difference in claim.differs)]
    for sentence in sentences:
        assert sentence(numbers)
        with pytest.raises(LookupError):
            sentence({})
    for part in parts:
        assert any(part in sentence(numbers) for sentence in sentences), part


def turned(claim, results):
    """See that results which support a claim are refuted by every mutation of measurements that it must refute."""
    assert claim.verdict(results).outcome is Outcome.SUPPORTED
    required = [found for found in detect(claim, results) if found.required]
    assert required
    for found in required:
        assert found.outcome is Outcome.REFUTED, found.name
