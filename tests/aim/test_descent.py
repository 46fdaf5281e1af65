import numpy as np
import pytest

from attlas import aim
from attlas.aim import descent
from attlas.errors import ConvergenceError, InputError
from attlas.layers import attention_indices, softmax
from attlas.numerics import Status

CHANNEL = aim.Softmax(2)
TASK = aim.sample(CHANNEL, 12, 0.4, 0.5, 0)


FUNCTIONS = {
    aim.Softmax: lambda h, channel: softmax(h, channel.beta),
    aim.Linear: lambda h, _: h,
    aim.Custom: lambda h, _: np.sin(h) + h[:, ::-1, ::-1],
}


def by_definition(W, channel, loss, decay, X, y):
    """The objective written out: indices, loss, penalty."""
    d, r = W.shape
    S = W @ W.T / np.sqrt(r * d)
    h = attention_indices(X, S)
    if loss == "outputs":
        value = 0.5 * np.sum((FUNCTIONS[type(channel)](h, channel) - y) ** 2)
    else:
        e = h - channel.indices(y)
        if channel.centred:
            e = e - e.mean((1, 2), keepdims=True)
        value = 0.25 * np.sum(e**2)
    return value + decay * d * np.trace(S)


@pytest.mark.parametrize("decay", [0.0, 0.3])
@pytest.mark.parametrize(
    ("channel", "loss"),
    [
        (aim.Softmax(2), "logits"),
        (aim.Softmax(2, 2.0), "outputs"),
        (aim.Softmax(3), "outputs"),
        (aim.Linear(2, 0.1), "logits"),
        (aim.Linear(2, 0.1), "outputs"),
        (aim.Custom(lambda h: np.sin(h) + h[:, ::-1, ::-1], 2, 0.1), "outputs"),
    ],
)
def test_objective_and_gradient(channel, loss, decay):
    """Two starts at once, against the definition and its numerical derivative."""
    task = aim.sample(channel, 9, 0.3, 0.5, 0)
    W = np.random.default_rng(1).standard_normal((2, 9, 4))
    value, gradient = descent._objective(task.X, W, descent._loss(channel, task.y, loss), decay)
    for k in range(2):
        assert value[k] == pytest.approx(by_definition(W[k], channel, loss, decay, task.X, task.y))
        for i, j in [(0, 0), (3, 2), (8, 3)]:
            step = np.zeros((9, 4))
            step[i, j] = 1e-5
            up, down = (by_definition(W[k] + s * step, channel, loss, decay, task.X, task.y) for s in (1, -1))
            assert gradient[k, i, j] == pytest.approx((up - down) / 2e-5, rel=1e-5, abs=1e-6)


def test_it_recovers_above_the_threshold_and_averages_to_less_below():
    above = aim.sample(CHANNEL, 30, 0.35, 0.5, 0)
    found = aim.descend(above.X, above.y, CHANNEL, rank=15, inits=3, seed=1, throw=False)
    errors = found.mse(above.S)
    assert 0 < errors.single < 1e-6
    below = aim.sample(CHANNEL, 40, 0.1, 0.5, 0)
    found = aim.descend(below.X, below.y, CHANNEL, rank=20, inits=8, seed=1, throw=False)
    errors = found.mse(below.S)
    V = aim.state_evolution(CHANNEL, 0.1, 0.5).value
    assert errors.limit < errors.averaged < errors.single
    assert errors.limit > V * 0.8  # no average beats the Bayes error, but for the size
    assert found.losses.max() < 1e-6  # every student fits the data


def test_the_limit_is_that_of_many_starts():
    """From 4 starts the formula foretells the average of 16."""
    task = aim.sample(CHANNEL, 24, 0.1, 0.5, 3)
    found = aim.descend(task.X, task.y, CHANNEL, rank=12, inits=16, seed=1, throw=False)
    few = aim.Descent(found.singles[:4].mean(0), found.status, 0.0, 1, singles=found.singles[:4]).mse(task.S)
    many = found.mse(task.S)
    expected = many.single - (few.single - few.limit) * 15 / 16
    assert many.averaged == pytest.approx(expected, rel=0.15)


def test_blocks_of_sequences_change_nothing(monkeypatch):
    together = aim.descend(TASK.X, TASK.y, CHANNEL, rank=6, inits=3, max_steps=30, throw=False)
    monkeypatch.setattr(descent, "_CACHE", 1)
    apart = aim.descend(TASK.X, TASK.y, CHANNEL, rank=6, inits=3, max_steps=30, throw=False)
    np.testing.assert_allclose(apart.singles, together.singles, atol=1e-9)


def test_start_and_teacher_share_no_randomness():
    """Seeds are equal, streams are not: the cosine of start and teacher is that of strangers."""
    start = aim.descend(TASK.X, TASK.y, CHANNEL, rank=6, seed=0, max_steps=1, throw=False).singles[0]
    centred = [A - np.trace(A) / 12 * np.eye(12) for A in (start, TASK.S)]
    cosine = np.sum(centred[0] * centred[1]) / np.prod([np.linalg.norm(A) for A in centred])
    assert abs(cosine) < 0.4


def test_decay_shrinks_the_trace():
    traces = [
        np.trace(aim.descend(TASK.X, TASK.y, CHANNEL, rank=12, decay=decay, throw=False).value) for decay in (0.0, 0.1, 1.0)
    ]  # fmt: skip
    assert traces[0] > traces[1] > traces[2] > 0


def test_a_step_that_overshoots_is_taken_back(monkeypatch):
    """A thousand times too long a first step still ends in a finite, small loss."""
    monkeypatch.setattr(descent, "MOMENTUM", 0.99)
    found = aim.descend(1.5 * TASK.X, TASK.y, CHANNEL, rank=12, init_scale=5.0, max_steps=500, throw=False)
    assert np.isfinite(found.value).all()
    assert found.losses.max() < found.history[0]


def test_failure_is_an_error():
    with pytest.raises(ConvergenceError, match="gradient descent did not converge: out of steps after 5"):
        aim.descend(TASK.X, TASK.y, CHANNEL, rank=6, max_steps=5)
    assert aim.descend(TASK.X, TASK.y, CHANNEL, rank=6, max_steps=5, throw=False).status is Status.OUT_OF_STEPS


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rank": 0}, "rank must be"),
        ({"rank": 3, "inits": 0}, "inits must be"),
        ({"rank": 3, "decay": -1.0}, "decay must be"),
        ({"rank": 3, "loss": "hinge"}, "loss must be one of logits, outputs"),
        ({"rank": 3, "init_scale": 0.0}, "init_scale must be"),
        ({"rank": 3, "max_steps": 0}, "max_steps must be"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(InputError, match=message):
        aim.descend(TASK.X, TASK.y, CHANNEL, **options)


def test_hardmax_has_no_gradient():
    task = aim.sample(aim.Hardmax(2), 10, 0.2, 0.5, 0)
    for loss, missing in (("logits", "does not give its indices back"), ("outputs", "does not say its output without")):
        with pytest.raises(InputError, match=rf"Hardmax\(tokens=2\) {missing}"):
            aim.descend(task.X, task.y, aim.Hardmax(2), rank=3, loss=loss)


def test_progress_is_told():
    events = []
    found = aim.descend(TASK.X, TASK.y, CHANNEL, rank=6, max_steps=7, throw=False, progress=events.append)
    assert [event.step for event in events] == list(range(1, 8))
    assert events[-1].share == 1
    np.testing.assert_allclose([event.value for event in events], found.history)


@pytest.mark.parametrize("loss", ["logits", "outputs"])
def test_adam_descends_too(loss):
    """Well above the threshold both optimisers find the teacher; Adam's steps are its own."""
    task = aim.sample(CHANNEL, 16, 0.5, 0.5, 0)
    options = {"rank": 8, "seed": 1, "loss": loss, "max_steps": 1500, "throw": False}
    adam = aim.descend(task.X, task.y, CHANNEL, optimiser="adam", **options)
    assert 0 < adam.mse(task.S).single < 1e-3
    other = aim.descend(task.X, task.y, CHANNEL, **options)
    assert not np.allclose(adam.value, other.value, atol=1e-14)
    with pytest.raises(InputError, match="optimiser must be one of momentum, adam"):
        aim.descend(task.X, task.y, CHANNEL, rank=8, optimiser="sgd")
