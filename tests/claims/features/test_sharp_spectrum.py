"""features.sharp-spectrum: eigenvalues seen in pairs of sequences decide."""

import numpy as np
import pytest

from attlas import tokens
from attlas.claims import Measurement, Outcome
from attlas.claims.features import sharp_spectrum as claim

POINT = claim.Point(d=5, keys=3, n=120)


def world(factor=1.0, seeds=6):
    """Results as if eigenvalues were `factor` of the predicted ones."""
    rng = np.random.default_rng(0)
    predicted = np.geomspace(0.2, 1e-6, len(claim.SECTORS))
    return [
        Measurement(
            POINT,
            seed,
            {
                "eigenvalues": factor * predicted * (1 + 0.003 * rng.normal(size=len(predicted))),
                "theory": predicted,
                "rest": 1 + 0.004 * rng.normal(),
                "trace": 1 + 0.001 * rng.normal(),
            },
        )
        for seed in range(seeds)
    ]


def outcome(measurements):
    return claim.CLAIM.verdict(measurements).outcome


def test_eigenvalues_decide():
    assert outcome(world()) is Outcome.SUPPORTED
    assert outcome(world(1.05)) is Outcome.REFUTED
    assert outcome(world(0.95)) is Outcome.REFUTED
    assert outcome(world(seeds=1)) is Outcome.INCONCLUSIVE


@pytest.mark.parametrize("mutation", [m for m in claim.CLAIM.mutations if m.change], ids=lambda m: m.name)
def test_mutations_refute_it(mutation):
    assert outcome(mutation.applied(world(), mutation.sizes[-1], claim.CLAIM.own_seed)) is Outcome.REFUTED


def test_sums_over_sectors_are_those_of_explicit_harmonics():
    """Degrees (1, 0), (0, 1), (1, 1): harmonics of degree one are sqrt(d) times the coordinates."""
    X = tokens.sphere(6, 4, 5, 0)
    found = dict(zip(claim.SECTORS, claim.sector_sums(X), strict=True))
    query = np.sqrt(5) * X[:, 0]
    keys = np.sqrt(5) * X[:, 1:].sum(1) / np.sqrt(3)
    both = np.einsum("ni,nj->nij", query, keys).reshape(6, -1)
    for sector, values in (((1, 0), query), ((0, 1), keys), ((1, 1), both)):
        assert found[sector] == pytest.approx(values @ values.T)
    assert found[0, 0] == pytest.approx(np.ones((6, 6)))


@pytest.mark.parametrize(("degree", "d", "count"), [(0, 5, 1), (1, 5, 5), (2, 8, 35), (2, 3, 5), (3, 3, 7)])
def test_harmonics_are_counted(degree, d, count):
    assert claim.harmonics(degree, d) == count


def test_a_small_run_sees_the_spectrum():
    results = [Measurement(POINT, seed, claim.measure(POINT, seed)) for seed in range(4)]
    ratios = np.mean([m.result["eigenvalues"] / m.result["theory"] for m in results], axis=0)
    assert ratios[:6] == pytest.approx(1, abs=0.01)  # the largest ones scatter by less than 1e-3
    longer = claim.compare(POINT, 0, 1.2)
    assert abs(longer["trace"] - 1) > 0.1
    assert len(claim.draw(results).axes) == 2
    assert claim.series(results)[0].theory == pytest.approx(results[0].result["theory"])


def test_its_words():
    assert "within" in claim.CLAIM.found(claim.CLAIM.verdict(world()))
