"""recovery.certificate: certificates that accept anything, refuse noise, or overlook a constant refute it."""

from dataclasses import replace

import numpy as np
import pytest

from attlas import tokens
from attlas.claims import Measurement, Outcome
from attlas.claims.recovery.certificate import CLAIM, PARTS, Point, sized
from attlas.claims.recovery.kit.noises import LAWS
from attlas.claims.recovery.kit.strangers import KINDS, SEEN, UNSEEN, World, group, piece
from attlas.numerics import stream
from attlas.recovery import Layer, planted_layer
from attlas.recovery.examples import Examples
from attlas.recovery.variable_projection import variable_projection

from .small import turned, worded

QUICK = list(CLAIM.tiers["quick"])


def world(n=200):
    truth = Layer(*planted_layer(1, 4, stream(0, "teacher"), 3.0))
    return World(tokens.gaussian(n, 3, 4, stream(0, "data")), truth, stream(0, "piece"))


@pytest.mark.parametrize("kind", [*KINDS, *UNSEEN])
def test_no_kind_is_a_layer(kind):
    """No layer near the truth gives the sum of a layer and a piece as large as its outputs."""
    own = world()
    g = piece(kind, own)
    assert g.shape == own.F.shape
    assert np.isclose(np.mean(g**2), np.mean(own.F**2))
    fit = variable_projection(Examples.of(own.X, own.F + g), own.layer.Theta, max_steps=30)
    assert fit.residual > 0.02


def test_there_are_many_kinds_and_every_one_is_in_a_part():
    assert len(KINDS) == len(set(KINDS)) >= 40
    assert not set(KINDS) & set(UNSEEN)
    assert {part for parts in PARTS.values() for part in parts} == set(SEEN)
    assert {group(kind) for kind in UNSEEN} == {"not claimed"}


@pytest.mark.parametrize("law", LAWS)
def test_noise_has_mean_zero_and_mean_square_one(law):
    F = world(20_000).F
    E = LAWS[law](F, stream(0, "noise"))
    assert E.shape == F.shape
    assert abs(E.mean((0, 1))).max() < 0.05
    assert np.isclose(np.mean(E**2), 1, rtol=0.3)


def test_a_piece_is_as_far_from_every_layer_as_it_should_be():
    own = world()
    target = 0.05 * np.linalg.norm(own.F)
    added, layer, ratio = sized(own.X, own.F, piece("causal mask", own), own.layer, target)
    assert 0.95 < ratio < 1.05
    assert np.linalg.norm(own.F + added - layer(own.X)) == pytest.approx(ratio * target, rel=1e-3)


def test_a_mask_is_refused_and_noise_is_not():
    result = CLAIM.measure(Point(kind="causal mask"), 1)
    assert result["p"] <= 0.01 < result["null"]
    assert 2.7 < result["over_seen"] < 3.3
    assert result["regression"] < 0.02  # the criterion before saw nothing
    assert set(CLAIM.measure(Point(law="exponential"), 1)) == {"null", "converged"}
    found = CLAIM.measure(Point(kind="constant", way="learn", noise=0.1), 1)
    assert not found["refused"]
    assert not found["accepted"]


def test_a_constant_is_refused_named_and_found():
    result = CLAIM.measure(Point(kind="constant", way="bias"), 1)
    assert not result["accepted"]
    assert result["told"]
    assert result["error"] < 1e-12


def numbers(point, place, sees=lambda kind: True, level=1.0):
    if point.way == "bias":
        return {"accepted": False, "told": True, "error": 1e-15, "converged": True}
    found = {"null": min(1.0, (place % 19 + 1) / 19) * level, "converged": True}
    if point.kind != "none":
        hit = sees(point.kind)
        found |= {"p": 0.005 if hit else 0.5, "over_seen": 2.95 + 0.1 * (place % 2), "regression": -0.1}
        if point.way == "learn":
            found |= {"refused": False, "accepted": not hit}
    return found


def results(tier="quick", share=1.0, **options):
    cells = [(point, seed) for point, count in CLAIM.tiers[tier] for seed in range(max(1, int(count * share)))]
    return [Measurement(point, seed, numbers(point, place, **options)) for place, (point, seed) in enumerate(cells)]


@pytest.mark.parametrize("tier", ["quick", "full"])
def test_it_is_supported_in_its_words_and_every_mutation_refutes_it(tier):
    found = results(tier)
    worded(CLAIM, found, "100% (", f"of {len(KINDS)} kinds")
    turned(CLAIM, found)
    assert CLAIM.draw(found).axes
    assert all(CLAIM.cost(point).seconds > 0 for point, _ in CLAIM.tiers[tier])


@pytest.mark.parametrize(
    "wrong",
    [
        {"sees": lambda _: False},
        {"sees": lambda kind: group(kind) not in PARTS["other attention and more heads"]},
        {"level": 0.1},
        {"level": 0.0},
    ],
    ids=["nothing seen", "no attention seen", "level", "leak"],
)
def test_other_worlds_are_refuted(wrong):
    assert CLAIM.verdict(results(**wrong)).outcome is Outcome.REFUTED


def test_one_constant_taken_for_noise_refutes():
    *others, last = results()
    assert last.point.way == "bias"
    fooled = replace(last, result=last.result | {"accepted": True})
    assert CLAIM.verdict([*others, fooled]).outcome is Outcome.REFUTED


def test_few_decide_nothing():
    assert CLAIM.verdict(results(share=0.1)[::4]).outcome is Outcome.INCONCLUSIVE
    assert CLAIM.verdict([m for m in results() if m.point.way != "bias"]).outcome is Outcome.INCONCLUSIVE


def test_the_mutations_that_measure_anew_are_weaker_certificates():
    small, blunt = (m for m in CLAIM.mutations if m.measure)
    point = Point(kind="squares")
    assert small.measure(point, 3, 0.1)["p"] > 0.01
    assert blunt.measure(point, 3, 1.0)["null"] > 0


def test_kinds_stand_in_no_two_groups():
    assert sum(len(kinds) for kinds in SEEN.values()) == len(KINDS)
