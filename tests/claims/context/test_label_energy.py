import pytest

from attlas.claims import Outcome
from attlas.claims.context import label_energy

from .made import made

POINTS = [label_energy.Point(alpha=5.0, kappa=0.5, d=d) for d in (40, 80, 160, 320)]


def result(power=-1.0, sign=1.0, scatter=0.1):
    def of(point, seed, rng):
        cost = sign * 1.7 * 40**-1 * (point.d / 40) ** power * (1 + scatter * rng.standard_normal())
        helped = 0.15 / point.d * (1 + scatter * rng.standard_normal())
        return {"with": 0.7 + cost, "without": 0.7, "with_idg": 0.3 - helped, "without_idg": 0.3, "bayes": 0.15}

    return of


@pytest.mark.parametrize(
    ("options", "outcome"),
    [({}, Outcome.SUPPORTED), ({"power": -0.5}, Outcome.REFUTED), ({"power": -1.5}, Outcome.REFUTED),
     ({"sign": -1.0}, Outcome.REFUTED), ({"scatter": 0.6}, Outcome.INCONCLUSIVE)],
)  # fmt: skip
def test_judge(options, outcome):
    assert label_energy.judge(made(POINTS, 30, result(**options))).outcome is outcome


def test_measure():
    """Without the label energy the finite layer is at its limit, 0.8024; with it d = 200 has 0.8114(3)."""
    runs = [label_energy.measure(label_energy.Point(alpha=2.0, kappa=0.5, d=200), seed) for seed in range(4)]
    for r in runs:
        assert r["without"] == pytest.approx(0.8024, abs=0.003)
        assert r["with"] - r["without"] == pytest.approx(0.0086, abs=0.003)
        assert r["with_idg"] < r["without_idg"]


def test_finding_differences_series_and_figure():
    rows = made(POINTS, 30, result())
    numbers = label_energy.judge(rows).numbers
    assert "(1.7 ± 0.07)/d" in label_energy.finding(numbers)
    assert "(1.7 ± 0.07)/d" in label_energy.CLAIM.differs[0].ours(numbers)
    cost, helped = label_energy.series(rows)
    assert cost.x == helped.x == (40, 80, 160, 320)
    assert len(label_energy.draw(rows).axes) == 1
