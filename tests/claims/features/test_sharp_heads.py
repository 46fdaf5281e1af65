"""features.sharp-heads: the peak of the noise variance and the distance from theory decide."""

import numpy as np
import pytest

from attlas.claims import Measurement, Outcome
from attlas.claims.features import kit
from attlas.claims.features import sharp_heads as claim

POINT = claim.Point()


def world(factor=1.0, few=1.0, heads=1.0, seeds=12, scatter=0.08):
    """Results as if errors were `factor` times the theory, `few` times for few heads, and those of M/heads heads."""
    rng = np.random.default_rng(0)
    theory, truth = claim._theory(POINT)[0], claim._theory(POINT, 1 / heads)[0].copy()
    truth[: sum(claim._few(POINT)), :, list(claim.NEARLY)] *= few
    return [
        Measurement(
            POINT,
            seed,
            {
                "errors": factor * truth * np.exp(rng.normal(0, scatter, theory.shape)),
                "theory": theory,
                "permuted": 1.5 + 0.01 * seed,
                "converged": True,
            },
        )
        for seed in range(seeds)
    ]


def outcome(measurements):
    return claim.CLAIM.verdict(measurements).outcome


def test_peak_and_deviations_decide():
    assert outcome(world()) is Outcome.SUPPORTED
    assert outcome(world(factor=1.15)) is Outcome.REFUTED
    assert outcome(world(factor=0.85)) is Outcome.REFUTED
    assert outcome(world(heads=1.1)) is Outcome.REFUTED  # a peak elsewhere
    assert outcome(world(seeds=1)) is Outcome.INCONCLUSIVE


def test_few_heads_have_a_tolerance_of_their_own():
    assert outcome(world(few=1.12)) is Outcome.SUPPORTED
    assert outcome(world(few=1.5)) is Outcome.REFUTED


def test_runs_of_a_theory_that_did_not_converge_decide_nothing():
    rows = [Measurement(m.point, m.seed, m.result | {"converged": False}) for m in world()]
    assert outcome(rows) is Outcome.INCONCLUSIVE


def test_the_place_of_a_peak_is_found_where_it_is():
    """Gaussian features: the variance from noise is p/(n - p) before the peak, n/(p - n) behind it. Chords miss by 0.3 %."""
    p, n = np.array(POINT.heads) * (POINT.d + 1.0), 400.0
    assert claim._place(np.where(p < n, p / (n - p), n / (p - n)), POINT) == pytest.approx(1.0, abs=0.005)
    assert claim._place(np.where(p < 380, p / (380 - p), 380 / (p - 380)), POINT) == pytest.approx(0.95, abs=0.005)


@pytest.mark.parametrize("mutation", claim.CLAIM.mutations, ids=lambda m: m.name)
def test_mutations_refute_it(mutation):
    found = claim.CLAIM.verdict(mutation.applied(world(), mutation.sizes[-1], claim.CLAIM.own_seed))
    assert found.outcome is Outcome.REFUTED


def test_measures_theory_beside_simulation():
    point = claim.Point(d=4, keys=3, n=64)
    result = claim.measure(point, 0)
    assert result["errors"].shape == result["theory"].shape == (len(claim.SHARES), 2, len(claim.TARGETS) + 1)
    assert result["converged"]
    assert result["permuted"] > 0.8
    own = kit.theory(4, 3)
    plain = kit.simulated_errors(own, claim.TARGETS, (64,), claim.RIDGES, point.heads[3], 0, 264)
    assert result["errors"][3] == pytest.approx(plain[:, 0])  # the control changes nothing else
    expected = kit.predicted(own, claim.TARGETS, (64,), claim.RIDGES, point.heads[3])
    assert result["theory"][3] == pytest.approx(expected[:, 0])


def test_its_words_and_points():
    found = claim.CLAIM.verdict(world())
    assert "The noise peaks at M = 0.99" in claim.CLAIM.found(
        found
    ) or "The noise peaks at M = 1.00" in claim.CLAIM.found(found)
    assert found.numbers["d=8: few heads: cells"] == 60
    assert found.numbers["d=8: cells"] == 15 * 2 * 11 - 60
    (one,) = [s for s in claim.series(world()) if (s.settings["target"], s.settings["ridge"]) == (claim.NOISE, 1e-6)]
    assert one.x[claim.PEAK] == 44
    assert one.theory[claim.PEAK] == pytest.approx(46.6, rel=0.01)  # the table of docs/features.md
    assert len(claim.draw(world()).axes) == 2
