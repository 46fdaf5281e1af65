"""Recovery from queries: which way is taken, what it certifies, what is refused."""

import numpy as np
import pytest

from attlas import layers
from attlas.errors import ConvergenceError, InputError
from attlas.numerics import Status, stream
from attlas.recovery import Layer, learn, learn_from_queries, parameter_error

from .tasks import oracle_of, planted, task


@pytest.mark.parametrize(("heads", "given", "d_out"), [(2, 2, 1), (2, None, 3)])
def test_several_heads_from_ordinary_queries(heads, given, d_out):
    Theta, W = planted(heads, 4, d_out=d_out)
    found = learn_from_queries(oracle_of(Theta, W), 4, heads=given, method="ordinary")
    assert found.certificate.met
    assert 0 < parameter_error(found, Layer(Theta, W)) < 1e-8


def test_too_few_heads_are_not_certified():
    Theta, W = planted(3, 4)
    found = learn_from_queries(oracle_of(Theta, W), 4, heads=2, ratio=2, method="ordinary")
    assert not found.certificate.met
    assert "not 1e-06" in found.certificate.reason


def test_loud_noise_certifies_nothing():
    Theta, W = planted(3, 5, 1)
    assert not learn_from_queries(oracle_of(Theta, W, 0.05), 5, heads=1, noise=0.05).certificate.met


def test_where_tokens_are_bounded_or_noisy_heads_are_not_isolated():
    Theta, W = planted(2, 4, d_out=3)
    seen = []

    def oracle(X):
        seen.append(np.abs(X).max())
        return layers.multi_head_attention(X[None], Theta, W)[0, -1]

    assert learn_from_queries(oracle, 4, heads=2, largest=100.0).certificate.met
    assert max(seen) < 100
    assert learn_from_queries(oracle_of(Theta, W, 1e-4), 4, heads=2, noise=1e-4).certificate.met
    with pytest.raises(InputError, match="isolating heads needs"):
        learn_from_queries(oracle, 4, heads=2, largest=100.0, method="isolate")


def failing(X):
    raise RuntimeError("no connection")


@pytest.mark.parametrize(
    ("oracle", "options", "message"),
    [
        (lambda X: np.zeros((2, 2)), {}, "shape"),
        (lambda X: np.ones(len(X)), {}, "as before"),
        (lambda X: "text", {}, "must return real numbers"),
        (lambda X: np.nan, {}, "not finite"),
        (lambda X: 0.0, {}, "W = 0"),
        (failing, {}, "raised RuntimeError at query 1: no connection"),
        (3, {}, "must be a function"),
        (lambda X: X[-1], {"heads": 0}, "heads"),
        (lambda X: X[-1], {"rank": 9}, "rank must be at most"),
        (lambda X: X[-1], {"rank": 1, "heads": 2}, "one head"),
        (lambda X: X[-1], {"repeats": 0}, "repeats"),
        (lambda X: X[-1], {"step": 0}, "step"),
        (lambda X: X[-1], {"noise": -1}, "noise"),
        (lambda X: X[-1], {"heads": 2, "method": "guess"}, "method"),
        (lambda X: X[-1], {"heads": 2, "largest": 0}, "largest"),
        (lambda X: X[-1], {"largest": 1.0}, "entries up to 4"),
        (lambda X: X[-1], {"heads": "a"}, "heads"),
        (lambda X: X[-1], {"heads": -1}, "heads"),
    ],
)
def test_bad_oracles_and_settings_are_one_sentence(oracle, options, message):
    with pytest.raises(InputError, match=message):
        learn_from_queries(oracle, 4, **options)


def tanh(X):
    return np.tanh(X[-1] @ stream(0, "teacher").standard_normal((4, 4)))


def test_starts_steps_and_heads_bound_the_search_of_what_is_no_layer():
    found = learn_from_queries(tanh, 4, heads=None, method="ordinary", max_heads=3, max_starts=2, max_steps=5)
    assert found.status is Status.OUT_OF_STEPS
    assert found.history[:, 0].tolist() == [1, 2, 3]
    assert found.certificate.starts == 6
    assert 0 < found.steps <= 30
    assert found.residual == found.history[:, 1].min()


def test_a_stop_by_the_clock_is_named():
    """After the first fit, one head and its few queries are left; without it eight numbers of heads are tried."""
    found = learn_from_queries(tanh, 4, heads=None, method="ordinary", max_seconds=1e-3)
    assert found.status is Status.OUT_OF_TIME
    assert not found.certificate.met
    assert found.layer.heads == 1
    assert found.certificate.queries < 100
    with pytest.raises(ConvergenceError, match=r"not certified \(out of time\)"):
        learn_from_queries(tanh, 4, heads=None, method="ordinary", max_seconds=1e-3, throw=True)


def test_examples_and_queries_return_the_same_shape():
    X, Y, truth = task(2, 4)
    one, other = learn(X, Y, 2), learn_from_queries(oracle_of(truth.Theta, truth.W), 4, heads=None)
    for found in (one, other):
        assert found.value is found.layer
        assert found.status is Status.CONVERGED
        assert found.residual == found.certificate.residual < 1e-9
        assert found.history[-1].tolist() == [2, found.residual]
        assert parameter_error(found, truth) < 1e-8
    assert type(one) is type(other)
    assert one.certificate.queries == 0 < other.certificate.queries


def test_progress_is_told_after_every_way_that_was_tried():
    Theta, W = planted(2, 4)
    events = []
    learn_from_queries(oracle_of(Theta, W), 4, heads=None, method="ordinary", max_starts=3, progress=events.append)
    assert [event.step for event in events] == list(range(1, len(events) + 1))
    assert all(0 < event.share <= 1 for event in events)
    assert events[0].text.startswith("heads = 1, start 1: residual")
    assert events[-1].value < 1e-9


def test_tokens_are_as_large_as_they_may_be():
    Theta, W = planted(2, 4, d_out=2)
    exact, seen = oracle_of(Theta, W), []

    def oracle(X):
        seen.append(np.abs(X).max())
        return exact(X)

    for options, largest in (({"heads": None}, 2e8), ({"heads": 2, "method": "copies"}, 4), ({"heads": 2}, 4)):
        seen.clear()
        learn_from_queries(oracle, 4, largest=largest, **options)
        assert max(seen) <= largest
    with pytest.raises(InputError, match="a step of 100 asks for entries of 101"):
        learn_from_queries(oracle, 4, largest=4, step=100)


def test_queries_of_certificates_are_counted_apart():
    Theta, W = planted(3, 5, d_out=1)
    exact, asked = oracle_of(Theta, W, 1e-6), []

    def oracle(X):
        asked.append(1)
        return exact(X)

    found = learn_from_queries(oracle, 5, heads=None, noise=1e-6)
    assert found.certificate.queries == len(asked) - 24  # two certificates: before and after the polish


def test_complex_answers_are_refused():
    with pytest.raises(InputError, match="must return real numbers"):
        learn_from_queries(lambda X: X[-1] * 1j, 3)
