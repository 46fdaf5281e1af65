"""Fits on arrays in blocks have the numbers of fits in memory."""

import numpy as np
import pytest

from attlas import tokens
from attlas.errors import InputError
from attlas.features import attention_heads
from attlas.features.blocked_fit import fit_blocks, predict_blocks
from attlas.features.checked_blocks import in_blocks
from attlas.features.frozen_heads import FiniteHeads
from attlas.features.ridge import GRID
from attlas.features.ridge_fit import SOLVERS

da = pytest.importorskip("dask.array")

X = tokens.sphere(90, 5, 4, 0)
Y = np.stack([X[:, 1:, 0].mean(1) ** 2, X[:, 0, 1]], axis=1) + 5
WEIGHT = np.random.default_rng(0).uniform(0, 2, 90)
HEADS = FiniteHeads(attention_heads(6, 4, 1), "relu")
CHUNKS = ((40, 13, 37), 3, 2)  # along the tokens and their coordinates too


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_blocks_have_the_numbers_of_one_array(intercept, weighted):
    weight = WEIGHT if weighted else None
    blocks = None if weight is None else da.from_array(weight, chunks=30)
    given = da.from_array(X, chunks=CHUNKS), da.from_array(Y, chunks=(17, 1))
    found = fit_blocks(HEADS.on, 30, *given, np.array(GRID), True, intercept, blocks)
    expected = SOLVERS["primal"](HEADS.on(X), Y, np.array(GRID), True, intercept, weight)
    np.testing.assert_allclose(found.errors, expected.errors, rtol=1e-5)
    assert found.alpha == expected.alpha
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-4, atol=1e-4 * np.abs(expected.values).max())
    np.testing.assert_allclose(found.left_out.compute(), expected.left_out, rtol=1e-5)
    assert found.left_out.chunks[0] == (40, 13, 37)
    predicted = predict_blocks(HEADS.on, given[0], found.values, found.intercept)
    np.testing.assert_allclose(
        predicted.compute(), HEADS.on(X).times(found.values) + found.intercept, rtol=1e-6, atol=1e-6
    )
    fixed = fit_blocks(HEADS.on, 30, *given, np.array([found.alpha]), False, intercept, blocks)
    np.testing.assert_allclose(fixed.values, found.values, rtol=1e-9)
    assert fixed.errors is fixed.left_out is None


def test_an_empty_block_adds_nothing():
    keep = da.from_array(np.arange(90) < 60, chunks=30)
    given, targets = da.from_array(X, chunks=(30, 5, 4))[keep], da.from_array(Y, chunks=(30, 2))[keep]
    found = fit_blocks(HEADS.on, 30, given, targets, np.array([0.01, 0.1]), True, True)  # of unknown sizes: 30, 30, 0
    expected = SOLVERS["primal"](HEADS.on(X[:60]), Y[:60], np.array([0.01, 0.1]), True, True)
    np.testing.assert_allclose(found.errors, expected.errors, rtol=1e-5)
    np.testing.assert_allclose(found.left_out.compute(), expected.left_out, rtol=1e-5)


def test_bad_input_is_one_sentence():
    given = da.from_array(X, chunks=(30, 5, 4))
    assert in_blocks(given)
    assert not in_blocks(X)
    with pytest.raises(InputError, match="arrays in blocks like X"):
        fit_blocks(HEADS.on, 30, given, Y, np.array([0.1]), False, True)
    with pytest.raises(InputError, match="90 samples and y has 60"):
        fit_blocks(HEADS.on, 30, given, da.from_array(Y[:60], chunks=30), np.array([0.1]), False, True)
