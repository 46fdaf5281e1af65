import pytest

from attlas.claims import Outcome
from attlas.claims.positional import bayes

from .made import made, turned

PLACES = {(2, 0.1): 1.0, (2, 0.42): 0.33, (2, 0.6): 0.0, (3, 0.25): 0.33, (4, 0.2): 0.22}
POINTS = tuple(bayes.Point(tokens=L, alpha=a, d=600) for L, a in PLACES)


def result(off=1.0, found=1.0, weak=1.0, scatter=0.1, converged=0.95, stuck=0.02):
    def of(point, seed, rng):
        V = PLACES[point.tokens, point.alpha]
        error = {
            "nothing": weak + 0.005 * rng.standard_normal(),
            "some": 0.95 if rng.random() < stuck else V * (off + scatter * rng.standard_normal()),
            "all": 1e-8 if rng.random() < found else 0.3,
        }[point.phase]
        return {"error": error, "V": V, "steps": 100, "converged": bool(rng.random() < converged)}

    return of


@pytest.mark.parametrize(
    ("options", "outcome"),
    [({}, Outcome.SUPPORTED), ({"off": 1.12}, Outcome.REFUTED), ({"off": 0.85}, Outcome.REFUTED),
     ({"found": 0.2}, Outcome.REFUTED), ({"weak": 0.9}, Outcome.REFUTED), ({"converged": 0.3}, Outcome.REFUTED),
     ({"off": 1.05}, Outcome.INCONCLUSIVE)],
)  # fmt: skip
def test_judge(options, outcome):
    assert bayes.CLAIM.verdict(made(POINTS, 120, result(**options))).outcome is outcome


def test_it_needs_all_three_phases():
    assert bayes.CLAIM.verdict(made(POINTS[:2], 36, result())).outcome is Outcome.INCONCLUSIVE


def test_what_is_wrong_is_refuted():
    assert set(turned(bayes.CLAIM, made(POINTS, 120, result())).values()) == {Outcome.REFUTED}


def test_measure():
    """The mixture does not matter, and 1/L samples give the teacher away."""
    assert bayes.measure(bayes.Point(tokens=2, alpha=0.7, mixture=0.9, d=300), 0)["error"] < bayes.FOUND
    found = bayes.measure(bayes.Point(tokens=3, alpha=0.05, d=300), 0)
    assert found["error"] == pytest.approx(1, abs=0.05)
    assert found["V"] == 1
    assert bayes.best(2, 0.45) == pytest.approx(0.2138203023, rel=1e-6)


def test_words_and_figure():
    rows = made(POINTS, 36, result())
    assert "exact recovery above 1/L in 100% (86% to 100%) of runs" in bayes.finding(bayes.judge(rows).numbers)
    assert {s.name for s in bayes.series(rows)} == {"amp"}
    assert len(bayes.draw(rows).axes) == 2
