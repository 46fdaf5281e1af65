"""Recovery from chosen queries."""

import numpy as np
import pytest

from attlas import layers
from attlas.errors import InputError
from attlas.numerics import stream
from attlas.recovery import Layer, copies, learn_from_queries, parameter_error, planted_layer, same_function


def oracle_of(Theta, W, noise=0.0, seed=0):
    rng = stream(seed, "noise")

    def oracle(X):
        answer = layers.multi_head_attention(X[None], Theta, W)[0, -1]
        return answer + noise * np.sqrt(np.mean(answer**2)) * rng.standard_normal(answer.shape)

    return oracle


def planted(heads, d, seed=0, d_out=None):
    return planted_layer(heads, d, stream(seed, "teacher"), 2 * np.sqrt(d), d_out=d_out)


@pytest.mark.parametrize("d", [1, 3, 8, 20])
@pytest.mark.parametrize("d_out", [1, None])
def test_one_head_from_d_squared_plus_d_queries(d, d_out):
    Theta, W = planted(1, d, d_out=d_out)
    found = learn_from_queries(oracle_of(Theta, W), d)
    assert found.queries == d * d + d
    assert np.abs(found.Theta - Theta).max() < 1e-12
    assert np.abs(found.W - W).max() < 1e-14
    assert found.met


def test_steep_heads_cost_more_queries_but_are_found():
    Theta, W = planted_layer(1, 6, stream(0, "teacher"), 300.0)
    found = learn_from_queries(oracle_of(Theta, W), 6)
    assert found.queries > 42
    np.testing.assert_allclose(found.Theta, Theta, rtol=1e-6, atol=1e-6 * np.abs(Theta).max())


@pytest.mark.parametrize(("d", "rank"), [(10, 1), (20, 2)])
def test_low_rank_needs_fewer(d, rank):
    rng = stream(1, "teacher")
    Theta = rng.standard_normal((d, rank)) @ rng.standard_normal((rank, d)) / d
    W = rng.standard_normal((d, d)) / np.sqrt(d)
    found = learn_from_queries(oracle_of(Theta[None], W[None]), d, rank=rank)
    assert found.queries == 2 * rank * d + d
    assert np.abs(found.Theta - Theta).max() < 1e-9


def test_noise_costs_in_proportion_and_repeats_help():
    Theta, W = planted(1, 6)
    size = np.linalg.norm(Theta)

    def error(noise, repeats=1):
        found = [
            learn_from_queries(oracle_of(Theta, W, noise, seed), 6, noise=noise, repeats=repeats) for seed in range(4)
        ]
        assert all(f.met for f in found)
        return np.mean([np.linalg.norm(f.Theta - Theta) / size for f in found])

    assert error(1e-4) == pytest.approx(100 * error(1e-6), rel=0.3)
    assert error(1e-4, repeats=9) == pytest.approx(error(1e-4) / 3, rel=0.5)


@pytest.mark.parametrize(("heads", "given", "d_out"), [(2, 2, 1), (2, None, 3)])
def test_several_heads_from_ordinary_queries(heads, given, d_out):
    Theta, W = planted(heads, 4, d_out=d_out)
    found = learn_from_queries(oracle_of(Theta, W), 4, heads=given, method="ordinary")
    assert found.met
    assert 0 < parameter_error(found.layer, Layer(Theta, W)) < 1e-8


def test_too_few_heads_are_not_certified():
    Theta, W = planted(3, 4)
    found = learn_from_queries(oracle_of(Theta, W), 4, heads=2, ratio=2, method="ordinary")
    assert not found.met
    assert "not 1e-06" in found.reason


@pytest.mark.parametrize(("heads", "d", "d_out"), [(1, 2, 1), (3, 6, 1), (8, 8, 1), (4, 5, 3)])
@pytest.mark.parametrize("seed", [0, 1])
def test_isolated_heads(heads, d, d_out, seed):
    Theta, W = planted(heads, d, seed, d_out)
    found = learn_from_queries(oracle_of(Theta, W), d, heads=None, seed=seed)
    assert found.layer.heads == heads
    assert 0 < parameter_error(found.layer, Layer(Theta, W)) < 1e-8
    assert found.met
    if d >= 6:
        assert found.queries < 4 * heads * d**2 - 2 * heads + 1


@pytest.mark.parametrize("scale", [0.1, 10.0])
def test_isolation_does_not_mind_the_size_of_theta(scale):
    Theta, W = planted(3, 5)
    found = learn_from_queries(oracle_of(scale * Theta, W), 5, heads=None, method="isolate")
    assert parameter_error(found.layer, Layer(scale * Theta, W)) < 1e-6


def test_the_canonical_form_comes_out_by_itself():
    Theta, W = planted(3, 5)
    silent = W.copy()
    silent[1] = 0
    equal = Theta.copy()
    equal[2] = Theta[0]
    pair = Theta.copy(), W.copy()
    pair[0][1], pair[1][1] = Theta[0], -W[0]
    uniform = Theta.copy()
    uniform[1] = 0
    for parameters, heads in (((Theta, silent), 2), ((equal, W), 2), (pair, 1), ((uniform, W), 3)):
        found = learn_from_queries(oracle_of(*parameters), 5, heads=None)
        assert found.layer.heads == heads
        assert same_function(found.layer, Layer(*parameters), tol=1e-8)


@pytest.mark.parametrize("seed", range(8))
def test_a_head_that_looks_at_all_alike_does_not_confuse_the_signs(seed):
    Theta, W = planted(3, 4, seed)
    Theta[0] = 0
    found = learn_from_queries(oracle_of(Theta, W), 4, heads=None, method="isolate", seed=seed)
    assert found.met
    assert same_function(found.layer, Layer(Theta, W), tol=1e-7)


def test_loud_noise_certifies_nothing():
    Theta, W = planted(3, 5, 1)
    assert not learn_from_queries(oracle_of(Theta, W, 0.05), 5, heads=1, noise=0.05).met


def test_where_tokens_are_bounded_or_noisy_heads_are_not_isolated():
    Theta, W = planted(2, 4, d_out=3)
    seen = []

    def oracle(X):
        seen.append(np.abs(X).max())
        return layers.multi_head_attention(X[None], Theta, W)[0, -1]

    assert learn_from_queries(oracle, 4, heads=2, largest=100.0).met
    assert max(seen) < 100
    assert learn_from_queries(oracle_of(Theta, W, 1e-4), 4, heads=2, noise=1e-4).met
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


@pytest.mark.parametrize("grid", ["ratios", "copies"])
def test_copies_of_two_tokens_give_the_logits_of_all_heads(grid):
    Theta, W = planted(3, 6, d_out=4)
    a, b = stream(0, "tokens").standard_normal((2, 6)) / np.sqrt(6)
    found = copies(oracle_of(Theta, W), a, b, 3, grid=grid)
    np.testing.assert_allclose(found.logits, np.sort(np.einsum("a,hab,b->h", b, Theta, a - b)), atol=1e-8)
    assert found.queries <= 2 * 3 + 3
    assert found.next_value < 1e-10 < found.conditioning


def test_copies_say_when_they_cannot():
    Theta, W = planted(1, 4)
    a, b = stream(0, "tokens").standard_normal((2, 4))
    for arguments, message in (
        ((a, a, 1), "two different tokens"),
        ((a, b, 0), "heads"),
        ((a, b[:3], 1), "two different tokens"),
    ):
        with pytest.raises(InputError, match=message):
            copies(oracle_of(Theta, W), *arguments)
    with pytest.raises(InputError, match="grid"):
        copies(oracle_of(Theta, W), a, b, 1, grid="all")


@pytest.mark.parametrize(("noise", "told"), [(1e-8, 1e-8), (1e-6, 1e-6), (1e-5, 1e-5), (3e-9, 0.0)])
def test_isolation_under_noise_is_polished(noise, told):
    """Off by a thousand times the noise after isolation, by about once the noise after the fit; also if nobody told."""
    Theta, W = planted(4, 8, d_out=1)
    found = learn_from_queries(oracle_of(Theta, W, noise), 8, heads=None, method="isolate", noise=told)
    assert found.layer.heads == 4
    assert 0.1 * noise < parameter_error(found.layer, Layer(Theta, W)) < 5 * noise
    assert found.met


def test_a_single_precision_oracle_is_noisy_and_no_trap():
    Theta, W = planted(3, 6, d_out=2)
    exact = oracle_of(Theta, W)
    found = learn_from_queries(lambda X: exact(X).astype(np.float32), 6, heads=None)
    assert found.met
    assert parameter_error(found.layer, Layer(Theta, W)) < 1e-6


def test_answers_that_are_not_those_of_heads_end():
    """A curved function has no steps; the search for them is bounded, and says that it found nothing."""
    asked = []

    def curved(X):
        asked.append(1)
        return np.sin(np.arange(1, 4) @ X[-1]) + np.abs(X).sum()

    with pytest.raises(InputError, match="no attempt separated the heads"):
        learn_from_queries(curved, 3, heads=None, method="isolate")
    assert len(asked) < 20_000


@pytest.mark.parametrize(("heads", "d_out", "goal"), [(2, 1, 1e-6), (3, 4, 1e-8)])
def test_copies_alone(heads, d_out, goal):
    Theta, W = planted(heads, 4, d_out=d_out)
    found = learn_from_queries(oracle_of(Theta, W), 4, heads=heads, method="copies")
    assert 0 < parameter_error(found.layer, Layer(Theta, W)) < goal
    with pytest.raises(InputError, match="copies needs the number of heads, from 2 to 6"):
        learn_from_queries(oracle_of(Theta, W), 4, heads=None, method="copies")


def test_noise_that_nobody_told_is_measured_and_ends_in_a_certificate():
    Theta, W = planted_layer(2, 3, 4, d_out=1)
    exact, rng = Layer(Theta, W), stream(0, "noise")
    found = learn_from_queries(lambda X: exact(X[None])[0, -1] * (1 + 1e-5 * rng.standard_normal()), 3, heads=None)
    assert found.layer.heads == 2
    assert found.met
    assert parameter_error(found, exact) < 2e-4


def test_a_budget_ends_the_search_of_what_is_no_layer():
    """Spent after the first fit, it leaves one head and its few queries; without it eight numbers of heads are tried."""
    A = stream(0, "teacher").standard_normal((4, 4))
    found = learn_from_queries(lambda X: np.tanh(X[-1] @ A), 4, heads=None, budget=1e-3)
    assert not found.met
    assert found.layer.heads == 1
    assert found.queries < 100


@pytest.mark.parametrize("scale", [0.01, 0.1])
def test_flat_heads_are_saturated_by_longer_tokens(scale):
    Theta, W = planted_layer(3, 5, 0, scale)
    found = learn_from_queries(oracle_of(Theta, W), 5, heads=None, method="isolate")
    assert parameter_error(found, Layer(Theta, W)) < 1e-9


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
    assert found.queries == len(asked) - 24  # two certificates: before and after the polish


def test_complex_answers_are_refused():
    with pytest.raises(InputError, match="must return real numbers"):
        learn_from_queries(lambda X: X[-1] * 1j, 3)
