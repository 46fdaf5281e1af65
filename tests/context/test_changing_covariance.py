import numpy as np
import pytest

from attlas.context import changing_covariance
from attlas.errors import InputError
from attlas.numerics import stream

GRID = np.linspace(0.5, 4, 2001)


@pytest.mark.parametrize(
    ("layers", "step", "excess"),
    [(1, 0.26996692905119, 4.8538e-2), (4, 0.29128654541700, 3.2579e-4), (16, 0.30268848099364, 2.8359e-11)],
)
def test_trained_step(layers, step, excess):
    """Steps by bisection of the derivative in 40 digits."""
    found = changing_covariance.trained_step(layers, GRID)
    assert found.value == pytest.approx(step, abs=2e-14)
    assert found.excess == pytest.approx(excess, rel=2e-5)
    assert found.limit == pytest.approx(0.307692308, abs=1e-9)


def test_one_layer_by_its_closed_form():
    """T = 1: eta = E m / E m(1 + m)."""
    found = changing_covariance.trained_step(1, GRID)
    assert found.value == pytest.approx(GRID.mean() / np.mean(GRID * (1 + GRID)), rel=1e-13)


def test_many_layers_tend_to_the_middle_step():
    steps = [changing_covariance.trained_step(layers, GRID).value for layers in (16, 64, 256)]
    limit = changing_covariance.trained_step(1, GRID).limit
    assert steps == sorted(steps)
    assert steps[-1] == pytest.approx(limit, abs=5e-4)


def test_one_strength_needs_one_layer():
    found = changing_covariance.trained_step(1, [2.0, 2.0])
    assert found.value == pytest.approx(1 / 3)
    assert found.excess == pytest.approx(0, abs=1e-30)


@pytest.mark.parametrize(("layers", "length"), [(1, 10_000), (2, 10_000), (4, 1000)])
def test_drawn_contexts(layers, length):
    """Finite contexts add about D/L."""
    rng = stream(0, "test", str(layers))
    m = rng.uniform(0.5, 4, 120)
    eta = changing_covariance.trained_step(layers, GRID).value
    found = changing_covariance.drawn_excess(eta, layers, m, length, seed=rng)
    paired = found - changing_covariance.step_excess(eta, layers, m)
    assert -4 * paired.std() / np.sqrt(120) < paired.mean() < 4 * paired.std() / np.sqrt(120) + 3 * 8 / length


def test_bad_input():
    with pytest.raises(InputError, match="strengths"):
        changing_covariance.trained_step(1, [1.0, 0.0])
    with pytest.raises(InputError, match="layers"):
        changing_covariance.trained_step(0, [1.0])
