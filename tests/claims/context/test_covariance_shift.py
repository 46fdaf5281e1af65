import numpy as np
import pytest

from attlas import context
from attlas.claims import Outcome
from attlas.claims.context import covariance_shift

from .made import made

POINTS = [covariance_shift.Point(length=n) for n in (250, 500, 1000, 2000)]


def result(excess=1.0, step=1.0, deep=0.02, scatter=0.03):
    exact = [context.trained_step(t, covariance_shift.GRID) for t in covariance_shift.LAYERS]
    theory = np.array([one.excess for one in exact])
    steps = np.array([one.value for one in exact])

    def of(point, seed, rng):
        found = excess * theory * (1 + scatter * rng.standard_normal(4) + 20 / point.length)
        found[-1] = deep * found[0]
        return {
            "excess": found,
            "theory": theory,
            "steps": step * steps * (1 + 0.3 * scatter * rng.standard_normal(4)),
            "theory_steps": steps,
        }

    return of


@pytest.mark.parametrize(
    ("options", "outcome"),
    [({}, Outcome.SUPPORTED), ({"excess": 1.2}, Outcome.REFUTED), ({"step": 1.06}, Outcome.REFUTED),
     ({"deep": 0.3}, Outcome.REFUTED), ({"excess": 0.0}, Outcome.REFUTED), ({"scatter": 0.3}, Outcome.INCONCLUSIVE)],
)  # fmt: skip
def test_judge(options, outcome):
    assert covariance_shift.judge(made(POINTS, 20, result(**options))).outcome is outcome


def test_measure():
    found = covariance_shift.measure(covariance_shift.Point(length=1000), 0)
    assert found["steps"][:3] == pytest.approx(found["theory_steps"][:3], rel=0.1)
    assert found["excess"][:2] == pytest.approx(found["theory"][:2], rel=0.5)
    assert np.all(np.diff(found["excess"]) < 0)


def test_one_prompt_by_hand():
    m, mu, S, h = covariance_shift._prompts(50, 3, "test")
    excess = covariance_shift._excess(0.2, 2, m, mu, S, h)[0]
    w = 0.2 * h[0]
    w = w + 0.2 * (h[0] - S[0] @ w)
    off = w - mu[0] / (1 + m[0])
    assert excess == pytest.approx(off @ (np.eye(8) + np.outer(mu[0], mu[0])) @ off)


def test_finding_series_and_figure():
    rows = made(POINTS, 20, result())
    assert "above Bayes" in covariance_shift.finding(covariance_shift.judge(rows).numbers)
    assert len(covariance_shift.series(rows)) == 2 * len(POINTS)
    assert len(covariance_shift.draw(rows).axes) == 2
