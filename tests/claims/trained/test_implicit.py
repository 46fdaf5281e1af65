import pytest

from attlas.claims import Outcome
from attlas.claims.trained import implicit

from .made import made

POINTS = tuple(implicit.Point(d=d) for d in (16, 22, 30, 42))


def result(error=1.3, trace=1.2, loss=1e-9, ended=True, converged=True, scatter=0.02):
    def of(point, seed, rng):
        least = 0.5 + 0.05 * rng.standard_normal()
        return {"least": least, "least_trace": 0.5, "least_ended": ended,
                "prior": error * least + scatter * rng.standard_normal(),
                "prior_trace": 0.5 * trace + 0.2 * scatter * rng.standard_normal(), "prior_loss": loss,
                "small": least, "small_trace": 0.52, "small_loss": loss, "bayes": 0.4,
                "converged": converged or seed > 0}  # fmt: skip

    return of


@pytest.mark.parametrize(
    ("options", "outcome"),
    [({}, Outcome.SUPPORTED), ({"error": 0.9}, Outcome.REFUTED), ({"trace": 1.0}, Outcome.REFUTED),
     ({"error": 5.0}, Outcome.REFUTED), ({"error": 0.0, "scatter": 0.0}, Outcome.REFUTED),
     ({"loss": 1e-2}, Outcome.INCONCLUSIVE), ({"ended": False}, Outcome.INCONCLUSIVE),
     ({"scatter": 0.2}, Outcome.INCONCLUSIVE)],
)  # fmt: skip
def test_judge(options, outcome):
    assert implicit.CLAIM.verdict(made(POINTS, 6, result(**options))).outcome is outcome


def test_measure():
    found = implicit.measure(implicit.Point(d=16, steps=3000), 0)
    assert found["prior_loss"] < 1e-3
    assert found["prior_trace"] > found["least_trace"]
    assert found["least_ended"]
    assert isinstance(found["converged"], bool)


def test_a_run_that_fits_counts_even_if_it_still_creeps():
    verdict = implicit.CLAIM.verdict(made(POINTS, 6, result(converged=False)))
    assert verdict.outcome is Outcome.SUPPORTED
    assert verdict.numbers["runs that did not converge"] == len(POINTS)


def test_words_and_figure():
    rows = made(POINTS, 6, result())
    numbers = implicit.judge(rows).numbers
    said = implicit.finding(numbers)
    assert "its trace is 1.2" in said
    assert "its error 1.3" in said or "its error 1.2" in said
    (difference,) = implicit.CLAIM.differs
    assert "times twice the Bayes error" in difference.ours(numbers)
    with pytest.raises(LookupError):
        difference.ours({})
    assert len(implicit.draw(rows).axes) == 2
