import numpy as np
import pytest

from attlas.claims import Outcome
from attlas.claims.positional import sharpness

from .made import made, turned

POINTS = tuple(sharpness.Point(encoding=c, alpha=a) for c, a in ((2.5, 6.0), (3.0, 12.0), (5.0, 4.0)))


def result(ratio=1.8, below=1.0, above=0.0, finds=(0.45, 0.02), kept=0.95):
    def of(point, seed, rng):
        other = 10 * np.exp(0.05 * rng.standard_normal())
        share = finds[0] if point.encoding < 4 else finds[1]
        return {
            "positional": ratio * other * np.exp(0.05 * rng.standard_normal()), "semantic": other,
            "below": bool(rng.random() < below), "above": bool(rng.random() < above),
            "finds": bool(rng.random() < share), "stays": False, "kept": bool(rng.random() < kept), "converged": True,
        }  # fmt: skip

    return of


@pytest.mark.parametrize(
    ("options", "outcome"),
    [({}, Outcome.SUPPORTED), ({"ratio": 1.1}, Outcome.REFUTED), ({"below": 0.5}, Outcome.REFUTED),
     ({"above": 0.5}, Outcome.REFUTED), ({"finds": (0.5, 0.9)}, Outcome.REFUTED), ({"kept": 0.2}, Outcome.REFUTED),
     ({"finds": (0.1, 0.0)}, Outcome.INCONCLUSIVE)],
)  # fmt: skip
def test_judge(options, outcome):
    assert sharpness.CLAIM.verdict(made(POINTS, 44, result(**options))).outcome is outcome


def test_what_is_wrong_is_refuted():
    assert set(turned(sharpness.CLAIM, made(POINTS, 44, result())).values()) == {Outcome.REFUTED}


def test_measure():
    """Sharpness as it was simulated elsewhere: 24.8(3) and 11.9(4) at alpha = 3, d = 250."""
    found = [sharpness.measure(sharpness.Point(encoding=3, alpha=3, d=120), seed) for seed in range(3)]
    assert np.mean([r["positional"] for r in found]) == pytest.approx(24.8, rel=0.08)
    assert np.mean([r["semantic"] for r in found]) == pytest.approx(11.9, rel=0.15)
    assert all(r["below"] and not r["above"] for r in found)


def test_words_and_figure():
    rows = made(POINTS, 44, result())
    said = sharpness.finding(sharpness.judge(rows).numbers)
    assert "times as sharp as the semantic one" in said
    place, *_ = sharpness.series(rows)
    assert place.name == "sharpness of the positional minimum"
    assert len(sharpness.draw(rows).axes) == 2
