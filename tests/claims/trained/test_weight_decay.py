import dataclasses

import numpy as np
import pytest

from attlas.claims import Measurement, Outcome
from attlas.claims.trained import weight_decay

from .made import made

POINTS = tuple(weight_decay.Point(d=d) for d in (20, 40, 80))


def result(excess=1.0, apart=1e-3, converged=True, gap=1e-5):
    def of(point, seed, rng):
        ratio = excess * (1 + 3 / point.d) + 0.01 * rng.standard_normal()
        theory = {f"theory_{name}": 0.5 for name in weight_decay.QUANTITIES}
        mine = dict.fromkeys(weight_decay.QUANTITIES, 0.5 * ratio)
        return theory | mine | {"apart": apart, "descended_error": 0.5, "converged": converged, "gap": gap}

    return of


@pytest.mark.parametrize(
    ("options", "outcome"),
    [({}, Outcome.SUPPORTED), ({"excess": 1.15}, Outcome.REFUTED), ({"apart": 0.1}, Outcome.REFUTED),
     ({"converged": False}, Outcome.INCONCLUSIVE), ({"gap": 0.1}, Outcome.INCONCLUSIVE)],
)  # fmt: skip
def test_judge(options, outcome):
    verdict = weight_decay.CLAIM.verdict(made(POINTS, 8, result(**options)))
    assert verdict.outcome is outcome


@pytest.mark.parametrize("name", ["training", "rank"])
def test_every_quantity_counts(name):
    right = made(POINTS, 8, result())
    wrong = [dataclasses.replace(m, result=m.result | {name: 2 * m.result[name]}) for m in right]
    assert weight_decay.judge(wrong).outcome is Outcome.REFUTED


def test_measure():
    found = weight_decay.measure(weight_decay.Point(d=24), 0)
    assert found["apart"] < 0.02
    assert found["gap"] < 1e-4
    assert found["converged"] is True
    assert found["error"] == pytest.approx(found["theory_error"], rel=0.4)
    assert found["trace"] == pytest.approx(found["theory_trace"], rel=0.3)


def test_an_unsolved_problem_is_no_measurement(monkeypatch):
    """Ten steps solve no convex problem, and the run says so."""
    minimise = weight_decay.aim.minimise
    monkeypatch.setattr(
        weight_decay.aim, "minimise", lambda *given, **options: minimise(*given, **(options | {"max_steps": 10}))
    )
    assert weight_decay.measure(weight_decay.Point(d=12), 0)["converged"] is False


def test_finding():
    numbers = weight_decay.judge(made(POINTS, 8, result(apart=3.48e-3))).numbers
    limits = [value for name, value in numbers.items() if name.endswith("at d = infinity")]
    said = weight_decay.finding(numbers)
    assert "descent ends within 0.35% of the solution" in said
    assert f"extrapolate to {limits[0]:.2f} times" in said  # the same four times


def test_series():
    rows = [
        Measurement(weight_decay.Point(d=20), seed, {"error": x, "theory_error": 0.5} | dict.fromkeys(
            ("training", "rank", "trace", "theory_training", "theory_rank", "theory_trace"), 1.0))
        for seed, x in enumerate((0.4, 0.5, 0.9))
    ]  # fmt: skip
    errors, *ratios = weight_decay.series(rows)
    assert (errors.name, errors.x, errors.y_name, errors.theory) == ("trained", (0.1,), "mse", (0.5,))
    assert errors.settings == {"channel": "softmax", "tokens": 2, "noise": 0.0, "rho": 0.5, "decay": 0.1, "d": 20}
    assert errors.mean == pytest.approx((0.6,))
    assert errors.standard_error == pytest.approx((np.sqrt(0.14 / 2 / 3),))  # deviations -0.2, -0.1, 0.3
    assert [s.name for s in ratios] == list(weight_decay.QUANTITIES)
    assert [s.mean[0] for s in ratios] == pytest.approx([1.2, 1, 1, 1])
