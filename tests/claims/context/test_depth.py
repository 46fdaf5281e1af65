import numpy as np
import pytest

from attlas import context
from attlas.claims import Outcome
from attlas.claims.context import depth

from .made import made

POINTS = [depth.Point(alpha=2.0, noise=0.1, d=d) for d in (30, 50, 90, 160)]


def result(moved=1.0, power=None, scatter=0.01):
    theory = np.array([context.depth_error(t, 2.0, 0.1) for t in range(1, depth.LAYERS + 1)])
    excess = theory - context.ridge_in_context(2.0, 0.1).value

    def of(point, seed, rng):
        fallen = excess if power is None else excess[0] * np.arange(1.0, 7.0) ** -power
        return {
            "errors": moved * theory * (1 + 1 / point.d + scatter * rng.standard_normal()),
            "excess": fallen * np.exp(scatter * rng.standard_normal(6)),
            "theory": theory,
            "theory_excess": excess,
        }

    return of


@pytest.mark.parametrize(
    ("options", "outcome"),
    [({}, Outcome.SUPPORTED), ({"moved": 1.1}, Outcome.REFUTED), ({"power": 2.0}, Outcome.REFUTED),
     ({"moved": 0.2}, Outcome.REFUTED), ({"scatter": 0.1}, Outcome.INCONCLUSIVE)],
)  # fmt: skip
def test_judge(options, outcome):
    assert depth.judge(made(POINTS, 12, result(**options))).outcome is outcome


def test_measure():
    found = depth.measure(depth.Point(alpha=2.0, noise=0.1, d=40), 0)
    assert found["errors"] == pytest.approx(found["theory"], rel=0.25)
    assert np.all(np.diff(found["excess"]) < 0)
    assert found["excess"][:4] == pytest.approx(found["theory_excess"][:4], rel=0.4)


def test_the_factor_of_many_layers():
    errors = np.array([context.depth_error(t, 2.0, 0.1) for t in (12, 13)]) - context.ridge_in_context(2.0, 0.1).value
    assert errors[1] / errors[0] == pytest.approx(depth.limit_rate(2.0, 0.1), rel=0.01)


def test_finding_series_and_figure():
    rows = made(POINTS, 12, result())
    assert "one more step on the context" in depth.finding(depth.judge(rows).numbers)
    found = depth.series(rows)
    assert len(found) == 2 * len(POINTS)
    assert found[0].x == tuple(range(1, 7))
    assert len(depth.draw(rows).axes) == 2
