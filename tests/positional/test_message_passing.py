"""Reading outputs, message passing and the spectral method: they start and end where theory says."""

import numpy as np
import pytest

from attlas.errors import ConvergenceError, InputError
from attlas.numerics import Status
from attlas.positional import (
    Model,
    bayes,
    message_passing,
    read_attention,
    read_indices,
    sample,
    sample_teacher,
    spectral,
    weak_recovery,
)


def run(tokens, d, alpha, seed, **options):
    task = sample_teacher(tokens, d, alpha, seed)
    return message_passing(task.X, z=task.z[:, :, 0], Q=task.W[:, 0], throw=False, **options)


@pytest.mark.parametrize("tokens", [2, 3, 5])
def test_indices_are_read_off_exactly(tokens):
    task = sample_teacher(tokens, 20, 5, 0)
    attention = read_attention(task.X, task.y)
    np.testing.assert_allclose(attention, task.attention, atol=1e-11)
    z, found = task.z[:, :, 0], read_indices(attention)
    signs = np.sign(np.sum(z * found, axis=1))[:, None]
    np.testing.assert_allclose(found * signs, z, atol=1e-6)


def test_the_mixture_makes_no_difference():
    """From outputs of a mixed teacher, tokens of another scale: exact above alpha = 1/2."""
    task = sample(Model(0.6, 3.0, token_scale=0.5), 200, 0.8, seed=1)
    options = {"mixture": 0.6, "positional_matrix": task.model.positional_matrix, "token_scale": 0.5}
    found = message_passing(task.X, task.y, Q=task.Q, **options)
    assert found.converged
    assert found.mse[-1] < 1e-7
    assert min(np.abs(found.Q_hat - sign * task.Q).max() for sign in (1, -1)) < 1e-2


def test_a_task_knows_how_its_outputs_were_made():
    task = sample(Model(0.3, 3.0), 200, 1.5, 0)
    found = message_passing(task)
    assert found.mse[-1] < 1e-7
    assert len(repr(found)) < 150
    assert message_passing(sample_teacher(2, 100, 1.0, 0)).mse[-1] < 1e-9
    with pytest.raises(InputError, match="teachers of rank one; got rank 2"):
        message_passing(sample_teacher(2, 100, 1.0, 0, 2))


@pytest.mark.parametrize(("d", "options"), [(500, {}), (30, {"mixture": 0.2}), (30, {"mixture": 0.29})])
def test_a_wrong_mixture_is_found_out(d, options):
    """V falls to zero, but what was read off is not explained."""
    task = sample(Model(0.3, 3.0), d, 3, 0)
    given = options | {"positional_matrix": task.model.positional_matrix}
    found = message_passing(task.X, task.y, Q=task.Q, throw=False, **given)
    assert found.status is Status.INACCURATE
    assert "do mixture, positional_matrix and token_scale fit the outputs?" in found.reason
    assert found.mse[-1] > 1e-3
    with pytest.raises(ConvergenceError, match="do mixture, positional_matrix"):
        message_passing(task.X, task.y, **given)


def test_outputs_that_no_teacher_has():
    task = sample_teacher(2, 60, 0.6, 0)
    with pytest.raises(InputError, match=r"no z has the attention of \d+ of 36 samples"):
        message_passing(task.X, np.broadcast_to(task.X.mean(1, keepdims=True), task.X.shape))
    nothing = message_passing(task.X, z=np.zeros((36, 2)), throw=False)
    assert nothing.status is Status.INACCURATE
    assert "mean square 0, not 1" in nothing.reason


def test_below_weak_recovery_nothing_is_learned():
    for seed in range(3):
        found = run(2, 1000, 0.1, seed)
        assert found.converged
        assert found.mse[-1] == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize(("tokens", "d", "alpha", "seeds"), [(2, 2000, 0.35, 5), (3, 1500, 0.2, 5)])
def test_errors_follow_the_best_learner(tokens, d, alpha, seeds):
    """Means within three standard errors and 20/sqrt(d) % of V: seeds scatter by several per cent at these sizes."""
    errors = [run(tokens, d, alpha, seed).mse[-1] for seed in range(seeds)]
    V = bayes(tokens, alpha).value
    assert abs(np.mean(errors) - V) < 3 * np.std(errors, ddof=1) / np.sqrt(seeds) + 0.2 / np.sqrt(d) * V


@pytest.mark.parametrize(("tokens", "d", "alpha"), [(2, 600, 0.6), (3, 600, 0.4)])
def test_above_one_over_the_tokens_recovery_is_exact(tokens, d, alpha):
    for seed in range(3):
        found = run(tokens, d, alpha, seed)
        assert found.converged
        assert found.mse[-1] < 1e-9


def test_the_hard_phase_of_one_token():
    """alpha = 1.06: no knowledge does not suffice, and a start near the teacher does."""
    d = 1000
    for seed in range(2):
        assert run(1, d, 1.06, seed).mse[-1] > 0.1
        task, q = sample_teacher(1, d, 1.06, seed), 0.995
        near = q * task.W[:, 0] + np.sqrt(q * (1 - q)) * np.random.default_rng(seed).standard_normal(d)
        assert run(1, d, 1.06, seed, start=(near, 1 - q)).mse[-1] < 1e-9


SPECTRAL = [(2, 0.6, 0.0, 0.12), (2, 2.5, 0.28, 0.45), (4, 2.5, 0.38, 0.55), (1, 2.5, 0.15, 0.40)]


@pytest.mark.parametrize(("rank", "ratio", "low", "high"), SPECTRAL)
def test_spectral_overlap(rank, ratio, low, high):
    """Squared overlap at d = 250 over alpha/alpha_w: 0.065, 0.361, 0.435 and 0.277 elsewhere."""
    d, overlaps = 250, []
    for seed in range(4):
        task = sample_teacher(2, d, ratio * weak_recovery(2, rank), seed, rank)
        overlaps.append(spectral(task.X, task.attention, rank).overlap(task.W))
    assert low < np.mean(overlaps) < high


def test_below_the_threshold_the_overlap_falls_with_d():
    means = []
    for d, seeds in ((100, 8), (800, 3)):
        tasks = [sample_teacher(2, d, 0.6 * weak_recovery(2, 2), seed, 2) for seed in range(seeds)]
        means.append(np.mean([spectral(t.X, t.attention, 2).overlap(t.W) for t in tasks]))
    assert means[1] < 0.6 * means[0]


def test_statuses_and_what_is_refused():
    task = sample_teacher(2, 30, 0.6, 0)
    with pytest.raises(ConvergenceError, match="message passing did not converge"):
        message_passing(task.X, task.y, max_steps=2)
    short = message_passing(task.X, task.y, max_steps=2, throw=False)
    assert short.status is Status.OUT_OF_STEPS
    assert len(short.history) == 3
    for call, message in (
        (lambda: message_passing(task.X), "give either y"),
        (lambda: message_passing(task.X, z=np.ones((3, 2))), r"axis 0 \(n\) must be 18"),
        (lambda: message_passing(task.X[:, :1], task.X[:, :1]), "one token is constant"),
        (lambda: read_attention(task.X, task.y, mixture=0.3), "a mixture needs its positional_matrix"),
        (lambda: read_attention(task.X, task.y, mixture=1.0), r"mixture must be in \[0, 1\)"),
        (lambda: read_attention(task.X[:, :, :1], task.y[:, :, :1]), "only if d >= L"),
        (lambda: read_indices(np.full((1, 2, 2), 0.7)), "sum to one in each row"),
        (lambda: spectral(task.X, task.attention, 30), "rank must be below d"),
        (lambda: sample_teacher(2, 5, 1.0, rank=6), "rank must be at most d"),
    ):
        with pytest.raises(InputError, match=message):
            call()
