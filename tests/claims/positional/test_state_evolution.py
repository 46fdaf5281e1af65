import pytest

from attlas.claims import Outcome
from attlas.claims.positional import state_evolution as claim
from attlas.claims.positional.kit import BRANCHES

from .made import made, turned

EXACT = tuple(claim.Point(alpha=4, encoding=c, d=d) for c in (3.0, 4.0) for d in (60, 100, 160, 250))
JUMPS = tuple(claim.Point(alpha=0.8, encoding=1, token_scale=0.5, decay=0.01, d=d) for d in (60, 100, 160, 250))
SAID = {"positional": {"loss": 0.15, "test": 0.09, "order": 0.15, "q": 0.04},
        "semantic": {"loss": 0.12, "test": 0.03, "order": 0.5, "q": 0.3}}  # fmt: skip


def result(off=1.0, key="loss", among_jumps=1.3, scatter=0.02, kept=1.0, opposite=False):
    def of(point, seed, rng):
        jumps = point.token_scale < 1
        found = {"converged": True}
        for branch in BRANCHES:
            for name, said in SAID[branch].items():
                at = 2 - off if opposite and point.encoding == 3 else off
                truth = among_jumps if jumps and name == "order" else at if name == key else 1.0
                found[f"{branch}_{name}"] = truth + 0.5 / point.d + scatter * rng.standard_normal()
                found[f"{branch}_said_{name}"] = said
            found |= {f"{branch}_kept": bool(rng.random() < kept), f"{branch}_jumps": 0.2 if jumps else 0.0}
        return found

    return of


@pytest.mark.parametrize(
    ("options", "outcome"),
    [({}, Outcome.SUPPORTED), ({"off": 1.1}, Outcome.REFUTED), ({"off": 0.85, "key": "q"}, Outcome.REFUTED),
     ({"off": 1.1, "key": "order", "opposite": True}, Outcome.REFUTED),
     ({"among_jumps": 1.0}, Outcome.REFUTED), ({"kept": 0.6}, Outcome.REFUTED), ({"scatter": 0.15}, Outcome.INCONCLUSIVE)],
)  # fmt: skip
def test_judge(options, outcome):
    assert claim.CLAIM.verdict(made(EXACT + JUMPS, 40, result(**options))).outcome is outcome


def test_without_a_setting_of_either_kind_nothing_is_decided():
    assert claim.CLAIM.verdict(made(EXACT, 5, result())).outcome is Outcome.INCONCLUSIVE


def test_what_is_wrong_is_refuted():
    assert set(turned(claim.CLAIM, made(EXACT + JUMPS, 40, result())).values()) == {Outcome.REFUTED}


def test_measure():
    found = claim.measure(claim.Point(encoding=4, alpha=4, d=250), 0)
    assert found["converged"]
    assert all(found[f"{branch}_kept"] for branch in BRANCHES)
    assert [found[f"{b}_{key}"] for b in BRANCHES for key in claim.EPS] == pytest.approx([1] * 8, abs=0.35)
    assert found["semantic_said_loss"] == pytest.approx(0.1219925, rel=1e-3)  # it does not depend on the encoding
    assert found["semantic_jumps"] == 0


def test_words_and_figure():
    rows = made(EXACT + JUMPS, 20, result())
    said = claim.finding(claim.judge(rows).numbers)
    assert "where the theory warns of jumps, meaning is 1." in said
    loss = [s for s in claim.series(rows) if (s.x_name, s.y_name) == ("alpha", "loss")]
    assert {s.settings["encoding"] for s in loss} == {3.0, 4.0}  # those of the explorer: unit tokens
    assert loss[0].theory == (0.15,)
    assert loss[0].mean == pytest.approx((0.15,), rel=0.1)
    assert len(claim.draw(rows).axes) == 2
