"""recovery.queries-multi-head: ways that fail or succeed where they should not, counts and false certificates refute it."""

from dataclasses import replace

import pytest

from attlas.claims import Measurement, Outcome
from attlas.claims.recovery.queries_multi_head import CLAIM, Point, bound

from .small import worded

QUICK = list(CLAIM.tiers["quick"])


@pytest.mark.parametrize("way", ["isolate", "copies", "ordinary"])
def test_every_way_finds_two_heads(way):
    point = Point(heads=2, d=4, way=way)
    result = CLAIM.measure(point, 1)
    assert result["heads"] == 2
    assert 0 < result["error"] < 1e-6
    assert result["converged"]
    assert CLAIM.cost(point).seconds > 0


def world(found=lambda point, seed: point.way == "isolate" or point.heads == 2, queries=0.5, seeds=100):
    return [
        Measurement(p, seed, _result(p, found(p, seed), queries))
        for p, count in QUICK
        for seed in range(min(count, seeds))
    ]


def _result(point, hit, queries):
    error = 1e-12 if hit else 0.3
    least = 1.1 * point.heads * (point.d**2 + point.d)
    return {
        "heads": float(point.heads),
        "error": error,
        "certificate": error,
        "queries": max(queries * bound(point), least) if queries > 0.2 else queries * bound(point),
        "converged": hit,
    }


def test_theory_is_supported_in_its_words():
    results = world()
    verdict = CLAIM.verdict(results)
    assert verdict.outcome is Outcome.SUPPORTED
    assert verdict.numbers["runs that did not converge"] == 24
    worded(CLAIM, results, "finds all heads of 100% (94% to 100%) of 92 layers", "takes 0.50 of that from d = 8 on")
    assert CLAIM.draw(results).axes
    assert CLAIM.differs[0].theirs == "4Hd² - 2H + 1 queries"


@pytest.mark.parametrize(
    "wrong",
    [
        {"found": lambda point, seed: point.heads == 2},  # isolating fails with more heads
        {"found": lambda point, seed: point.way == "isolate"},  # the others never succeed: they are broken
        {"found": lambda point, seed: True},  # nothing is hard
        {"queries": 1.0},
        {"queries": 0.1},  # fewer equations than unknowns
    ],
)
def test_other_worlds_are_refuted(wrong):
    assert CLAIM.verdict(world(**wrong)).outcome is Outcome.REFUTED


@pytest.mark.parametrize("changed", [{"error": 0.1}, {"error": 0.0}])
def test_one_lie_or_leak_refutes(changed):
    first, *others = world()
    assert CLAIM.verdict([replace(first, result=first.result | changed), *others]).outcome is Outcome.REFUTED


def test_few_decide_nothing():
    assert CLAIM.verdict(world(seeds=3)).outcome is Outcome.INCONCLUSIVE
    assert CLAIM.verdict([m for m in world() if m.point.way == "isolate"]).outcome is Outcome.INCONCLUSIVE
    assert CLAIM.verdict([m for m in world() if m.point.d < 8]).outcome is Outcome.INCONCLUSIVE
