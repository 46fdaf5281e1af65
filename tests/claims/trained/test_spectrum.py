import numpy as np
import pytest

from attlas import aim
from attlas.claims import Measurement, Outcome
from attlas.claims.trained import spectrum

from .made import made

POINTS = tuple(spectrum.Point(d=d) for d in (20, 40, 80))


@pytest.mark.parametrize(
    ("power", "zeros", "outcome"),
    [(-0.8, 0.5, Outcome.SUPPORTED), (0.5, 0.5, Outcome.REFUTED), (-0.1, 0.5, Outcome.REFUTED),
     (-0.8, 0.7, Outcome.REFUTED)],
)  # fmt: skip
def test_judge(power, zeros, outcome):
    def of(point, seed, rng):
        distance = point.d**power * np.exp(0.05 * rng.standard_normal())
        return {"distance": distance, "unshifted": 4 * distance, "zeros": zeros + 0.01 * rng.standard_normal(),
                "theory_zeros": 0.5, "top": 1.0, "gap": 1e-6}  # fmt: skip

    assert spectrum.judge(made(POINTS, 4, of)).outcome is outcome


def test_quantiles_are_those_of_the_density():
    theory = aim.trained(aim.Softmax(2), 0.15, 0.5, 0.1)
    shares = (np.arange(2000) + 0.5) / 2000
    values = spectrum.quantiles(theory, shares)
    assert np.mean(values == 0) == pytest.approx(theory.zero_mass, abs=1e-3)
    assert values.mean() == pytest.approx(theory.trace, abs=1e-3)


def test_measure():
    found = spectrum.measure(spectrum.Point(d=40), 0)
    assert 0 < found["distance"] < 0.15 < found["unshifted"]
    assert found["converged"] is True


def test_finding():
    numbers = {
        "a exponent of the distance in d": -0.85,
        "a distance at d = 80": 0.0229,
        "a distance without the shift": 0.457,
    }
    said = spectrum.finding(numbers)
    assert "falls as d^-0.85, to 0.023 at the largest d (0.46 without the shift)" in said


def test_series():
    rows = [
        Measurement(spectrum.Point(d=d), seed, {"distance": x / d, "zeros": x / 10, "theory_zeros": 0.15})
        for d in (20, 40) for seed, x in enumerate((1, 3))
    ]  # fmt: skip
    distance, *zeros = spectrum.series(rows)
    assert distance.x == (20, 40)
    assert distance.mean == pytest.approx((0.1, 0.05))
    assert distance.standard_error == pytest.approx((0.05, 0.025))
    assert [s.settings["d"] for s in zeros] == [20, 40]
    assert all((s.x, s.theory) == ((0.0,), (0.15,)) for s in zeros)
    assert zeros[1].mean == pytest.approx((0.2,))


def test_a_problem_that_was_not_solved_leaves_it_undecided():
    def of(point, seed, rng):
        distance = point.d**-0.8 * np.exp(0.05 * rng.standard_normal())
        return {"distance": distance, "unshifted": 4 * distance, "zeros": 0.5 + 0.01 * rng.standard_normal(),
                "theory_zeros": 0.5, "gap": 1e-5, "converged": (point.d, seed) != (40, 1)}  # fmt: skip

    rows = made(POINTS, 4, of)
    assert spectrum.judge(rows).outcome is Outcome.SUPPORTED
    assert spectrum.CLAIM.verdict(rows).outcome is Outcome.INCONCLUSIVE
    older = [Measurement(m.point, m.seed, {k: v for k, v in m.result.items() if k != "converged"}) for m in rows]
    older[0].result["gap"] = 0.1  # what was stored before `converged` was
    assert spectrum.CLAIM.verdict(older).outcome is Outcome.REFUTED
