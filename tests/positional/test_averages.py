"""The integrals against brute force, Stein's identity against the Hessian, and tokens that are not alike."""

import numpy as np
import pytest

from attlas.positional import Model, proximal_map
from attlas.positional.averages import COARSE, FINE, USUAL, Rule, averages
from tests.positional.settings import F, P, point

POINTS = {"positional": (14.9, 0.047, 0.25, 0.0), "semantic": (18.3, 0.082, 0.0, 0.118)}  # V, q, m, theta
# means of ten million draws through the global map, with standard errors: studies/positional_integrals.py
BRUTE = {
    "positional": {
        "ff": (1.12433061e-04, 7.9e-08),
        "f_s": (2.44993818e-03, 3.0e-06),
        "fw": (-9.98275352e-04, 8.2e-07),
        "loss": (1.42863403e-03, 6.1e-07),
        "test": (3.39414317e-03, 1.8e-06),
        "meaning": (-7.67361650e-04, 2.0e-05),
        "place": (-1.28174892e-02, 1.6e-05),
    },
    "semantic": {
        "ff": (6.19554896e-05, 3.7e-08),
        "fz": (3.76509613e-03, 2.0e-06),
        "fw": (1.47029731e-03, 7.7e-07),
        "loss": (8.72562922e-04, 2.7e-07),
        "test": (2.34794083e-03, 1.1e-06),
        "meaning": (-6.63130072e-03, 1.8e-05),
        "place": (-5.55558962e-03, 1.5e-05),
    },
}


@pytest.mark.parametrize("branch", POINTS)
def test_against_ten_million_draws(branch):
    """Where the map jumps, and all that the theory needs: within three and a half standard errors, 14 numbers."""
    found = averages(P, USUAL, *POINTS[branch])
    for name, (value, error) in BRUTE[branch].items():
        assert abs(getattr(found, name) - value) < 3.5 * error, name


@pytest.mark.parametrize(
    "model",
    [
        Model(0.3, 1.0, 0.5, 0.01),
        Model(0.2, 2.0, 1.0, positional_matrix=[[0.7, 0.3], [0.45, 0.55]]),  # tokens that are not alike
    ],
)
@pytest.mark.parametrize("branch", POINTS)
def test_against_draws(model, branch):
    V, q, m, theta = POINTS[branch]
    if not model.symmetric:
        V, q, m, theta = (1.2, 0.2, 0.1, 0.0) if branch == "positional" else (1.2, 0.2, 0.0, 0.3)
    found, n, sigma = averages(model, COARSE, V, q, m, theta), 150_000, model.token_scale
    rng, sd = np.random.default_rng(1), np.sqrt(q - (theta / sigma) ** 2)
    S, R = sigma * rng.standard_normal((2, n))
    x_s, x_r = rng.standard_normal((2, n))
    w0_s, w_r = theta / sigma**2 * S + sd * x_s, theta / sigma**2 * R + sd * x_r
    w_s, targets = w0_s + np.sqrt(2) * model.encoding * m, model.targets(S, R)
    s, r = proximal_map(w_s, w_r, *targets, V, sigma)
    f_s, f_r = (s - w_s) / V, (r - w_r) / V
    drawn = {
        "ff": f_s**2 + f_r**2,
        "f_s": f_s,
        "fz": f_s * S + f_r * R,
        "fw": f_s * w0_s + f_r * w_r,
        "loss": model.loss(s, r, *targets),
        "test": model.loss(w_s, w_r, *targets),
        "first": 1 / (1 + np.exp(-w_s * (w_s + w_r))),
        "second": 1 / (1 + np.exp(-w_s * (w_s - w_r))),
    }
    for name, values in drawn.items():
        assert abs(getattr(found, name) - values.mean()) < 4 * values.std() / np.sqrt(n), name


@pytest.mark.parametrize("branch", POINTS)
def test_finer_rules_agree(branch):
    coarse, usual, fine = (averages(P, rule, *POINTS[branch]) for rule in (COARSE, USUAL, FINE))
    for name in ("weight", "ff", "f_s", "fz", "fw", "loss", "test"):
        reference = getattr(fine, name)
        assert getattr(usual, name) == pytest.approx(reference, rel=2e-6, abs=1e-12), name
        assert getattr(coarse, name) == pytest.approx(reference, rel=2e-4, abs=1e-12), name
    assert fine.weight == pytest.approx(1, abs=1e-9)


def test_wide_tokens_fit_into_their_panels():
    """One panel in two units of S: the arrays of their ends grow with the tokens."""
    model = Model(0.3, 3.0, token_scale=45.0)
    found = averages(model, Rule(2, 2, 2, 4), 1e-3, 1.0, 0.1, 0.0)
    assert np.isfinite(found).all()


def test_stein_is_the_hessian_where_nothing_jumps():
    """E f.w0 = q E div f at theta = 0, from values on the left and from derivatives on the right."""
    at = point(F, 3, "positional")
    found = averages(F, USUAL, at.V, at.q, at.m, 0.0)
    assert found.jumps == 0
    assert found.fw / at.q == pytest.approx(found.trace / at.V, rel=2e-6)


def test_jumps_are_what_the_hessian_misses():
    """The share of jumps, added up jump by jump, is the difference of the two responses."""
    V, q, m, _ = POINTS["positional"]
    found = averages(P, FINE, V, q, m, 0.0)
    assert found.jumps > 0.01
    assert found.fw / q == pytest.approx((found.trace + found.jumps) / V, rel=1e-4)
