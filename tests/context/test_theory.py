"""The theory against checked numbers, published closed forms, the same formulas in 60 digits, and its limits."""

from importlib import import_module
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attlas import context
from attlas.errors import ConvergenceError, InputError
from attlas.numerics import Status

mpmath = pytest.importorskip("mpmath")


def powers(d, p):
    c = np.arange(1.0, d + 1) ** -p
    return c / c.mean()


# alpha, kappa, tau, ridge, noise: icl, idg, training, effective; computed once by two independent routes, 12 digits
CHECKED = {
    (2, 0.5, 0.5, 0, 0.1): (1.330052717875, 0.801078721116, 0, 1.065964600978),
    (2, 0.5, 2, 0, 0.1): (1.338451293643, 0.586280456295, 0.146570114074, 0),
    (2, 2, 0.5, 0, 0.1): (1.259275717033, 1.112883313780, 0, 1.398331477355),
    (2, 2, 2, 0, 0.1): (1.023354616203, 0.822509571238, 0.205627392809, 0),
    (2, 2, 1, 0.1, 0.1): (1.251008593028, 1.045456362341, 0.059910887885, 0.417734242804),
    (2, 2, 1, 0.01, 0.1): (3.098652713327, 2.579795611562, 0.018344571830, 0.118587485373),
    (10, 0.5, 2, 0.05, 0.1): (0.881496181232, 0.217984381085, 0.084003440762, 0.080544178297),
    (10, 2, 2, 0.05, 0.1): (0.436543656572, 0.328783148714, 0.101209778230, 0.090118414610),
    (1, 1, 0.8, 0.2, 0.5): (2.579859209702, 2.258719621023, 0.067075428272, 1.160591620888),
    (0.5, 4, 1.5, 0.1, 0.25): (2.281996209673, 2.191010215940, 0.317503712134, 0.262692574999),
    (5, inf, 1.5, 0.02, 0.1): (0.723067818552, 0.723067818552, 0.094858725357, 0.055218025097),
    (4, 0.2, 0.3, 0.01, 0.05): (1.029589243307, 0.267157283298, 0.000017571110, 1.233059134291),
}


@pytest.mark.parametrize(("point", "expected"), CHECKED.items())
def test_checked_numbers(point, expected):
    found = context.theory(*point)
    assert (found.icl, found.idg, found.training, found.effective) == pytest.approx(expected, abs=6e-13)
    assert found.status is Status.CONVERGED
    assert found.value == found.icl


def test_checked_numbers_of_long_contexts_and_of_the_population():
    found = context.theory(100, 1, inf, 0, 0.1)
    assert (found.icl, found.idg) == pytest.approx((0.161754988580, 0.109905225033), abs=6e-13)
    assert context.theory(2, 2, 2, 0.05, 0.1, test_alpha=20).icl == pytest.approx(0.629672344291, abs=6e-13)
    rows = {0.5: (0.802433, 0.293140), 1: (0.621338, 0.366219), 2: (0.520257, 0.411255), 4: (0.481435, 0.433671)}
    for kappa, expected in (rows | {inf: (0.454839, 0.454839)}).items():
        found = context.theory(2, kappa, inf, 0, 0.1)
        assert (found.icl, found.idg) == pytest.approx(expected, abs=6e-7)


@pytest.mark.parametrize(
    ("p1", "p2", "point", "expected"),
    [
        (1, 0, (2, 1, 1.5, 0.05, 0.1), (1.265372955190, 0.672884206271, 0.121971291484, 0.633007077778)),
        (1, 1, (2, 1, 1.5, 0.05, 0.1), (0.901633274411, 0.672884206271, 0.121971291484, 0.633007077778)),
        (0, 1, (4, 0.5, 0.5, 0.01, 0.1), (1.197765006476, 0.625776460482, 0.704690694241, 0.409970535579)),
    ],
)
def test_checked_numbers_of_structured_tasks(p1, p2, point, expected):
    found = context.theory(*point, spectrum=powers(40, p1), test_spectrum=powers(40, p2))
    assert (found.icl, found.idg, found.effective, found.s) == pytest.approx(expected, abs=6e-13)


@pytest.mark.parametrize(
    ("point", "best", "error", "matched", "flat"),
    [
        ((0.5, 2, 0), 1.60, 0.8057, 0.8606, 1.3023),
        ((0.5, 2, 0.1), 1.50, 0.5819, 0.6117, 0.9177),
        ((2, 2, 0), 0.75, 0.6072, 0.6162, 0.7658),
        ((2, 2, 0.1), 0.95, 0.4671, 0.4676, None),
        ((2, inf, 0), 0.85, 0.3029, 0.3041, None),
        ((inf, inf, 0), 1.00, 0.2748, 0.2748, None),
    ],
)
def test_the_best_exponent_of_pretraining(point, best, error, matched, flat):
    def icl(p):
        return context.theory(4, *point, 0.1, spectrum=powers(64, p), test_spectrum=powers(64, 1)).icl

    grid = np.round(np.arange(best - 0.25, best + 0.3, 0.05), 2)
    values = [icl(p) for p in grid]
    assert grid[np.argmin(values)] == pytest.approx(best)
    assert min(values) == pytest.approx(error, abs=6e-5)
    assert icl(1) == pytest.approx(matched, abs=6e-5)
    assert flat is None or icl(0) == pytest.approx(flat, abs=6e-5)


@pytest.mark.parametrize("alpha", [0.3, 2, 40])
@pytest.mark.parametrize("kappa", [0.2, 1, 3])
@pytest.mark.parametrize("tau", [0.2, 0.9, 1.1, 5])
def test_the_published_closed_form_without_ridge(alpha, kappa, tau):
    """Result 1 of lu2024asymptotic, with its own Stieltjes transform of a Wishart matrix."""
    rho = 0.3
    q = (1 + rho) / alpha

    def stieltjes(x, ratio):
        b = x + 1 - 1 / ratio
        return 2 / (b + np.sqrt(b * b + 4 * x / ratio))

    m, mu = stieltjes(q, kappa), q * stieltjes(q, kappa / tau)
    if tau < 1:
        bracket = 1 - tau * (1 - mu) ** 2 - (1 - rho / q) * mu
        expected = tau * (1 + q) / (1 - tau) * bracket - 2 * tau * (1 - mu) + 1 + rho
    else:
        k = 1 / (1 - kappa * (m / (kappa + m)) ** 2)
        expected = (
            (k - 1 / (tau - 1)) * (1 + q) * (q * m) ** 2
            + (3 - 2 * tau) / (tau - 1) * m * q * q
            + ((1 + rho) / (tau - 1) * m + 1) * q
            + rho * m / (tau - 1)
            + rho
        )
    assert context.theory(alpha, kappa, tau, 0, rho).icl == pytest.approx(expected, rel=1e-12)


def test_a_number_of_a_public_notebook():
    """Printed by the authors' notebook of the closed form, at tau = 0.5, alpha = 0.5, kappa = 0.1, rho = 0.1."""
    assert context.theory(0.5, 0.1, 0.5, 0, 0.1).icl == pytest.approx(1.4898956781741148, rel=1e-14)


@pytest.mark.parametrize("tau", [0.4, 3])
def test_the_published_form_for_other_contexts_and_scales_of_test_tasks(tau):
    """letey2025pretrain for C_train = c I and C_test = t I, contexts of another length at test time, without ridge."""
    alpha, test_alpha, kappa, rho, c, t = 2.0, 9.0, 0.7, 0.2, 1.5, 0.6

    def stieltjes(nu, ratio):
        b = nu + c - c / ratio
        return 2 / (b + np.sqrt(b * b + 4 * c * nu / ratio))

    q, q_test = (rho + c) / alpha, (rho + t) / test_alpha
    xi = 0 if tau > 1 else (1 - tau) / tau / stieltjes(q, kappa / tau)
    nu = q + xi
    M = stieltjes(nu, kappa)
    step = 1e-5
    slope = (stieltjes(nu + step, kappa) - stieltjes(nu - step, kappa)) / (2 * step)
    u = 1 - 2 * nu * M - nu * nu * slope
    idg_over_tau = (rho + nu - nu * nu * M - xi * u) / (tau - 1 + 2 * xi * M + xi * xi * slope)
    expected = t + rho - 2 * t * (1 - nu * M) + (q_test + t) * (u + idg_over_tau * (M + xi * slope))
    found = context.theory(
        alpha, kappa, tau, 0, rho, test_alpha=test_alpha, spectrum=np.full(3, c), test_spectrum=np.full(3, t)
    )
    assert found.icl == pytest.approx(expected, rel=1e-8)  # the derivative above is a difference
    assert found.idg / tau == pytest.approx(idg_over_tau, rel=1e-8)


def in_many_digits(alpha, kappa, tau, ridge, rho, c, t, test_alpha=None):
    """The equations as traces and their derivatives, differences and all, solved by bisection with 60 digits."""
    mp = mpmath.mp
    mp.dps = 60
    c, t = [mp.mpf(float(x)) for x in c], [mp.mpf(float(x)) for x in t]
    alpha, kappa, tau, ridge, rho = (mp.mpf(x) for x in (alpha, kappa, tau, ridge, rho))

    def mean(f):
        return mp.fsum(f(a, b) for a, b in zip(c, t, strict=True)) / len(c)

    q = (mean(lambda a, _: a) + rho) / alpha
    q_test = (mean(lambda _, b: b) + rho) / (alpha if test_alpha is None else mp.mpf(test_alpha))

    def bisect(f, low, high):
        for _ in range(190):
            middle = (low + high) / 2
            low, high = (middle, high) if f(middle) < 0 else (low, middle)
        return (low + high) / 2

    def shrink(nu):
        return bisect(lambda s: s * (1 + mean(lambda a, _: a / (s * a + nu)) / kappa) - 1, mp.mpf(0), mp.mpf(1))

    def missed(xi):
        nu, s = q + xi, shrink(q + xi)
        return tau * (1 - ridge / xi) - mean(lambda a, _: (s * a + q) / (s * a + nu))

    xi = bisect(missed, ridge, ridge + (mean(lambda a, _: a) + q) / tau)
    nu, s = q + xi, shrink(q + xi)
    square = mean(lambda a, _: a / (s * a + nu) ** 2) * s / kappa
    slope = square / (
        1 + mean(lambda a, _: a / (s * a + nu)) / kappa - s / kappa * mean(lambda a, _: a * a / (s * a + nu) ** 2)
    )
    b2 = mean(lambda a, _: ((s * a + q) ** 2 + xi**2 * slope * a) / (s * a + nu) ** 2)
    top = rho + mean(lambda a, _: (q * (s * a) ** 2 + nu**2 * a * (s - xi * slope)) / (s * a + nu) ** 2)
    idg = top / (1 - b2 / tau)
    icl = (
        rho
        + nu**2 * mean(lambda a, b: b * (1 + slope * a) / (s * a + nu) ** 2)
        + q_test * mean(lambda a, _: ((s * a) ** 2 + nu**2 * slope * a) / (s * a + nu) ** 2)
        + idg / tau * mean(lambda a, b: (b + q_test) * (1 / (s * a + nu) - xi * (1 + slope * a) / (s * a + nu) ** 2))
    )
    return float(icl), float(idg), float((ridge / xi) ** 2 * idg), float(xi)


@pytest.mark.parametrize(
    "point",
    [
        (2, 0.5, 1, 1e-12, 0.1),  # the peak, hardly any ridge: what cancels in the published form
        (2, 1, 1.0000001, 1e-10, 0.0),
        (1e4, 1, 0.9999, 1e-9, 1e-3),
        (1e4, 0.999, 50, 1e-8, 0.1),
        (0.01, 30, 0.05, 1e3, 2.0),
        (3, 1e6, 2, 0.1, 0.1),
        (3, 0.01, 1e5, 1e-6, 0.1),
    ],
)
def test_nothing_cancels(point):
    found = context.theory(*point)
    expected = in_many_digits(*point, [1], [1])
    assert (found.icl, found.idg, found.training, found.effective) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("point", [(2, 0.5, 1, 1e-9, 0.1), (30, 2, 0.7, 0.02, 0.1)])
def test_nothing_cancels_for_structured_tasks(point):
    c, t = [3.0, 0.5, 0.0, 1e-6], [0.2, 1.0, 2.0, 0.0]
    found = context.theory(*point, spectrum=c, test_spectrum=t, test_alpha=7)
    expected = in_many_digits(*point, c, t, test_alpha=7)
    assert (found.icl, found.idg, found.training, found.effective) == pytest.approx(expected, rel=1e-12)


ratios = st.floats(-3, 3).map(lambda x: 10.0**x)


@settings(max_examples=60, deadline=None)
@given(ratios, ratios, ratios, st.floats(-8, 2).map(lambda x: 10.0**x), st.just(0.0) | st.floats(1e-50, 3))
def test_structured_with_equal_eigenvalues_is_isotropic_and_signs_are_right(alpha, kappa, tau, ridge, noise):
    flat = context.theory(alpha, kappa, tau, ridge, noise)
    same = context.theory(alpha, kappa, tau, ridge, noise, spectrum=np.ones(3))
    assert (same.icl, same.idg, same.training, same.effective) == pytest.approx(
        (flat.icl, flat.idg, flat.training, flat.effective), rel=1e-10
    )
    assert flat.icl >= noise
    assert flat.idg >= noise
    assert 0 < flat.training <= flat.idg
    assert ridge < flat.effective <= ridge + (1 + (1 + noise) / alpha) / tau * (1 + 1e-12)
    scaled = context.theory(alpha, kappa, tau, 4 * ridge, 4 * noise, spectrum=4 * np.ones(2))
    assert scaled.icl == pytest.approx(4 * flat.icl, rel=1e-9)  # units: tasks twice as long, errors four times


def test_limits():
    rho, alpha = 0.1, 2
    q = (1 + rho) / alpha
    found = context.theory(alpha, inf, inf, 0, rho)
    assert (found.icl, found.idg) == pytest.approx((rho + q / (1 + q),) * 2, rel=1e-14)
    for kappa, excess in ((0.3, 0.7), (0.8, 0.2)):
        assert context.theory(1e8, kappa, inf, 0, rho).icl - rho == pytest.approx(excess, rel=1e-6)
    small = (1 + rho) / 1e8
    assert context.theory(1e8, 1, inf, 0, rho).icl - rho == pytest.approx(np.sqrt(small) / 2, rel=1e-3)
    assert context.theory(1e8, 2, inf, 0, rho).icl - rho == pytest.approx(small, rel=1e-6)
    for kappa in (0.5, 3, inf):
        for tau in (0.5, 2, inf):
            limit, near = context.theory(alpha, kappa, tau, 0, rho), context.theory(alpha, kappa, tau, 1e-11, rho)
            assert (near.icl, near.idg, near.training) == pytest.approx(
                (limit.icl, limit.idg, limit.training), rel=1e-8, abs=1e-10
            )
        far, end = (context.theory(alpha, kappa, tau, 0.1, rho) for tau in (1e12, inf))
        assert (far.icl, far.idg) == pytest.approx((end.icl, end.idg))
    many, every = context.theory(2, 1e13, 1.5, 0.1, rho), context.theory(2, inf, 1.5, 0.1, rho)
    assert (many.icl, many.idg) == pytest.approx((every.icl, every.idg), rel=1e-10)
    assert context.theory(2, 1, 2, 0.1, rho, test_alpha=inf).icl == pytest.approx(
        context.theory(2, 1, 2, 0.1, rho, test_alpha=1e12).icl
    )
    assert context.theory(2, 1, 1e-9, 0.1, rho).icl == pytest.approx(1 + rho, rel=1e-6)  # no data: predicts zero
    assert context.theory(2, 1, 2, 1e9, rho).idg == pytest.approx(1 + rho, rel=1e-6)


@pytest.mark.parametrize(
    "point", [(1.7, 4e5, 9e8, 1e-53, 688), (3e8, 7.6, 1.4e8, 1e-59, 0.0), (2e-5, 1e-3, 5e8, 1e-12, 0)]
)
def test_tiny_ridges_and_endless_data_are_the_limit(point):
    near, limit = context.theory(*point), context.theory(*point[:3], 0, point[4])
    assert near.converged
    assert (near.icl, near.idg, near.training) == pytest.approx((limit.icl, limit.idg, limit.training), rel=1e-9)


def test_the_peak():
    slopes = [
        np.log(context.theory(2, 2, 1, low, 0.1).idg / context.theory(2, 2, 1, high, 0.1).idg) / np.log(low / high)
        for high, low in ((1e-2, 1e-4), (1e-4, 1e-6))
    ]
    assert slopes == pytest.approx([-0.4787, -0.4979], abs=6e-5)
    for error in ("icl", "idg"):
        near, nearer = (getattr(context.theory(2, 2, 1 + gap, 0, 0.1), error) for gap in (1e-5, 1e-6))
        assert nearer / near == pytest.approx(10, rel=1e-3)


def test_longer_contexts_can_hurt_without_ridge():
    for kappa, place, least in ((0.2, 2.3, 1.390), (0.4, 5.4, 1.267), (0.5, 9.4, 1.176), (0.6, 22, 1.070)):
        alphas = place * 1.04 ** np.arange(-8, 9)
        values = [context.theory(a, kappa, 0.5, 0, 0.1).icl for a in alphas]
        assert min(values) == pytest.approx(least, abs=6e-4)
        assert alphas[np.argmin(values)] == pytest.approx(place, rel=0.06)
    for kappa in (1.5, inf):
        values = [context.theory(a, kappa, 0.5, 0, 0.1).icl for a in np.geomspace(0.1, 1e4, 40)]
        assert np.all(np.diff(values) < 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tau": 1, "ridge": 0}, "tau = 1 without ridge is the interpolation point.*give a positive ridge"),
        ({"ridge": -0.1}, "ridge must be a finite number of at least 0; got -0.1"),
        ({"ridge": inf}, "ridge must be a finite number"),
        ({"alpha": 0}, "alpha must be a finite number greater than 0; got 0"),
        ({"alpha": inf}, "alpha must be a finite number greater than 0; got inf"),
        ({"alpha": float("nan")}, "alpha must be a finite number"),
        ({"kappa": 0}, "kappa must be"),
        ({"kappa": -inf}, "kappa must be"),
        ({"tau": -1}, "tau must be"),
        ({"tau": True}, "tau must be a number; got True"),
        ({"tau": "2"}, "tau must be a number; got '2'"),
        ({"noise": -1}, "noise must be"),
        ({"test_alpha": 0}, "test_alpha must be"),
        ({"spectrum": [1, -1]}, "spectrum must have no negative entries"),
        ({"spectrum": [0, 0]}, "spectrum must have a positive entry"),
        ({"spectrum": [1, 2], "test_spectrum": [1, 2, 3]}, "must have the same length.*got 2 and 3"),
        ({"spectrum": [[1, 2]]}, "spectrum must have 1 axes"),
        ({"spectrum": [1, np.nan]}, "spectrum has entries that are not finite"),
        ({"spectrum": [True, False]}, "spectrum must be numbers"),
        ({"test_spectrum": []}, "test_spectrum"),
        ({"test_spectrum": [1, -2]}, "test_spectrum must have no negative entries"),
    ],
)
def test_bad_input(change, message):
    with pytest.raises(InputError, match=message):
        context.theory(**({"alpha": 2, "kappa": 1, "tau": 2, "ridge": 0.1, "noise": 0.1} | change))


def test_what_is_not_solved_is_told(monkeypatch):
    """An equation that is missed by a thousandth does not pass for solved."""
    module = import_module("attlas.context.theory")  # the package has the function under this name
    right = module._effective
    monkeypatch.setattr(module, "_effective", lambda at: (*right(at)[:2], 1e-3))
    with pytest.raises(ConvergenceError, match="did not converge: out of steps"):
        context.theory(2, 1, 2, 0.1, 0.1)
    assert not context.theory(2, 1, 2, 0.1, 0.1, throw=False).converged
    assert not context.curve(2, [1, 2], 2, 0.1, 0.1)["converged"].any()


def test_the_residual_is_that_of_the_equation():
    module = import_module("attlas.context.theory")
    at = module.setting(2, 0.5, 2, 0.05, 0.1, None, module.law(None, None))
    delta = context.theory(2, 0.5, 2, 0.05, 0.1).effective - 0.05
    for relative in (1e-3, 1e-5):
        value, slope = module._excess(at, delta + relative * (delta + 0.05))
        assert abs(value / slope) == pytest.approx(relative, rel=0.02)


def test_nothing_cancels_just_beside_the_peak_without_ridge():
    """Above tau = 1 xi = 0, and idg is one number over 1 - 1/tau."""
    base = context.theory(alpha=2, kappa=2, tau=2, noise=0.1).idg / 2
    for tau in (1 + 2**-20, 1 + 2**-40):
        assert context.theory(alpha=2, kappa=2, tau=tau, noise=0.1).idg * (tau - 1) / tau == pytest.approx(
            base, rel=1e-13
        )


@pytest.mark.parametrize("wild", [{"alpha": 1e-308}, {"noise": 1e308}, {"ridge": 1e308}, {"tau": 1e-320}])
def test_numbers_whose_powers_overflow_are_refused(wild):
    at = {"alpha": 2, "kappa": 0.5, "tau": 2, "ridge": 0.05, "noise": 0.1} | wild
    with pytest.raises(InputError, match="must lie between 1e-60 and 1e"):
        context.theory(**at, throw=False)


@pytest.mark.parametrize("wild", [{"alpha": 1e-60}, {"noise": 1e60}, {"ridge": 1e60}, {"tau": 1e-60}])
def test_extreme_numbers_are_finite_or_not_called_converged(wild):
    at = {"alpha": 2, "kappa": 0.5, "tau": 2, "ridge": 0.05, "noise": 0.1} | wild
    found = context.theory(**at, throw=False)
    assert not found.converged or np.isfinite([found.icl, found.idg]).all()
