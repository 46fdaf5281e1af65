"""features.activations: relu and softmax on the same heads and data."""

import numpy as np

from attlas.claims import Measurement, Outcome
from attlas.claims.features import activations as claim


def test_activations_are_compared_on_the_same_data():
    point = claim.Point(heads=40, d=4, keys=4, n=128)
    results = [Measurement(point, s, claim.measure(point, s)) for s in range(4)]
    found = claim.judge(results)
    assert found.numbers["d=4 correlation 1 softmax"] > 0.9  # softmax does not learn it
    assert found.numbers["d=4 correlation 1 relu"] < 0.5
    assert len(claim.draw(results).axes) == 4
    swapped = [
        Measurement(point, m.seed, m.result | {"relu": m.result["softmax"], "softmax": m.result["relu"]})
        for m in results
    ]
    assert claim.judge(swapped).outcome is Outcome.REFUTED


def test_its_words_and_points():
    assert "lower by up to 0.98" in claim.finding({"a relu - softmax": -0.98, "b relu - softmax": 0.001})
    point = claim.Point(heads=40, d=4, keys=4, n=128)
    curves = {name: np.full((2, len(claim.TARGETS)), 0.1 * i) for i, name in enumerate(claim.ACTIVATIONS)}
    found = claim.series([Measurement(point, 0, {"sizes": np.array([64.0, 128.0]), **curves})])
    assert len(found) == 3 * len(claim.TARGETS)
    assert found[-1].mean == (0.2, 0.2)
    assert found[-1].settings == {"target": "weighted 1", "heads": 40, "d": 4, "keys": 4, "bias": 0.0}
