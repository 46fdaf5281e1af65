import numpy as np
import pytest
from scipy import stats

from attlas.claims import Measurement, Outcome
from attlas.claims.aim import gaussian_indices
from attlas.layers import attention_indices

from ..broken import verdict_of

POINTS = [gaussian_indices.Point(d=d, samples=40_000) for d in (16, 32, 64, 128)]


def test_holds():
    """A true claim is refuted by chance in one of a hundred sets of seeds; 0 to 5 happens to be one (p = 8e-4)."""
    assert verdict_of(gaussian_indices.CLAIM, POINTS, seeds=6, first=100).outcome is Outcome.SUPPORTED


def test_the_tests_of_the_judge_are_calibrated():
    """Over 100 runs the p-values of its moment tests are uniform: no bias at any d, no understated error."""
    points = [gaussian_indices.Point(d=d, samples=1000) for d in (16, 24, 32)]
    p_values = []
    for run in range(100):
        results = [gaussian_indices.measure(p, s) for p in points for s in range(1000 * run, 1000 * run + 4)]
        for i, j in zip(*np.triu_indices(3), strict=True):
            p_values.append(stats.ttest_1samp([r["moments"][i, j] / r["Q"] - (i == j) for r in results], 0).pvalue)
    assert stats.kstest(p_values, "uniform").pvalue > 1e-3


@pytest.mark.parametrize(
    "broken",
    [
        lambda X, S: attention_indices(X, S) * (1 - 0.2 * np.eye(X.shape[1])),  # diagonal variance 1.28 Q, not 2 Q
        lambda X, S: attention_indices(X, S) + np.eye(X.shape[1]) * np.trace(S) / np.sqrt(len(S)),  # not centred
        lambda X, S: attention_indices(X, S) * np.sqrt(len(S) / 30),  # wrong power of d
        lambda X, S: attention_indices(X, S) * X[:, :1, :1] ** 2 / np.sqrt(3),  # right variance, heavy tails for all d
        lambda X, S: attention_indices(X, S) + 0.3 * attention_indices(X, S)[:, :1, :1],  # correlated
    ],
    ids=["variance", "centre", "scale", "tails", "correlation"],
)
def test_a_broken_formula_refutes_it(monkeypatch, broken):
    monkeypatch.setattr(gaussian_indices, "attention_indices", broken)
    assert verdict_of(gaussian_indices.CLAIM, POINTS, seeds=6).outcome is Outcome.REFUTED


def test_a_teacher_of_rank_one_refutes_it(monkeypatch):
    """With width 1 whatever d, indices are products of two Gaussians and never become Gaussian."""

    def spike(d, rho, seed):
        w = seed.standard_normal(d)
        return np.outer(w, w) * np.sqrt((1 + rho) * d) / (w @ w)

    monkeypatch.setattr(gaussian_indices, "teacher", spike)
    assert verdict_of(gaussian_indices.CLAIM, POINTS, seeds=6).outcome is Outcome.REFUTED


def test_too_little_is_inconclusive():
    assert verdict_of(gaussian_indices.CLAIM, POINTS[:2]).outcome is Outcome.INCONCLUSIVE
    assert verdict_of(gaussian_indices.CLAIM, POINTS, seeds=1).outcome is Outcome.INCONCLUSIVE


def test_distance_is_the_kolmogorov_smirnov_statistic():
    x = np.random.default_rng(0).standard_t(3, 500)
    expected = stats.kstest(x, stats.norm(scale=np.sqrt(1.7)).cdf).statistic
    assert gaussian_indices._distance(x, 1.7) == pytest.approx(expected, abs=1e-12)


def test_same_seed_same_bits():
    first, second = (gaussian_indices.measure(gaussian_indices.Point(d=16, samples=500), 3) for _ in range(2))
    assert all(np.array_equal(first[name], second[name]) for name in first)


def test_draws():
    figure = gaussian_indices.draw(
        [Measurement(p, s, gaussian_indices.measure(p, s)) for p in POINTS[:2] for s in range(2)]
    )
    assert len(figure.axes) == 2


@pytest.mark.parametrize(("samples", "seeds"), [(100, 8), (500, 40)])
def test_what_the_samples_do_not_resolve_refutes_nothing(samples, seeds):
    """Few samples flatten the distances at their own resolution; that is no evidence against the claim."""
    points = [gaussian_indices.Point(d=d, samples=samples) for d in (16, 32, 64, 128)]
    assert verdict_of(gaussian_indices.CLAIM, points, seeds=seeds).outcome is not Outcome.REFUTED


def test_a_teacher_of_no_width_is_refused():
    with pytest.raises(ValueError, match="no width"):
        gaussian_indices.Point(d=16, rho=0.01)


def test_draws_many_widths():
    points = [gaussian_indices.Point(d=d, rho=rho, samples=200) for d in (16, 32) for rho in np.linspace(0.2, 2, 9)]
    gaussian_indices.draw([Measurement(p, 0, gaussian_indices.measure(p, 0)) for p in points])


def test_finding():
    numbers = {"moment[0,0]": -0.003, "moment[0,0] ±": 0.1, "moment[0,1]": 0.001,
               "exponent of the joint distance": -0.49, "exponent of the diagonal distance": -0.8}  # fmt: skip
    said = gaussian_indices.finding(numbers)
    assert "agree with theory to 0.3%" in said
    assert "falls as d^-0.49 or faster" in said
    with pytest.raises(LookupError):
        gaussian_indices.finding({"moment[0,0]": 0.0})


def test_series():
    rows = [
        Measurement(gaussian_indices.Point(d=10), seed,
                    {"diagonal": x, "off_diagonal": 2 * x, "joint": 3 * x, "moments": np.diag([x, 1, 2])})
        for seed, x in enumerate((0.1, 0.3))
    ]  # fmt: skip
    *distances, moments = gaussian_indices.series(rows)
    assert [s.name for s in distances] == list(gaussian_indices.DISTANCES.values())
    assert [s.mean[0] for s in distances] == pytest.approx([0.2, 0.4, 0.6])
    assert [s.standard_error[0] for s in distances] == pytest.approx([0.1, 0.2, 0.3])
    assert moments.x == (1 / 10,)
    assert moments.mean == pytest.approx((3.2 / 3,))
    assert moments.theory == pytest.approx((1 + 0.5 + 0.1,))  # 1 + r/d + 1/d
