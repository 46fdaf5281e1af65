"""From tests to verdicts: the three outcomes, how often they are wrong, and what a judge may raise."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from attlas.claims import Claim, Cost, Measurement, Outcome, Settings, Sweep, Unfinished
from attlas.claims.estimate import Exact, Share, Student, Undecided, finite_size, mean
from attlas.claims.mutation import Mutation, changed, scaled
from attlas.claims.power import detect, power
from attlas.claims.verdict import Region, Test, about, above, below, between, decide


def test_regions():
    assert about(2.0, 0.1) == between(1.8, 2.2)
    assert about(-2.0, 0.1) == between(-2.2, -1.8)
    assert above(0).holds((1e-9, 5))
    assert not above(0).holds((0, 5))
    assert above(0).excludes((-1, 0))
    assert not above(0).excludes((-1, 1))
    assert below(1).holds((-np.inf, 0.5))
    assert Region().holds((-np.inf, np.inf))
    assert [str(region) for region in (above(1), below(2), between(1, 2))] == ["above 1", "below 2", "between 1 and 2"]


@pytest.mark.parametrize(
    ("value", "outcome"),
    [(1.0, Outcome.SUPPORTED), (1.04, Outcome.INCONCLUSIVE), (1.06, Outcome.INCONCLUSIVE), (1.1, Outcome.REFUTED)],
)
def test_one_test_has_three_outcomes(value, outcome):
    verdict = decide([Test("ratio", Student(value, 0.01, 50), about(1.0, 0.05))])
    assert verdict.outcome is outcome
    assert verdict.strength == pytest.approx((0.05 - abs(value - 1)) / 0.01)
    assert verdict.numbers["ratio"] == value
    assert "ratio is" in verdict.reason


def test_every_test_must_hold_and_one_refutes():
    good, open_, bad = (
        Test(name, Student(value, 0.01, 50), about(1.0, 0.05))
        for name, value in (("good", 1.0), ("open", 1.04), ("bad", 1.2))
    )
    assert decide([good, good]).outcome is Outcome.SUPPORTED
    assert decide([good, open_]).outcome is Outcome.INCONCLUSIVE
    assert "undecided: open is" in decide([good, open_]).reason
    assert decide([good, open_, bad]).outcome is Outcome.REFUTED
    assert "fails: bad is" in decide([good, open_, bad]).reason
    assert decide([]).outcome is Outcome.INCONCLUSIVE


def test_a_refutation_is_corrected_for_the_number_of_tests():
    """A value 3.2 standard errors outside refutes alone and does not among twenty."""
    outside = Test("one", Student(-3.2, 1.0, 1e9), above(0))
    inside = Test("other", Student(9.0, 1.0, 1e9), above(0))
    assert decide([outside]).outcome is Outcome.REFUTED
    assert decide([outside, *[inside] * 19]).outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize(
    ("test", "strength", "unit"),
    [
        (Test("bound", Exact(1e-9), below(1e-6)), 3, "orders of magnitude"),
        (Test("bound", Exact(1e-3), below(1e-6)), -3, "orders of magnitude"),
        (Test("about", Exact(1.01), between(0.9, 1.1)), 1, "orders of magnitude"),
        (Test("leak", Exact(0.0), above(0)), -np.inf, "orders of magnitude"),
        (Test("share", Share(20, 20), above(0.8)), 0.2 / np.sqrt(0.16 / 20), "standard errors"),
    ],
)
def test_strengths(test, strength, unit):
    assert test.strength == pytest.approx(strength)
    assert test.unit == unit
    assert (test.side() < 0) == (strength < 0)


def test_a_leak_outweighs_what_holds():
    leak = Test("smallest error", Exact(0.0), above(0))
    assert decide([Test("ratio", Student(1.0, 0.001, 50), about(1.0, 0.05)), leak]).outcome is Outcome.REFUTED
    assert decide([leak]).strength_text == "fails outright"


def test_what_is_not_a_number_decides_nothing():
    assert decide([Test("nan", Student(np.nan, 0.1, 5), above(0))]).outcome is Outcome.INCONCLUSIVE


class Point(Settings):
    d: int


def claim_of(judge, **more):
    return Claim(
        "toy.claim",
        1,
        "A toy.",
        "none",
        Point,
        {"quick": Sweep([Point(d=d) for d in (16, 32, 64, 128)], seeds=(24, 16, 8, 6))},
        measure=lambda point, seed: {},
        judge=judge,
        draw=lambda measurements: None,
        cost=lambda point: Cost(1, 1),
        **more,
    )


def judge(measurements):
    ratios = [(m.point.d, m.result["error"] / m.result["theory"]) for m in measurements]
    smallest = min(m.result["error"] for m in measurements)
    return decide(
        [
            Test("error over theory", finite_size(ratios), about(1.0, 0.05), expected=1.0),
            Test("smallest error", Exact(smallest), above(0)),
        ]
    )


def sweep(rng, theory=1.0, scatter=1.0):
    claim = claim_of(judge)
    return [
        Measurement(point, seed, {"error": 1 + 2 / point.d + scatter / point.d * rng.normal(), "theory": theory})
        for point, count in claim.tiers["quick"]
        for seed in range(count)
    ]


MUTATIONS = (
    Mutation("theory is {size:g} of what it is", (0.98, 0.92, 0.8), 0.92, scaled("theory")),
    Mutation("the error leaks: {size:g}", (0.0,), 0.0, changed(lambda result, size: {"error": size})),
)


def test_true_claims_are_seldom_refuted():
    """Null worlds at the edge of the region and in its middle: refuted at most as often as the level says."""
    rng = np.random.default_rng(0)
    for theory in (1.0, 1 / 1.05, 1 / 0.95):
        claim = claim_of(judge)
        outcomes = [claim.verdict(sweep(rng, theory, scatter=3.0)).outcome for _ in range(300)]
        assert outcomes.count(Outcome.REFUTED) <= 300 * 0.01 + 3 * np.sqrt(300 * 0.01)


def test_false_claims_are_seldom_supported():
    """Worlds at the edge of the region, where the statement just fails: supported at most as often as the level says."""
    rng = np.random.default_rng(1)
    for theory in (1 / 1.05, 1 / 0.95):
        outcomes = [claim_of(judge).verdict(sweep(rng, theory)).outcome for _ in range(300)]
        assert outcomes.count(Outcome.SUPPORTED) <= 300 * 0.01 + 3 * np.sqrt(300 * 0.01)


def test_power_counts_what_is_supported_and_what_is_seen():
    claim = claim_of(judge, mutations=MUTATIONS)
    found = power(claim, sweep(np.random.default_rng(2)), draws=60)
    by_seeds = {design.seeds: design for design in found.designs}
    assert by_seeds[1.0].supported > 0.9
    assert by_seeds[1.0].refuted == 0
    blurred = power(claim, sweep(np.random.default_rng(2), scatter=3.0), draws=60)
    shares = [design.supported for design in blurred.designs]
    assert shares[0] < 0.3 < shares[-1]
    detected = {each.name: each.outcome for each in found.detected}
    assert detected["theory is 0.98 of what it is"] is not Outcome.REFUTED
    assert detected["theory is 0.92 of what it is"] is Outcome.REFUTED
    assert detected["the error leaks: 0"] is Outcome.REFUTED
    assert [each.required for each in found.detected] == [False, True, True, True]


def test_power_is_that_of_the_theory_not_of_the_luck_of_the_runs():
    """Runs that happen to lie off do not lower the power at the truth, only that as measured."""
    claim = claim_of(judge)
    off = [replace(m, result=m.result | {"theory": 1 / 1.04}) for m in sweep(np.random.default_rng(3))]
    design = power(claim, off, designs=(1.0,), draws=80).designs[0]
    assert design.supported > 0.9
    assert design.as_measured < 0.5


def test_what_is_paired_stays_paired_where_points_have_other_numbers_of_seeds():
    """Two learners on the same data, one of them on more: their difference scatters hardly, each alone a lot."""
    counts = {1: 12, 2: 40, 3: 1}
    data = np.random.default_rng(6).normal(size=40)
    runs = [Measurement(Point(d=d), seed, {"x": data[seed]}) for d, count in counts.items() for seed in range(count)]

    def paired(measurements):
        own = {d: {m.seed: m.result["x"] for m in measurements if m.point.d == d} for d in counts}
        assert {d: len(results) for d, results in own.items()} == counts
        assert [own[2][seed] for seed in own[1]] == list(own[1].values())
        means.append(np.mean(list(own[2].values())))
        return decide([Test("difference", Exact(0.0), below(1.0))])

    means: list[float] = []
    assert power(claim_of(paired), runs, designs=(1.0,), draws=300).designs[0].supported == 1
    assert np.std(means[1:]) == pytest.approx(data.std() / np.sqrt(40), rel=0.15)


def test_broken_learners_are_measured_with_the_claims_own_seeds():
    seen = []

    def broken(point, seed, size):
        seen.append(seed)
        return {"error": size, "theory": 1.0}

    claim = claim_of(judge, mutations=(Mutation("error {size:g}", (3.0,), 3.0, measure=broken),))
    runs = sweep(np.random.default_rng(4))
    assert detect(claim, runs) == []
    (found,) = detect(claim, runs, remeasure=True)
    assert found.outcome is Outcome.REFUTED
    assert set(seen) == {claim.own_seed(m.seed) for m in runs}


def test_a_mutation_must_be_one():
    with pytest.raises(ValueError, match="either change or measure"):
        Mutation("nothing", (1.0,), 1.0)
    with pytest.raises(ValueError, match="one of its sizes"):
        Mutation("theory", (1.0,), 2.0, scaled("theory"))


@dataclass
class Raising:
    error: Exception

    def __call__(self, measurements):
        raise self.error


def test_a_judge_that_raises_never_takes_others_with_it():
    (m,) = [Measurement(Point(d=1), 0, {})]
    found = claim_of(Raising(Undecided("needs two sizes"))).verdict([m])
    assert (found.outcome, found.reason) == (Outcome.INCONCLUSIVE, "needs two sizes")
    for error in (KeyError("error"), ZeroDivisionError("division by zero"), IndexError("empty"), MemoryError("much")):
        found = claim_of(Raising(error)).verdict([m])
        assert found.outcome is Outcome.DAMAGED
        assert type(error).__name__ in found.reason
    nonsense = Measurement(Point(d=1), 0, {"converged": "perhaps"})
    assert claim_of(judge).verdict([nonsense]).outcome is Outcome.DAMAGED


def test_unfinished_runs_cannot_decide_unless_the_claim_said_so():
    runs = [replace(m, result=m.result | {"converged": False}) for m in sweep(np.random.default_rng(5))]
    assert claim_of(judge).verdict(runs).outcome is Outcome.INCONCLUSIVE
    assert claim_of(judge, unfinished=Unfinished.USED).verdict(runs).outcome is Outcome.SUPPORTED


def test_claims_draw_from_streams_of_their_own():
    one, other = claim_of(judge), replace(claim_of(judge), id="toy.other")
    assert {one.own_seed(s) for s in range(5000)}.isdisjoint(other.own_seed(s) for s in range(5000))
    assert one.own_seed(7) - one.own_seed(0) == 7
    assert 0 <= one.own_seed(0) < 2**31


def test_a_redesigned_claim_draws_data_that_nobody_saw():
    first, second = (replace(claim_of(judge), version=version) for version in (4, 5))
    assert {first.own_seed(s) for s in range(5000)}.isdisjoint(second.own_seed(s) for s in range(5000))
    old = [replace(claim_of(judge), version=version).own_seed(0) for version in (1, 2, 3)]
    assert len(set(old)) == 1, "results of these versions were made so"


def test_a_sweep_has_seeds_for_every_point():
    points = [Point(d=1), Point(d=2)]
    assert list(Sweep(points, 3)) == [(points[0], 3), (points[1], 3)]
    assert list(Sweep(points, (5, 2))) == [(points[0], 5), (points[1], 2)]
    with pytest.raises(ValueError, match="zip"):
        list(Sweep(points, (5,)))


def test_mean_differences_are_paired():
    rng = np.random.default_rng(6)
    base = rng.normal(size=20)
    first, second = base + 0.1 + 0.01 * rng.normal(size=20), base
    assert decide([Test("gain", mean(first - second), above(0.05))]).outcome is Outcome.SUPPORTED


def test_an_infinite_number_is_evidence_against_a_bound_and_never_for_one():
    infinite = Exact(np.inf)
    assert decide([Test("error", infinite, below(1))]).outcome is Outcome.REFUTED
    assert decide([Test("error of the control", infinite, above(1))]).outcome is Outcome.INCONCLUSIVE


def test_a_number_that_does_not_scatter_has_no_margin_of_hundreds_of_digits():
    found = decide([Test("accuracy", mean([1.0] * 5), above(0.7))])
    assert found.outcome is Outcome.SUPPORTED
    assert found.strength_text == "over 1,000,000 standard errors"
