"""Sculpting, phase by phase, against the truth and against chance."""

import numpy as np
import pytest

from attlas import layers, recovery, tokens
from attlas.errors import ConvergenceError, InputError
from attlas.numerics import Status, stream
from attlas.recovery import planted_layer, sculpt
from attlas.recovery.examples import Examples
from attlas.recovery.sculpt import ROUNDS, search, value_sum

THETA, W = planted_layer(2, 6, stream(0, "teacher"), 3.0)
X = tokens.boolean(5000, 2, 6, stream(0, "data"))
DATA = Examples.of(X, layers.multi_head_attention(X, THETA, W))


@pytest.fixture(scope="module")
def found():
    return sculpt(X, DATA.Y, 2, seed=0)


def test_the_sum_of_values_is_found_roughly_then_better(found):
    true = W.sum(0)
    crude = np.linalg.norm(value_sum(DATA) - true) / np.linalg.norm(true)
    assert crude < 0.2
    assert np.linalg.norm(found.value_sum - true) / np.linalg.norm(true) < crude


def test_slabs_are_not_repeated(found):
    flat = found.body.rows.queries[:, 0, 0] < 0
    keys = {
        (-r if f else r).tobytes() + b"".join(sorted((-t if f else t).tobytes() for t in x))
        for r, x, f in zip(found.body.rows.queries[:, 0], found.body.rows.X, flat, strict=True)
    }
    assert len(keys) == len(found.body.scores)


def test_the_body_knows_more_than_chance_before_any_polish(found):
    rng = stream(0, "null")
    proxy = rng.standard_normal((6, 6))
    proxy *= np.linalg.norm(found.proxy) / np.linalg.norm(proxy)
    span = np.linalg.qr(rng.standard_normal((36, 1)))[0].T.reshape(1, 6, 6)
    null = search(DATA, proxy, span, 2, 0).residual
    assert 1e-6 < found.residual < 0.3
    assert null > 0.4
    assert found.gap > 1.5
    difference = (THETA[1] - THETA[0]).ravel()
    assert abs(found.span.ravel() @ difference) / np.linalg.norm(difference) > 0.8


def test_learning_from_a_sculpted_start(found):
    result = recovery.learn(X[:2500], DATA.Y[:2500], 2, method="sculpt")
    assert result.certificate.met
    assert result.certificate.source == "sculpted"
    assert result.certificate.gap > 1
    assert 0 < recovery.parameter_error(result, recovery.Layer(THETA, W)) < 1e-9


def test_what_cannot_be_sculpted_is_said():
    with pytest.raises(InputError, match="outputs of all tokens"):
        recovery.learn(X[:100], DATA.Y[:100, -1], 2, method="sculpt")
    with pytest.raises(InputError, match="agree on"):
        sculpt(X[:3], DATA.Y[:3], 2)
    with pytest.raises(InputError, match="heads"):
        sculpt(X, DATA.Y, 0)


def test_every_round_is_told_and_the_search_has_a_status(found):
    events = []
    short = sculpt(X, DATA.Y, 2, max_starts=1, max_steps=1, progress=events.append)
    assert [event.share for event in events] == pytest.approx(np.arange(1, ROUNDS + 2) / (ROUNDS + 1))
    assert events[-1].value == short.residual >= found.residual
    assert short.status is Status.OUT_OF_STEPS
    assert found.status is Status.CONVERGED
    with pytest.raises(ConvergenceError, match="the search of the sculpted span did not converge: out of steps"):
        sculpt(X, DATA.Y, 2, max_starts=1, max_steps=1, throw=True)
    assert sculpt(X, DATA.Y, 2, max_seconds=1e-6).status is Status.OUT_OF_TIME
