"""features.kernel-limit: the slope of the error decides, and an error that does not vanish."""

import pytest

from attlas import features
from attlas.claims import Measurement, Outcome
from attlas.claims.features import kernel_limit as claim

from ..broken import verdict_of

KERNEL = [claim.Point(heads=M, d=4, keys=3, bias=b) for M in (50, 200, 800) for b in (0.0, 1.0)]


def test_heads_approach_their_kernel():
    verdict = verdict_of(claim.CLAIM, KERNEL, seeds=30)
    assert verdict.outcome is not Outcome.REFUTED
    assert verdict.numbers["relu bias 0 d=4 keys=3 slope"] == pytest.approx(-0.5, abs=0.1)


@pytest.mark.parametrize("wrong", [lambda K: 1.05 * K, lambda K: K + 0.02])
def test_a_wrong_kernel_refutes_it(monkeypatch, wrong):
    exact = features.attention_kernel
    monkeypatch.setattr(features, "attention_kernel", lambda *a, **o: wrong(exact(*a, **o)), raising=False)
    assert verdict_of(claim.CLAIM, KERNEL, seeds=30).outcome is Outcome.REFUTED


def test_its_words_and_points():
    assert "-0.510 to -0.490" in claim.finding({"a slope": -0.49, "b slope": -0.51, "b slope ±": 0.1})
    points = [claim.Point(heads=M, d=3, keys=2, activation=a) for M in (10, 20) for a in ("relu", "exp")]
    measured = [Measurement(p, 0, claim.measure(p, 0)) for p in points]
    found = claim.series(measured)
    assert [(s.settings["activation"], s.x) for s in found] == [("relu", (10, 20)), ("exp", (10, 20))]
    assert len(claim.draw(measured).axes) == 1
