import pytest

from attlas.claims import Outcome
from attlas.claims.trained import factorised

from .made import made

POINTS = tuple(factorised.Point(d=d) for d in (20, 30, 44, 64))


def result(scatter=0.01, converged=True, **wrong):
    def of(point, seed, rng):
        told = factorised._theories(point)
        found = {
            name.removeprefix("theory_"): value
            * (wrong.get(name.removeprefix("theory_"), 1.0) + 2 / point.d + scatter * rng.standard_normal())
            for name, value in told.items()
        }
        return told | found | {"converged": converged}

    return of


@pytest.mark.parametrize(
    ("options", "outcome"),
    [({}, Outcome.SUPPORTED), ({"factorised_error": 1.2}, Outcome.REFUTED), ({"entrywise_error": 0.8}, Outcome.REFUTED),
     ({"entrywise_trace": 1.2}, Outcome.REFUTED), ({"factorised_share": 1.2}, Outcome.REFUTED),
     ({"entrywise_share": 0.8}, Outcome.REFUTED), ({"scatter": 0.3}, Outcome.INCONCLUSIVE),
     ({"converged": False}, Outcome.INCONCLUSIVE)],
)  # fmt: skip
def test_judge(options, outcome):
    assert factorised.CLAIM.verdict(made(POINTS, 8, result(**options))).outcome is outcome


def test_mutations_are_refuted():
    rows = made(POINTS, 8, result())
    for mutation in factorised.CLAIM.mutations:
        assert factorised.judge(mutation.applied(rows, mutation.refuted_at, int)).outcome is Outcome.REFUTED
    assert factorised.CLAIM.verdict(rows[:4]).outcome is Outcome.INCONCLUSIVE


def test_measure():
    found = factorised.measure(factorised.Point(d=24), 0)
    assert found["converged"] is True
    assert 0 < found["factorised_error"] < found["entrywise_error"]
    assert found["theory_factorised_error"] == pytest.approx(0.52449, abs=1e-5)
    assert found["theory_entrywise_error"] == pytest.approx(0.77434, abs=1e-5)
    assert 0.1 < found["factorised_share"] < 0.6
    assert 0.2 < found["entrywise_share"] < 0.5


def test_words_and_figure():
    rows = made(POINTS, 8, result())
    said = factorised.finding(factorised.judge(rows).numbers)
    assert "the error is 1.4" in said or "the error is 1.5" in said
    assert len(factorised.draw(rows).axes) == 2
    names = {s.name for s in factorised.series(rows)}
    assert {"W W^T", "entries of S"} < names
