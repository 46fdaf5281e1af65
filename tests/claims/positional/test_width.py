import numpy as np
import pytest

from attlas import positional
from attlas.claims import Outcome
from attlas.claims.positional import width

from .made import made, turned

DRAWN = tuple(width.Point(rank=r) for r in (1, 4))
RUN = tuple(width.Point(rank=r, over=over, d=d) for r, over in ((4, 0.6), (1, 2.5)) for d in (80, 160, 320, 500))


def result(off=1.0, power=-0.5, seen=1.0, scatter=0.02):
    def of(point, seed, rng):
        formula = positional.weak_recovery(point.tokens, point.rank)
        if not point.d:
            return {"information": off / formula * (1 + scatter * rng.standard_normal()), "formula": formula}
        if point.over > 1:
            return {"overlap": 0.46 * seen * (1 + 0.1 * rng.standard_normal()), "formula": formula, "theory": 0.46}
        return {"overlap": 0.5 * (point.d / 80) ** power * np.exp(0.2 * rng.standard_normal()), "formula": formula}

    return of


@pytest.mark.parametrize(
    ("options", "outcome"),
    [({}, Outcome.SUPPORTED), ({"off": 1.1}, Outcome.REFUTED), ({"power": 0.0}, Outcome.REFUTED),
     ({"seen": 0.5}, Outcome.REFUTED), ({"seen": 2.1}, Outcome.REFUTED), ({"scatter": 0.3}, Outcome.INCONCLUSIVE)],
)  # fmt: skip
def test_judge(options, outcome):
    assert width.CLAIM.verdict(made(DRAWN + RUN, 30, result(**options))).outcome is outcome


def test_it_needs_the_information_and_sizes_on_both_sides():
    assert width.CLAIM.verdict(made(DRAWN, 30, result())).outcome is Outcome.INCONCLUSIVE
    assert width.CLAIM.verdict(made(DRAWN + RUN[:4], 30, result())).outcome is Outcome.INCONCLUSIVE


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


@pytest.mark.parametrize(("rank", "over"), [(1, 4.0), (2, 2.5), (4, 4.0)])
def test_the_spectral_method_sees_what_its_theory_says(rank, over):
    found = [width.measure(width.Point(rank=rank, over=over, d=250), seed) for seed in range(8)]
    overlaps = np.array([r["overlap"] for r in found])
    assert abs(overlaps.mean() - found[0]["theory"]) < 5 * overlaps.std(ddof=1) / np.sqrt(8) + 0.02


def test_the_predicted_overlap_begins_at_the_threshold_and_grows_to_one():
    places = (0.9, 1.0, 1.05, 1.5, 3.0, 30.0, 1000.0)
    overlaps = [width.predicted_overlap(4, over) for over in places]
    assert overlaps[:2] == [0, 0]
    assert 0 <= overlaps[2] < 0.1
    assert overlaps[2:] == sorted(overlaps[2:])
    assert overlaps[-1] > 0.99


def test_eigenvalues_of_the_theory_carry_the_information_of_the_formula():
    for rank in (1, 2, 4):
        values, weights = width._spectrum(rank)
        assert weights.sum() == pytest.approx(1)
        assert weights @ values.sum(1) == pytest.approx(0, abs=1e-8)
        assert weights @ (values**2).sum(1) == pytest.approx(1 / positional.weak_recovery(2, rank), rel=1e-6)


def test_words_and_figure():
    rows = made(DRAWN + RUN, 30, result())
    assert "times one over the formula" in width.finding(width.judge(rows).numbers)
    assert {s.x_name for s in width.series(rows)} == {"rank", "d"}
    assert len(width.draw(rows).axes) == 2
