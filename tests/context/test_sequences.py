"""Sequences have the law of contexts that are drawn example by example."""

from math import inf

import numpy as np
import pytest
from scipy import stats

from attlas import context
from attlas.errors import InputError
from attlas.numerics import stream


def by_examples(w, noise, length, count, rng):
    """Contexts drawn one example at a time."""
    d = len(w)
    x = rng.standard_normal((count, length, d)) / np.sqrt(d)
    y = x @ w + np.sqrt(noise) * rng.standard_normal((count, length))
    return np.column_stack([d / length * np.einsum("nl,nld->nd", y, x), np.mean(y * y, axis=1)])


@pytest.mark.parametrize(("d", "length", "noise"), [(4, 3, 0.2), (3, 1, 0.0), (2, 40, 1.0)])
def test_the_law_of_a_context(d, length, noise):
    """Every entry, and products and squares of entries, by Kolmogorov and Smirnov's test of two samples."""
    w = stream(d, "tasks").standard_normal(d)
    count = 20_000
    exact = context.read_contexts(np.tile(w, (count, 1)), noise, length, stream(1, "exact"))
    drawn = by_examples(w, noise, length, count, stream(1, "drawn"))
    pairs = [(i, j) for i in range(d + 1) for j in range(i, d + 1)]
    tests = [stats.ks_2samp(exact[:, i], drawn[:, i]).pvalue for i in range(d + 1)]
    tests += [stats.ks_2samp(exact[:, i] * exact[:, j], drawn[:, i] * drawn[:, j]).pvalue for i, j in pairs]
    tests.append(stats.ks_2samp(exact @ np.arange(d + 1), drawn @ np.arange(d + 1)).pvalue)
    assert min(tests) > 0.01 / len(tests)


def test_the_moments_of_a_context():
    """First and second moments against their formulas, in standard errors."""
    W = stream(0, "tasks").standard_normal((3, 5))
    noise, length, count = 0.3, 4, 60_000
    chosen = np.arange(count) % 3
    H = context.read_contexts(W[chosen], noise, length, stream(0, "contexts"))
    moments = context.task_moments(W, noise, length)
    for value, samples in (
        (moments.B, np.einsum("ni,nj->nij", H, H)),
        (moments.A, np.einsum("ni,nj->nij", W[chosen], H)),
    ):
        error = samples.std(0) / np.sqrt(count)
        z = (samples.mean(0) - value) / error
        assert np.abs(z).max() < stats.norm.isf(0.005 / z.size)


def test_queries_and_labels():
    task = context.sample(d=6, alpha=2, kappa=2, tau=400, noise=0.5, seed=3)
    assert (task.n, task.d, task.X.shape, task.H.shape) == (14_400, 6, (14_400, 6), (14_400, 7))
    assert stats.kstest(task.X.ravel() * np.sqrt(6), "norm").pvalue > 0.01
    rest = task.y - np.einsum("nd,nd->n", task.X, task.tasks.W[task.chosen])
    assert stats.kstest(rest / np.sqrt(0.5), "norm").pvalue > 0.01
    counts = np.bincount(task.chosen, minlength=12)
    assert stats.chisquare(counts).pvalue > 0.01


def test_every_sequence_has_a_task_of_its_own():
    c = np.array([2.0, 0.5, 0.1])
    task = context.sample(d=3, alpha=1e6, kappa=inf, tau=4000, noise=0.0, seed=0, spectrum=c)
    assert task.chosen is None
    assert task.tasks.W is None
    assert task.kappa == inf
    w = task.H[:, :3]  # endless contexts without noise: the task itself
    for i in range(3):
        assert stats.kstest(w[:, i] / np.sqrt(c[i]), "norm").pvalue > 0.003
    assert np.einsum("nd,nd->n", task.X, w) == pytest.approx(task.y, abs=0.03)
    assert task.H[:, 3] == pytest.approx(np.sum(w * w, axis=1) / 3, rel=0.01)


def test_numbers_are_rounded_and_reported():
    task = context.sample(d=100, alpha=0.29, kappa=0.07, tau=0.00289, noise=0.1, seed=0)
    assert (task.tasks.length, len(task.tasks.W), task.n) == (29, 7, 29)  # int(0.29 * 100) is 28
    odd = context.sample(d=7, alpha=1.5, kappa=0.5, tau=1.23, noise=0.1, seed=0)
    assert (odd.alpha, odd.kappa, odd.tau) == (10 / 7, 4 / 7, 60 / 49)


def test_streams_are_separate_and_repeat():
    one, other = (context.sample(d=5, alpha=2, kappa=1, tau=2, noise=n, seed=4) for n in (0.1, 0.7))
    assert np.array_equal(one.X, other.X)  # the noise does not move queries, tasks or who has which
    assert np.array_equal(one.tasks.W, other.tasks.W)
    assert np.array_equal(one.chosen, other.chosen)
    again = context.sample(d=5, alpha=2, kappa=1, tau=2, noise=0.1, seed=4)
    assert np.array_equal(one.H, again.H)
    assert np.array_equal(one.y, again.y)
    tasks = context.draw_tasks(d=5, alpha=2, kappa=1, noise=0.1, seed=4)
    assert np.array_equal(tasks.W, one.tasks.W)
    assert not np.array_equal(one.X, context.sample(d=5, alpha=2, kappa=1, tau=2, noise=0.1, seed=5).X)


def test_long_contexts_cost_nothing():
    task = context.sample(d=20, alpha=1e12, kappa=1, tau=1, noise=0.1, seed=0)
    assert task.H[:, :20] == pytest.approx(task.tasks.W[task.chosen], abs=1e-4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kappa": 0.04}, "kappa = 0.04 .* rounds to none; kappa must be at least 0.1"),
        ({"alpha": 0}, "alpha must be a finite number greater than 0"),
        ({"alpha": inf}, "alpha must be a finite number"),
        ({"alpha": 1e-3}, "alpha = 0.001 .* rounds to none"),
        ({"tau": 1e-3}, "tau = 0.001 .* rounds to none; tau must be at least 0.01"),
        ({"tau": inf}, "population is the layer of infinitely many"),
        ({"noise": -1}, "noise must be"),
        ({"d": 0}, "d must be an integer of at least 1"),
        ({"d": True}, "d must be an integer"),
        ({"seed": -1}, "seed must be a non-negative integer"),
        ({"spectrum": np.ones(9)}, "spectrum: axis 0 .d. must be 10; got 9"),
        ({"spectrum": -np.ones(10)}, "no negative entries"),
    ],
)
def test_bad_input(change, message):
    with pytest.raises(InputError, match=message):
        context.sample(**({"d": 10, "alpha": 2, "kappa": 1, "tau": 1, "noise": 0.1, "seed": 0} | change))
