"""aim.gaussian-indices: second moments and distances from the Gaussian decide."""

import numpy as np
import pytest
from scipy import stats

from attlas.claims import Measurement, Outcome
from attlas.claims.aim import gaussian_indices
from attlas.layers import attention_indices

from ..broken import verdict_of
from .worlds import missed, outcome, with_seeds, with_sizes, world

CLAIM = gaussian_indices.CLAIM
POINTS = [gaussian_indices.Point(d=d, samples=20_000) for d in (8, 16, 32)]


def indices(power=-0.5, moments=1.0, scatter=1.0, **changes):
    """Distances that fall as this power of d, and second moments that are so many times Q."""

    def result(point, rng):
        pairs = point.tokens * (point.tokens + 1) // 2
        Q = gaussian_indices._expected_Q(point) * (1 + scatter * rng.normal(0, 0.5 / point.d))
        noise = scatter * rng.normal(0, 1 / np.sqrt(point.samples), (pairs, pairs))
        own = {"Q": Q, "moments": Q * (moments * np.eye(pairs) + noise + noise.T)}
        distances = 0.7 * (point.d / 16.0) ** power * np.exp(scatter * rng.normal(0, 0.05, 3)) / 16
        return own | dict(zip(gaussian_indices.DISTANCES, distances, strict=True)) | changes

    return world(CLAIM, result)


def test_moments_and_distances_decide():
    assert outcome(CLAIM, indices()) is Outcome.SUPPORTED
    for sign in (1, -1):
        assert outcome(CLAIM, indices(moments=1 + 2 * sign * gaussian_indices.EPS)) is Outcome.REFUTED
    assert outcome(CLAIM, indices(power=0.0)) is Outcome.REFUTED
    assert outcome(CLAIM, indices(joint=0.0)) is Outcome.REFUTED  # of a sample it never is


def test_what_it_must_refute():
    assert missed(CLAIM, indices()) == {}


@pytest.mark.parametrize("few", [with_seeds(indices(), 1), with_sizes(indices(), 2), indices(joint=1e-4)])
def test_too_little_decides_nothing(few):
    """Also distances that the samples do not resolve."""
    assert outcome(CLAIM, few) is Outcome.INCONCLUSIVE


def test_noise_supports_nothing():
    assert outcome(CLAIM, indices(scatter=30)) is not Outcome.SUPPORTED


def test_measurements_are_not_refuted():
    verdict = verdict_of(CLAIM, POINTS, seeds=8)
    assert verdict.outcome is not Outcome.REFUTED
    assert verdict.numbers["rho = 0.5, T = 2: moment[0,0] over Q"] == pytest.approx(1, abs=0.01)
    assert verdict.numbers["rho = 0.5, T = 2: exponent of the diagonal distance"] == pytest.approx(-0.5, abs=0.15)


def test_the_moments_are_calibrated():
    """Over 40 runs the p-values of moments are uniform: no bias at any d, no understated error."""
    points = [gaussian_indices.Point(d=d, samples=1000) for d in (16, 24, 32)]
    p_values = []
    for run in range(40):
        results = [gaussian_indices.measure(p, s) for p in points for s in range(1000 * run, 1000 * run + 4)]
        for i, j in zip(*np.triu_indices(3), strict=True):
            p_values.append(stats.ttest_1samp([r["moments"][i, j] / r["Q"] - (i == j) for r in results], 0).pvalue)
    assert stats.kstest(p_values, "uniform").pvalue > 1e-3


@pytest.mark.parametrize(
    "broken",
    [
        lambda X, S: attention_indices(X, S) * (1 - 0.2 * np.eye(X.shape[1])),  # diagonal variance 1.28 Q, not 2 Q
        lambda X, S: attention_indices(X, S) + np.eye(X.shape[1]) * np.trace(S) / np.sqrt(len(S)),  # not centred
        lambda X, S: attention_indices(X, S) * np.sqrt(len(S) / 4),  # wrong power of d
        lambda X, S: attention_indices(X, S) * X[:, :1, :1] ** 2 / np.sqrt(3),  # right variance, heavy tails for all d
        lambda X, S: attention_indices(X, S) + 0.3 * attention_indices(X, S)[:, :1, :1],  # correlated
    ],
    ids=["variance", "centre", "scale", "tails", "correlation"],
)
def test_a_broken_formula_refutes_it(monkeypatch, broken):
    monkeypatch.setattr(gaussian_indices, "attention_indices", broken)
    assert verdict_of(CLAIM, POINTS, seeds=6).outcome is Outcome.REFUTED


def test_a_teacher_of_rank_one_refutes_it(monkeypatch):
    """With width 1 whatever d, indices are products of two Gaussians and never become Gaussian."""

    def spike(d, rho, seed):
        w = seed.standard_normal(d)
        return np.outer(w, w) * np.sqrt((1 + rho) * d) / (w @ w)

    monkeypatch.setattr(gaussian_indices, "teacher", spike)
    assert verdict_of(CLAIM, POINTS, seeds=6).outcome is Outcome.REFUTED


@pytest.mark.parametrize(("samples", "seeds"), [(100, 8), (500, 20)])
def test_what_the_samples_do_not_resolve_refutes_nothing(samples, seeds):
    """Few samples flatten the distances at their own resolution; that is no evidence against the claim."""
    points = [gaussian_indices.Point(d=d, samples=samples) for d in (16, 32, 64, 128)]
    rows = [Measurement(p, s, gaussian_indices.measure(p, s)) for p in points for s in range(seeds)]
    assert outcome(CLAIM, rows) is Outcome.INCONCLUSIVE


def test_distance_is_the_kolmogorov_smirnov_statistic():
    x = np.random.default_rng(0).standard_t(3, 500)
    expected = stats.kstest(x, stats.norm(scale=np.sqrt(1.7)).cdf).statistic
    assert gaussian_indices._distance(x, 1.7) == pytest.approx(expected, abs=1e-12)


def test_same_seed_same_bits():
    first, second = (gaussian_indices.measure(gaussian_indices.Point(d=16, samples=500), 3) for _ in range(2))
    assert all(np.array_equal(first[name], second[name]) for name in first)


def test_a_teacher_of_no_width_is_refused():
    with pytest.raises(ValueError, match="no width"):
        gaussian_indices.Point(d=16, rho=0.01)


def test_draws_many_widths():
    points = [gaussian_indices.Point(d=d, rho=rho, samples=200) for d in (16, 32) for rho in np.linspace(0.2, 2, 9)]
    figure = gaussian_indices.draw([Measurement(p, 0, gaussian_indices.measure(p, 0)) for p in points])
    assert len(figure.axes) == 2


def test_finding():
    said = CLAIM.found(CLAIM.verdict(indices(scatter=1e-4)))
    assert "agree with theory to 0.0%" in said
    assert "falls as d to the power -0.50 ± " in said
    numbers = {"a: moment[0,0] over Q": 0.997, "a: moment[0,0] over Q ±": 0.1, "a: moment[0,1] over Q": 0.001,
               "exponent of the joint distance": -0.49, "exponent of the joint distance ±": 0.02,
               "exponent of the diagonal distance": -0.8, "exponent of the diagonal distance ±": 0.3}  # fmt: skip
    said = gaussian_indices.finding(numbers)
    assert "agree with theory to 0.3%" in said
    assert "falls as d to the power -0.49 ± 0.02 or faster" in said
    with pytest.raises(LookupError):
        gaussian_indices.finding({"a: moment[0,0] over Q": 0.0})


def test_series():
    point = gaussian_indices.Point(d=10, rho=0.5)
    rows = [
        Measurement(point, seed, {"diagonal": x, "off_diagonal": 2 * x, "joint": 3 * x, "moments": np.diag([x, 1, 2])})
        for seed, x in enumerate((0.1, 0.3))
    ]
    *distances, moments = gaussian_indices.series(rows)
    assert [s.name for s in distances] == list(gaussian_indices.DISTANCES.values())
    assert [s.mean[0] for s in distances] == pytest.approx([0.2, 0.4, 0.6])
    assert [s.standard_error[0] for s in distances] == pytest.approx([0.1, 0.2, 0.3])
    assert moments.x == (1 / 10,)
    assert moments.mean == pytest.approx((3.2 / 3,))
    assert moments.theory == pytest.approx((1 + 0.5 + 0.1,))  # 1 + r/d + 1/d
