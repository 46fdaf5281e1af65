import numpy as np
import pytest

from attlas import features, tokens
from attlas.claims import Measurement, Outcome
from attlas.claims.features import invariance as claim
from attlas.layers import random_feature_attention, random_feature_mlp

from ..broken import verdict_of


def test_holds():
    verdict = verdict_of(claim.CLAIM)
    assert verdict.outcome is Outcome.SUPPORTED
    assert verdict.numbers[claim.NETWORK] == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("size", [1e-12, 1e-3])
def test_attention_that_sees_positions_refutes_it(monkeypatch, size):
    """Even a trace of the position, ten thousand times rounding, must be seen."""

    def positional(X, heads, activation):
        N = X.shape[1] - 1
        X = X.copy()
        X[:, 1:] *= (1 + size * np.arange(N) / N)[:, None]
        return random_feature_attention(X, heads, activation)

    monkeypatch.setattr(claim, "random_feature_attention", positional)
    assert verdict_of(claim.CLAIM).outcome is Outcome.REFUTED


def test_an_mlp_that_sorts_its_keys_refutes_it(monkeypatch):
    def invariant(X, neurons):
        return random_feature_mlp(np.concatenate([X[:, :1], np.sort(X[:, 1:], axis=1)], axis=1), neurons)

    monkeypatch.setattr(claim, "random_feature_mlp", invariant)
    assert verdict_of(claim.CLAIM).outcome is Outcome.REFUTED


def test_too_little_is_inconclusive():
    assert claim.CLAIM.verdict([]).outcome is Outcome.INCONCLUSIVE
    points = [claim.Point(model="RFA"), claim.Point(model="RFMLP")]
    one = [Measurement(p, 0, claim.measure(p, 0)) for p in points]
    assert claim.CLAIM.verdict(one).outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize("activation", ["relu", "exp", "softmax"])
def test_rounding_bound_holds_against_extended_precision(activation):
    """The error of every feature, measured in 80-bit arithmetic, is below the bound and within a factor 1e4 of it."""
    X, heads = tokens.sphere(20, 9, 5, 0), features.attention_heads(30, 5, 1, bias=1.0)
    Xt = np.concatenate([X, np.ones((20, 9, 1))], axis=-1).astype(np.longdouble)
    scores = np.einsum("nj,mjk,nik->nmi", Xt[:, 0], heads.astype(np.longdouble), Xt[:, 1:])
    weights = {
        "relu": np.maximum(scores, 0) / 8,
        "exp": np.exp(scores) / 8,
        "softmax": np.exp(scores) / np.exp(scores).sum(-1, keepdims=True),
    }[activation]
    exact = np.einsum("nmi,nik->nmk", weights, Xt[:, 1:])
    error = np.abs(random_feature_attention(X, heads, activation) - exact)
    ratio = np.max(error / claim.rounding_bound(X, heads, activation))
    assert 1e-4 < ratio < 1


def test_draws():
    points = [claim.Point(model="RFA"), claim.Point(model="RFMLP")]
    figure = claim.draw([Measurement(p, 0, claim.measure(p, 0)) for p in points])
    assert [t.get_text() for t in figure.axes[0].get_yticklabels()] == ["attention, ReLU", "network"]


def world(rounding=0.01, ratio=1.0):
    network = [
        Measurement(claim.Point(model="RFMLP"), s, {"change": ratio + 0.01 * s, "predicted": 1.0}) for s in range(-1, 2)
    ]
    return network + [Measurement(claim.Point(model="RFA"), s, {"change": 0.0, "rounding": rounding}) for s in range(3)]


def test_both_changes_decide():
    def outcome(measurements):
        return claim.CLAIM.verdict(measurements).outcome

    for ratio, expected in ((1.0, Outcome.INCONCLUSIVE), (1.2, Outcome.REFUTED), (0.0, Outcome.REFUTED)):
        assert outcome(world(ratio=ratio)) is expected  # three seeds that scatter by a hundredth do not prove 5 %
    assert outcome(world(rounding=2.0)) is Outcome.REFUTED
    assert outcome(world(rounding=0.0)) is Outcome.REFUTED  # nothing was permuted
    assert outcome(world(rounding=np.nan)) is Outcome.INCONCLUSIVE


def test_its_words_and_points():
    numbers = {claim.WORST: 0.0139, claim.CHANGE: 1.089, claim.NETWORK: 1.0, f"{claim.NETWORK} ±": 0.01}
    assert all(part in claim.finding(numbers) for part in ("0.014 of what rounding allows", "about 1.1 of their size"))
    measured = [Measurement(claim.Point(model="RFA"), s, {"change": c}) for s, c in enumerate((0.1, 0.3))]
    (found,) = claim.series(measured)
    assert (found.name, found.x, found.mean, found.seeds) == ("attention, ReLU", (16,), (0.2,), (2,))
