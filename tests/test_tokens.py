import numpy as np
import pytest

from attlas import tokens
from attlas.errors import InputError

LAWS = [tokens.sphere, tokens.boolean, tokens.gaussian]


@pytest.mark.parametrize("law", LAWS)
def test_shape_dtype_and_seed(law):
    X = law(5, 3, 7, 0)
    assert X.shape == (5, 3, 7)
    assert X.dtype == np.float64
    np.testing.assert_array_equal(X, law(5, 3, 7, 0))
    assert not np.array_equal(X, law(5, 3, 7, 1))
    np.testing.assert_array_equal(X, law(5, 3, 7, np.random.default_rng(0)))


@pytest.mark.parametrize("law", LAWS)
def test_first_two_moments(law):
    """Mean zero and covariance c I, within five standard errors of the entries."""
    n, d = 20_000, 4
    X = law(n, 2, d, 3).reshape(-1, d)
    c = 1 / d if law is tokens.sphere else 1.0
    assert np.abs(X.mean(0)).max() < 5 * np.sqrt(c / len(X))
    assert np.abs(X.T @ X / len(X) - c * np.eye(d)).max() < 5 * c * np.sqrt(2 / len(X))


def test_values():
    np.testing.assert_allclose(np.linalg.norm(tokens.sphere(50, 4, 9, 0), axis=-1), 1, rtol=1e-14)
    assert set(np.unique(tokens.boolean(50, 4, 9, 0))) == {-1.0, 1.0}


@pytest.mark.parametrize("sizes", [(0, 1, 1), (1, -1, 1), (1, 1, 2.5), (1, True, 1), (1, 1, float("nan"))])
def test_bad_sizes(sizes):
    with pytest.raises(InputError, match="must be an integer of at least 1"):
        tokens.gaussian(*sizes, 0)


@pytest.mark.parametrize("seed", [-1, 0.5, "a", None, True])
def test_bad_seed(seed):
    with pytest.raises(InputError, match="seed must be"):
        tokens.gaussian(1, 1, 1, seed)
