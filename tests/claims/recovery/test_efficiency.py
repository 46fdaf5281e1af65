"""recovery.efficiency holds at small size; wrong bounds, worse learners, other exponents and leaks refute it."""

import numpy as np
import pytest

from attlas.claims import Measurement, Outcome
from attlas.claims.recovery.efficiency import CLAIM, Point, _in_order, model
from attlas.numerics import stream
from attlas.recovery import Layer

from .small import turned, worded


def drawn(ratio=1.0, slope=0.0, share=1.0):
    """Ratios that scatter like those of fits, about 1 + slope/n."""
    rng = stream(0, "efficiency")
    return [
        Measurement(
            p,
            seed,
            {
                "parameters": ratio * (1 + slope / p.n) * rng.gamma(25, 1 / 25),
                "outputs": ratio * (1 + slope / p.n) * rng.gamma(40, 1 / 40),
                "known": 0.55 if p.kind == "low rank" else 1.0,
                "bound": 0.1 * p.noise / np.sqrt(p.n),
                "converged": True,
            },
        )
        for p, count in CLAIM.tiers["quick"]
        for seed in range(int(count * share))
    ]


def test_errors_at_the_bound_support_it_and_others_do_not():
    turned(CLAIM, drawn())
    assert CLAIM.verdict(drawn(slope=3.0)).outcome is Outcome.SUPPORTED  # what small n adds is extrapolated away
    assert CLAIM.verdict(drawn(ratio=1.25**2)).outcome is Outcome.REFUTED
    assert CLAIM.verdict(drawn(ratio=0.75)).outcome is Outcome.REFUTED
    assert CLAIM.verdict(drawn(share=0.1)).outcome is Outcome.INCONCLUSIVE
    assert CLAIM.verdict([m for m in drawn() if m.point.n == 60]).outcome is Outcome.INCONCLUSIVE
    assert CLAIM.draw(drawn()).axes
    worded(CLAIM, drawn(), "times the least that noise allows", "to the power -0.50")


@pytest.mark.parametrize("kind", ["full", "biases", "low rank"])
def test_fits_from_random_starts_err_as_the_bound_says(kind):
    d = 8 if kind == "low rank" else 5
    results = [CLAIM.measure(Point(n=80, kind=kind, d=d), seed) for seed in range(12)]
    assert all(result["converged"] for result in results)
    for name in ("parameters", "outputs"):
        ratios = [result[name] for result in results]
        assert np.mean(ratios) == pytest.approx(1, abs=4 * np.std(ratios) / np.sqrt(12) + 0.05)
    unknowns = 2 * (2 * 2 * 8 - 4 + 2 * 8) / (2 * 8 * (8 + 2))  # Theta of rank 2, W of two columns; of all numbers
    assert results[0]["known"] == pytest.approx(unknowns if kind == "low rank" else 1)


def test_heads_are_compared_in_the_order_of_the_truth():
    truth = model(Point(n=1, kind="biases"), 0)
    turned_round = Layer(truth.Theta[::-1], truth.W[::-1], key_bias=truth.key_bias[::-1], output_bias=truth.output_bias)
    again = _in_order(turned_round, truth)
    assert np.array_equal(again.stacked(), truth.stacked())
    assert np.array_equal(again.W, truth.W)


def test_costs_are_told():
    assert all(CLAIM.cost(p).seconds > 0 for p, _ in CLAIM.tiers["full"])
    assert len(set(CLAIM.tiers["full"].points)) == len(CLAIM.tiers["full"].points)
