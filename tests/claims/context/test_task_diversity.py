import numpy as np
import pytest

from attlas.claims import Outcome
from attlas.claims.context import task_diversity
from attlas.claims.context.kit import predicted

from .made import made

POINTS = [task_diversity.Point(kappa=k, d=d) for k in (0.5, 1.0, 2.0) for d in (40, 60, 100, 160)]


def result(factor=1.0, bend=0.0, scatter=0.001):
    def of(point, seed, rng):
        theory = np.array(
            [predicted(a, point.kappa, np.inf, 0.0, point.noise).icl - point.noise for a in task_diversity.ALPHAS]
        )
        bent = (np.array(task_diversity.ALPHAS) / 30) ** -bend
        noise = 1 + scatter * rng.standard_normal(3)
        return {"excess": factor * theory * bent * noise, "idg": np.full(3, 0.2), "theory": theory, "bayes": 0.1}

    return of


@pytest.mark.parametrize(
    ("options", "outcome"),
    [({}, Outcome.SUPPORTED), ({"factor": 1.05}, Outcome.REFUTED), ({"bend": 0.2}, Outcome.REFUTED),
     ({"scatter": 0.2}, Outcome.INCONCLUSIVE), ({"factor": -0.2}, Outcome.REFUTED)],
)  # fmt: skip
def test_judge(options, outcome):
    assert task_diversity.judge(made(POINTS, 12, result(**options))).outcome is outcome


@pytest.mark.parametrize(("kappa", "excess"), [(0.5, 0.5), (2.0, 0.0)])
def test_measure(kappa, excess):
    found = task_diversity.measure(task_diversity.Point(kappa=kappa, d=40), 0)
    assert found["excess"][-1] == pytest.approx(excess, abs=0.005)
    assert found["excess"] == pytest.approx(found["theory"], abs=0.01)


def test_exponents_of_the_theory_tend_to_a_half_at_k_equal_to_d():
    theory = [predicted(a, 1.0, np.inf, 0.0, 0.1).icl - 0.1 for a in (1e8, 1e9)]
    assert -np.log10(theory[1] / theory[0]) == pytest.approx(0.5, abs=1e-3)
    assert task_diversity.exponent([1.0, 0.1, 0.01]) == pytest.approx(1.0)


def test_finding_series_and_figure():
    rows = made(POINTS, 12, result())
    assert "Long contexts do not replace tasks" in task_diversity.finding(task_diversity.judge(rows).numbers)
    found = task_diversity.series(rows)
    assert len(found) == len(POINTS)
    assert found[0].theory[0] == pytest.approx(found[0].mean[0], rel=0.01)
    assert len(task_diversity.draw(rows).axes) == 1
