"""The fixed point against its closed form, against numbers of an independent prototype, and against a Gaussian toy."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq

from attlas.features import theory
from attlas.features.scoring import scoring_of
from attlas.features.sharp import biased, unbiased
from attlas.features.sharp.fixed_point import Equations, respond, solve
from attlas.features.sharp.groups import Apart
from attlas.features.sharp.spectrum import Sectors, Spectrum
from attlas.numerics import Status

NAMES = ["query1", "query2", "keys1", "keys2", "keys3", "corr1", "corr2", "corr3", "wcorr11"]

# errors over variance at a penalty, and the variance from unit noise, of an independent prototype
PUBLISHED = [
    ({}, 200, 0.004, "infinite", ".0004676 .39166 .0022225 .28118 .40784 .21672 1.5045 .58347 .49814 .52670"),
    ({}, 1000, 0.04, "infinite", "3.9084e-5 .073713 .00019112 .045439 .28225 .031785 1.1223 .35134 .21336 .17345"),
    ({"bias": 1.0}, 200, 0.004, "infinite", ".0079164 .42477 .07569 .34546 .46143 .21724 1.3965 .58555 .35101 .52557"),
    ({"scoring": "sigmoid"}, 200, 0.004,
     "infinite", ".000814 1.1944 .0001065 .36948 .35806 .29690 1.2804 .57258 .48659 .28149"),
    ({"offset_nodes": 0}, 200, 0.004, 100, ".01182 .67407 .011607 .34611 .45775 .36421 1.6715 .73516 .56494 .68921"),
    ({"learner": "network"}, 200, 0.004, 2000 / 9,
     ".043833 1.4119 .043833 1.4135 .45482 1.3882 1.5136 1.4228 .72879 .51174"),
    ({}, 200, 0.004, 100, ".013534 .67078 .015067 .36860 .46106 .39028 1.6771 .75546 .57372 .69466"),
    ({}, 1000, 0.04, 100, ".0062741 .29893 .0065271 .12762 .29962 .14780 1.1482 .43585 .29786 .17680"),
    ({"bias": 1.0, "offset_nodes": 8}, 200, 0.004, 100,
     ".023611 .69703 .11762 .45650 .53740 .38152 1.6099 .74978 .43798 .69950"),
]  # fmt: skip


def last_digit(text):
    """A unit of the last digit printed."""
    mantissa = text.split("e")[0]
    unit = 10.0 ** -len(mantissa.partition(".")[2]) * 10.0 ** int(text.partition("e")[2] or 0)
    return unit


@pytest.mark.parametrize(("options", "n", "ridge", "heads", "expected"), PUBLISHED)
def test_published_values(options, n, ridge, heads, expected):
    """The prototype puts what it cuts off into all groups alike, and so does this test; the next one says which is right."""
    predicted = theory(8, 8, **({"key_samples": 0, "offset_nodes": 10, "norm_nodes": 0} | options))
    if heads == 100 and options.get("offset_nodes") != 0:
        predicted.__dict__["finite"] = cut_alike(predicted.finite)
    found = predicted.curve(NAMES, n, heads=heads, ridge=ridge, noise=1.0)
    assert bool(found.converged.all())
    errors = [*(found.error - found.from_noise).values[:, 0], found.from_noise.values[0, 0]]
    for value, text in zip(errors, expected.split(), strict=True):
        assert value == pytest.approx(float(text), abs=last_digit(text), rel=0)


def cut_alike(spectrum):
    """The same spectrum with a flat sector that is the same in all groups."""
    flat = spectrum.parts[-1]
    L = np.array(flat.L)
    L[:, -1] = spectrum.weights @ L[:, -1] / spectrum.weights.sum()
    return replace(spectrum, parts=[*spectrum.parts[:-1], replace(flat, L=L)])


def noise_of(spectrum, n=200, ridge=0.004, heads=100):
    equations = Equations(spectrum, np.ones((1, 6)), n, ridge, heads)
    solution, image = solve(equations)
    assert solution.converged
    return respond(equations, solution.value, image).noise


def test_what_is_cut_off_belongs_to_its_group():
    """With the exact trace of each group the cut does not matter; shared alike it moves the sixth digit, or the third.

    0.69950 is what an independent prototype has, whose flat sector is the same in all groups.
    """
    relu = scoring_of("relu")
    coarse, fine = (biased.finite_spectrum(8, 8, relu, 1.0, degree, 2 * degree, 8) for degree in (6, 8))
    assert noise_of(coarse) == pytest.approx(noise_of(fine), rel=1e-6)
    assert noise_of(cut_alike(coarse)) == pytest.approx(0.69950, abs=6e-6)
    assert noise_of(coarse) == pytest.approx(0.698915, abs=1e-6)
    coarse, fine = (unbiased.finite_spectrum(8, 8, relu, degrees, 10) for degrees in (11, 19))
    assert noise_of(coarse) == pytest.approx(noise_of(fine), rel=1e-9)


def test_key_norms_move_the_errors_as_published():
    """20,000 key sets of the prototype's own; ours are others."""
    found = theory(8, 8, key_samples=20_000).curve(NAMES, 200, ridge=0.004, noise=1.0)
    expected = [0.000452, 0.3860, 0.002405, 0.2797, 0.4095, 0.2278, 1.5005, 0.5935, 0.4964]
    np.testing.assert_allclose((found.error - found.from_noise).values[:, 0], expected, rtol=3e-3)
    assert found.from_noise.values[0, 0] == pytest.approx(0.5348, rel=1e-3)


def test_one_group_is_the_closed_form():
    """n = sum lam/(lam + kappa) + ridge/kappa, error = (sum (kappa/(lam + kappa))^2 e + noise)/(1 - df2/n)."""
    lam, mu = np.array([0.5, 0.02, 1e-3, 1e-6]), np.array([1.0, 12.0, 150.0, 1e5])
    sectors = Sectors([[(k, 0)] for k in range(4)], mu, lam[None], np.ones((4, 1)))
    spectrum = Spectrum([sectors], Apart(np.ones(1), np.ones(1)), float(lam @ mu), 0.0)
    for n, ridge in ((20, 1e-3), (150, 0.1), (3000, 10.0), (100, 1e-7)):
        equations = Equations(spectrum, np.ones((1, 1)), n, ridge, np.inf)
        solution, image = solve(equations)
        found = respond(equations, solution.value, image)
        kappa = brentq(lambda k: mu @ (lam / (lam + k)) + ridge / k - n, 1e-14, 1e4, xtol=1e-300, rtol=1e-14)  # noqa: B023
        left = 1 - mu @ (lam / (lam + kappa)) ** 2 / n
        np.testing.assert_allclose(found.H, (kappa / (lam + kappa)) ** 2 / left, rtol=1e-8)
        assert found.noise == pytest.approx(1 / left - 1, rel=1e-8)
        assert found.freedom == pytest.approx(mu @ (lam / (lam + kappa)), rel=1e-9)


def test_a_gaussian_toy():
    """Gaussian features of a Gaussian input, 40 samples, 90 features: simulated here."""
    rng = np.random.default_rng(0)
    lam, mu = np.array([0.4, 0.05, 0.005]), np.array([3, 12, 60])
    p, n, M, ridge, draws = mu.sum(), 40, 90, 0.05, 300
    each = np.repeat(lam, mu)
    theta = np.zeros((p, 3))
    for column, start in enumerate((0, 3, 15)):
        theta[start, column] = 1
    errors = np.empty((draws, 4))
    for draw in range(draws):
        F = rng.standard_normal((M, p)) * np.sqrt(each / M)
        Z = rng.standard_normal((n, p))
        Phi = Z @ F.T
        inverse = np.linalg.solve(Phi @ Phi.T + ridge * np.eye(n), np.eye(n))
        fitted = F.T @ Phi.T @ inverse
        errors[draw, :3] = ((fitted @ Z @ theta - theta) ** 2).sum(0)
        errors[draw, 3] = (fitted**2).sum()
    sectors = Sectors([[(k, 0)] for k in range(3)], mu.astype(float), lam[None], np.ones((3, 1)))
    # one coordinate of a sector of mu functions: the theory averages over them
    equations = Equations(
        Spectrum([sectors], Apart(np.ones(1), np.ones(1)), float(lam @ mu), 0.0), np.ones((1, 1)), n, ridge, M
    )
    solution, image = solve(equations)
    found = respond(equations, solution.value, image)
    mean, error = errors.mean(0), errors.std(0, ddof=1) / np.sqrt(draws)
    for value, simulated, spread in zip([*found.H, found.noise], mean, error, strict=True):
        assert abs(value - simulated) < 4 * spread + 0.03 * simulated  # corrections of order 1/n


def test_derivatives_are_those_of_differences():
    for bias, heads in ((0.0, 100.0), (0.0, np.inf), (1.0, 60.0)):
        predicted = theory(6, 5, bias, key_samples=50, offset_nodes=3)
        spectrum = predicted.infinite if np.isinf(heads) else predicted.finite
        equations = Equations(spectrum, predicted.tau, 80, 0.01, heads)
        solution, _ = solve(equations)
        at = solution.value + 0.1
        image, step = equations.image(at), 1e-6
        for k in range(len(at)):
            move = step * np.eye(len(at))[k]
            difference = (equations.image(at + move).logs - equations.image(at - move).logs) / (2 * step)
            np.testing.assert_allclose(image.jacobian[:, k], difference, atol=1e-7)


def test_the_error_is_the_derivative_of_the_energy():
    """Solve again with Omega -> Omega + t/n: a sector's training energy lam R changes at the rate of its test error."""
    predicted = theory(6, 5, key_samples=40, offset_nodes=2)
    equations = Equations(predicted.finite, predicted.tau, 60, 0.02, 40)
    solution, image = solve(equations)
    found = respond(equations, solution.value, image)

    def energy(t):
        u = np.array(solution.value)
        for _ in range(400):  # damped steps on the shifted equations
            shifted = u.copy()
            shifted[: equations.kinds] = np.log(np.exp(u[: equations.kinds]) + t / equations.n)
            u = u + 0.5 * (equations.image(shifted).logs - u)
        shifted = u.copy()
        shifted[: equations.kinds] = np.log(np.exp(u[: equations.kinds]) + t / equations.n)
        last = equations.image(shifted)
        noise = equations.n * np.mean(1 / (1 + equations.tau @ last.terms.Q))
        return np.append(equations.ridge * last.solved[0][0], noise)

    step = 1e-4
    slope = (energy(step) - energy(-step)) / (2 * step)
    np.testing.assert_allclose(slope[:-1][:60], found.H[:60], rtol=1e-5)
    assert slope[-1] == pytest.approx(found.noise, rel=1e-5)


@pytest.mark.parametrize(("bias", "scoring"), [(0.0, "relu"), (0.0, "sigmoid"), (3.0, "relu")])
def test_no_valid_setting_fails(bias, scoring):
    """Sigmoid heads have next to nothing beyond the sectors kept: what rounding leaves there must not be negative."""
    predicted = theory(5, 4, bias, scoring, key_samples=200, offset_nodes=4)
    found = predicted.curve(
        "keys1", [2, 30, 1000, 1e6], heads=[5, 25, 10_000, "infinite"], alpha=[1e-8, 1e-4, 1, 1e3], noise=0.5
    )
    assert bool(found.converged.all())
    assert float(found.residual.max()) < 1e-10
    assert bool((found.error > 0).all())
    assert bool(
        (found.freedom <= np.minimum(found.n, 6 * found.heads) * (1 + 1e-9)).all()
    )  # not more than samples or features


def test_an_iteration_that_is_cut_short_says_so():
    predicted = theory(6, 5)
    solution, _ = solve(Equations(predicted.infinite, predicted.tau, 100, 1e-8, np.inf), max_steps=1)
    assert solution.status is Status.OUT_OF_STEPS
    assert solution.residual > 1e-10
