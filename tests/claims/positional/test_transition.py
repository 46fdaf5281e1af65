import numpy as np
import pytest

from attlas.claims import Outcome
from attlas.claims.positional import transition

from .made import made, turned

POINTS = tuple(
    transition.Point(mixture=o, encoding=c, d=d) for o, c in ((0.3, 3.0), (0.5, 3.0)) for d in (60, 100, 160, 250)
)


def result(moved=1.0, fall=1.0, scatter=0.5, lower=0.0, loss=1.0, kept=0.98, least=0.8):
    def of(point, seed, rng):
        switch = moved + 0.5 / point.d + scatter * rng.standard_normal() / np.sqrt(point.d)
        return {
            "switch": switch, "fall": fall + 0.1 * rng.standard_normal(), "steps": np.array([1.0, switch]),
            "gaps": np.array([0.55 * (1 - switch), 0.0]), "alpha_c": 2.5, "slope": 0.55,
            "kept": np.full(4, rng.random() < kept), "lower": lower, "least": least,
            "loss": loss + 0.02 * rng.standard_normal(), "converged": True,
        }  # fmt: skip

    return of


@pytest.mark.parametrize(
    ("options", "outcome"),
    [({}, Outcome.SUPPORTED), ({"moved": 1.1}, Outcome.REFUTED), ({"fall": 0.6}, Outcome.REFUTED),
     ({"lower": 0.1}, Outcome.REFUTED), ({"loss": 0.9}, Outcome.REFUTED), ({"kept": 0.7}, Outcome.REFUTED),
     ({"least": 0.1}, Outcome.REFUTED), ({"scatter": 5}, Outcome.INCONCLUSIVE)],
)  # fmt: skip
def test_judge(options, outcome):
    assert transition.CLAIM.verdict(made(POINTS, 60, result(**options))).outcome is outcome


def test_what_is_wrong_is_refuted():
    assert set(turned(transition.CLAIM, made(POINTS, 80, result())).values()) == {Outcome.REFUTED}


def test_measure():
    """Position is better at the start of the data, and where the losses cross scatters about the prediction."""
    found = [transition.measure(transition.Point(d=100), seed) for seed in range(4)]
    assert all(r["converged"] for r in found)
    assert np.mean([r["loss"] for r in found]) == pytest.approx(1, abs=0.05)
    assert min(r["least"] for r in found) > 0.6
    assert 0.8 < np.mean([r["switch"] for r in found]) < 1.2
    assert found[0]["alpha_c"] == pytest.approx(2.565915, rel=1e-3)
    assert np.mean([r["fall"] for r in found]) == pytest.approx(1, abs=0.3)


def test_words_and_figure():
    rows = made(POINTS, 30, result())
    said = transition.finding(transition.judge(rows).numbers)
    assert "times the predicted alpha (which is 2.50)" in said
    first, second = transition.series(rows)
    assert (first.settings["mixture"], second.settings["mixture"]) == (0.3, 0.5)
    assert first.x == pytest.approx((1 / 250, 1 / 160, 1 / 100, 1 / 60))
    assert len(transition.draw(rows).axes) == 2
