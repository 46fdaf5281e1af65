import pytest

from attlas.claims import Measurement, Outcome
from attlas.claims.trained import threshold

from .made import made

POINTS = tuple(threshold.Point(kind=kind, d=d) for kind in ("trace", "psd") for d in (20, 40, 80))


@pytest.mark.parametrize(
    ("moved", "end", "outcome"),
    [(0.0, True, Outcome.SUPPORTED), (0.15, True, Outcome.REFUTED), (0.0, False, Outcome.INCONCLUSIVE)],
)
def test_judge(moved, end, outcome):
    def of(point, seed, rng):
        theory = 0.84 if point.kind == "trace" else 0.875
        A = theory + moved + 0.5 / point.d + 0.01 * rng.standard_normal()
        return {"A": A, "theory": theory, "found_at_the_end": end}

    assert threshold.judge(made(POINTS, 4, of)).outcome is outcome


@pytest.mark.parametrize("kind", ["trace", "psd"])
def test_measure(kind):
    found = threshold.measure(threshold.Point(kind=kind, d=12), 0)
    assert found["found_at_the_end"]
    assert 0.5 < found["A"] < 1.3
    assert isinstance(found["converged"], bool)


def test_finding():
    numbers = {"trace rho=0.5 A": 0.8, "trace rho=0.5 A ±": 0.1, "trace rho=0.5 formula": 0.84,
               "psd rho=0.5 A": 0.9, "psd rho=0.5 formula": 0.875}  # fmt: skip
    said = threshold.finding(numbers)
    assert "the smallest trace from 0.95 times the predicted number, S >= 0 alone from 1.03 times" in said
    with pytest.raises(LookupError):
        threshold.finding({name: value for name, value in numbers.items() if not name.startswith("psd")})


def test_series():
    rows = [
        Measurement(threshold.Point(kind=kind, d=d), seed, {"A": x + 1 / d, "theory": 0.8})
        for kind in ("trace", "psd") for d in (20, 10) for seed, x in enumerate((0.8, 1.0))
    ]  # fmt: skip
    trace, psd = threshold.series(rows)
    assert (trace.name, psd.name) == ("smallest trace", "S >= 0 alone")
    assert trace.x == (1 / 20, 1 / 10)
    assert trace.mean == pytest.approx((0.95, 1.0))
    assert trace.standard_error == pytest.approx((0.1, 0.1))
    assert trace.theory == (0.8, 0.8)


def test_slow_problems_are_used_and_counted():
    def of(point, seed, rng):
        A = (0.84 if point.kind == "trace" else 0.875) + 0.5 / point.d + 0.01 * rng.standard_normal()
        return {
            "A": A,
            "theory": 0.84 if point.kind == "trace" else 0.875,
            "found_at_the_end": True,
            "converged": seed > 0,
        }

    verdict = threshold.CLAIM.verdict(made(POINTS, 4, of))
    assert verdict.outcome is Outcome.SUPPORTED
    assert verdict.numbers["runs that did not converge"] == len(POINTS)
