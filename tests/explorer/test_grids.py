"""What the browser draws from grids is what the theory says, to less than a pixel."""

import numpy as np
import pytest

from attlas import aim
from attlas.errors import InputError
from attlas.explorer.pages.aim import PAGE, theory
from attlas.explorer.plotting import plain

PIXEL = 1 / 260  # of the height of a plot
(SECTION,) = PAGE.sections


def cubic(value, low, high, count):
    """Return the first node and the weights, as in ``assets/grids.js``."""
    t = (value - low) / (high - low) * (count - 1)
    first = min(max(int(np.floor(t)) - 1, 0), count - 4)
    s = t - first
    weights = (
        -(s - 1) * (s - 2) * (s - 3) / 6,
        s * (s - 2) * (s - 3) / 2,
        -s * (s - 1) * (s - 3) / 2,
        s * (s - 1) * (s - 2) / 6,
    )
    return slice(first, first + 4), np.array(weights)


def at(table, value, low, high):
    """Return a row, or a number, between those of a table."""
    nodes, weights = cubic(value, low, high, len(table))
    return np.tensordot(weights, np.asarray(table)[nodes], 1)


def state(**given):
    return SECTION.view(given, "none.db").state


@pytest.mark.parametrize(
    ("channel", "tokens", "noise"),
    [
        ("softmax", 2, 0.25),
        ("softmax", 6, 0.25),
        ("linear", 1, 0.05),
        ("linear", 3, 0.5),
        ("linear", 2, 1),
        ("hardmax", 2, 0),
    ],
)
def test_error_and_threshold(channel, tokens, noise) -> None:
    chosen = state(channel=channel, tokens=tokens, noise=noise)
    grid, rng = theory.bayes_grid(chosen), np.random.default_rng(tokens)
    known = theory.channel_of(chosen)
    for rho in rng.uniform(*theory.RHOS, 8):
        V = at(grid["V"], np.log(rho), *grid["logs"])
        unit, end = at(grid["unit"], np.log(rho), *grid["logs"]), grid["end"]
        exact = aim.recovery_threshold(known, rho)
        assert grid["exact"] is (exact is not None)
        if exact is not None:
            assert abs(unit - exact) < PIXEL * end
        k = end / unit - 1
        for alpha in rng.uniform(0, end, 6):
            t = alpha / unit if grid["exact"] else k * alpha / (end + (k - 1) * alpha)
            found = at(V, t, 0, 1) if t < 1 else V[-1]
            assert abs(found - aim.state_evolution(known, alpha, rho, steps=0).value) < PIXEL, (rho, alpha)


@pytest.mark.parametrize(
    ("channel", "noise", "decay"), [("softmax", 0, -2), ("softmax", 0, -4), ("linear", 0.25, -1), ("linear", 1, 0)]
)
def test_training_and_its_spectrum(channel, noise, decay) -> None:
    chosen = state(channel=channel, noise=noise, decay=decay)
    grid, rng = theory.trained_grid(chosen), np.random.default_rng(-decay)
    known = theory.channel_of(chosen)
    for rho in rng.uniform(*theory.RHOS, 5):
        rows = {name: at(grid[name], np.log(rho), *grid["logs"]) for name in ("mse", "delta", "theta", "rank")}
        alphas = np.linspace(*grid["alpha"], len(rows["mse"]))
        exact = aim.trained_curve(known, alphas, rho=rho, decay=[chosen["decay"]])["mse"].values[0]
        top = min(1.1 * max(1 + rho, *exact), 3)
        assert np.abs(rows["mse"] - exact).max() < PIXEL * top
        alpha = rng.uniform(0.1, 1) * grid["alpha"][1]
        delta, theta = (np.exp(at(rows[name], alpha, *grid["alpha"])) / alpha for name in ("delta", "theta"))
        found = aim.trained(known, alpha, rho, chosen["decay"])
        x = np.linspace(0.05, 4, 80)
        near = aim.Trained(found.value, found.status, 0, 0, np.empty(0), delta=delta, theta=theta, rho=rho)
        density = found.spectrum(x)
        assert abs(at(rows["rank"], alpha, *grid["alpha"]) - found.rank) < 0.002
        assert np.abs(near.spectrum(x) - density).max() <= 2 * PIXEL * density.max()  # sheer at its edge


def test_a_grid_with_a_gap_is_none(monkeypatch) -> None:
    with pytest.raises(InputError, match="not solved everywhere"):
        theory._whole(np.array([[1.0, np.nan]]))
    assert plain([1.0]) == [1.0]
