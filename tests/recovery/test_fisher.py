"""Predicted standard errors are those of refits under fresh noise; what the tokens do not show is infinite."""

import numpy as np
import pytest

from attlas import tokens
from attlas.errors import InputError
from attlas.numerics import stream
from attlas.recovery import Layer, fisher, information, planted_layer
from attlas.recovery.examples import Examples
from attlas.recovery.factor_fit import factor_fit, layer_of_factors
from attlas.recovery.factors import Sizes
from attlas.recovery.fisher import _jacobian
from attlas.recovery.variable_projection import variable_projection

NOISE = 0.02


def generic(heads=2, d=3, d_out=2, seed=1):
    return Layer(*planted_layer(heads, d, stream(seed, "teacher"), 1.5, d_out=d_out))


def biased(seed=4):
    sizes = Sizes(2, 2, 4, 3, True)
    return layer_of_factors(1.5 * stream(seed, "teacher").standard_normal(sizes.numbers) / np.sqrt(4), sizes)


def gaussian(n, d, k=4, seed=2):
    return stream(seed, "tokens").standard_normal((n, k, d))


@pytest.mark.parametrize("layer", [generic(), biased()])
def test_the_jacobian_is_that_of_finite_differences(layer):
    X, step = gaussian(3, layer.d), 1e-6
    ((J, _),) = _jacobian(layer, X)
    place = 0
    has = layer.key_bias is not None
    arrays = {name: getattr(layer, name) for name in ("Theta", "W", *(("key_bias", "output_bias") if has else ()))}

    def column(name, index):
        outputs = []
        for sign in (1, -1):
            moved = {key: value.copy() for key, value in arrays.items()}
            moved[name][index] += sign * step
            outputs.append(Layer(**moved)(X).ravel())
        return (outputs[0] - outputs[1]) / (2 * step)

    order = []
    for i in range(layer.heads):
        order += [("Theta", (i, a, c)) for a in range(layer.d) for c in range(layer.d)]
        order += [("key_bias", (i, c)) for c in range(layer.d)] if has else []
    order += [("W", index) for index in np.ndindex(layer.W.shape)]
    order += [("output_bias", (o,)) for o in range(layer.W.shape[2])] if has else []
    assert len(order) == J.shape[1]
    for place, (name, index) in enumerate(order):
        assert np.allclose(J[:, place], column(name, index), atol=1e-8)


def test_refits_under_fresh_noise_scatter_as_predicted():
    truth, X, draws = generic(), gaussian(250, 3), 200
    bound = fisher(truth, X, NOISE)
    rng, missed = stream(3, "noise"), []
    for _ in range(draws):
        Y = truth(X) + NOISE * rng.standard_normal((250, 4, 2))
        fit = variable_projection(Examples.of(X, Y), truth.Theta)  # the truth's own minimum, head by head
        missed.append(np.concatenate([(fit.Theta - truth.Theta).ravel(), (fit.W - truth.W).ravel()]))
    errors = np.concatenate([bound.Theta.ravel(), bound.W.ravel()])
    z = np.array(missed) / errors
    assert np.abs(z.mean(0)).max() * np.sqrt(draws) < 4.5  # 30 numbers
    assert np.abs(np.mean(z**2, axis=0) - 1).max() < 5 * np.sqrt(2 / draws)  # each standard error
    fresh = gaussian(50, 3, seed=9)
    squares = []
    for row in missed[:50]:
        found = Layer(truth.Theta + row[:18].reshape(2, 3, 3), truth.W + row[18:].reshape(2, 3, 2))
        squares.append(np.mean((found(fresh) - truth(fresh)) ** 2))
    expected, spread = bound.output_error(fresh) ** 2, np.std(squares) / np.sqrt(len(squares))
    assert np.mean(squares) == pytest.approx(expected, abs=4 * spread)


def test_heads_of_low_rank_with_biases_scatter_as_predicted():
    truth, X, draws = biased(), gaussian(250, 4), 40
    bound = fisher(truth, X, NOISE, rank=2)
    assert bound.unknowns == Sizes(2, 2, 4, 3, True).unknowns
    assert bound.unseen == 0
    rng, shares = stream(5, "noise"), []
    for draw in range(draws):
        Y = truth(X) + NOISE * rng.standard_normal((250, 4, 3))
        found = factor_fit(Examples.of(X, Y), 2, 2, stream(draw, "start"), biases=True, max_steps=500).layer
        swap = np.sum((found.W - truth.W) ** 2) > np.sum((found.W[::-1] - truth.W) ** 2)
        order = [1, 0] if swap else [0, 1]
        squares = [
            np.sum((getattr(found, name)[order] - getattr(truth, name)) ** 2) / np.sum(getattr(bound, name) ** 2)
            for name in ("Theta", "W", "key_bias")
        ]
        squares.append(np.sum((found.output_bias - truth.output_bias) ** 2) / np.sum(bound.output_bias**2))
        shares.append(squares)
    spread = np.std(shares, axis=0) / np.sqrt(draws)
    assert np.all(np.abs(np.mean(shares, axis=0) - 1) < 4 * spread)


def test_a_known_rank_lowers_the_bound():
    truth, X = biased(), gaussian(300, 4)
    free, known = fisher(truth, X, NOISE), fisher(truth, X, NOISE, rank=2)
    assert known.unknowns < free.unknowns
    assert np.all(known.Theta < free.Theta * (1 + 1e-9))
    assert known.Theta_error < 0.95 * free.Theta_error


def test_what_tokens_do_not_show_is_infinite():
    X = gaussian(200, 3).copy()
    X[:, :, 2] = 1.0  # a constant coordinate: Theta + v c^T does the same
    bound = fisher(generic(), X, NOISE)
    assert np.isinf(bound.Theta[:, :, 2]).all()
    assert np.isfinite(bound.Theta[:, :, :2]).all()
    assert np.isfinite(bound.W[:, :2]).all()
    assert np.isinf(bound.W[:, 2]).all()  # every head reads the constant, so only the sum is seen
    assert bound.unseen == 2 * 3 + 2


@pytest.mark.parametrize("unit", [1e-4, 1e-2, 1e4])
def test_the_unit_of_a_coordinate_only_scales_the_errors(unit):
    # with x_2 in another unit, Theta and W belong to other numbers: the same function, the same information
    Theta, W = planted_layer(1, 3, 1)
    X, units = tokens.gaussian(60, 4, 3, stream(0, "units")), np.array([1.0, 1.0, unit])
    usual = fisher(Layer(Theta, W), X, 0.1)
    other = fisher(Layer(Theta / units[:, None] / units, W / units[:, None]), X * units, 0.1)
    assert other.unseen == 0
    np.testing.assert_allclose(other.Theta * units[:, None] * units, usual.Theta, rtol=1e-5)
    np.testing.assert_allclose(other.W * units[:, None], usual.W, rtol=1e-5)


def test_shares_of_information_add_up_to_the_unknowns_and_zeros_tell_nothing():
    truth, X = generic(), gaussian(60, 3)
    X[0] = 0.0
    shares = information(truth, X)
    assert shares.sum() == pytest.approx(fisher(truth, X, 1.0).unknowns)
    assert shares[0] == 0
    assert shares[1:].min() > 0


def test_what_tells_most_lowers_the_error_most():
    truth, X = generic(), gaussian(400, 3)
    order = np.argsort(information(truth, X))
    worst, best = (fisher(truth, X[rows], NOISE).Theta_error for rows in (order[:200], order[200:]))
    assert best < 0.8 * worst


def test_bad_input_is_refused():
    layer = generic()
    with pytest.raises(InputError, match="noise"):
        fisher(layer, gaussian(10, 3), 0.0)
    with pytest.raises(InputError, match="rank above 1"):
        fisher(layer, gaussian(10, 3), 1.0, rank=1)
    with pytest.raises(InputError, match="axis 2"):
        fisher(layer, tokens.boolean(10, 4, 5, seed=1), 1.0)
    with pytest.raises(InputError, match="parameters"):
        fisher(generic(heads=8, d=24, d_out=24), gaussian(2, 24), 1.0)
    with pytest.raises(InputError, match="mask"):
        fisher(Layer(layer.Theta, layer.W, causal=True), gaussian(10, 3), 1.0)
