"""Oracles of one sequence, of many and of torch; biases from queries; a budget; which assumption failed."""

import numpy as np
import pytest

from attlas import layers
from attlas.errors import InputError
from attlas.numerics import Status, stream
from attlas.recovery import Layer, learn_from_queries, parameter_error, planted_layer
from attlas.recovery.oracle import CountingOracle, Lost, Tasks

from .test_options import model


def of_one(layer):
    return lambda X: layer(X[None])[0, -1]


@pytest.mark.parametrize(("heads", "given"), [(1, 1), (2, None), (3, None)])
def test_biases_are_found_from_queries(heads, given):
    truth = model(heads=heads)
    found = learn_from_queries(of_one(truth), 6, heads=given, bias=True, causal=True)
    assert found.certificate.met
    assert 0 < parameter_error(found, truth) < 1e-9
    assert found.layer.causal
    if heads == 1:
        assert found.certificate.queries == 6 * 6 + 2 * 6 + 1  # values and logits, u, and b


def test_a_head_of_known_rank_with_a_bias():
    whole = model(d=8, heads=4)
    truth = Layer(whole.Theta[:1], whole.W[:1], whole.key_bias[:1], whole.output_bias)
    found = learn_from_queries(of_one(truth), 8, rank=2, bias=True)
    assert 0 < parameter_error(found, truth) < 1e-9
    assert found.certificate.queries == 1 + 8 + 9 * 2 + 2 * 8


def test_ordinary_queries_find_biases_too():
    truth = model(d=4, heads=2)
    found = learn_from_queries(of_one(truth), 4, heads=2, method="ordinary", bias=True)
    assert found.certificate.met
    assert 0 < parameter_error(found, truth) < 1e-8


@pytest.mark.parametrize("all_tokens", [False, True])
def test_many_queries_in_few_calls_find_the_same(all_tokens):
    truth, calls = model(d=8, heads=4), []

    def oracle(X):
        calls.append(len(X))
        return truth(X) if all_tokens else truth(X)[:, -1]

    alone = learn_from_queries(of_one(truth), 8, heads=None, bias=True)
    found = learn_from_queries(oracle, 8, heads=None, bias=True, batch=True)
    assert parameter_error(found, truth) < 1e-9
    assert found.certificate.queries == sum(calls) - 12  # those of the certificate
    assert found.certificate.queries < 1.1 * alone.certificate.queries  # what is asked beside a query that fails
    assert 4 * len(calls) < sum(calls)  # bisections are in step, but one after the other


def test_tasks_in_step_return_what_they_return_alone():
    """Failures reach the task that waits, whichever way they are run, and the others' answers do not."""

    def small(x):
        answer = yield np.array([[x]])
        if answer[0] > 3:
            raise Lost("large")
        return float(answer[0])

    def large(x):
        try:
            found = yield Tasks([small(x), small(x + 1)])
        except Lost:
            found = [-1.0]
        nothing = yield Tasks([])
        return [*found, *nothing, (yield from small(0.0))]

    alone = CountingOracle(lambda X: X[0], 1).run(large(1.0), large(5.0), large(3.0))
    together = CountingOracle(lambda X: X[:, 0], 1, batch=True)
    assert together.run(large(1.0), large(5.0), large(3.0)) == alone == [[1, 2, 0], [-1, 0], [-1, 0]]
    assert together.calls == 2
    with pytest.raises(Lost):
        together.run(small(1.0), small(4.0))


def test_a_budget_of_queries_is_kept_and_told():
    truth, asked = model(d=4, heads=2), []

    def oracle(X):
        asked.append(1)
        return truth(X[None])[0, -1]

    found = learn_from_queries(oracle, 4, heads=None, bias=True, max_queries=60)
    assert len(asked) <= 60
    assert found.status is Status.OUT_OF_STEPS
    assert "max_queries = 60 does not suffice" in found.certificate.reason
    assert learn_from_queries(oracle, 4, heads=None, bias=True, max_queries=1000).certificate.met
    with pytest.raises(InputError, match="max_queries must be an integer of at least 17"):
        learn_from_queries(oracle, 4, max_queries=3)


PLAIN = model(d=4, heads=2, biases=False)
KEYED = Layer(PLAIN.Theta, PLAIN.W, np.ones((2, 4)))
POSITIONS = layers.sinusoidal_positions(20, 4) - [0, 1, 0, 1]  # zero for the first token
BROKEN = {
    "output bias": lambda X: PLAIN(X[None])[0, -1] + 1,
    "key biases": lambda X: KEYED(X[None])[0, -1],
    "not linear in it": lambda X: np.tanh(PLAIN(X[None])[0, -1]),
    "order of earlier tokens": lambda X: PLAIN((X + POSITIONS[: len(X)])[None])[0, -1],
    "the length matters": lambda X: Layer(PLAIN.Theta * np.log(2 + len(X)), PLAIN.W)(X[None])[0, -1],
    "same query differently": lambda X, rng=stream(0, "noise"): PLAIN(X[None])[0, -1] + rng.standard_normal(4),
}


@pytest.mark.parametrize("why", BROKEN)
def test_the_assumption_that_failed_is_named(why):
    found = learn_from_queries(BROKEN[why], 4, heads=2, method="ordinary", max_starts=1, max_steps=5)
    assert not found.certificate.met
    assert why in found.certificate.reason


def test_an_oracle_of_many_returns_one_answer_each():
    with pytest.raises(InputError, match=r"must return \(4, d_out\)"):
        learn_from_queries(lambda X: X[0, -1, :3], 4, batch=True)
    with pytest.raises(InputError, match="copies knows no biases"):
        learn_from_queries(lambda X: X[-1], 4, heads=2, method="copies", bias=True)


@pytest.mark.parametrize(("precision", "exact"), [("float64", 1e-9), ("float32", 1e-4)])
@pytest.mark.parametrize("heads", [1, 2])
def test_torch_modules_are_oracles(precision, exact, heads):
    pytest.importorskip("torch", reason="torch is an extra: pip install 'attlas[torch]'")
    truth = model(d=8, heads=heads)
    module = truth.to_torch(dtype=precision, batch_first=heads == 2)
    found = learn_from_queries(module, 8, heads=1 if heads == 1 else None, bias=True)
    assert found.certificate.met
    assert 0 < parameter_error(found, truth) < exact


def test_a_module_of_ones_own_is_an_oracle():
    torch = pytest.importorskip("torch", reason="torch is an extra: pip install 'attlas[torch]'")
    truth = model(d=4, heads=2)

    class Own(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = truth.to_torch()

        def forward(self, x):
            return self.attention(x, x, x, need_weights=False)[0]

    found = learn_from_queries(Own().eval(), 4, heads=None, bias=True)
    assert 0 < parameter_error(found, truth) < 1e-9


def test_where_an_assumption_fails_no_number_of_heads_is_fitted():
    truth = Layer(*planted_layer(2, 4, 0), np.ones((2, 4)), np.ones(4))
    told: list[str] = []
    found = learn_from_queries(
        lambda X: truth(X[None])[0, -1],
        4,
        heads=None,
        max_heads=2,
        max_starts=1,
        max_steps=2,
        progress=lambda event: told.append(event.text),
    )
    assert not found.certificate.met
    assert "give bias=True" in found.certificate.reason
    assert not [text for text in told if "ordinary queries" in text]


@pytest.mark.parametrize("bias", [False, True])
def test_an_oracle_that_says_always_the_same_is_refused_as_such(bias):
    with pytest.raises(InputError, match="every query"):
        learn_from_queries(lambda X: np.full(2, float(bias)), 4, heads=2, bias=bias, method="ordinary")


@pytest.mark.parametrize("heads", [1, 2])
def test_attention_to_the_last_few_tokens_alone_is_not_certified(heads):
    """Queries of up to four tokens do not tell it from a layer."""
    whole = Layer(PLAIN.Theta[:heads], PLAIN.W[:heads])
    found = learn_from_queries(lambda X: whole(X[None, -4:])[0, -1], 4, heads=1 if heads == 1 else None)
    assert not found.certificate.met
    assert "the length matters" in found.certificate.reason


def test_a_function_that_is_no_layer_is_not_taken_for_noise():
    """Noise is measured as what no layer explains; what is the same twice is none, beyond rounding."""
    found = learn_from_queries(lambda X: PLAIN(X[None])[0, -1] + 1e-5 * np.tanh(X[0]), 4, heads=None, method="isolate")
    assert 1e-6 < found.residual < 1e-4
    assert not found.certificate.met


@pytest.mark.parametrize("heads", [1, 2])
def test_an_output_that_is_small_against_others_is_to_be_right_as_well(heads):
    whole = Layer(PLAIN.Theta[:heads], PLAIN.W[:heads])

    def oracle(X, size):
        return np.append(whole(X[None])[0, -1], 1e-7 * whole(X[None])[0, -1, 0] + size * np.tanh(X[0]).sum())

    given = 1 if heads == 1 else None
    assert learn_from_queries(lambda X: oracle(X, 0.0), 4, heads=given).certificate.met
    found = learn_from_queries(lambda X: oracle(X, 1e-7), 4, heads=given, method="isolate")
    assert found.residual < 1e-6
    assert not found.certificate.met
    assert "output 4 is" in found.certificate.reason


def test_a_fit_that_would_not_fit_into_memory_is_not_tried():
    found = learn_from_queries(lambda X: X[-1], 40, heads=8, method="ordinary", max_queries=3000)
    assert not found.certificate.met
    assert found.certificate.queries < 100
    assert "would have 12800 numbers in Theta, and may have 12000" in found.certificate.reason
