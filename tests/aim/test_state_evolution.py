"""Fixed points to the digits of an independent computation and of published curves; thresholds; transitions."""

import numpy as np
import pytest

from attlas import aim
from attlas.aim import roots
from attlas.errors import ConvergenceError, InputError
from attlas.numerics import Status

# V by A = alpha (T^2 + T - 2), and the Bayes error of two tokens at beta = 1
NOISELESS = [
    (0.05, 0.04875, 0.83000403, 0.281695), (0.05, 0.087750, 0.30198628, 0.108673), (0.1, 0.0475, 0.91839689, 0.303638),
    (0.1, 0.095, 0.74176891, 0.248768), (0.1, 0.1425, 0.47912190, 0.165262), (0.5, 0.075, 0.91325521, 0.264017),
    (0.5, 0.1875, 0.74430043, 0.218942), (0.5, 0.375, 0.43161166, 0.132199), (0.5, 0.5625, 0.16942597, 0.054294),
    (0.5, 0.675, 0.05864820, 0.019243), (0.5, 0.7425, 0.00721358, 0.002396), (1, 0.25, 0.69886735, 0.182307),
    (1, 0.5, 0.37482261, 0.102630), (1, 0.75, 0.12134180, 0.034907), (1, 0.9, 0.02736963, 0.008049),
]  # fmt: skip
SOFTMAX = [
    (2, 0.5, 0.05, 0.72367742, 0.213369), (2, 0.5, 0.1, 0.39219602, 0.120853), (2, 0.5, 0.15, 0.12813090, 0.041408),
    (2, 0.5, 0.175, 0.03933305, 0.012963), (2, 1, 0.1, 0.49992171, 0.134133), (2, 1, 0.2, 0.08426494, 0.024446),
    (2, 0.1, 0.02, 0.80770328, 0.269334), (2, 0.1, 0.04, 0.35404328, 0.124194), (3, 0.5, 0.03, 0.55505581, None),
    (3, 0.5, 0.06, 0.12813090, None),
]  # fmt: skip
LINEAR = [
    (1, 0.25, 0.5, 0.1, 0.76945025), (1, 0.25, 0.5, 0.2, 0.51784964), (1, 0.25, 0.5, 0.4, 0.22672947),
    (1, 0.25, 0.5, 1, 0.06293487), (1, 0.5, 0.1, 0.1, 0.52400333), (1, 1, 1, 0.5, 0.42462985),
    (2, 0.25, 0.5, 0.05, 0.65591642), (2, 0.25, 0.5, 0.1, 0.36602628), (2, 0.25, 0.5, 0.2, 0.14766437),
    (3, 0.5, 1, 0.1, 0.30666822),
]  # fmt: skip
HARDMAX = [
    (0.05, 0.5, 0.87872694, 0.728135), (0.1, 0.5, 0.74511035, 0.664268), (0.25, 0.5, 0.44010521, 0.500459),
    (0.5, 0.5, 0.21306194, 0.343465), (1, 0.5, 0.07893169, 0.207443), (4, 0.5, 0.00627773, 0.058264),
    (0.05, 1, 0.90248777, 0.630203), (0.1, 1, 0.80324639, 0.591625), (0.25, 1, 0.55267236, 0.484913),
    (0.5, 1, 0.31401713, 0.361585), (1, 1, 0.13446881, 0.234777), (4, 1, 0.01329894, 0.073456),
]  # fmt: skip


@pytest.mark.parametrize(("rho", "A", "V", "error"), NOISELESS)
def test_noiseless(rho, A, V, error):
    assert aim.state_evolution(aim.Softmax(2), A / 4, rho).value == pytest.approx(V, abs=6e-9)
    assert aim.state_evolution(aim.Linear(1), A / 2, rho).value == pytest.approx(V, abs=6e-9)
    assert aim.bayes_error(aim.Softmax(2), A / 4, rho) == pytest.approx(error, abs=6e-7)


@pytest.mark.parametrize(("T", "rho", "alpha", "V", "error"), SOFTMAX)
def test_softmax(T, rho, alpha, V, error):
    found = aim.state_evolution(aim.Softmax(T), alpha, rho)
    assert found.value == pytest.approx(V, abs=6e-9)
    assert found.q == pytest.approx(1 + rho - V, abs=6e-9)
    assert found.residual < 1e-12
    if error is not None:
        assert aim.bayes_error(aim.Softmax(T), alpha, rho) == pytest.approx(error, abs=6e-7)


@pytest.mark.parametrize(("alpha", "expected"), [(0.03, 0.2780), (0.06, 0.0693)])
def test_softmax_error_of_three_tokens(alpha, expected):
    assert aim.bayes_error(aim.Softmax(3), alpha, 0.5) == pytest.approx(expected, abs=3e-4)


@pytest.mark.parametrize(("T", "noise", "rho", "alpha", "V"), LINEAR)
def test_linear(T, noise, rho, alpha, V):
    assert aim.state_evolution(aim.Linear(T, noise), alpha, rho).value == pytest.approx(V, abs=6e-9)
    assert aim.bayes_error(aim.Linear(T, noise), alpha, rho) == pytest.approx(T * (T + 1) * V, abs=1e-7)


@pytest.mark.parametrize(("alpha", "rho", "V", "error"), HARDMAX)
def test_hardmax(alpha, rho, V, error):
    assert aim.state_evolution(aim.Hardmax(2), alpha, rho).value == pytest.approx(V, abs=8e-9)
    assert aim.bayes_error(aim.Hardmax(2), alpha, rho) == pytest.approx(error, abs=6e-7)


@pytest.mark.parametrize(
    ("alpha", "error"), [(0.15816535, 0.61748698), (0.31533071, 0.31484979), (0.4882126, 0.16969945)]
)
def test_quadratic_networks_as_published(alpha, error):
    """maillard2024quadratic, public data, kappa = 0.5 and noise 0.25 in our units; theirs agree to 2e-7."""
    assert aim.state_evolution(aim.Linear(1, 0.25), alpha, 0.5).value == pytest.approx(error, abs=3e-7)


def test_fixed_point_is_where_the_iteration_ends():
    """Iterated by hand from both sides; away from the threshold it converges quickly."""
    for channel, alpha in [(aim.Softmax(2), 0.1), (aim.Linear(2, 0.3), 0.2), (aim.Hardmax(2), 0.4)]:
        found = aim.state_evolution(channel, alpha, 0.5)
        for start in (1.0, 1e-3):
            last = aim.iterate(channel, alpha, 0.5, 400, start=start)[-1]
            if start == 1.0 or channel.count is None:
                assert last == pytest.approx(found.value, abs=1e-9)
        assert found.history[0] == 1
        assert np.all(np.diff(found.history) <= 1e-15)  # from the prior mean the error only falls


def test_no_step_count_decides_near_the_threshold():
    """At 1e-6 below the transition the iteration needs a million steps; the root does not."""
    rho, A = 0.5, 0.75 * (1 - 1e-6)
    found = aim.state_evolution(aim.Softmax(2), A / 4, rho)
    assert found.status is Status.CONVERGED
    assert found.value == pytest.approx(A * (0.75 - A) * (1 - rho) / (rho**2 * (1 + rho)), rel=1e-4)
    assert found.history[-1] > 100 * found.value


@pytest.mark.parametrize("T", [2, 3, 5])
@pytest.mark.parametrize(("rho", "strong"), [(0.5, 0.75), (0.1, 0.19), (1.0, 1.0), (2.0, 1.0)])
def test_recovery_threshold(T, rho, strong):
    channel = aim.Softmax(T)
    edge = aim.recovery_threshold(channel, rho)
    assert edge == pytest.approx(strong / (T * T + T - 2))
    assert aim.state_evolution(channel, edge, rho).value == 0
    assert aim.state_evolution(channel, edge * (1 - 1e-4), rho).value > 0
    assert aim.recovery_threshold(aim.Linear(T), rho) == pytest.approx(strong / (T * T + T))


def test_threshold_is_found_numerically_where_no_formula_is_known():
    """A channel that hides its count gets the same threshold from the limit of little noise."""

    class Hidden(aim.Softmax):
        count = None

        def information(self, V, Q):
            return aim.Softmax(2).information(V, Q)

    assert aim.recovery_threshold(Hidden(2), 0.5) == pytest.approx(0.1875, rel=1e-5)
    for channel in (aim.Hardmax(2), aim.Linear(1, 0.25)):
        assert aim.recovery_threshold(channel, 0.5) is None


def test_weak_recovery():
    assert aim.weak_recovery_threshold(aim.Softmax(2)) == pytest.approx(1 / 4)
    assert aim.weak_recovery_threshold(aim.Softmax(3)) == pytest.approx(1 / 10)
    assert aim.weak_recovery_threshold(aim.Hardmax(2)) == pytest.approx(0.40341, abs=1e-5)
    # rho -> 0 between weak and strong recovery: V = A' (2 - A')
    assert aim.state_evolution(aim.Softmax(2), 1.5e-3 / 4, 1e-3).value == pytest.approx(0.7455, abs=5e-5)


def test_hardmax_at_many_samples():
    """V -> [(2 rho - rho^2) sqrt(Q) / (2.8826 alpha)]^2: the error falls as 1/alpha and never vanishes."""
    alpha, rho = 400.0, 0.5
    expected = (0.75 * np.sqrt(1.5) / (2.8826 * alpha)) ** 2
    assert aim.state_evolution(aim.Hardmax(2), alpha, rho).value == pytest.approx(expected, rel=2e-2)


def test_one_fixed_point_everywhere_scanned():
    """No first-order transition in any channel at hand."""
    for rho in (0.01, 0.1, 0.5, 1.0):
        for alpha in (0.02, 0.2, 2.0):
            assert len(aim.fixed_points(aim.Hardmax(2), alpha, rho)) == 1
            assert len(aim.fixed_points(aim.Linear(1, 0.25), alpha, rho)) == 1


def test_a_first_order_transition_would_be_seen():
    """A made-up channel whose information jumps with V has three fixed points."""

    class Jump(aim.Linear):
        def information(self, V, Q):
            return super().information(V, Q) * (1 + 30 / (1 + np.exp(60 * (np.asarray(V) - 0.45))))

    found = aim.fixed_points(Jump(1, 0.25), 0.15, 0.5)
    assert len(found) == 3
    assert np.all(np.diff(found) < 0)
    assert aim.state_evolution(Jump(1, 0.25), 0.15, 0.5).value == pytest.approx(found[0])


def test_curve_equals_points():
    alphas, rhos = np.linspace(0, 0.3, 7), [0.1, 0.5, 1.5]
    for channel in (aim.Softmax(3), aim.Linear(2, 0.1), aim.Hardmax(2)):
        data = aim.curve(channel, alphas, rhos)
        assert data["mse"].dims == ("rho", "alpha")
        for rho in rhos:
            for alpha in alphas:
                expected = aim.state_evolution(channel, alpha, rho).value
                assert float(data["mse"].sel(alpha=alpha, rho=rho)) == pytest.approx(expected, abs=1e-10)
        assert data["converged"].values.all()
        np.testing.assert_allclose(data["explained"], 1 - data["mse"] / (1 + data["rho"]))
    assert float(aim.curve(aim.Softmax(2), 0.1, 0.5)["threshold"][0]) == 0.1875


def test_a_residual_is_by_how_much_the_equation_is_missed(monkeypatch):
    """Roots that are wrong by a thousandth: the curve says so, numbers raise."""
    right = roots.largest
    monkeypatch.setattr(roots, "largest", lambda *args: right(*args) * 1.001)
    channel = aim.Softmax(2)
    data = aim.curve(channel, [0.05, 0.1, 0.3])
    assert data["converged"].values.tolist() == [[False, False, True]]  # above the threshold V = 0 either way
    V = data["mse"].values[0, 1]
    image = float(aim.mmse(1 / (2 * 0.1 * channel.information(V, 1.5)), 0.5))
    assert data["residual"].values[0, 1] == pytest.approx(abs(V - image), rel=1e-6)
    for call in (aim.state_evolution, aim.bayes_error, aim.plugin_error):
        with pytest.raises(ConvergenceError, match="the state evolution did not converge: out of steps"):
            call(channel, 0.1, 0.5)
    assert aim.state_evolution(channel, 0.1, 0.5, throw=False).status is Status.OUT_OF_STEPS
    assert aim.bayes_error(channel, 0.1, 0.5, throw=False) == channel.bayes_error(V, 1.5)


def test_nodes_too_few_for_so_little_noise_are_told():
    """Noise of 1e-6 between 15 nodes: the score misses the Nishimori identity, and every number says so."""
    channel = aim.Custom(np.tanh, 1, 1e-6, nodes=15, samples=500)
    assert channel.information_error(0.5, 1.5)[1] > 5
    with pytest.raises(ConvergenceError, match=r"inaccurate after .* give it more nodes or samples"):
        aim.state_evolution(channel, 0.1, 0.5)
    assert aim.state_evolution(channel, 0.1, 0.5, throw=False).status is Status.INACCURATE
    for number in (
        lambda **throw: aim.iterate(channel, 0.1, 0.5, 3, **throw),
        lambda **throw: aim.fixed_points(channel, 0.1, 0.5, **throw),
        lambda **throw: aim.weak_recovery_threshold(channel, **throw),
    ):
        with pytest.raises(ConvergenceError, match="give it more nodes or samples"):
            number()
        assert np.isfinite(number(throw=False)).all()
    assert not aim.curve(channel, [0.1, 0.2])["converged"].values.any()


def test_progress_of_a_curve_is_told():
    events = []
    aim.curve(aim.Softmax(2), [0.02, 0.03], [0.2, 0.5, 1.0], progress=events.append)
    assert [(event.step, event.of, event.value) for event in events] == [(1, 3, 0.2), (2, 3, 0.5), (3, 3, 1.0)]


def test_custom_channel_gives_the_theory_of_the_linear_one():
    """Identity with noise is Linear, up to noise on both triangles and the Monte Carlo error of G2."""
    custom = aim.Custom(lambda h: h, tokens=1, noise=0.25, samples=1500)
    exact = aim.state_evolution(aim.Linear(1, 0.25), 0.3, 0.5).value
    assert aim.state_evolution(custom, 0.3, 0.5).value == pytest.approx(exact, rel=0.1)
    error, missed = custom.information_error(0.5, 1.5)
    assert error < 0.1
    assert missed < 4


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: aim.state_evolution(aim.Softmax(2), -0.1, 0.5), "alpha must be a finite number of at least 0"),
        (lambda: aim.state_evolution(aim.Softmax(2), 0.1, 0.0), "rho must be a finite number greater than 0"),
        (lambda: aim.state_evolution(aim.Softmax(2), np.nan, 0.5), "alpha must be"),
        (lambda: aim.curve(aim.Softmax(2), [0.1, -1], 0.5), "alpha must be finite and at least 0"),
        (lambda: aim.curve(aim.Softmax(2), 0.1, [0.5, 0]), "rho must be finite and greater than 0"),
        (lambda: aim.recovery_threshold(aim.Softmax(2), -1.0), "rho must be"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_fixed_points_are_not_rounding():
    """At the threshold F/Delta is flat to rounding; far from it roots lie outside the scan."""
    assert aim.fixed_points(aim.Softmax(2), 0.1875, 0.5).tolist() == [0]
    assert aim.fixed_points(aim.Softmax(2), 1e-60, 0.5).tolist() == [1, 0]
    assert len(aim.fixed_points(aim.Hardmax(2), 1e7, 0.5)) == 1


def test_large_and_tiny_alpha():
    """Hardmax never recovers: V = (slope sqrt(Q)/(2.8826 alpha))^2; noise leaves an error; no samples leave the prior."""
    found = aim.state_evolution(aim.Hardmax(2), 1e6, 0.5)
    assert found.value == pytest.approx((0.75 * np.sqrt(1.5) / (2 * 1.4413 * 1e6)) ** 2, rel=1e-4)
    noisy = aim.state_evolution(aim.Linear(1, 1e-14), 1.0, 0.5).value
    assert 0 < noisy < 1e-13
    for channel, alpha in ((aim.Softmax(2), 1e-13), (aim.Linear(1, 1e60), 0.1)):
        assert aim.state_evolution(channel, alpha, 0.5).value == pytest.approx(1, abs=1e-9)


def test_noise_leaves_no_threshold():
    assert [aim.recovery_threshold(aim.Linear(1, noise), 0.5) for noise in (1e-12, 1e-3, 1.0)] == [None] * 3
    assert aim.recovery_threshold(aim.Custom(lambda h: h, 1, 1e-12, samples=100), 0.5) is None


def test_monte_carlo_channels_report_their_error():
    """The identity with noise is the linear channel: within the error that is reported, which is not zero."""
    own = aim.state_evolution(aim.Custom(lambda h: h, 1, 0.25, samples=2000), 0.4, 0.5, steps=2)
    exact = aim.state_evolution(aim.Linear(1, 0.25), 0.4, 0.5)
    assert 0 < abs(own.value - exact.value) < own.standard_error < 0.05
    assert exact.standard_error == 0
    assert aim.state_evolution(aim.Hardmax(3), 0.1, 0.5, steps=2).standard_error > 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: aim.state_evolution(3, 0.1, 0.5), "channel must be a channel such as aim.Softmax.2.; got 3$"),
        (lambda: aim.state_evolution(aim.Softmax, 0.1, 0.5), "channel must be a channel"),
        (lambda: aim.state_evolution(aim.Softmax(2), 0.1, 0.5, steps=-3), "steps must be"),
        (lambda: aim.curve(aim.Softmax(2), "a"), "alpha must be real numbers"),
        (lambda: aim.curve(aim.Softmax(2), [True]), "alpha must be real numbers"),
        (lambda: aim.curve(aim.Softmax(2), [0.1], [0.5, -1.0]), "rho must be finite and greater than 0; got -1"),
        (lambda: aim.iterate(aim.Softmax(2), -1.0, 0.5, 3), "alpha must be"),
        (lambda: aim.mmse(1.0, 1e-9), "rho must be at least 1e-06"),
        (lambda: aim.mmse([], 0.5), "delta is empty"),
        (lambda: aim.mmse("a", 0.5), "delta must be real numbers"),
        (lambda: aim.stieltjes(np.nan, 0.1, 0.5), "x must be finite"),
        (lambda: aim.shrink([0.1], [0.5], 0.5), "delta must be a number"),
        (lambda: aim.denoise(np.triu(np.ones((3, 3))), 0.1, 0.5), "R must be symmetric"),
        (lambda: aim.Custom(lambda h: h * np.nan, 1, 0.5), "finite real numbers"),
        (lambda: aim.Custom(np.log, 1, 0.5), "finite real numbers"),
        (lambda: aim.Custom(3, 1, 0.5), "must be callable"),
        (lambda: aim.Linear(1).check(np.empty((0, 1, 1))), "y is empty"),
        (lambda: aim.Linear(1).check([["a"]]), "y must be real numbers"),
    ],
)  # fmt: skip
def test_more_bad_input_is_one_sentence(call, message):
    with pytest.raises(InputError, match=message):
        call()
