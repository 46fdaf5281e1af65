import numpy as np
import pytest

from attlas import positional
from attlas.claims import Outcome
from attlas.claims.positional import baseline

from .made import made, turned

EARLY = tuple(baseline.Point(most=4, d=d) for d in (60, 100, 160, 250))
LATE = tuple(baseline.Point(encoding=1, token_scale=0.5, decay=0.01, d=d) for d in (60, 100, 160, 250))


def result(moved=1.0, place=1.3, pays=(0.88, 1.1), gap=(-0.08, 0.04), scatter=0.05, gone=0.1):
    def of(point, seed, rng):
        late = int(point.token_scale < 1)
        held = place + 0.02 * rng.standard_normal(3)
        held[2] = np.nan if rng.random() < gone else held[2]  # no positional minimum there
        return {
            "crossing": moved + 0.5 / point.d + scatter * rng.standard_normal(), "place": held,
            "pays": pays[late] + 0.04 * rng.standard_normal(), "gap": gap[late] + 0.02 * rng.standard_normal(),
            "alpha_l": (1.8, 1.5)[late], "alpha_c": (2.6, 1.25)[late], "slope": -1.2, "converged": True,
        }  # fmt: skip

    return of


@pytest.mark.parametrize(
    ("options", "outcome"),
    [({}, Outcome.SUPPORTED), ({"moved": 1.2}, Outcome.REFUTED), ({"place": 0.9}, Outcome.REFUTED),
     ({"pays": (0.88, 0.9)}, Outcome.REFUTED), ({"gap": (0.08, 0.04)}, Outcome.REFUTED),
     ({"gone": 0.8}, Outcome.REFUTED), ({"scatter": 0.6}, Outcome.INCONCLUSIVE)],
)  # fmt: skip
def test_judge(options, outcome):
    assert baseline.CLAIM.verdict(made(EARLY + LATE, 50, result(**options))).outcome is outcome


def test_what_is_wrong_is_refuted():
    assert set(turned(baseline.CLAIM, made(EARLY + LATE, 50, result())).values()) == {Outcome.REFUTED}


def test_measure():
    """Crossings and baselines as they were checked elsewhere."""
    found = [baseline.measure(baseline.Point(most=4, d=120), seed) for seed in range(3)]
    assert found[0]["alpha_l"] == pytest.approx(1.835, rel=1e-3)
    assert positional.baseline(positional.Model(0.3, 3.0)) == pytest.approx(0.0728612832, rel=1e-8)
    assert np.nanmin([r["place"] for r in found]) > 1
    assert np.mean([r["crossing"] for r in found]) == pytest.approx(1, abs=0.25)
    slope = baseline.expected(positional.Model(0.3, 3.0))[1]
    assert slope < 0


def test_words_and_figure():
    rows = made(EARLY + LATE, 30, result())
    assert "never beats fixed weights" in baseline.finding(baseline.judge(rows).numbers)
    assert len(baseline.series(rows)) == 8
    assert len(baseline.draw(rows).axes) == 2
