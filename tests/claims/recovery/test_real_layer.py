"""recovery.real-layer holds at small size; forgotten options, missed layers and a leaked truth refute it."""

import numpy as np

from attlas.claims import Measurement, Outcome
from attlas.claims.recovery.real_layer import CLAIM, Point, label, model

from .small import turned, worded


def layers(told=1e-13, untold=2.0, share=1.0):
    return [
        Measurement(p, seed, {"error": told if p.told else untold, "residual": 0.1, "converged": True})
        for p, count in CLAIM.tiers["quick"]
        for seed in range(int(count * share))
    ]


def test_layers_are_counted():
    turned(CLAIM, layers())
    assert CLAIM.verdict(layers(told=1e-3)).outcome is Outcome.REFUTED
    assert CLAIM.verdict(layers(untold=1e-12)).outcome is Outcome.REFUTED
    assert CLAIM.verdict(layers(share=0.3)).outcome is Outcome.INCONCLUSIVE
    assert CLAIM.verdict([m for m in layers() if m.point.told]).outcome is Outcome.INCONCLUSIVE
    assert CLAIM.draw(layers()).axes
    worded(CLAIM, layers(), "576 of 576 layers of PyTorch's shape", "in 16 settings")


def test_layers_are_found_if_their_options_are_told():
    every = Point(bias=True, causal=True, low_rank=True, scale=4.0)
    assert label(every) == "biases causal low rank d=6 H=2 n=120 s=4"
    assert 0 < CLAIM.measure(every, 0)["error"] < 1e-8
    assert CLAIM.measure(every.model_copy(update={"told": False}), 0)["error"] > 0.01
    assert all(CLAIM.cost(p).seconds > 0 for p, _ in CLAIM.tiers["full"])


def test_the_layers_have_the_variances_of_torch():
    """Xavier-uniform projections of a fused (3 d, d) matrix have variance 1/(2 d); so logits have 1/(2 sqrt(2)) s or so."""
    many = [model(Point(d=16, heads=4, scale=2.0), seed) for seed in range(40)]
    spread = np.mean([np.mean(one.Theta**2) for one in many])
    assert np.isclose(spread, 4 * 4 * (1 / 32) ** 2 / 4, rtol=0.1)  # s^2 d_head (1/(2 d))^2/d_head
    assert all(one.rank == 4 for one in many[:3])
