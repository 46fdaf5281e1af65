"""Grids are the theory at their points."""

from math import inf

import numpy as np
import pytest

from attlas import context
from attlas.errors import InputError


def test_a_grid_is_the_theory_at_its_points():
    seen = []
    found = context.curve([2, 5], [0.5, inf], [0.5, 1, 2], [0.0, 0.1], noise=0.1, progress=seen.append)
    assert found["icl"].dims == ("ridge", "tau", "kappa", "alpha")
    assert seen[-1].share == 1
    assert found["converged"].all()
    assert float(found["noise"]) == 0.1
    for ridge in (0.0, 0.1):
        for tau in (0.5, 1, 2):
            for kappa in (0.5, inf):
                here = found.sel(ridge=ridge, tau=tau, kappa=kappa, alpha=5)
                if (ridge, tau) == (0, 1):
                    assert (float(here.icl), float(here.idg), float(here.training)) == (inf, inf, 0)
                    continue
                expected = context.theory(5, kappa, tau, ridge, 0.1)
                for name in ("icl", "idg", "training", "effective", "residual"):
                    assert float(here[name]) == getattr(expected, name)


def test_one_point_has_no_dimension():
    found = context.curve(2, 1, 2, 0.1, 0.1, test_alpha=4, spectrum=[1, 2], test_spectrum=[2, 1])
    assert found["icl"].shape == ()
    assert (
        float(found["icl"])
        == context.theory(2, 1, 2, 0.1, 0.1, test_alpha=4, spectrum=[1, 2], test_spectrum=[2, 1]).icl
    )


def test_the_best_ridge_at_every_point():
    found = context.curve(2, 2, [1, 2], "best", 0.1)
    assert found["best_ridge"].values == pytest.approx([1.17829, 0.60911], abs=6e-6)
    assert found["icl"].values == pytest.approx([0.847891, 0.740321], abs=6e-7)
    assert np.all(np.diff(context.curve(2, 2, np.linspace(0.2, 3, 15), "best", 0.1)["icl"]) < 0)  # no peak


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"ridge": "worst"}, 'ridge must be numbers or "best"'),
        ({"tau": [[1, 2]]}, "tau must be a number or a list"),
        ({"tau": []}, "tau must be a number or a list"),
        ({"kappa": [True]}, "kappa must be a number or a list"),
        ({"alpha": [1, 0]}, "alpha must be"),
        ({"tau": [1, np.nan]}, "tau must be"),
    ],
)
def test_bad_input(given, message):
    with pytest.raises(InputError, match=message):
        context.curve(**given)
