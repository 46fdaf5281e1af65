import pytest

from attlas.claims import Outcome
from attlas.claims.positional import tokens

from .made import made, turned

HARD = tokens.Point(tokens=1, alpha=1.06, kind="hard")
POINTS = (HARD, tokens.Point(tokens=1, alpha=1.35, kind="easy"), tokens.Point(tokens=2, alpha=0.54, kind="easy"))


def result(hard=0.0, easy=1.0, informed=1.0, edge=1.12847141, V=0.41):
    def of(point, seed, rng):
        usual = hard if point.kind == "hard" else easy
        return {
            "usual": 1e-8 if rng.random() < usual else 0.45 + 0.05 * rng.standard_normal(),
            "informed": 1e-8 if rng.random() < informed else 0.2,
            "edge": edge if point.tokens == 1 else 0.0, "V": V if point.kind == "hard" else 0.0, "converged": True,
        }  # fmt: skip

    return of


@pytest.mark.parametrize(
    ("options", "outcome"),
    [({}, Outcome.SUPPORTED), ({"hard": 0.9}, Outcome.REFUTED), ({"easy": 0.2}, Outcome.REFUTED),
     ({"informed": 0.2}, Outcome.REFUTED), ({"edge": 1.2}, Outcome.REFUTED),
     ({"V": 0.1}, Outcome.REFUTED), ({"V": 0.75}, Outcome.REFUTED), ({"easy": 0.75}, Outcome.INCONCLUSIVE)],
)  # fmt: skip
def test_judge(options, outcome):
    assert tokens.CLAIM.verdict(made(POINTS, 30, result(**options))).outcome is outcome


def test_it_needs_hard_and_easy_places():
    assert tokens.CLAIM.verdict(made(POINTS[1:], 30, result())).outcome is Outcome.INCONCLUSIVE


def test_what_is_wrong_is_refuted():
    assert set(turned(tokens.CLAIM, made(POINTS, 30, result())).values()) == {Outcome.REFUTED}


def test_measure():
    found = tokens.measure(tokens.Point(tokens=1, alpha=1.06, kind="hard", d=400), 0)
    assert found["informed"] < tokens.FOUND < found["usual"]
    assert found["edge"] == pytest.approx(1.128, abs=1e-3)
    assert tokens.measure(tokens.Point(tokens=2, alpha=0.6, kind="easy", d=300), 0)["usual"] < tokens.FOUND


def test_words_and_figure():
    rows = made(POINTS, 30, result())
    said = tokens.finding(tokens.judge(rows).numbers)
    assert "0% (0% to 16%) of usual starts and 100% (84% to 100%) of informed ones" in said
    assert {s.name for s in tokens.series(rows)} == {"usual start", "informed start"}
    assert len(tokens.draw(rows).axes) == 2
