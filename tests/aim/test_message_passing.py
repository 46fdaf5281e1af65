import numpy as np
import pytest

from attlas import aim
from attlas.errors import ConvergenceError, InputError
from attlas.layers import attention_indices
from attlas.numerics import Status

CASES = [
    (aim.Softmax(2), 0.5, 0.1), (aim.Softmax(3), 0.5, 0.03), (aim.Linear(1, 0.25), 0.5, 0.4), (aim.Hardmax(2), 0.5, 0.25),
]  # fmt: skip


def final_errors(channel, rho, alpha, d, seeds):
    found = []
    for seed in seeds:
        task = aim.sample(channel, d, alpha, rho, seed)
        found.append(aim.message_passing(task.X, task.y, channel, rho, S=task.S, throw=False).mse[-1])
    return np.array(found)


@pytest.mark.parametrize(("channel", "rho", "alpha"), CASES, ids=lambda value: str(value))
def test_error_is_that_of_the_state_evolution(channel, rho, alpha):
    """d = 80, 5 seeds: within three standard errors plus 12 % for the size (about 5/d to 9/d is seen)."""
    errors = final_errors(channel, rho, alpha, 80, range(5))
    V = aim.state_evolution(channel, alpha, rho).value
    assert abs(errors.mean() - V) < 3 * errors.std(ddof=1) / np.sqrt(5) + 0.12 * V


def test_perfect_recovery_above_the_threshold_and_not_below():
    channel = aim.Softmax(2)
    edge = aim.recovery_threshold(channel, 0.5)
    above, below = (final_errors(channel, 0.5, factor * edge, 60, range(2)) for factor in (1.4, 0.8))
    assert np.all(above < 1e-6)
    assert np.all(above > 0)
    assert np.all(below > 0.05)


def test_one_step_by_hand():
    """The first iteration, written out with matrices per sample."""
    channel, d, rho = aim.Softmax(2), 12, 0.5
    task = aim.sample(channel, d, 0.4, rho, 0)
    n, alpha = len(task.X), len(task.X) / d**2
    prior = np.sqrt(rho) * np.eye(d)
    omega = attention_indices(task.X, prior)
    gram, norms = task.X @ task.X.transpose(0, 2, 1), np.empty((n, 2, 2))
    for a in range(2):
        for b in range(2):  # 2 ||X_ab||^2/d over its mean, X_ab the symmetric matrix behind an index
            off = (gram[:, a, a] * gram[:, b, b] + gram[:, a, b] ** 2) / d**2
            norms[:, a, b] = (gram[:, a, a] ** 2 - 2 * gram[:, a, a] + d) / d**2 if a == b else off
    g = channel.score(task.y, omega, norms)
    qhat = float(2 * alpha * channel.information(1.0, 1 + rho))
    total = np.zeros((d, d))
    for mu in range(n):
        for a in range(2):
            for b in range(a, 2):
                x, z = task.X[mu, a], task.X[mu, b]
                total += g[mu, a, b] * (np.outer(x, z) + np.outer(z, x) - 2 * (a == b) * np.eye(d)) / (2 * np.sqrt(d))
    expected = aim.denoise(prior + 2 / (d * qhat) * total, 1 / qhat, rho)
    found = aim.message_passing(task.X, task.y, channel, rho, max_steps=1, throw=False)
    np.testing.assert_allclose(found.S_hat, expected, atol=1e-10)
    assert found.history[1] == pytest.approx(float(aim.mmse(1 / qhat, rho)))


def test_the_teacher_is_not_used():
    channel, rho = aim.Softmax(2), 0.5
    task = aim.sample(channel, 30, 0.1, rho, 0)
    blind = aim.message_passing(task.X, task.y, channel, rho, throw=False)
    seen = aim.message_passing(task.X, task.y, channel, rho, S=task.S, throw=False)
    np.testing.assert_array_equal(blind.value, seen.value)
    assert blind.mse.size == 0
    assert len(seen.mse) == len(seen.history) == seen.steps + 1
    assert seen.mse[0] == pytest.approx(np.sum((task.S - np.sqrt(rho) * np.eye(30)) ** 2) / 30)


def test_runs_settle_at_a_fixed_point():
    """Small sizes, where eigenvalues stray past the edges; each channel, below the threshold and at rho = 0.1."""
    cases = [(aim.Softmax(2), 0.5, 0.1), (aim.Softmax(2), 1.5, 0.12), (aim.Linear(1, 0.25), 0.5, 0.4),
             (aim.Linear(2, 0.5), 1.0, 0.1), (aim.Hardmax(2), 1.0, 0.3), (aim.Softmax(2), 0.1, 0.02)]  # fmt: skip
    for channel, rho, alpha in cases:
        for seed in range(2):
            task = aim.sample(channel, 20, alpha, rho, seed)
            found = aim.message_passing(task.X, task.y, channel, rho, S=task.S)
            assert found.steps < 120
            assert found.mse[-1] == pytest.approx(np.sum((found.value - task.S) ** 2) / 20)
            assert found.history[-1] == pytest.approx(aim.state_evolution(channel, len(task.X) / 400, rho).value)


def test_where_it_settles_the_estimate_is_stationary():
    """Of the potential written out in `multipliers`, for linear outputs with noise; by derivatives, without its code."""
    channel, rho, d = aim.Linear(1, 0.25), 0.5, 20
    task = aim.sample(channel, d, 0.4, rho, 3)
    found = aim.message_passing(task.X, task.y, channel, rho, tol=1e-14)
    s, n = np.sqrt(rho), len(task.X)
    D = 1 / (2 * n / d**2 * float(channel.information(found.history[-1], 1 + rho)))

    def potential(S):
        h = attention_indices(task.X, S)
        values = np.linalg.eigvalsh(S)
        prior = np.sum(s * values - rho * np.log(values) + np.log(values + s * D))
        return np.sum((task.y - h) ** 2) / (2 * channel.noise) + d / 2 * prior

    rng = np.random.default_rng(0)
    for _ in range(5):
        move = rng.standard_normal((d, d))
        move = 1e-5 * (move + move.T)
        up, down = potential(found.value + move), potential(found.value - move)
        bend = up + down - 2 * potential(found.value)
        assert abs(up - down) < 1e-3 * bend


def test_what_converges_above_the_threshold_is_right():
    for channel, rho, factor in [(aim.Softmax(2), 0.5, 1.3), (aim.Linear(1), 1.5, 1.3), (aim.Softmax(2), 0.3, 1.5)]:
        task = aim.sample(channel, 20, factor * aim.recovery_threshold(channel, rho), rho, 0)
        found = aim.message_passing(task.X, task.y, channel, rho, S=task.S, max_steps=400, throw=False)
        assert found.converged
        assert found.mse[-1] < 1e-7


def test_another_matrix_that_fits_is_not_called_converged():
    """Just above the threshold at d = 20, outputs are fitted by a matrix of larger rank than the teacher's."""
    channel, rho = aim.Softmax(2), 0.5
    task = aim.sample(channel, 20, 0.2, rho, 105)
    found = aim.message_passing(task.X, task.y, channel, rho, S=task.S, max_steps=700, throw=False)
    assert found.history[-1] == 1e-9
    assert found.mse[-1] > 1e-4
    assert found.status is Status.OUT_OF_STEPS


def test_without_settling_the_best_estimate_is_returned():
    channel, rho = aim.Softmax(2), 0.5
    task = aim.sample(channel, 20, 0.1, rho, 0)
    whole = aim.message_passing(task.X, task.y, channel, rho, S=task.S)
    short = aim.message_passing(task.X, task.y, channel, rho, S=task.S, max_steps=whole.steps - 5, throw=False)
    assert not short.converged
    assert short.steps == whole.steps - 5
    assert short.residual > whole.residual
    assert short.mse[-1] == pytest.approx(np.sum((short.value - task.S) ** 2) / 20)
    np.testing.assert_array_equal(short.mse, whole.mse[:-5])


def test_memory_is_at_most_four_times_that_of_the_tokens():
    import tracemalloc

    channel = aim.Softmax(2)
    task = aim.sample(channel, 120, 0.6, 0.5, 0)
    tracemalloc.start()
    aim.message_passing(task.X, task.y, channel, 0.5, max_steps=2, throw=False)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * task.X.nbytes  # beyond the tokens themselves


def test_running_out_of_steps_is_an_error():
    task = aim.sample(aim.Softmax(2), 20, 0.1, 0.5, 0)
    with pytest.raises(ConvergenceError, match="message passing did not converge: out of steps after 2"):
        aim.message_passing(task.X, task.y, aim.Softmax(2), 0.5, max_steps=2)


def test_progress_is_told():
    task, events = aim.sample(aim.Softmax(2), 20, 0.1, 0.5, 0), []
    found = aim.message_passing(task.X, task.y, aim.Softmax(2), 0.5, max_steps=4, throw=False, progress=events.append)
    assert [(event.step, event.of) for event in events] == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert [event.value for event in events] == found.history[1:].tolist()


def test_sample_has_separate_streams():
    a, b = aim.sample(aim.Softmax(2), 20, 0.1, 0.5, 0), aim.sample(aim.Softmax(2), 20, 0.2, 0.5, 0)
    np.testing.assert_array_equal(a.S, b.S)  # the teacher does not depend on how many samples are drawn
    assert abs(np.corrcoef(a.S.ravel(), a.X.ravel()[: a.S.size])[0, 1]) < 0.2


TASK = aim.sample(aim.Softmax(2), 10, 0.3, 0.5, 0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: aim.message_passing(TASK.X, TASK.y[:-1], aim.Softmax(2), 0.5), "X has 30 sequences and y has 29"),
        (lambda: aim.message_passing(TASK.X, TASK.y, aim.Softmax(3), 0.5), r"axis 1 \(T\) must be 3"),
        (lambda: aim.message_passing(TASK.X, TASK.y, aim.Softmax(2), 0.0), "rho must be"),
        (lambda: aim.message_passing(TASK.X * np.nan, TASK.y, aim.Softmax(2), 0.5), "not finite"),
        (lambda: aim.message_passing(TASK.X, np.round(TASK.y), aim.Softmax(2), 0.5), "one-hot rows"),
        (lambda: aim.message_passing(TASK.X, TASK.y, aim.Softmax(2), 0.5, S=np.triu(TASK.S)), "S must be symmetric"),
        (lambda: aim.sample(aim.Softmax(2), 10, 0.0, 0.5, 0), "alpha must be"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call()
