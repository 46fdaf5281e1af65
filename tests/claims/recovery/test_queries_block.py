"""recovery.queries-block: lost blocks, other counts, leaks and false certificates refute it."""

from dataclasses import replace

import numpy as np
import pytest

from attlas.claims import Measurement, Outcome
from attlas.claims.recovery.queries_block import CLAIM, Point, count, seen, unknowns

from .small import turned, worded

QUICK = list(CLAIM.tiers["quick"])


@pytest.mark.parametrize("point", [Point(heads=1, d=4, hidden=4), Point(heads=2, d=4, hidden=6, outputs=1)])
def test_a_block_is_found(point):
    result = CLAIM.measure(point, 1)
    assert 0 < result["error"] < 1e-6
    assert 0 < result["fresh"] < 1e-6
    assert min(result["wrong_form"], result["one_less"]) > 1e-4
    assert result["converged"]
    assert result["queries"] * point.d_out > unknowns(point)


def test_what_is_no_block_is_refused():
    result = CLAIM.measure(Point(heads=1, d=4, hidden=4, kind="no block"), 1)
    assert not result["converged"]
    assert result["fresh"] > 1e-5
    assert not np.isnan(list(result.values())).any()


def test_unknowns_and_counts():
    small = Point(heads=1, d=4, hidden=2, outputs=1)
    assert seen(small) == 2
    assert unknowns(small) == (1 + 2) + 2 * 3 + 4 * 6  # c and L in S, (u_j, t_j) and beta_j, Theta and V S
    assert unknowns(Point(heads=2, d=3, hidden=4, network_residual=True)) == 3 * 4 + 4 * 6 + 2 * 3 * 6
    assert count(Point(heads=2, d=4, hidden=2)) > count(Point(heads=1, d=4, hidden=2)) > 0


def world(found=lambda point, seed: point.kind == "block", queries=1.0, seeds=100, certified=None):
    def result(point, hit):
        error = 1e-12 if hit else 1e-3
        return {
            "error": error,
            "fresh": error,
            "wrong_form": 0.5,
            "one_less": 0.01,
            "queries": queries * count(point),
            "certificate": error,
            "converged": hit if certified is None else certified,
        }

    return [
        Measurement(p, seed, result(p, found(p, seed))) for p, number in QUICK for seed in range(min(number, seeds))
    ]


def test_theory_is_supported_in_its_words_and_every_mutation_refutes_it():
    results = world()
    assert CLAIM.verdict(results).outcome is Outcome.SUPPORTED
    worded(CLAIM, results, "100% (93% to 100%) of 72 blocks are recovered", "none of 8 functions")
    turned(CLAIM, results)
    assert CLAIM.draw(results).axes
    assert all(CLAIM.cost(point).seconds > 0 for point, _ in QUICK)


@pytest.mark.parametrize(
    "wrong",
    [
        {"found": lambda point, seed: point.kind == "block" and point.heads < 4},  # one setting fails
        {"queries": 1.6},
        {"queries": 0.05},
        {"certified": True},
        {"certified": False},
    ],
)
def test_other_worlds_are_refuted(wrong):
    assert CLAIM.verdict(world(**wrong)).outcome is Outcome.REFUTED


def test_one_lie_or_leak_refutes():
    first, *others = world()
    for changed in ({"fresh": 0.1}, {"error": 0.0}):
        assert CLAIM.verdict([replace(first, result=first.result | changed), *others]).outcome is Outcome.REFUTED


def test_few_decide_nothing():
    assert CLAIM.verdict(world(seeds=3)).outcome is Outcome.INCONCLUSIVE
    assert CLAIM.verdict([m for m in world() if m.point.kind == "block"]).outcome is Outcome.INCONCLUSIVE
