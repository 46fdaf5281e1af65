import pytest

from attlas.claims import Outcome
from attlas.claims.positional import trap

from .made import made, turned

POINTS = tuple(
    trap.Point(encoding=c, alpha=a)
    for c, a in ((3.0, 3.5), (5.0, 8.0), (2.0, 8.0), (0.0, 8.0), (1.0, 8.0), (1.25, 8.0))
)


def result(trapped=0.97, free=1.0, lbfgs=0.85, loses=2.5, over=1.2, near=0.6, exists=1.0, costs=2.5):
    def of(point, seed, rng):
        holds = point.encoding >= 2
        share = near if point.encoding == 2 else trapped if holds else 1 - free
        there = holds and rng.random() < exists
        end = {way: 1 if rng.random() < (share if way != "lbfgs" or not holds else lbfgs) else -1 for way in trap.WAYS}
        return end | {
            "slope": {0: float("inf"), 1: 1.9, 1.25: 1.1, 2: 0.75}.get(point.encoding, 0.4), "exists": there, "costs": costs,
            "over": over + 0.02 * rng.standard_normal() if there else float("nan"),
            "loses": loses + 0.1 * rng.standard_normal() if there else float("nan"), "step": 0.08, "converged": True,
        }  # fmt: skip

    return of


@pytest.mark.parametrize(
    ("options", "outcome"),
    [({}, Outcome.SUPPORTED), ({"trapped": 0.3}, Outcome.REFUTED), ({"free": 0.2}, Outcome.REFUTED),
     ({"lbfgs": 0.1}, Outcome.REFUTED), ({"loses": 1.1}, Outcome.REFUTED), ({"over": 0.9}, Outcome.REFUTED),
     ({"near": 0.05}, Outcome.REFUTED), ({"exists": 0.3}, Outcome.REFUTED), ({"exists": 0.0}, Outcome.REFUTED),
     ({"costs": 1.8}, Outcome.REFUTED), ({"trapped": 0.75}, Outcome.INCONCLUSIVE)],
)  # fmt: skip
def test_judge(options, outcome):
    assert trap.CLAIM.verdict(made(POINTS, 50, result(**options))).outcome is outcome


def test_it_needs_both_sides():
    assert trap.CLAIM.verdict(made(POINTS[:3], 26, result())).outcome is Outcome.INCONCLUSIVE
    assert trap.CLAIM.verdict(made(POINTS[:4], 26, result())).outcome is Outcome.INCONCLUSIVE


def test_what_is_wrong_is_refuted():
    assert set(turned(trap.CLAIM, made(POINTS, 80, result())).values()) == {Outcome.REFUTED}


def test_measure():
    """A strong encoding holds training, a weak one does not, and theory knows which."""
    strong = trap.measure(trap.Point(encoding=5, alpha=8, d=100), 0)
    assert (strong["slow"], strong["exists"]) == (1, True)
    assert strong["slope"] < 1
    assert strong["loses"] > 1.5
    assert strong["loses"] == pytest.approx(strong["costs"], rel=0.4)
    weak = trap.measure(trap.Point(encoding=1.25, alpha=8, d=60), 0)
    assert (weak["slow"], weak["exists"]) == (-1, False)
    assert weak["slope"] > 1
    assert trap.measure(trap.Point(encoding=0, alpha=6, d=60), 0)["slow"] == -1


def test_words_and_figure():
    rows = made(POINTS, 26, result())
    assert "of L-BFGS runs end in the positional minimum" in trap.finding(trap.judge(rows).numbers)
    assert {s.name for s in trap.series(rows)} == set(trap.WAYS.values())
    assert len(trap.draw(rows).axes) == 2
