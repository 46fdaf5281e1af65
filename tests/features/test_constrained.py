"""The norm-constrained estimator: what it keeps, how it chooses, what it refuses."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from attlas import tokens
from attlas.errors import InputError
from attlas.features import ConstrainedAttentionRegressor, targets
from attlas.numerics import Status

X = tokens.sphere(200, 5, 4, 0)
y = targets.KeyAverage(np.eye(4)[0], 2)(X)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # tokens around (100, .., 100) are hard
@parametrize_with_checks(
    [
        ConstrainedAttentionRegressor(n_heads=10, radius=0.5, max_iter=200, random_state=0),
    ]
)
def test_what_scikit_learn_expects(estimator, check):
    check(estimator)


def norms(V):
    return np.linalg.norm(V, axis=1)


def test_fewer_heads_are_kept_in_a_smaller_ball():
    def fitted(radius):
        return ConstrainedAttentionRegressor(50, radius=radius, random_state=0).fit(X, y)

    small, large = fitted(0.3), fitted(30.0)
    assert len(small.kept_heads_) < len(large.kept_heads_) <= 50
    assert norms(small.coef_).sum() == pytest.approx(0.3, rel=1e-3)
    assert small.risk_ > large.risk_
    order = norms(small.coef_)[small.kept_heads_]
    assert (np.diff(order) <= 0).all()
    assert (order > 0).all()


def test_a_bound_on_the_energy_spreads_the_values():
    free = ConstrainedAttentionRegressor(50, radius=1.0, random_state=0).fit(X, y)
    spread = ConstrainedAttentionRegressor(50, radius=1.0, energy=2.0, random_state=0).fit(X, y)
    assert (spread.coef_**2).sum() <= 2.0 / 50 * (1 + 1e-9) < (free.coef_**2).sum()


def test_it_learns_and_chooses_its_radius():
    model = ConstrainedAttentionRegressor(100, random_state=0).fit(X[:150], y[:150])
    assert model.score(X[150:], y[150:]) > 0.8
    assert model.gap_ <= 1e-4 * y.std()
    assert model.status_ is Status.CONVERGED


def test_steps_that_run_out_say_so():
    model = ConstrainedAttentionRegressor(50, radius=1.0, max_iter=1, random_state=0)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        model.fit(X, y)
    assert model.status_ is Status.OUT_OF_STEPS


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"radius": 0}, "radius"),
        ({"radius": -1.0}, "radius"),
        ({"energy": 0}, "energy"),
        ({"delta": 0}, "delta"),
        ({"tol": -1e-3}, "tol"),
        ({"max_iter": 0}, "max_iter"),
        ({"n_heads": 0}, "n_heads"),
        ({"activation": "gelu"}, "activation"),
    ],
)
def test_bad_settings_are_named(options, message):
    with pytest.raises(InputError, match=message):
        ConstrainedAttentionRegressor(**{"n_heads": 5, **options}).fit(X, y)


def test_one_target_at_a_time():
    with pytest.raises(InputError, match="one target"):
        ConstrainedAttentionRegressor(5).fit(X, np.stack([y, y], 1))


@pytest.mark.parametrize("value", [0.1, 1e6, 0.0])
def test_constants_are_learned_at_once(value):
    model = ConstrainedAttentionRegressor(10, random_state=0).fit(X[:30], np.full(30, value))
    np.testing.assert_allclose(model.predict(X[:5]), value, rtol=1e-9)
    assert model.n_iter_ < 100
