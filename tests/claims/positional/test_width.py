import numpy as np
import pytest

from attlas import positional
from attlas.claims import Outcome
from attlas.claims.positional import width

from .made import made, turned

DRAWN = tuple(width.Point(rank=r) for r in (1, 4))
RUN = tuple(width.Point(rank=r, over=over, d=d) for r, over in ((4, 0.6), (1, 2.5)) for d in (80, 160, 320, 500))


def result(off=1.0, power=-0.5, stays=0.3, scatter=0.02):
    def of(point, seed, rng):
        formula = positional.weak_recovery(point.tokens, point.rank)
        if not point.d:
            return {"information": off / formula * (1 + scatter * rng.standard_normal()), "formula": formula}
        overlap = stays if point.over > 1 else 0.5 * (point.d / 80) ** power
        return {"overlap": overlap * np.exp(0.2 * rng.standard_normal()), "formula": formula}

    return of


@pytest.mark.parametrize(
    ("options", "outcome"),
    [({}, Outcome.SUPPORTED), ({"off": 1.1}, Outcome.REFUTED), ({"power": 0.0}, Outcome.REFUTED),
     ({"stays": 0.02}, Outcome.REFUTED), ({"scatter": 0.3}, Outcome.INCONCLUSIVE)],
)  # fmt: skip
def test_judge(options, outcome):
    assert width.CLAIM.verdict(made(DRAWN + RUN, 30, result(**options))).outcome is outcome


def test_it_needs_both_kinds_of_point():
    assert width.CLAIM.verdict(made(DRAWN, 30, result())).outcome is Outcome.INCONCLUSIVE


def test_what_is_wrong_is_refuted():
    assert set(turned(width.CLAIM, made(DRAWN + RUN, 30, result())).values()) == {Outcome.REFUTED}


@pytest.mark.parametrize(("tokens", "rank"), [(2, 1), (2, 4), (3, 2), (3, 32)])
def test_the_information_drawn_is_one_over_the_formula(tokens, rank):
    found = [width.measure(width.Point(tokens=tokens, rank=rank), seed)["information"] for seed in range(6)]
    error = np.std(found, ddof=1) / np.sqrt(6)
    assert abs(np.mean(found) - 1 / positional.weak_recovery(tokens, rank)) < 5 * error


def test_both_readings_of_the_gram_matrix_agree():
    z = np.random.default_rng(0).standard_normal((50, 3, 2)) / 2
    G = z @ z.transpose(0, 2, 1)
    weights = np.exp(G) / np.exp(G).sum(2, keepdims=True)
    assert width._from_logits(G, 2) == pytest.approx(positional.read_gram(weights, 2), abs=1e-6)


def test_the_spectral_method_sees_the_teacher_above():
    found = width.measure(width.Point(rank=1, over=4.0, d=200), 0)
    assert 0.1 < found["overlap"] < 1


def test_words_and_figure():
    rows = made(DRAWN + RUN, 30, result())
    assert "times one over the formula" in width.finding(width.judge(rows).numbers)
    assert {s.x_name for s in width.series(rows)} == {"rank", "d"}
    assert len(width.draw(rows).axes) == 2
