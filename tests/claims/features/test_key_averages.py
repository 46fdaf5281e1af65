"""features.key-averages: attention must be ahead at every size."""

import numpy as np
import pytest

from attlas import features
from attlas.claims import Measurement, Outcome
from attlas.claims.features import key_averages as claim

from ..broken import verdict_of


def test_attention_beats_the_network_on_key_averages():
    points = [claim.Point(heads=80, d=6, keys=6, n=288)]
    assert verdict_of(claim.CLAIM, points, seeds=14).outcome is Outcome.SUPPORTED


def test_the_same_model_twice_does_not(monkeypatch):
    monkeypatch.setattr(
        features,
        "RandomMLPFeatures",
        lambda n_heads, random_state: features.RandomAttentionFeatures(n_heads, random_state=random_state + 100),
        raising=False,
    )
    points = [claim.Point(heads=60, d=4, keys=6, n=256)]
    assert verdict_of(claim.CLAIM, points, seeds=5).outcome is not Outcome.SUPPORTED


def test_points_too_small_for_their_curve_are_refused():
    with pytest.raises(ValueError, match="2 d"):
        claim.Point(d=16, n=64)


def test_its_words_and_points():
    assert "at least 0.012 of the variance in all 2" in claim.finding({"a gap": 0.012, "b gap": 0.3, "b gap ±": 0.001})
    point = claim.Point(heads=20, d=4, keys=3, n=64)
    measured = [Measurement(point, seed, claim.measure(point, seed)) for seed in range(2)]
    found = {(s.name, s.settings["target"]): s for s in claim.series(measured)}
    assert set(found) == {(name, target) for name in ("heads", "neurons") for target in ("keys 1", "keys 2")}
    one = found["neurons", "keys 2"]
    assert one.settings == {"target": "keys 2", "d": 4, "keys": 3, "bias": 0.0}
    assert one.mean[0] == pytest.approx(np.mean([m.result["network"][0, 1] for m in measured]))
    assert len(claim.draw(measured).axes) == 2
