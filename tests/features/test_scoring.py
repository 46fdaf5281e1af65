"""Hermite coefficients of scoring functions against mpmath."""

import numpy as np
import pytest

from attlas.errors import InputError
from attlas.features.scoring import SCORINGS, scoring_of

mp = pytest.importorskip("mpmath")

EXACT = {
    "relu": lambda s: max(s, 0),
    "relu2": lambda s: max(s, 0) ** 2,
    "exp": mp.exp,
    "sigmoid": lambda s: 1 / (1 + mp.exp(-s)),
    "erf": mp.erf,
    "tanh": mp.tanh,
}


@pytest.mark.parametrize("name", EXACT)
def test_coefficients_are_gaussian_integrals(name):
    for mean, deviation in ((-0.7, 0.8),):
        found = scoring_of(name).coefficients(mean, deviation, 12)
        kink = -mean / deviation  # of the relus
        for k in (0, 1, 5):
            he = lambda z: mp.hermite(k, z / mp.sqrt(2)) / mp.mpf(2) ** (mp.mpf(k) / 2)  # noqa: B023, E731
            exact = mp.quad(
                lambda z: EXACT[name](mean + deviation * z) * he(z) * mp.npdf(z),  # noqa: B023
                [-12, -4, kink, 4, 12],
            )
            assert found[k] == pytest.approx(float(exact / mp.sqrt(mp.factorial(k))), abs=1e-12)
        square = mp.quad(
            lambda z: EXACT[name](mean + deviation * z) ** 2 * mp.npdf(z),  # noqa: B023
            [-12, -4, kink, 4, 14],
        )
        assert scoring_of(name).square(mean, deviation) == pytest.approx(float(square), rel=1e-11)


@pytest.mark.parametrize("name", ["sigmoid", "tanh", "erf"])
def test_the_series_of_smooth_functions_is_complete(name):
    """Parseval: the squares of all coefficients make E[act^2]."""
    scoring = SCORINGS[name]
    assert np.sum(scoring.coefficients(0.0, 1.0, 150) ** 2) == pytest.approx(float(scoring.square(0.0, 1.0)), rel=1e-10)


def test_a_function_is_as_good_as_its_name():
    own = scoring_of(lambda s: np.maximum(s, 0))
    np.testing.assert_allclose(
        own.coefficients(np.zeros(2), 1.0, 40), SCORINGS["relu"].coefficients(np.zeros(2), 1.0, 40), atol=1e-13
    )
    assert scoring_of(own) is own


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("softmax", "couples the keys"),
        ("swish", "must be one of relu"),
        (3.0, "a function of the scores; got 3.0"),
        (lambda s: s.sum(), "one real number for each score"),
        (lambda s: np.exp(s**4), "not finite"),
        (lambda s: s.no_such_name, "fails on an array"),
    ],
)
def test_bad_scorings(given, message):
    with pytest.raises(InputError, match=message):
        scoring_of(given).coefficients(0.0, 1.0, 3)
