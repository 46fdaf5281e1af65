"""Trained layers at d = 20 and 40 against the finite-size theory and published simulations, in standard errors."""

from math import inf

import numpy as np
import pytest

from attlas import context
from attlas.errors import ConvergenceError, InputError

S1, S2, S3 = (2, 0.5, 0.5, 0, 0.1), (2, 0.5, 2, 0, 0.1), (2, 2, 0.5, 0, 0.1)
S4, S8, S10 = (2, 2, 2, 0, 0.1), (10, 2, 2, 0.05, 0.1), (0.5, 4, 1.5, 0.1, 0.25)
S5, S6, S9 = (2, 2, 1, 0.1, 0.1), (2, 2, 1, 0.01, 0.1), (1, 1, 0.8, 0.2, 0.5)
S7, S11, S12 = (10, 0.5, 2, 0.05, 0.1), (5, inf, 1.5, 0.02, 0.1), (4, 0.2, 0.3, 0.01, 0.05)


def trained(d, point, seeds, column=True):
    alpha, kappa, tau, ridge, noise = point
    return np.array(
        [
            context.fit(context.sample(d, alpha, kappa, tau, noise, seed), ridge, column=column).errors()
            for seed in seeds
        ]
    )


# icl and idg with their standard errors, 150 and 40 seeds at d = 20 and 40, from an independent program
SIMULATED = {
    20: {
        S1: (1.461, 0.009, 0.915, 0.010),
        S2: (1.703, 0.012, 0.680, 0.006),
        S3: (1.384, 0.007, 1.233, 0.008),
        S4: (1.232, 0.007, 0.971, 0.006),
        S5: (1.301, 0.006, 1.086, 0.007),
        S6: (3.238, 0.029, 2.679, 0.027),
        S9: (2.674, 0.012, 2.324, 0.015),
        S7: (0.944, 0.004, 0.2215, 0.0010),
        S8: (0.487, 0.002, 0.357, 0.002),
        S10: (2.711, 0.015, 2.606, 0.017),
        S11: (0.847, 0.005, 0.847, 0.005),
        S12: (1.070, 0.003, 0.301, 0.004),
    },
    40: {S1: (1.395, 0.006, 0.853, 0.008), S8: (0.462, 0.003, 0.342, 0.002)},
}


@pytest.mark.parametrize(("d", "point"), [(d, point) for d, rows in SIMULATED.items() for point in rows])
def test_other_seeds_give_the_errors_of_the_table(d, point):
    icl, icl_error, idg, idg_error = SIMULATED[d][point]
    found = trained(d, point, range(40 if d == 20 else 8))
    spread = found.std(0, ddof=1) / np.sqrt(len(found))
    assert found[:, 0].mean() == pytest.approx(icl, abs=3.3 * np.hypot(icl_error, spread[0]))
    assert found[:, 1].mean() == pytest.approx(idg, abs=3.3 * np.hypot(idg_error, spread[1]))


# icl with its standard error: 60 seeds at d = 20 without the label energy, from the same program
WITHOUT = {S1: (1.499, 0.016), S2: (1.476, 0.014), S4: (1.146, 0.009), S7: (0.899, 0.006), S8: (0.457, 0.003)}


@pytest.mark.parametrize("point", WITHOUT)
def test_without_the_label_energy(point):
    found, (icl, error) = trained(20, point, range(30), column=False)[:, 0], WITHOUT[point]
    assert found.mean() == pytest.approx(icl, abs=3.3 * np.hypot(error, found.std(ddof=1) / np.sqrt(30)))


def powers(d, p):
    c = np.arange(1.0, d + 1) ** -p
    return c / c.mean()


@pytest.mark.parametrize(
    ("p1", "p2", "point", "icl", "error"),
    [
        (1, 0, (2, 1, 1.5, 0.05), 1.389, 0.011),
        (1, 1, (2, 1, 1.5, 0.05), 1.103, 0.010),
        (0, 1, (4, 0.5, 0.5, 0.01), 1.305, 0.025),
    ],
)
def test_structured_tasks_of_the_table(p1, p2, point, icl, error):
    """d = 20, 40 seeds from an independent program."""
    alpha, kappa, tau, ridge = point
    found = [
        context.fit(context.sample(20, alpha, kappa, tau, 0.1, seed, powers(20, p1)), ridge)
        .errors(test_spectrum=powers(20, p2))
        .icl
        for seed in range(40)
    ]
    spread = np.std(found, ddof=1) / np.sqrt(40)
    assert np.mean(found) == pytest.approx(icl, abs=3.3 * np.hypot(error, spread))


def test_narrower_pretraining_is_better_where_tasks_are_few():
    """alpha = 4, kappa = 0.5, tau = 2, ridge 0.1, tests of p = 1: p = 1.5 minus matched, paired, d = 20: -0.0455(33)."""
    difference = []
    for seed in range(40):
        errors = [
            context.fit(context.sample(20, 4, 0.5, 2, 0.1, seed, powers(20, p)), 0.1, column=False)
            .errors(test_spectrum=powers(20, 1))
            .icl
            for p in (1.5, 1)
        ]
        difference.append(errors[0] - errors[1])
    spread = np.std(difference, ddof=1) / np.sqrt(40)
    assert np.mean(difference) == pytest.approx(-0.0455, abs=3.3 * np.hypot(0.0033, spread))
    assert np.mean(difference) < -4 * spread


def test_longer_contexts_at_test_time_and_in_training():
    """S15 at d = 40: 0.644(4). kappa = tau = 0.5, d = 20: 0.881(3) and 0.842(3) at ridge 1, 1.310(21) without."""
    found = [
        context.fit(context.sample(40, 2, 2, 2, 0.1, seed), 0.05, column=False).errors(test_alpha=20).icl
        for seed in range(10)
    ]
    assert np.mean(found) == pytest.approx(0.644, abs=3.3 * np.hypot(0.004, np.std(found, ddof=1) / np.sqrt(10)))
    for alpha, ridge, icl, error in ((10, 1, 0.881, 0.003), (50, 1, 0.842, 0.003), (10, 0, 1.310, 0.021)):
        found = trained(20, (alpha, 0.5, 0.5, ridge, 0.1), range(40))[:, 0]
        spread = found.std(ddof=1) / np.sqrt(40)
        assert found.mean() == pytest.approx(icl, abs=3.3 * np.hypot(error, spread))


@pytest.mark.parametrize("column", [True, False])
@pytest.mark.parametrize("point", [S2, S3, S8, S10])
def test_the_same_tasks_give_the_same_errors(point, column):
    """d = 20: simulation minus theory for the very tasks of every run, which leaves the scatter of sequences."""
    seeds = range(8)
    simulated = trained(20, point, seeds, column)
    for more in range(1, 4):  # further sequences of the same tasks
        alpha, kappa, tau, ridge, noise = point
        simulated = simulated + np.array([again(20, point, seed, more, column) for seed in seeds])
    alpha, kappa, tau, ridge, noise = point
    expected = []
    for seed in seeds:
        tasks = context.draw_tasks(20, alpha, kappa, noise, seed)
        found = context.finite_size_of(tasks, tau, ridge, draws=1, column=column)
        assert found.converged
        expected.append([found.icl, found.idg, found.training])
    difference = simulated / 4 - np.array(expected)
    error = difference.std(0, ddof=1) / np.sqrt(len(seeds))
    assert np.all(np.abs(difference.mean(0)) < 4.5 * error + 1e-12)  # Student's t of 7: 0.3 %
    assert np.all(error < [0.03, 0.03, 0.01])


def again(d, point, seed, more, column):
    from attlas.context.sequences import draw_sequences
    from attlas.numerics import stream

    alpha, kappa, tau, ridge, noise = point
    tasks = context.draw_tasks(d, alpha, kappa, noise, seed)
    n = round(tau * d * d)
    chosen = stream(seed + 1000 * more, "assignment").integers(len(tasks.W), size=n)
    return context.fit(draw_sequences(tasks, n, chosen, seed + 1000 * more), ridge, column=column).errors()


def test_means_over_tasks_and_their_errors():
    """d = 20, icl over 12 sets of tasks from an independent program: S4 1.241(6), S10 2.702(3)."""
    for point, expected, error in ((S4, 1.241, 0.006), (S10, 2.702, 0.003)):
        seen = []
        found = context.finite_size(20, *point, draws=6, progress=seen.append)
        assert found.icl == pytest.approx(expected, abs=3.5 * np.hypot(error, found.standard_error.icl))
        assert len(found.history) == len(seen) == 6
        assert found.icl == pytest.approx(found.history.mean())
        assert found.standard_error.icl == pytest.approx(found.history.std(ddof=1) / np.sqrt(6))


def test_large_dimensions_tend_to_the_limit():
    limit = context.theory(*S8)
    gaps = [context.finite_size(d, *S8, draws=3, pool=300 * d, column=False).icl / limit.icl - 1 for d in (10, 20, 40)]
    assert gaps[0] > gaps[1] > gaps[2] > 0
    assert gaps[2] < 0.06


def test_one_draw_has_no_error_and_other_contexts_can_be_tested():
    found = context.finite_size(10, *S11, draws=1, pool=4000)
    assert np.isnan(found.standard_error.icl)
    assert found.icl == pytest.approx(found.idg, rel=1e-12)
    longer = context.finite_size(10, *S8, draws=2, pool=4000, test_alpha=100)
    assert longer.icl < context.finite_size(10, *S8, draws=2, pool=4000).icl
    structured = context.finite_size(
        10, *S8, draws=2, pool=4000, spectrum=np.arange(1.0, 11) / 5.5, test_spectrum=np.ones(10)
    )
    assert structured.converged


def test_structured_tasks():
    """d = 40, P2 of ten seeds from an independent program: icl 0.953(9)."""
    found = context.finite_size(40, 2, 1, 1.5, 0.05, 0.1, draws=4, pool=12_000, spectrum=powers(40, 1))
    assert found.icl == pytest.approx(0.953, abs=3.5 * np.hypot(0.009, found.standard_error.icl))


def test_bad_input(monkeypatch):
    with pytest.raises(InputError, match="110 sequences for 110 parameters without ridge"):
        context.finite_size(10, 2, 1, 1.1, 0, 0.1, draws=1)
    for change, message in (
        ({"draws": 0}, "draws must be"),
        ({"pool": 0}, "pool must be"),
        ({"tau": inf}, "tau must be"),
        ({"ridge": -1}, "ridge must be"),
        ({"kappa": 0.01}, "rounds to none"),
    ):
        with pytest.raises(InputError, match=message):
            context.finite_size(**({"d": 10, "alpha": 2, "kappa": 1, "tau": 2, "ridge": 0.1, "pool": 100} | change))
    monkeypatch.setattr("attlas.context.equivalent._STEPS", 2)
    with pytest.raises(ConvergenceError, match="the finite-size theory did not converge"):
        context.finite_size(10, 2, 1, 2, 0.1, 0.1, draws=1, pool=500)
    assert not context.finite_size(10, 2, 1, 2, 0.1, 0.1, draws=1, pool=500, throw=False).converged


def test_few_dimensions():
    """d = 5, where averages that were no averages of squares gave errors down to -12.9: the mean of 600 trained layers."""
    point = (2, 2, 0.5, 0, 0.1)
    simulated = trained(5, point, range(600))[:, 0]
    found = context.finite_size(5, *point, draws=20)
    assert min(found.history) > 0.1  # the noise: no learner has less
    error = np.hypot(simulated.std(ddof=1) / np.sqrt(600), found.standard_error.icl)
    assert found.icl == pytest.approx(simulated.mean(), abs=3.5 * error)
