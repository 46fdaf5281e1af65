"""A layer in factors: its gradient is that of finite differences, and large layers are found from examples."""

import numpy as np
import pytest

from attlas.numerics import stream
from attlas.recovery import Layer, learn, parameter_error, planted_layer
from attlas.recovery.examples import Examples
from attlas.recovery.factor_fit import factor_fit, kept_heads, layer_of_factors
from attlas.recovery.factor_frame import Frame
from attlas.recovery.factor_gradient import blocks, forward, loss_and_gradient
from attlas.recovery.factors import Factors, Sizes


def attention(X, queries, Theta, W, u, b):
    """A layer written out, one row at a time."""
    Y = np.zeros((*queries.shape[:2], W.shape[2]))
    for s, tokens in enumerate(X):
        for r, query in enumerate(queries[s]):
            for T, V, bias in zip(Theta, W, u, strict=True):
                weight = np.exp([query @ T @ x + bias @ x for x in tokens])
                Y[s, r] += (weight / weight.sum()) @ tokens @ V
    return Y + b


def drawn(sizes, seed=0, scale=1.0):
    return scale * stream(seed, "truth").standard_normal(sizes.numbers) / np.sqrt(2 * sizes.d)


def examples(sizes, n, k, seed=0, last=False):
    rng = stream(seed, "data")
    X = rng.standard_normal((n, k, sizes.d)) + 0.5
    queries = X[:, -1:] if last else X
    return Examples(X, queries, rng.standard_normal((n, queries.shape[1], sizes.d_out)))


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("biased", [False, True])
def test_outputs_are_those_of_the_layer_written_out(biased, last):
    sizes = Sizes(heads=3, rank=2, d=5, d_out=4, biased=biased)
    data, v = examples(sizes, 7, 3, last=last), drawn(sizes, scale=3.0)
    (block,) = blocks(data, np.float64)
    found = forward(Factors.of(v, sizes), sizes, block).output.reshape(block.Y.shape).transpose(2, 1, 0)
    assert np.allclose(
        found, attention(data.X, data.queries, *Factors.of(v, sizes).heads(sizes)), rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("biased", [False, True])
def test_the_gradient_is_that_of_finite_differences(biased, last):
    sizes = Sizes(heads=2, rank=2, d=3, d_out=2, biased=biased)
    data, v = examples(sizes, 6, 4, last=last), drawn(sizes, scale=2.0)
    parts = blocks(data, np.float64, sequences=4)  # two blocks, of unequal length
    loss, slope = loss_and_gradient(v, sizes, parts)
    heads = Factors.of(v, sizes).heads(sizes)
    assert loss == pytest.approx(np.sum((attention(data.X, data.queries, *heads) - data.Y) ** 2), rel=1e-12)
    step = 1e-5
    for i, unit in enumerate(np.eye(sizes.numbers)):
        up, down = (loss_and_gradient(v + sign * step * unit, sizes, parts)[0] for sign in (1, -1))
        assert slope[i] == pytest.approx((up - down) / (2 * step), abs=1e-6 * loss)


def test_single_precision_gives_the_gradient_to_its_rounding():
    sizes = Sizes(heads=2, rank=3, d=6, d_out=6, biased=True)
    data, v = examples(sizes, 50, 4), drawn(sizes)
    single, double = (loss_and_gradient(v, sizes, blocks(data, kind))[1] for kind in (np.float32, np.float64))
    assert np.linalg.norm(single - double) < 1e-5 * np.linalg.norm(double)


@pytest.mark.parametrize("biased", [False, True])
def test_a_frame_changes_coordinates_and_not_the_function(biased):
    sizes = Sizes(heads=2, rank=2, d=4, d_out=3, biased=biased)
    rng = stream(5, "tokens")
    X = rng.standard_normal((80, 3, 4)) @ rng.standard_normal((4, 4)) + 2.0
    data = Examples(X, X, rng.standard_normal((80, 3, 3)) + 1.0)
    frame, v = Frame.of(data, biased), drawn(sizes)
    seen = frame.see(data)
    assert np.allclose(np.einsum("nka,nkb->ab", seen.X, seen.X) / 240, np.eye(4), atol=1e-9)
    here = attention(seen.X, seen.X, *Factors.of(v, sizes).heads(sizes))
    there = attention(X, X, *Factors.of(frame.back(v, sizes), sizes).heads(sizes))
    assert np.allclose(there, frame.scale * here + frame.mean, atol=1e-9)


@pytest.mark.parametrize("biased", [False, True])
def test_a_layer_beyond_variable_projection_is_found(biased):
    sizes = Sizes(heads=8, rank=4, d=32, d_out=32, biased=biased)
    v = drawn(sizes, seed=3)
    truth = layer_of_factors(v, sizes)
    rng = stream(3, "tokens")
    X, fresh = rng.standard_normal((1500, 4, 32)), rng.standard_normal((200, 4, 32))
    Y = truth(X)
    found = factor_fit(Examples.of(X, Y), 8, 4, stream(3, "start"), biases=biased, tol=1e-9)
    assert found.converged
    assert found.residual <= 1e-9
    missed = np.linalg.norm(found.layer(fresh) - truth(fresh))
    assert 0 < missed < 1e-8 * np.linalg.norm(truth(fresh) - Y.mean((0, 1)))


def test_noise_ends_the_search_at_the_least_squares_fit():
    """What is left is the noise times sqrt(1 - p/N), p unknowns and N outputs."""
    sizes = Sizes(heads=2, rank=2, d=8, d_out=8)
    truth = layer_of_factors(drawn(sizes, seed=1, scale=1.5), sizes)
    X = stream(1, "tokens").standard_normal((1000, 4, 8))
    noise = 0.1 * np.std(truth(X)) * stream(1, "noise").standard_normal(truth(X).shape)
    found = factor_fit(Examples.of(X, truth(X) + noise), 2, 2, stream(1, "start"))
    assert found.converged
    left = np.sum((found.layer(X) - truth(X) - noise) ** 2) / np.sum(noise**2)
    N = noise.size
    assert left == pytest.approx(1 - sizes.unknowns / N, abs=5 * np.sqrt(2 * sizes.unknowns) / N)


def test_unknowns_are_counted_without_the_maps_that_change_nothing():
    """The rank of the Jacobian of the function, by finite differences."""
    for sizes in (Sizes(2, 2, 4, 3), Sizes(2, 2, 4, 3, True), Sizes(1, 4, 4, 4), Sizes(2, 1, 3, 3, True)):
        data, v = examples(sizes, 60, 3), 2 * drawn(sizes)
        (block,) = blocks(data, np.float64)

        def output(w, sizes=sizes, block=block):
            return forward(Factors.of(w, sizes), sizes, block).output.ravel()

        J = np.array([(output(v + 1e-5 * e) - output(v - 1e-5 * e)) / 2e-5 for e in np.eye(sizes.numbers)])
        assert np.linalg.matrix_rank(J, rtol=1e-7) == sizes.unknowns


def test_a_rank_of_d_is_a_layer_of_any_heads():
    Theta, W = planted_layer(2, 6, seed=1)
    X = stream(2, "tokens").standard_normal((500, 4, 6))
    found = factor_fit(Examples.of(X, Layer(Theta, W)(X)), 2, 6, stream(2, "start"), tol=1e-8)
    assert found.residual <= 1e-8


@pytest.mark.parametrize("biased", [False, True])
def test_of_spare_heads_those_without_effect_are_dropped(biased):
    """A layer of two heads written as one of four, of which two do nothing: what is kept computes the same."""
    sizes, wide = Sizes(2, 2, 5, 4, biased), Sizes(4, 2, 5, 4, biased)
    v, more = drawn(sizes, scale=3.0), drawn(wide, seed=1, scale=3.0)
    kept, here = np.array([0, 1, 6, 7]), Factors.of(v, sizes)
    there = Factors.of(more, wide)
    there.O[:] = 0.0
    for name in ("A", "B", "V", *(["a"] if biased else [])):
        getattr(there, name)[kept] = getattr(here, name)
    there.O[:, kept] = here.O
    there.b[:] = here.b
    data = examples(sizes, 30, 3)
    np.testing.assert_array_equal(kept_heads(more, wide, 2, data), v)


def test_a_fit_with_spare_heads_ends_with_as_many_as_were_wanted():
    truth = Layer(*planted_layer(2, 6, stream(0, "teacher"), 2.0))
    X = stream(0, "data").standard_normal((400, 4, 6))
    fit = factor_fit(Examples.of(X, truth(X)), 2, 6, stream(0, "start"), spare=2, tol=1e-9)
    assert fit.layer.heads == 2
    assert 0 < fit.residual <= 1e-9


def test_a_trained_layer_is_found_by_spare_heads():
    """From as many random heads as it has, a trained layer is missed by 0.4; learn goes on with half as many more."""
    d, heads = 16, 4
    X = stream(1, "task").standard_normal((4000, 4, d))
    apart = np.sum((X[:, :, None] - X[:, None]) ** 2, axis=3) + 1e9 * np.eye(4)
    nearest = np.take_along_axis(X, np.argmin(apart, axis=2)[:, :, None], axis=1)
    task = Examples.of(X, np.tanh(nearest - X) + 0.5)
    truth = factor_fit(task, heads, 4, stream(1, "training"), max_steps=1000, max_polish=0).layer
    X = stream(1, "data").standard_normal((1000, 4, d))
    exactly = factor_fit(Examples.of(X, truth(X)), heads, 4, stream(5, "start"))
    assert exactly.residual > 0.1
    found = learn(X, truth(X), heads, method="factors", max_starts=4)
    assert found.certificate.met
    assert found.certificate.starts > 1
    assert 0 < parameter_error(found.canonical(), truth.canonical()) < 1e-6
