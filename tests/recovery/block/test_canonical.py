"""The canonical form is the same function, and the same for all blocks of one function."""

from dataclasses import replace

import numpy as np
import pytest

from attlas.errors import InputError
from attlas.numerics import stream
from attlas.recovery import BlockWeights, block_error, canonical_block, planted_block

KINDS = [(4, True, True), (4, False, False), (4, False, True), (1, True, False)]


def sequences(d=4, count=6):
    rng = stream(5, "sequences")
    return [rng.standard_normal((k, d)) for k in range(1, count)]


@pytest.mark.parametrize(("d_out", "r_a", "r_g"), KINDS)
@pytest.mark.parametrize("hidden", [2, 7])
def test_it_is_the_same_function(hidden, d_out, r_a, r_g):
    truth = planted_block(2, 4, hidden, 3, d_out=d_out, attention_residual=r_a, network_residual=r_g)
    found = canonical_block(truth)
    assert found.heads == 2
    assert found.hidden == hidden
    for X in sequences():
        assert np.allclose(found(X), truth(X), rtol=1e-11, atol=1e-11)


def test_what_is_not_seen_has_no_coordinates():
    assert canonical_block(planted_block(1, 5, 3, 0, d_out=1)).S.shape == (5, 3)
    assert canonical_block(planted_block(1, 5, 3, 0)).S.shape == (5, 3)
    assert canonical_block(planted_block(1, 5, 3, 0, network_residual=True)).S.shape == (5, 5)


def test_a_gauge_without_residual_changes_nothing():
    """W -> W T, A -> A T^-1: the same function where nothing but the heads feeds the network."""
    truth = planted_block(2, 4, 5, 1, attention_residual=False)
    T = stream(2, "gauge").standard_normal((4, 4))
    other = replace(truth, W=truth.W @ T, A=truth.A @ np.linalg.inv(T).T)
    assert block_error(canonical_block(other), canonical_block(truth)) < 1e-12
    with_residual = replace(truth, attention_residual=True)
    assert block_error(canonical_block(replace(other, attention_residual=True)), canonical_block(with_residual)) > 0.01


def test_neurons_of_one_hyperplane_and_equal_heads_merge():
    truth = planted_block(2, 4, 5, 1)
    A, a0 = truth.A.copy(), truth.a0.copy()
    A[3], a0[3] = -2 * A[2], -2 * a0[2]
    A[4] = 0.0  # never switches
    merged = replace(truth, A=A, a0=a0, Theta=np.stack([truth.Theta[0]] * 2))
    found = canonical_block(merged)
    assert (found.heads, found.hidden) == (1, 3)
    for X in sequences():
        assert np.allclose(found(X), merged(X), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(("d_out", "r_g"), [(4, True), (4, False), (1, False)])
def test_a_residual_around_attention_tells_the_original_coordinates(d_out, r_g):
    truth = planted_block(2, 4, 6 if d_out == 4 else 4, 8, d_out=d_out, network_residual=r_g)
    found = canonical_block(truth).weights
    assert found is not None
    assert found.network_residual == r_g
    assert np.allclose(found.W, truth.W)
    for mine, row in zip(found.A, truth.A, strict=True):
        assert np.allclose(mine / np.linalg.norm(mine), row / np.linalg.norm(row))
    for X in sequences():
        assert np.allclose(found(X), truth(X), rtol=1e-9, atol=1e-9)


def test_without_it_they_are_not_told():
    assert canonical_block(planted_block(2, 4, 6, 8, attention_residual=False)).weights is None
    assert canonical_block(planted_block(2, 4, 2, 8)).M is None  # two neurons see two of four directions


def test_a_singular_sum_is_refused_in_a_sentence():
    with pytest.raises(InputError, match="singular"):
        canonical_block(singular())
    with pytest.raises(InputError, match="BlockWeights"):
        canonical_block(3)
    with pytest.raises(InputError, match="a Block"):
        block_error(3, 4)


def singular() -> BlockWeights:
    truth = planted_block(2, 4, 8, 0, attention_residual=False)
    W = truth.W.copy()
    W[1, :, 0] = -W[0, :, 0]
    return replace(truth, W=W)
