"""The greedy design is that of determinants written out; it lowers the bound and the errors of refits."""

import numpy as np
import pytest

from attlas.errors import InputError
from attlas.numerics import stream
from attlas.recovery import Layer, design, fisher, planted_layer
from attlas.recovery.fisher import _jacobian


def task(n, d=3, heads=1, seed=1):
    truth = Layer(*planted_layer(heads, d, stream(seed, "teacher"), 2.0, d_out=2))
    return truth, stream(seed, "tokens").standard_normal((n, 3, d))


def test_every_choice_has_the_largest_determinant():
    truth, X = task(30)
    ((J, _),) = _jacobian(truth, X)
    own = J.reshape(30, -1, J.shape[1])
    information = np.einsum("sra,srb->sab", own, own)
    known, expected = 1e-3 * information.sum(0), []
    for _ in range(8):
        logs = [-np.inf if s in expected else np.linalg.slogdet(known + part)[1] for s, part in enumerate(information)]
        expected.append(int(np.argmax(logs)))
        known = known + information[expected[-1]]
    assert design(truth, X, 8).tolist() == expected


def test_a_design_lowers_the_bound_also_with_heads_of_known_rank():
    truth, X = task(300, d=4, heads=2)
    low = Layer(
        np.stack([np.outer(T[0], T[1]) for T in truth.Theta]), np.stack([np.outer(W[:, 0], [1, 2]) for W in truth.W])
    )
    for layer, rank in ((truth, None), (low, 1)):
        rows = design(layer, X, 60, rank=rank)
        assert len(set(rows)) == 60
        best, plain = (fisher(layer, some, 0.1, rank=rank) for some in (X[rows], X[:60]))
        assert best.Theta_error < 0.8 * plain.Theta_error
        assert best.W_error < 0.9 * plain.W_error


def test_what_the_tokens_do_not_show_does_no_harm():
    truth, X = task(60)
    X[:, :, 2] = 1.0
    assert len(design(truth, X, 10)) == 10


def test_the_unit_of_a_coordinate_does_not_matter():
    Theta, W = planted_layer(1, 3, 1)
    X, units = stream(1, "units").standard_normal((40, 4, 3)), np.array([1.0, 1.0, 1e-4])
    other = Layer(Theta / units[:, None] / units, W / units[:, None])
    np.testing.assert_array_equal(design(other, X * units, 10), design(Layer(Theta, W), X, 10))


def test_sequences_that_tell_nothing_are_refused():
    with pytest.raises(InputError, match="no sequence of X tells anything"):
        design(Layer(*planted_layer(1, 3, 1)), np.zeros((5, 4, 3)), 2)


def test_bad_input_is_refused():
    truth, X = task(10)
    with pytest.raises(InputError, match="cannot be chosen from 10"):
        design(truth, X, 11)
    with pytest.raises(InputError, match="n must be"):
        design(truth, X, 0)
    many = np.broadcast_to(X[:1], (2_000_000, 3, 3))
    with pytest.raises(InputError, match="give fewer sequences"):
        design(truth, many, 3)
