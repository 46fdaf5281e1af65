"""The table of fixed points that comes with attlas, against the solver at cells drawn at random."""

from importlib import resources

import numpy as np
import pytest

from attlas.positional import Model, state_evolution, table, tabulated

NAMES = ("loss", "test", "train", "q", "V", "envelope")


@pytest.fixture(scope="module")
def held():
    return table()


@pytest.mark.parametrize("branch", ["positional", "semantic"])
def test_against_the_solver(held, branch):
    """Six cells, drawn once: within 3e-4, the accuracy of the coarse quadrature with room to spare."""
    rng = np.random.default_rng(7)
    there = held["m" if branch == "positional" else "theta"].sel(branch=branch) > 0
    settled = np.argwhere(there.values)
    for i, j, k in settled[rng.choice(len(settled), 6, replace=False)]:
        cell = held.sel(branch=branch).isel(encoding=i, mixture=j, alpha=k)
        model = Model(float(cell["mixture"]), float(cell["encoding"]))
        solved = state_evolution(model, float(cell["alpha"]), branch)
        for name in NAMES:
            assert float(cell[name]) == pytest.approx(getattr(solved, name), rel=3e-4), (model, name)
        own = "m" if branch == "positional" else "theta"
        assert float(cell[own]) == pytest.approx(getattr(solved, own), rel=3e-4)
        assert float(cell["slope"]) == pytest.approx(solved.slope, rel=3e-3, abs=1e-3)
        assert float(cell["diagonal"]) == pytest.approx(solved.attention[0, 0], rel=3e-4)


def test_nearly_all_cells_hold_something(held):
    """The positional branch is there for c >= 2; the semantic one from some alpha on, which grows with the mixture."""
    assert held["converged"].all()
    assert (held["m"].sel(branch="positional", encoding=slice(2, None)) > 0).all()
    weak = held["m"].sel(branch="positional", encoding=1.5)
    assert (weak.sel(mixture=slice(0.15, None)) > 0).mean() > 0.9
    assert (weak.sel(mixture=0, alpha=slice(2, 8)) == 0).all()  # where half of the response is jumps
    semantic = held["theta"].sel(branch="semantic").isel(encoding=0) > 0
    assert semantic.sel(alpha=slice(2, None), mixture=slice(0, 0.5)).all()
    assert not semantic.sel(alpha=0.25).any()
    assert held.attrs == {"token_scale": 1.0, "decay": 0.5}
    assert np.isfinite(held["loss"].values[held["converged"].values]).all()


def test_a_cell_is_a_fixed_point():
    found = tabulated(Model(0.3, 3.0), 3, "positional")
    assert found.steps == 0  # nothing was solved
    assert found.loss == pytest.approx(0.1166501284, rel=1e-4)
    assert found.mechanism == "positional"
    assert found.exact
    assert tabulated(Model(0.3, 3.0), 3, "semantic").slope == pytest.approx(-6.6376, rel=1e-3)
    elsewhere = tabulated(Model(0.3, 3.0), 2.95, "semantic")  # no cell: the solver
    assert elsewhere.steps > 0
    finer = tabulated(Model(0.3, 3.0), 3, "semantic", tol=1e-6)
    assert finer.theta == pytest.approx(0.4941897827, rel=1e-6)
    other = tabulated(Model(0.3, 3.0, token_scale=0.9), 3, "semantic")
    assert other.steps > 0


def test_the_file_holds_no_pickle():
    with resources.files("attlas.positional").joinpath("fixed_points.npz").open("rb") as file:
        loaded = np.load(file, allow_pickle=False)
        assert all(loaded[name].dtype.kind in "fb" for name in loaded.files)
