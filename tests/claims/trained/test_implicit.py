import pytest

from attlas.claims import Outcome
from attlas.claims.trained import implicit

from .made import made

POINTS = tuple(implicit.Point(d=d) for d in (20, 40))


@pytest.mark.parametrize(
    ("gap", "loss", "outcome"),
    [(0.2, 1e-9, Outcome.SUPPORTED), (-0.2, 1e-9, Outcome.REFUTED), (0.2, 1e-2, Outcome.INCONCLUSIVE)],
)
def test_judge(gap, loss, outcome):
    def of(point, seed, rng):
        least = 0.5 + 0.1 * rng.standard_normal()
        return {"least": least, "least_trace": 0.5, "prior": least + gap + 0.02 * rng.standard_normal(),
                "prior_trace": 0.7, "prior_loss": loss, "small": least, "small_trace": 0.5, "small_loss": loss,
                "theory": 0.5, "bayes": 0.4}  # fmt: skip

    assert implicit.judge(made(POINTS, 5, of)).outcome is outcome


def test_measure():
    found = implicit.measure(implicit.Point(d=16, steps=3000), 0)
    assert found["prior_loss"] < 1e-3
    assert found["prior_trace"] > found["least_trace"]
    assert isinstance(found["converged"], bool)


def test_a_run_that_fits_counts_even_if_it_still_creeps():
    def of(point, seed, rng):
        least = 0.5 + 0.1 * rng.standard_normal()
        return {"least": least, "least_trace": 0.5, "prior": least + 0.2 + 0.02 * rng.standard_normal(), "prior_trace": 0.7,
                "prior_loss": 1e-9, "small": least, "small_trace": 0.5, "small_loss": 1e-9, "theory": 0.5, "bayes": 0.4,
                "converged": seed > 0}  # fmt: skip

    verdict = implicit.CLAIM.verdict(made(POINTS, 5, of))
    assert verdict.outcome is Outcome.SUPPORTED
    assert verdict.numbers["runs that did not converge"] == 2


def test_words():
    numbers = {"d=32 prior less smallest trace": 0.281, "d=60 prior less smallest trace": 0.24,
               "d=32 prior over 2V": 1.14, "d=60 prior over 2V": 1.12}  # fmt: skip
    assert "its error is larger by 0.24 to 0.28 on the same data" in implicit.finding(numbers)
    (difference,) = implicit.CLAIM.differs
    ours = difference.ours(numbers)
    assert "minus that of the smallest trace is 0.24 to 0.28" in ours
    assert "1.12 to 1.14 times twice the Bayes error" in ours
