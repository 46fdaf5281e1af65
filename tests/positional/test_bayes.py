"""The best learner: checked numbers, thresholds, and the prediction error against draws."""

import numpy as np
import pytest

from attlas.errors import InputError
from attlas.positional import (
    Model,
    baseline,
    bayes,
    bayes_alpha,
    bayes_error,
    exact_recovery,
    hard_phase,
    read_gram,
    weak_recovery,
)
from attlas.positional.bayes import mean_sech

mp = pytest.importorskip("mpmath").mp


@pytest.mark.parametrize(
    ("tokens", "alpha", "V"),
    [
        (2, 0.2, 0.9548495505), (2, 0.25, 0.8577784378), (2, 0.3, 0.7319893983), (2, 0.35, 0.5812666020),
        (2, 0.4, 0.4079883433), (2, 0.45, 0.2138203023), (2, 0.48, 0.0878200772), (3, 0.1, 0.9614081975),
        (3, 0.15, 0.7850880762), (3, 0.2, 0.5629922450), (3, 0.3, 0.1196561079), (4, 0.1, 0.7666155628),
        (4, 0.2, 0.2197547827), (1, 0.8, 0.7837725097),
    ],
)  # fmt: skip
def test_checked_errors(tokens, alpha, V):
    found = bayes(tokens, alpha)
    assert found.value == found.algorithm == pytest.approx(V, abs=6e-11)
    assert found.converged


def test_thresholds():
    for L in (2, 3, 4):
        assert float(bayes_alpha(L, 1.0)) == pytest.approx(1 / (L * L + L))
        assert float(bayes_alpha(L, 1 - 1e-5)) == pytest.approx(1 / (L * L + L), rel=1e-4)
        assert exact_recovery(L) == 1 / L
        assert float(bayes_alpha(L, 1e-6)) == pytest.approx(1 / L, rel=1e-5)
        assert np.all(np.diff(bayes_alpha(L, np.linspace(0, 1, 141))) < 0)
        assert hard_phase(L) is None
        assert bayes(L, 0.99 / (L * L + L)).value == 1
        assert bayes(L, 1.01 / L).value == 0
    assert (float(bayes_alpha(2, 1e-4)) - 0.5) / 1e-4 == pytest.approx(-0.2239, abs=1e-4)


def test_one_token_has_a_hard_phase():
    """Noiseless phase retrieval: 1 and 1.128 in the literature, 1.12847141 here, at V = 0.153354."""
    low, high = hard_phase(1)
    assert (low, high) == (1, pytest.approx(1.12847141, abs=6e-9))
    assert float(bayes_alpha(1, 0.153354)) == pytest.approx(high, abs=1e-9)
    inside = bayes(1, 1.06)
    assert inside.hard
    assert inside.value == 0
    assert inside.algorithm == pytest.approx(0.41, abs=6e-3)
    assert not bayes(1, 0.9).hard
    assert bayes(1, 1.2).algorithm == 0


def test_weak_recovery_over_the_rank():
    assert weak_recovery(2, 1) == pytest.approx(1 / 6)
    assert [weak_recovery(2, r) for r in (2, 4)] == pytest.approx([r * r / (4 * r + 2) for r in (2, 4)])
    assert weak_recovery(3, 4) == pytest.approx(0.36364, abs=6e-6)
    assert weak_recovery(4, 6) == pytest.approx(0.31579, abs=6e-6)
    for L in (2, 5):
        assert weak_recovery(L, 10_000) / 10_000 == pytest.approx(1 / (L * L + L - 2), rel=1e-3)


@pytest.mark.parametrize(("tokens", "rank"), [(2, 2), (2, 4), (3, 2), (3, 4), (4, 6)])
def test_weak_recovery_is_the_information_in_the_gram_matrix(tokens, rank):
    """1/E Tr(E[G|y]/r - I)^2, by draws; E[G|y] itself is the mean of G over what the outputs do not tell."""
    z = np.random.default_rng(0).standard_normal((20_000, tokens, rank))
    G = z @ z.transpose(0, 2, 1)
    weights = np.exp(G - G.max(2, keepdims=True))
    found = read_gram(weights / weights.sum(2, keepdims=True), rank)
    squares = np.sum((found / rank - np.eye(tokens)) ** 2, axis=(1, 2))
    error = squares.std() / squares.mean() ** 2 / np.sqrt(len(z))
    assert abs(1 / squares.mean() - weak_recovery(tokens, rank)) < 4 * error
    rest = (G - found).sum((1, 2))  # only the hidden part differs, and its mean is zero
    assert abs(rest.mean()) < 4 * rest.std() / np.sqrt(len(z)) + 1e-9


def test_mean_sech():
    mp.dps = 20
    for b in (0.3, 1.9, 2.1, 6.0):
        expected = mp.quad(lambda g, b=b: mp.sech(b * g) * mp.npdf(g), [-12, -2, 0, 2, 12])
        assert float(mean_sech(np.array(b))) == pytest.approx(float(expected), rel=1e-13)


@pytest.mark.parametrize(
    ("alpha", "value"),
    [
        (0.2, 0.07275110),
        (0.25, 0.07176289),
        (0.3, 0.06890835),
        (0.35, 0.06294450),
        (0.4, 0.05205904),
        (0.45, 0.03316358),
    ],
)
def test_prediction_error(alpha, value):
    """By 110 nodes in each variable; and above it no learner has to be: it is below the best layer by place."""
    assert bayes_error(Model(0.3, 3.0), alpha) == pytest.approx(value, abs=1e-8)


def test_prediction_error_against_draws():
    model, V, n = Model(0.3, 3.0), bayes(2, 0.35).value, 4000
    rng = np.random.default_rng(0)
    w, inner = np.sqrt(1 - V) * rng.standard_normal((2, n, 1)), np.sqrt(V) * rng.standard_normal((2, n, 200))
    first, _ = model.targets(*(w + inner))
    variances = 4 * first.var(axis=1, ddof=1)
    assert abs(variances.mean() - bayes_error(model, 0.35)) < 4 * variances.std() / np.sqrt(n)
    assert bayes_error(model, 0.6) == 0


@pytest.mark.parametrize(("scale", "alpha"), [(0.01, 0.17), (0.001, 0.3), (0.001, 0.17)])
def test_small_tokens_lose_no_digits(scale, alpha):
    """sig(x) = 1/2 + x/4: E Var(S(S + R) | w) = sigma^4 (3 - 3 (1 - V)^2), where 3 sigma^4 is all of the variance."""
    model, V = Model(0.3, 3.0, scale), bayes(2, alpha).value
    assert bayes_error(model, alpha) / baseline(model) == pytest.approx(1 - (1 - V) ** 2, rel=1e-4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bayes(2, 0), "alpha must be a finite number greater than 0"),
        (lambda: bayes(0, 0.3), "tokens must be an integer of at least 1"),
        (lambda: bayes_alpha(2, 1.5), r"V must be in \[0, 1\]"),
        (lambda: weak_recovery(2, 0), "rank must be an integer of at least 1"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
