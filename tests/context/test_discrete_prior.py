import numpy as np
import pytest

from attlas.context import contexts, discrete_prior, freezing, gaussian_prior, theory
from attlas.errors import InputError
from attlas.numerics import stream


def simulated(d, k, alpha, count, new, name, noise=0.1):
    """Errors with fresh training tasks for every context: the scatter of few tasks is in the errors."""
    rng = stream(0, name)
    found = []
    for _ in range(count):
        tasks = rng.standard_normal((k, d))
        w = rng.standard_normal((1, d)) if new else tasks[:1]
        X, y = contexts.draw_contexts(w, round(alpha * d), noise, rng)
        found.append(contexts.task_errors(discrete_prior.discrete_bayes(X, y, tasks, noise), w, noise)[0])
    return np.mean(found), np.std(found) / np.sqrt(count)


def test_posterior_by_hand():
    rng = stream(0, "hand")
    tasks = rng.standard_normal((3, 2))
    X, y = contexts.draw_contexts(tasks[:1], 2, 0.5, rng)
    p = [np.exp(-sum((y[0, i] - X[0, i] @ w) ** 2 for i in range(2)) / (2 * 0.5)) for w in tasks]
    assert discrete_prior.discrete_bayes(X, y, tasks, 0.5)[0] == pytest.approx(np.array(p) @ tasks / sum(p))


def test_small_noise_picks_the_nearest_task():
    """Energies of 1e6 and more: without the shift every weight is zero."""
    rng = stream(0, "small noise")
    tasks = rng.standard_normal((5, 4))
    X, y = contexts.draw_contexts(rng.standard_normal((6, 4)), 8, 1e-6, rng)
    found = discrete_prior.discrete_bayes(X, y, tasks, 1e-6)
    nearest = np.sum((y[:, :, None] - X @ tasks.T) ** 2, axis=1).argmin(axis=1)
    assert found == pytest.approx(tasks[nearest])


def test_blocks_do_not_matter(monkeypatch):
    rng = stream(0, "blocks")
    tasks = rng.standard_normal((5, 4))
    X, y = contexts.draw_contexts(tasks, 6, 0.3, rng)
    whole = discrete_prior.discrete_bayes(X, y, tasks, 0.3)
    monkeypatch.setattr(discrete_prior, "_BLOCK", 60)
    assert discrete_prior.discrete_bayes(X, y, tasks, 0.3) == pytest.approx(whole)


def test_training_tasks_are_known():
    mean, _ = simulated(20, 10, 2, 100, new=False, name="training tasks")
    assert mean == pytest.approx(0.1, abs=5e-4)


def test_new_tasks_approach_the_frozen_limit_from_above():
    """By an excess of order log(d)/d: a trend, not a value."""
    excess = []
    for d in (10, 20, 40):
        mean, error = simulated(d, d // 2, 2, 300, new=True, name="new tasks")
        limit = freezing(np.log(d / 2) / d, 2, 0.1).icl
        assert mean + 3 * error > limit
        excess.append(mean - limit)
    assert 0 < excess[2] < excess[0]


@pytest.mark.parametrize(("alpha", "limit", "frozen"), [(0.1, 1.010, False), (0.6, 0.1, True)])
def test_both_phases_of_exponentially_many_tasks(alpha, limit, frozen):
    """c = 0.3, noise 0.1: k = e^(0.3 d) tasks; at d = 20 within 10 % of the limit on training tasks."""
    theory = freezing(0.3, alpha, 0.1)
    assert theory.frozen is frozen
    assert theory.idg == pytest.approx(limit, abs=5e-4)
    mean, error = simulated(20, round(np.exp(6)), alpha, 250, new=False, name="phases")
    assert abs(mean - theory.idg) < 0.1 * theory.idg + 3 * error


@pytest.mark.parametrize(("alpha", "value", "error"), [(0.1, 1.047, 0.016), (0.6, 1.200, 0.022)])
def test_new_tasks_of_exponentially_many(alpha, value, error):
    """c = 0.3, d = 20: an independent simulation found value(error); the limits are 1.010 and 1.099."""
    mean, own = simulated(20, round(np.exp(6)), alpha, 250, new=True, name="exponentially many")
    assert abs(mean - value) < 4 * np.hypot(own, error)
    assert freezing(0.3, alpha, 0.1).icl == pytest.approx({0.1: 1.010, 0.6: 1.099}[alpha], abs=5e-4)


def test_few_tasks_scatter_from_set_to_set():
    """kappa = 0.5, d = 20: 1.4715(114) over 80 sets of tasks; single sets scatter by 0.1 and more."""
    mean, own = simulated(20, 10, 2, 400, new=True, name="sets")
    assert abs(mean - 1.4715) < 4 * np.hypot(own, 0.0114)


def test_linear_attention_is_the_other_way_round():
    """alpha = 2, noise 0.1, endless sequences: icl and idg."""
    table = {0.5: (0.802433, 0.293140), 1: (0.621338, 0.366219), 2: (0.520257, 0.411255), 4: (0.481435, 0.433671),
             np.inf: (0.454839, 0.454839)}  # fmt: skip
    for kappa, values in table.items():
        found = theory(2, kappa, np.inf, 0, 0.1)
        assert (found.icl, found.idg) == pytest.approx(values, abs=6e-7)


def test_freezing_numbers():
    for kappa, values in ((0.5, (1.118, 1.249, 1.396, 1.535)), (4, (0.742, 0.986, 1.212, 1.407))):
        for d, value in zip((10, 20, 40, 80), values, strict=True):
            assert freezing(np.log(kappa * d) / d, 2, 0.1).icl == pytest.approx(value, abs=5e-4)
    assert freezing(0.3, 0.6, 0.1).icl == pytest.approx(1.099, abs=5e-4)


@pytest.mark.parametrize(("alpha", "rate"), [(2, 0.168), (1, 0.224), (5, 0.140)])
def test_where_the_bayes_learner_is_worse_than_nothing(alpha, rate):
    below, above = (freezing(rate + step, alpha, 0.1).icl for step in (-6e-4, 6e-4))
    assert above < 1.1 < below


def test_freezing_is_continuous_at_the_transition_and_known_at_its_ends():
    i = gaussian_prior.information(2, 0.1)
    at, ridge = freezing(i * (1 - 1e-9), 2, 0.1), gaussian_prior.ridge_in_context(2, 0.1)
    assert at.frozen
    assert at.penalty == pytest.approx(0.1, rel=1e-4)
    assert at.icl == pytest.approx(ridge.value, rel=1e-4)
    assert not freezing(i * 1.01, 2, 0.1).frozen
    assert freezing(1e-7, 2, 0.1).icl == pytest.approx(2.1, abs=2e-3)


def test_bad_input():
    with pytest.raises(InputError, match="rate"):
        freezing(0, 2, 0.1)
    with pytest.raises(InputError, match="noise"):
        discrete_prior.discrete_bayes(np.ones((1, 2, 3)), np.ones((1, 2)), np.ones((4, 3)), 0)
    with pytest.raises(InputError, match="tasks"):
        discrete_prior.discrete_bayes(np.ones((1, 2, 3)), np.ones((1, 2)), np.ones((4, 2)), 0.1)
