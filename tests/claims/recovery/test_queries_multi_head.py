"""recovery.queries-multi-head holds at small size; wrong heads, more queries or a false certificate refute it."""

import pytest

from attlas.claims import Measurement, Outcome
from attlas.claims.recovery.queries_multi_head import CLAIM, Point, judge

from .small import holds, worded

POINT = Point(heads=2, d=8)


def test_it_holds_at_small_size():
    results = holds(CLAIM, [Point(heads=3, d=6)], 25)
    queries, errors = CLAIM.series(results)
    assert (queries.x, errors.x) == ((3,), (3,))
    assert queries.mean[0] < 1
    assert errors.mean[0] < -6


def isolated(error, certificate=1e-12, queries=200.0):
    result = {"heads": 2.0, "error": error, "certificate": certificate, "queries": queries}
    return [Measurement(POINT, seed, result) for seed in range(40)]


def test_wrong_heads_refute():
    assert judge(isolated(1e-12)).outcome is Outcome.SUPPORTED
    assert judge(isolated(0.1, 0.1)).outcome is Outcome.REFUTED
    assert judge(isolated(1e-12, queries=600.0)).outcome is Outcome.REFUTED  # the bound is 509
    lied = isolated(1e-12)
    lied[0] = Measurement(POINT, 0, {"heads": 2.0, "error": 0.1, "certificate": 1e-12, "queries": 200.0})
    assert judge(lied).outcome is Outcome.REFUTED  # a certificate that lies is worse than none


def test_it_is_told_in_shares_of_the_published_number():
    worded(CLAIM, isolated(1e-12), "with 0.39 to 0.39 of", "takes 0.39 to 0.39 of that from d = 8 on")
    assert CLAIM.differs[0].theirs == "4Hd² - 2H + 1 queries"


@pytest.mark.parametrize(("d", "said"), [(4, "for smaller d"), (8, "for d >= 6")])
def test_a_sentence_speaks_of_sizes_that_were_run(d, said):
    found = {"heads": 2.0, "error": 1e-9, "queries": 50.0, "certificate": 1e-9}
    reason = judge([Measurement(Point(heads=2, d=d), seed, found) for seed in range(3)]).reason
    assert "nan" not in reason
    assert said in reason
    assert ("for smaller d" in reason) + ("for d >= 6" in reason) == 1
