import numpy as np
import pytest

from attlas import context
from attlas.claims import Outcome
from attlas.claims.context import abrupt

from .made import made

POINTS = [abrupt.Point(scale=s, d=d) for d in (12, 18) for s in (1e-2, 1e-3, 1e-4)]


def result(times=1.0, patience=1.0, width=1.0, end=1.0, scatter=0.01):
    def of(point, seed, rng):
        root = np.sqrt(point.d)
        law = root * (np.log(1 / point.scale) + 1)
        half = times * (root * (patience * np.log(1e3 * point.scale) * -1 + np.log(1e3) + 1))
        t = np.linspace(0, 50, 60)
        return {
            "half": half * (1 + scatter * rng.standard_normal()),
            "width": width * abrupt.WIDTH * root * (1 + scatter * rng.standard_normal()),
            "end": end * 0.46,
            "theory_half": law,
            "theory_end": 0.46,
            "times": t,
            "course": np.ones(60),
            "theory_course": np.ones(60),
            "converged": True,
        }

    return of


@pytest.mark.parametrize(
    ("options", "outcome"),
    [({}, Outcome.SUPPORTED), ({"times": 1.15}, Outcome.REFUTED), ({"patience": 0.7}, Outcome.REFUTED),
     ({"width": 1.4}, Outcome.REFUTED), ({"end": 0.5}, Outcome.REFUTED), ({"scatter": 0.2}, Outcome.INCONCLUSIVE)],
)  # fmt: skip
def test_judge(options, outcome):
    assert abrupt.judge(made(POINTS, 8, result(**options))).outcome is outcome


def test_measure():
    found = abrupt.measure(abrupt.Point(scale=1e-2, d=8), 0)
    assert found["converged"]
    assert found["half"] == pytest.approx(found["theory_half"], rel=0.1)
    assert found["end"] == pytest.approx(found["theory_end"], rel=0.05)
    assert found["course"] == pytest.approx(found["theory_course"], abs=0.12)


def test_the_length_of_the_drop_is_that_of_the_law():
    times = np.linspace(0, 80, 200_001)
    errors = context.logistic_error(times, 20, 2.0, 0.1, 1e-6)
    drop = errors[0] - errors[-1]
    first, last = (times[np.argmax(errors < errors[0] - share * drop)] for share in (0.1, 0.9))
    assert (last - first) / np.sqrt(20) == pytest.approx(abrupt.WIDTH, abs=1e-3)


def test_finding_series_and_figure():
    rows = made(POINTS, 8, result())
    assert "late and at once" in abrupt.finding(abrupt.judge(rows).numbers)
    found = abrupt.series(rows)
    assert [s.settings["d"] for s in found] == [12, 18]
    assert len(abrupt.draw(rows).axes) == 2
