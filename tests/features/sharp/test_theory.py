"""The theory as a user meets it: against simulation, against published sample costs, and what it refuses."""

import numpy as np
import pytest

from attlas import features, tokens
from attlas.errors import InputError
from attlas.features import targets
from attlas.features.sharp.expansion import expansions
from attlas.features.sharp.harmonics import harmonics, power_moment
from attlas.numerics import stream

BETA = np.eye(8)[0]


def simulated(kernel, functions, n, ridge, d, N, seeds):
    """Return mean and standard error of the test error over variance of kernel ridge regression, (functions,)."""
    found = []
    for seed in range(seeds):
        X, X_test = (tokens.sphere(count, N + 1, d, stream(seed, f"{count} sequences")) for count in (n, 400))
        K, cross = kernel(X, X, seed), kernel(X_test, X, seed)
        Y, expected = (np.stack([f(x) for f in functions], axis=1) for x in (X, X_test))
        fitted = cross @ np.linalg.solve(K + ridge * np.eye(n), Y)
        found.append(np.mean((fitted - expected) ** 2, axis=0))
    return np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / np.sqrt(seeds)


@pytest.mark.parametrize("bias", [0.0, 2.0])
def test_infinitely_many_heads_as_simulated(bias):
    functions = [targets.Query(BETA, 2), targets.KeyAverage(BETA, 1), targets.KeyAverage(BETA, 2)]
    functions += [targets.Correlation(1), targets.Correlation(1, beta=BETA, key_power=1)]

    def kernel(X, X2, seed):
        return features.attention_kernel(X, X2, bias=bias)

    mean, error = simulated(kernel, functions, 120, 0.01, 8, 6, 10)
    predicted = features.theory(8, 6, bias).curve(functions, 120, ridge=0.01).mse.values[:, 0]
    assert np.all(np.abs(predicted - mean) < 3 * error + 0.1 * mean)


def test_finitely_many_heads_as_simulated():
    functions = [targets.KeyAverage(BETA, 2), targets.Correlation(1), targets.Correlation(1, beta=BETA, key_power=1)]

    def kernel(X, X2, seed):
        made = features.RandomAttentionFeatures(100, random_state=seed).fit(X)
        return made.transform(X) @ made.transform(X2).T

    mean, error = simulated(kernel, functions, 150, 0.004, 8, 6, 12)
    predicted = features.theory(8, 6).curve(functions, 150, heads=100, ridge=0.004).mse.values[:, 0]
    assert np.all(np.abs(predicted - mean) < 3 * error + 0.1 * mean)


def test_published_sample_costs():
    """Of 16 keys at d = 8; the published ones are interpolated between sizes, so they differ by a few percent."""
    for bias, costs in ((0.0, {"keys2": 134, "corr1": 119, "query2": 102}), (1.0, {"corr1": 93, "scorr1": 132})):
        for name, cost in costs.items():
            assert features.theory(8, 16, bias).sample_cost(name).value == pytest.approx(cost, rel=0.03)


def test_exponents_approach_their_limits():
    """Published slopes between d and 2d: 1.93 (32 to 64), 1.96 (64 to 128) for a correlation; its limit is 2."""
    found = features.theory(8, 16).exponent(targets.Correlation(1), d=[8, 16, 32, 64, 128])
    np.testing.assert_allclose(found.slope.values[:-1], [1.76, 1.87, 1.93, 1.96], atol=0.06)
    assert np.isnan(found.slope.values[-1])
    assert bool(found.converged.all())
    biased = features.theory(8, 16, 1.0).exponent("corr1", d=[16, 32])
    assert biased.slope.values[0] == pytest.approx(1.15, abs=0.04)
    assert features.theory(8, 16).exponent(lambda d: targets.Query(np.eye(d)[0], 2), d=[8, 16]).slope[0] > 1.7


def test_the_best_penalty_is_the_best():
    predicted = features.theory(8, 8)
    for heads in ("infinite", 60):
        best = predicted.curve(["keys2", "corr2"], [60, 400], heads=heads, noise=0.3)
        grid = predicted.curve(["keys2", "corr2"], [60, 400], heads=heads, noise=0.3, alpha=np.logspace(-8, 3, 89))
        assert bool((best.error <= grid.error.min("penalty") * 1.0005).all())
        np.testing.assert_allclose(best.ridge, best.alpha * predicted.trace)


def test_where_the_unbiased_layer_overtakes():
    predicted = features.theory(8, 8)
    found = predicted.crossing("corr1", bias=(0, 1))
    assert found.converged
    errors = [
        features.theory(8, 8, bias).curve("corr1", [0.9 * found.value, 1.1 * found.value]).error for bias in (0, 1)
    ]
    assert errors[0][0] > errors[1][0]
    assert errors[0][1] < errors[1][1]
    assert predicted.crossing("corr1", bias=(1, 0)).value == np.inf  # the biased one never overtakes for good


def test_outputs_add_up():
    """(1/N) sum_i <x_0, x_i> x_i is d copies of one weighted correlation."""
    predicted = features.theory(8, 8)
    axes = targets.Outputs([targets.Correlation(1, beta=axis, key_power=1) for axis in np.eye(8)])
    one = predicted.curve("wcorr11", 300, alpha=0.1)
    assert float(predicted.curve(axes, 300, alpha=0.1).mse[0]) == pytest.approx(8 * float(one.mse[0]))
    X = tokens.sphere(5, 9, 8, 0)
    np.testing.assert_allclose(axes(X), np.einsum("nd,nkd,nke->ne", X[:, 0], X[:, 1:], X[:, 1:]) / 8)
    with_bias = features.theory(8, 8, 1.0).curve(axes, 300, alpha=0.1)
    assert bool(with_bias.converged.all())
    # other targets of a model share its solution
    both = predicted.curve(["wcorr11", "keys2"], 300, alpha=0.1)
    assert float(both.mse[0, 0]) == pytest.approx(float(one.mse[0]))


def test_what_no_sector_holds_is_never_learned():
    """A contrast between keys, without position codes: what is left is all of it, and it acts as noise."""
    signs = np.array([1.0, -1.0] * 4)
    found = features.theory(8, 8).curve(targets.KeyAverage(BETA, 1, weights=signs), [100, 10_000])
    np.testing.assert_allclose(found.error, 1.0, rtol=0.02)
    assert float(found.error.min()) >= 1
    coded = features.theory(8, 8, positions=1.0).curve(targets.KeyAverage(BETA, 1, weights=signs), [100, 10_000])
    assert float(coded.error[-1]) < 0.05


def test_published_errors_with_position_codes():
    """Best penalty, d = N = 8, n = 500; the published ones leave out how long contrasts are."""
    signs, first = np.array([1.0] * 6 + [-1.0] * 2), 8 * np.eye(8)[0]
    functions = ["keys2", "corr1", targets.KeyAverage(BETA, 1, weights=signs)]
    functions += [targets.Correlation(1, weights=signs), targets.KeyAverage(BETA, 1, weights=first)]
    published = {0.25: [0.057, 0.038, 0.213, 0.817, 0.248], 4.0: [0.474, 0.220, 0.037, 0.472, 0.043]}
    for weight, expected in published.items():
        found = features.theory(8, 8, positions=weight).curve(functions, 500).error.values[:, 0]
        np.testing.assert_allclose(found, expected, rtol=0.04, atol=5e-4)


def test_published_errors_of_sigmoid():
    """Best penalty, d = N = 8, n = 600: the published ones are the best of a grid."""
    found = features.theory(8, 8, scoring="sigmoid").curve(["keys2", "corr1", "wcorr11", "query2", "corr3"], 600)
    np.testing.assert_allclose(found.error.values[:, 0], [0.0005, 0.0003, 0.0125, 0.166, 0.374], rtol=0.06, atol=5e-5)


def test_expansions_have_the_energy_of_the_target():
    """Against the variance over sequences, and weighted correlations against a published recursion."""
    X = tokens.sphere(40_000, 2, 6, 0)
    beta = np.array([0.6, 0.8, 0, 0, 0, 0]) * 1.3
    S = np.random.default_rng(0).standard_normal((6, 6))
    rotation = np.linalg.qr(S)[0]
    for target in (
        targets.Query(beta, 3),
        targets.KeyAverage(beta, 4),
        targets.Correlation(3),
        targets.Correlation(1, S=S),
        targets.Correlation(2, S=2 * rotation),
        targets.Correlation(2, beta=beta, key_power=3),
        targets.Correlation(3, S=-2 * np.eye(6)),
    ):
        (found,) = expansions(target, 6, False)
        y = target(X)
        spread = (y**2).std() / np.sqrt(len(y))
        assert sum(found.energies.values()) == pytest.approx((y**2).mean(), abs=4 * spread)
        mean = found.energies.get((0, 0), 0.0)
        assert np.sqrt(mean) == pytest.approx(abs(y.mean()), abs=4 * y.std() / np.sqrt(len(y)))
    d, p = 8, 3
    (found,) = expansions(targets.Correlation(p, beta=np.eye(d)[0], key_power=1), d, True)
    T, N = {0: 1 / d}, harmonics
    for a in range(1, p + 2):
        T[a] = float(N(a, d)) / d - T[a - 1]
    for a in (1, 3):
        al = float(N(a, d)) * power_moment(p, a, d)
        assert found.energies[a, a + 1] == pytest.approx(al**2 * T[a] / float(N(a, d)) ** 2, rel=1e-10)
        assert found.energies[a, a - 1] == pytest.approx(al**2 * T[a - 1] / float(N(a, d)) ** 2, rel=1e-10)


def test_the_spectrum_as_a_table():
    table = features.theory(8, 8).spectrum("corr3")
    assert float(table.share.sel(sector="(1, 1)")) == pytest.approx(9 * 12 / (15 * 10))  # 9 (d + 4)/(15 (d + 2))
    assert float(table.share.sum()) == pytest.approx(1)
    assert np.all(np.diff(table.eigenvalue) <= 0)
    assert float(table.multiplicity.sel(sector="(2, 1)")) == 280
    biased = features.theory(8, 8, 1.0).spectrum("corr1")
    assert float(biased.share.sum()) == pytest.approx(1)
    assert all(name.startswith("[0, 0]") for name in biased.sector.values[biased.share.values > 1e-12])


def test_few_heads_are_said_to_be_outside():
    predicted = features.theory(8, 8)
    assert "fewer heads than d^2 = 64" in predicted.curve("keys1", 100, heads=50, alpha=1.0).attrs["outside"]
    assert predicted.curve("keys1", 100, heads=100, alpha=1.0).attrs["outside"] == ""
    found = predicted.curve("keys1", [100], heads=[50, "infinite"], alpha=1.0)
    assert float(found.deviation[0, 0]) > float(found.deviation[1, 0])


def test_own_tokens_agree_with_the_sphere():
    """At n = n0/20 within the named bias; softmax and values work too."""
    X = tokens.sphere(1200, 7, 6, 0)
    own, exact = features.theory_of(X), features.theory(6, 6, key_samples=0)
    beta = np.eye(6)[0]
    for target in (targets.KeyAverage(beta, 1), targets.Correlation(1)):
        measured = own.curve(target, 60, ridge=0.05)
        assert float(measured.error[0] / exact.curve(target, 60, ridge=0.05).error[0]) == pytest.approx(1, abs=0.15)
        assert measured.attrs["outside"] == ""
        assert float(measured.deviation[0]) == pytest.approx(0.2)
    assert "too low by about n/n0" in own.curve(beta @ X[:, 0].T, 400, alpha=1.0).attrs["outside"]
    assert own.sample_cost("keys2").value < 600
    assert own.trace == pytest.approx(exact.trace, rel=0.02)
    assert bool(features.theory_of(X[:300], activation="softmax").curve("keys1", 15, heads=100).converged.all())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: features.theory(8, 8).curve(lambda X: X[:, 0, 0], 100), "has no expansion in harmonics"),
        (lambda: features.theory(8, 8, 1.0).curve({(1, 1): 1.0}, 100), "no expansion for a theory with a bias"),
        (lambda: features.theory(8, 8, 1.0).curve("scorr2", 100), "no expansion for a theory with a bias"),
        (
            lambda: features.theory(8, 8).curve(targets.Correlation(2, S=np.diag(np.arange(8.0))), 100),
            "orthogonal S only",
        ),
        (lambda: features.theory(8, 8).curve({(1, 1): -1.0}, 100), "energies are"),
        (lambda: features.theory(8, 8).curve({(0, 0): 1.0}, 100), "must not all be zero"),
        (lambda: features.theory(4, 8, bias=1.0), "needs d of at least 5"),
        (lambda: features.theory(2, 8), "d must be an integer of at least 3"),
        (lambda: features.theory(8, 0), "keys must be an integer"),
        (lambda: features.theory(8, 8, np.eye(8)), "a general W_0 has no such spectrum"),
        (lambda: features.theory(8, 8, scoring="softmax"), "couples the keys"),
        (lambda: features.theory(8, 8, scoring="softplus"), "scoring must be one of relu, exp, sigmoid"),
        (lambda: features.theory(8, 8, 1.0, positions=1.0), "set one of them to 0"),
        (lambda: features.theory(8, 8, 1.0, learner="network"), "leave both 0"),
        (lambda: features.theory(8, 8, learner="transformer"), "learner must be"),
        (lambda: features.theory(8, 8).curve("keys1", 100, noise=-0.1), "noise must be a finite number of at least 0"),
        (lambda: features.theory(8, 8).curve("keys1", 100, heads=0), "heads must be a finite number greater than 0"),
        (lambda: features.theory(8, 8).curve("keys1", 100, heads="many"), "or 'infinite'"),
        (lambda: features.theory(8, 8).curve("keys1", 0), "n must be finite and greater than 0"),
        (lambda: features.theory(8, 8).curve("keys1", 100, alpha="loo"), "or 'best'"),
        (lambda: features.theory(8, 8).curve("keys1", 100, alpha=0.0), "alpha must be finite and greater than 0"),
        (lambda: features.theory(8, 8).curve("keys1", 100, alpha=1.0, ridge=1.0), "not both"),
        (lambda: features.theory(8, 8).curve("keys9x", 100), "named by its family and power"),
        (lambda: features.theory(8, 8).curve("values2", 100), "named by its family"),
        (lambda: features.theory(8, 8).curve(targets.Query(np.ones(5)), 100), "dimension 5, not d = 8"),
        (lambda: features.theory(8, 8).curve([], 100), "must not be empty"),
        (lambda: features.theory(8, 8).sample_cost("keys1", share=1.5), "share must lie between 0 and 1"),
        (lambda: features.theory(8, 8).exponent("keys1", d=[8]), "two increasing dimensions"),
        (lambda: features.theory(8, 8).exponent("keys1", d=8), "two increasing dimensions"),
        (lambda: features.theory(8, 8).crossing("corr1", bias=1), "a pair of strengths"),
        (lambda: features.theory(8, 8).crossing("corr1", bias=(0, 1, 2)), "a pair of strengths"),
        (lambda: features.theory(8, 8, scoring=lambda s: 0 * s), "zero on every score"),
        (lambda: features.theory(8, 8, offset_nodes=400), "at most 32"),
        (
            lambda: features.theory_of(tokens.sphere(20, 4, 5, 0), activation="softmax", positions=1.0),
            "leave positions 0",
        ),
        (lambda: features.theory_of(tokens.sphere(20, 4, 5, 0), kernel="a"), "kernel must be"),
        (lambda: features.theory_of(tokens.sphere(20, 4, 5, 0), kernel=-np.eye(20)), "positive semidefinite"),
        (lambda: features.theory_of(tokens.sphere(20, 4, 5, 0), kernel=np.zeros((20, 20))), "positive semidefinite"),
        (
            lambda: features.theory_of(tokens.sphere(20, 4, 5, 0)).curve(np.ones((20, 2)) * [1, 2], 3),
            "not all the same",
        ),
        (lambda: features.theory_of(np.zeros((3, 4, 5))), "some hundred sequences"),
        (lambda: features.theory_of(tokens.sphere(20, 4, 5, 0), kernel=np.eye(3)), "kernel must be"),
        (lambda: features.theory_of(tokens.sphere(20, 4, 5, 0)).curve([1.0, 2.0], 3), "values on the 20 given"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
