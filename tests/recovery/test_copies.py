"""The literature's way: rational interpolation over copies of tokens."""

import numpy as np
import pytest

from attlas.errors import InputError
from attlas.numerics import stream
from attlas.recovery import Layer, copies, learn_from_queries, parameter_error

from .tasks import oracle_of, planted


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


@pytest.mark.parametrize(("heads", "d_out", "goal"), [(2, 1, 1e-6), (3, 4, 1e-8)])
def test_copies_alone(heads, d_out, goal):
    Theta, W = planted(heads, 4, d_out=d_out)
    found = learn_from_queries(oracle_of(Theta, W), 4, heads=heads, method="copies")
    assert 0 < parameter_error(found, Layer(Theta, W)) < goal
    with pytest.raises(InputError, match="copies needs the number of heads, from 2 to 6"):
        learn_from_queries(oracle_of(Theta, W), 4, heads=None, method="copies")
