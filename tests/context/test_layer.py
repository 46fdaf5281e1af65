"""Exact errors against brute force; solvers against each other, least squares and their own gradient."""

import tracemalloc
from math import inf

import numpy as np
import pytest

from attlas import context
from attlas.errors import ConvergenceError, InputError
from attlas.numerics import stream


def brute_force(Gamma, W, noise, length, per_task, seed):
    """Mean squared error on contexts that are drawn example by example, and its standard error."""
    rng, d, losses = stream(seed, "test"), W.shape[1], []
    for w in W:
        x = rng.standard_normal((per_task, length + 1, d)) / np.sqrt(d)
        y = x @ w + np.sqrt(noise) * rng.standard_normal((per_task, length + 1))
        h = np.einsum("nl,nld->nd", y[:, :-1], x[:, :-1]) * d / length
        h = np.column_stack([h, np.mean(y[:, :-1] ** 2, axis=1)])[:, : Gamma.shape[1]]
        losses.append((y[:, -1] - np.einsum("nd,nd->n", x[:, -1] @ Gamma, h)) ** 2)
    return np.mean(losses), np.std(losses) / np.sqrt(np.size(losses))


@pytest.mark.parametrize("width", [5, 6])
def test_the_exact_error_is_that_of_test_data(width):
    d, noise, length = 5, 0.3, 7
    Gamma = stream(0, "gamma").standard_normal((d, width)) / 2
    W = stream(0, "tasks").standard_normal((4, d))
    mean, error = brute_force(Gamma, W, noise, length, 10_000, 1)
    assert context.task_moments(W, noise, length).error(Gamma) == pytest.approx(mean, abs=3.5 * error)
    c = np.array([2.0, 1.0, 0.5, 0.1, 0.0])
    fresh = stream(2, "tasks").standard_normal((40_000, d)) * np.sqrt(c)
    mean, error = brute_force(Gamma, fresh, noise, length, 1, 3)
    assert context.fresh_moments(d, noise, length, c).error(Gamma) == pytest.approx(mean, abs=3.5 * error)


def test_the_error_of_a_layer_that_predicts_nothing_is_the_power_of_the_labels():
    assert context.fresh_moments(4, 0.3, 5).error(np.zeros((4, 5))) == 1.3
    W = np.array([[2.0, 0, 0, 0]])
    assert context.task_moments(W, 0.5, 3).error(np.zeros((4, 4))) == 1.5
    with pytest.raises(InputError, match="Gamma must be of shape"):
        context.fresh_moments(4, 0.3, 5).error(np.zeros((4, 7)))
    with pytest.raises(InputError, match="not finite"):
        context.fresh_moments(4, 0.3, 5).error(np.full((4, 4), np.nan))


def test_a_fit_is_tested_on_its_own_tasks_and_on_new_ones():
    task = context.sample(d=6, alpha=2, kappa=0.5, tau=3, noise=0.2, seed=1)
    layer = context.fit(task, ridge=0.1)
    errors = layer.errors()
    mean, error = brute_force(layer.Gamma, task.tasks.W, 0.2, 12, 12_000, 5)
    assert errors.idg == pytest.approx(mean, abs=3.5 * error)
    fresh = stream(5, "tasks").standard_normal((30_000, 6))
    mean, error = brute_force(layer.Gamma, fresh, 0.2, 12, 1, 6)
    assert errors.icl == pytest.approx(mean, abs=3.5 * error)
    longer = layer.errors(test_alpha=5, test_spectrum=np.arange(6.0))
    mean, error = brute_force(layer.Gamma, fresh * np.sqrt(np.arange(6.0)), 0.2, 30, 1, 7)
    assert longer.icl == pytest.approx(mean, abs=3.5 * error)
    assert longer.idg == errors.idg
    assert errors.training == pytest.approx(np.mean((task.y - layer.predict(task.X, task.H)) ** 2), rel=1e-12)


SETTINGS = [
    (12, 2, 0.5, 0.5, 0.0, True),
    (12, 2, 0.5, 2, 0.0, True),
    (12, 2, 2, 1, 0.01, False),
    (10, 10, 0.5, 2, 0.05, True),
    (10, 0.5, inf, 1.5, 0.1, False),
    (10, 100, 1, 0.3, 1e-4, True),
]


@pytest.mark.parametrize(("d", "alpha", "kappa", "tau", "ridge", "column"), SETTINGS)
def test_solvers_agree_with_least_squares(d, alpha, kappa, tau, ridge, column):
    task = context.sample(d, alpha, kappa, tau, 0.1, 0)
    H = task.H if column else task.H[:, :-1]
    design = (task.X[:, :, None] * H[:, None, :]).reshape(task.n, -1)
    p = design.shape[1]
    stacked = np.vstack([design, np.sqrt(task.n / d * ridge) * np.eye(p)])
    expected = np.linalg.lstsq(stacked, np.r_[task.y, np.zeros(p)], rcond=1e-13)[0].reshape(d, -1)
    names = ["cg", "auto"] + (["dual"] if ridge or task.n < p else []) + (["primal"] if ridge or task.n > p else [])
    for name in names:
        layer = context.fit(task, ridge, name, column=column, tol=1e-12)
        assert layer.Gamma == pytest.approx(expected, abs=1e-8 * np.abs(expected).max())
        assert layer.residual < 1e-11
        assert layer.solver in ("cg", "dual", "primal")
        assert layer.errors().icl == pytest.approx(
            task.tasks.fresh().error(expected), rel=1e-8
        )  # what is reported agrees as well
    loose = context.fit(task, ridge, "cg", column=column).errors()
    assert loose.icl == pytest.approx(task.tasks.fresh().error(expected), rel=1e-6)  # at the default tolerance


def test_the_residual_is_that_of_the_normal_equations():
    """An ill-conditioned fit, whose residual as conjugate gradients carry it along is not the true one."""
    task = context.sample(12, 1000, 0.5, 0.9, 0.1, 0)
    design = (task.X[:, :, None] * task.H[:, None, :]).reshape(task.n, -1)
    right = design.T @ task.y
    for solver in ("cg", "dual"):
        layer = context.fit(task, 1e-9, solver, tol=1e-11)
        g = layer.Gamma.ravel()
        missed = right - design.T @ (design @ g) - task.n / 12 * 1e-9 * g
        true = np.linalg.norm(missed) / np.linalg.norm(right)
        assert true == pytest.approx(layer.residual, rel=0.5, abs=1e-14)
        assert true < 1e-10


def test_without_ridge_and_with_few_sequences_it_is_the_smallest_interpolant():
    task = context.sample(d=10, alpha=2, kappa=1, tau=0.5, noise=0.1, seed=0)
    layer = context.fit(task, 0, "cg", tol=1e-12)
    assert layer.training < 1e-20
    with pytest.raises(InputError, match="'primal' without ridge is singular with 50 sequences and 110 parameters"):
        context.fit(task, 0, "primal")
    with pytest.raises(InputError, match="'dual' without ridge is singular"):
        context.fit(context.sample(d=5, alpha=2, kappa=1, tau=3, noise=0.1, seed=0), 0, "dual")


def test_the_peak_is_at_as_many_sequences_as_parameters():
    def median(n, column):
        return np.median(
            [
                context.fit(context.sample(10, 2, 2, n / 100, 0.1, seed), 1e-6, "dual", column=column).errors().icl
                for seed in range(15)
            ]
        )

    with_column = [median(n, True) for n in (95, 110, 125)]
    without = [median(n, False) for n in (85, 100, 115)]
    assert with_column[1] > 3 * max(with_column[0], with_column[2])
    assert without[1] > 3 * max(without[0], without[2])


def test_what_is_singular_to_rounding_is_solved_on_what_is_left():
    """n = p without ridge and one sequence twice: no factor exists, least squares has many solutions."""
    task = context.sample(d=4, alpha=2, kappa=1, tau=1.25, noise=0.1, seed=0)
    task.X[1], task.H[1], task.y[1] = task.X[0], task.H[0], task.y[0]
    layer = context.fit(task, 0, "dual")
    assert layer.training < 1e-15
    assert np.linalg.norm(layer.Gamma) < 1e3


def test_conjugate_gradients_need_no_memory_beside_the_data():
    task = context.sample(d=40, alpha=2, kappa=2, tau=3, noise=0.1, seed=0)
    data = task.X.nbytes + task.H.nbytes + task.y.nbytes
    tracemalloc.start()
    try:
        context.fit(task, 0.05, "cg", tol=1e-3)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < data  # together with the data: less than twice


def test_steps_that_do_not_suffice_are_told():
    task = context.sample(d=8, alpha=2, kappa=1, tau=2, noise=0.1, seed=0)
    seen = []
    with pytest.raises(ConvergenceError, match="the fit of the layer did not converge: out of steps after 3 steps"):
        context.fit(task, 0.01, "cg", max_steps=3, progress=seen.append)
    assert [event.step for event in seen] == [1, 2, 3]
    layer = context.fit(task, 0.01, "cg", max_steps=3, throw=False)
    assert not layer.converged
    assert layer.history[-1] == layer.residual
    for bad, message in (
        ({"ridge": -1}, "ridge must be"),
        ({"ridge": np.nan}, "ridge must be"),
        ({"solver": "lu"}, "solver must be one of auto, cg, dual, primal"),
        ({"tol": 0}, "tol must be"),
    ):
        with pytest.raises(InputError, match=message):
            context.fit(task, **({"solver": "cg"} | bad))
    with pytest.raises(InputError, match="H: axis 1"):
        layer.predict(task.X, task.H[:, :-1])


def test_the_population_is_the_limit_of_many_sequences_and_a_minimum():
    tasks = context.draw_tasks(d=5, alpha=3, kappa=1, noise=0.2, seed=0)
    for column in (True, False):
        layer = context.population(tasks, 0.1, column=column)
        many = context.fit(context.sample(5, 3, 1, 20_000, 0.2, 0), 0.1, "primal", column=column)
        assert layer.Gamma == pytest.approx(many.Gamma, abs=0.02)

        def objective(Gamma):
            return tasks.moments().error(Gamma) + 0.1 / 5 * np.sum(Gamma**2)

        least = objective(layer.Gamma)
        rng = stream(1, "directions")
        for _step in range(10):
            assert objective(layer.Gamma + 1e-3 * rng.standard_normal(layer.Gamma.shape)) > least
        assert layer.errors().training == layer.errors().idg


def test_the_population_learner_and_the_theory():
    """Diversity, without the column, rho = 0.1: d = 100 against simulation, extrapolated in 1/d against the theory."""

    def excess(d, alpha, kappa):
        errors = [
            context.population(context.draw_tasks(d, alpha, kappa, 0.1, seed), column=False).errors().icl - 0.1
            for seed in range(20)
        ]
        return np.mean(errors), np.std(errors, ddof=1) / np.sqrt(20)

    for kappa, alpha, simulated, error in ((0.5, 10, 0.5536, 2e-4), (1.25, 100, 0.0176, 3e-4), (2, 10, 0.1195, 3e-4)):
        (small, small_error), (large, large_error) = excess(50, alpha, kappa), excess(100, alpha, kappa)
        assert large == pytest.approx(simulated, abs=3 * np.hypot(large_error, error) + 5e-5)
        limit = context.theory(alpha, kappa, inf, 0, 0.1).icl - 0.1
        assert 2 * large - small == pytest.approx(limit, abs=3.3 * np.hypot(2 * large_error, small_error))
    every = context.draw_tasks(30, 2, inf, 0.1, 0)
    layer = context.population(every, column=False)
    assert layer.errors().icl == layer.errors().idg == pytest.approx(1.1 - 1 / (1 + 1 / 60 + 0.55), rel=1e-12)


def test_the_label_energy_costs_on_new_tasks():
    """d = 200 and 50, kappa = 0.5, alpha = 100, rho = 0.1: with the column 0.6157(3) and 0.6460(20), without 0.6055."""
    for d, expected, error in ((200, 0.6157, 3e-4), (50, 0.6460, 2e-3)):
        found = []
        for seed in range(6):
            tasks = context.draw_tasks(d, 100, 0.5, 0.1, seed)
            found.append([context.population(tasks, column=column).errors().icl for column in (True, False)])
        (with_it, without), spread = np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / np.sqrt(6)
        assert with_it == pytest.approx(expected, abs=3 * np.hypot(spread[0], error))
        assert without == pytest.approx(0.6055, abs=3 * spread[1] + 2e-4)


@pytest.mark.parametrize("tol", [0, -1, "x", float("inf")])
def test_a_tolerance_is_checked_whichever_solver_is_taken(tol):
    with pytest.raises(InputError, match="tol"):
        context.fit(context.sample(6, 2, 0.5, 2, 0.1, 0), 0.05, tol=tol)


def test_counts_beyond_all_numbers_are_refused():
    with pytest.raises(InputError, match="too large"):
        context.sample(d=5, alpha=1e60, kappa=2, tau=2)
    with pytest.raises(InputError, match="alpha must lie between"):
        context.sample(d=5, alpha=1e308, kappa=2, tau=2)


@pytest.mark.parametrize("nonsense", [None, 3, "task", context.Layer])
def test_what_is_no_task_is_one_sentence(nonsense):
    with pytest.raises(InputError, match="task must be what `sample` returns"):
        context.fit(nonsense)
    with pytest.raises(InputError, match="tasks must be what `draw_tasks` returns"):
        context.population(nonsense)
    with pytest.raises(InputError, match="tasks must be what `draw_tasks` returns"):
        context.finite_size_of(nonsense, 2.0)
