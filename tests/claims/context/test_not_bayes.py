import numpy as np
import pytest

from attlas import context
from attlas.claims import Outcome
from attlas.claims.context import not_bayes

from .made import made

POINTS = [not_bayes.Point(kappa=k, d=d) for k in (0.5, 2.0) for d in (40, 80)]
WORLD = {"attention_new": 0.6, "attention_old": 0.35, "discrete_new": 1.4, "discrete_old": 0.1, "ridge_new": 0.184,
         "ridge_old": 0.184}  # fmt: skip
THEORY = {"theory_new": 0.6, "theory_old": 0.35, "theory_ridge": 0.184, "theory_discrete": 1.3}


def result(scatter=0.005, **changed):
    def of(point, seed, rng):
        noisy = {k: v + (0 if k == "discrete_old" else scatter * rng.standard_normal()) for k, v in WORLD.items()}
        return noisy | THEORY | changed

    return of


@pytest.mark.parametrize(
    ("options", "outcome"),
    [({}, Outcome.SUPPORTED), ({"discrete_new": 1.0}, Outcome.REFUTED), ({"discrete_old": 0.2}, Outcome.REFUTED),
     ({"attention_new": 1.2}, Outcome.REFUTED), ({"attention_new": 0.1}, Outcome.REFUTED),
     ({"theory_new": 0.55}, Outcome.REFUTED), ({"attention_old": 0.12}, Outcome.REFUTED),
     ({"scatter": 0.4}, Outcome.INCONCLUSIVE)],
)  # fmt: skip
def test_judge(options, outcome):
    verdict = not_bayes.judge(made(POINTS, 10, result(**options)))
    if options.get("scatter"):  # errors of such scatter may also fall below a floor
        assert verdict.outcome is not Outcome.SUPPORTED
    else:
        assert verdict.outcome is outcome


def test_too_few_sets_decide_nothing():
    assert not_bayes.CLAIM.verdict(made(POINTS, 1, result())).outcome is Outcome.INCONCLUSIVE


def test_measure():
    found = not_bayes.measure(not_bayes.Point(kappa=0.5, d=40), 0)
    assert found["discrete_old"] == pytest.approx(0.1, abs=1e-3)
    assert found["discrete_new"] > 1.1
    assert found["attention_new"] == pytest.approx(found["theory_new"], rel=0.05)
    assert found["ridge_new"] == pytest.approx(0.184429, rel=0.2)
    assert found["theory_new"] == pytest.approx(0.802433, abs=1e-6)
    assert found["theory_old"] == pytest.approx(0.293140, abs=1e-6)
    assert found["theory_discrete"] == context.freezing(np.log(20) / 40, 2, 0.1).icl


def test_finding_series_and_figure():
    rows = made(POINTS, 10, result())
    assert "cannot be Bayes" in not_bayes.finding(not_bayes.judge(rows).numbers)
    found = not_bayes.series(rows)
    assert len(found) == 3 * 2 * 2
    assert found[0].settings["alpha"] == 2.0
    assert len(not_bayes.draw(rows).axes) == 2
