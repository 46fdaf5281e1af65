"""Recovery from examples."""

import numpy as np
import pytest

from attlas import tokens
from attlas.errors import ConvergenceError, InputError
from attlas.numerics import Status, stream
from attlas.recovery import Layer, learn, parameter_error
from attlas.recovery.clock import Clock

from .tasks import task


@pytest.mark.parametrize("law", [tokens.boolean, tokens.gaussian])
@pytest.mark.parametrize("heads", [1, 3])
def test_exact_data(law, heads):
    X, Y, truth = task(heads, law=law)
    found = learn(X, Y, heads)
    assert 0 < parameter_error(found, truth) < 1e-9
    assert found.certificate.met
    assert 0 < found.certificate.residual < 1e-9


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_the_number_of_heads_is_found(noise):
    X, Y, truth = task(2, noise=noise, n=600)
    found = learn(X, Y)
    assert found.layer.heads == 2
    assert found.certificate.met
    assert parameter_error(found.canonical(), truth) < max(1e-9, noise)
    residuals = [value for _, value in found.history]
    assert residuals[0] > 3 * residuals[1]
    if noise:
        assert found.certificate.noise == pytest.approx(noise, rel=0.2)


def test_one_output_of_the_last_token_is_enough():
    X, Y, truth = task(1, n=400)
    found = learn(X, Y[:, -1, 0], 1)
    assert parameter_error(Layer(found.Theta, found.W), Layer(truth.Theta, truth.W[:, :, :1])) < 1e-8


def test_spare_heads_are_removed_by_the_canonical_form():
    X, Y, truth = task(2, n=500)
    found = learn(X, Y, 3)
    assert found.certificate.met
    assert found.canonical().heads == 2
    assert parameter_error(found.canonical(), truth) < 1e-6


def test_the_canonical_form_of_pairs_is_that_of_pairs():
    T, A, B = np.random.default_rng(3).standard_normal((3, 4, 4))
    truth = Layer(np.array([T, 0 * T]), np.array([A, B]))
    X = tokens.boolean(600, 2, 4, 0)
    found = learn(X, truth(X), 2)
    assert found.certificate.met
    assert parameter_error(found.canonical(), truth.canonical(k=2)) < 1e-8


def test_progress_is_told_after_every_start():
    X, Y, _ = task(1)
    events = []
    learn(X, Y, 1, progress=events.append)
    (event,) = events
    assert event.text.startswith("heads = 1, start 1: held-out residual")
    assert (event.step, event.of) == (1, 23)  # twenty starts, and three with one more head
    assert event.value < 1e-9


NOISE = stream(0, "noise").standard_normal((300, 4, 5))


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"max_starts": 2, "max_steps": 3}, Status.OUT_OF_STEPS),
        ({"max_seconds": 1e-3}, Status.OUT_OF_TIME),
        ({"max_seconds": 1e-3, "method": "lbfgs"}, Status.OUT_OF_TIME),
        ({"max_seconds": 1e-3, "method": "adam"}, Status.OUT_OF_TIME),
    ],
)
def test_a_search_that_finds_nothing_says_how_it_ended(options, status):
    X, _, _ = task()
    found = learn(X, NOISE, 2, **options)
    assert found.status is status
    assert not found.converged
    assert found.layer.heads == 2  # the best guess is there
    with pytest.raises(ConvergenceError, match=rf"recovery is not certified \({status}\): .*nothing learned") as error:
        learn(X, NOISE, 2, **options, throw=True)
    assert error.value.solution.layer.heads == 2


def test_a_search_that_ends_by_itself_without_a_certificate_is_inaccurate():
    """A best single head exists, two starts find it, and it is not the layer."""
    found = learn(*task(3)[:2], 1)
    assert found.status is Status.INACCURATE
    assert found.certificate.starts == 2


def test_time_that_ends_before_the_witness_was_heard_certifies_nothing(monkeypatch):
    """Noise is believed only after one head more has been tried."""
    X, Y, _ = task(1, 4, 3, noise=0.05)
    assert learn(X, Y, 1).certificate.met
    monkeypatch.setattr(Clock, "out", property(lambda self: len(tried) > 2))
    tried = []
    found = learn(X, Y, 1, progress=tried.append)
    assert found.status is Status.OUT_OF_TIME
    assert "time was up" in found.certificate.reason


def test_what_was_tried_is_kept():
    X, Y, _ = task(2, n=600)
    found = learn(X, Y)
    assert found.history[:, 0].tolist() == [1, 2]
    assert found.history[-1, 1] == found.residual
    assert found.certificate.starts >= 2
    assert found.steps == found.certificate.steps > 10
    assert learn(X, Y, 2, throw=True).certificate.met


X, Y, _ = task(n=20)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((X, Y[:-1]), {}, "19 outputs for the 20 sequences"),
        ((X[:, :1], Y[:, :1]), {}, "Theta cannot be seen"),
        ((X, Y, 0), {}, "heads"),
        ((X, Y, -1), {}, "heads"),
        ((X, np.full_like(Y, np.nan)), {}, "Y has entries that are not finite"),
        ((np.full_like(X, np.nan), Y), {}, "X"),
        ((np.ones_like(X), Y), {}, "all tokens of a sequence are equal"),
        ((X, 0 * Y), {}, "Y is zero"),
        ((X, Y[:, :2]), {}, "Y must have shape"),
        ((X, 3.0), {}, "no outputs"),
        ((X, np.full(Y.shape, "a")), {}, "real numbers"),
        ((X, 1j * Y), {}, "real numbers"),
        ((X, 1e-200 * Y), {}, "scale it to about one"),
        ((1e200 * X, Y), {}, "scale it to about one"),
        ((X, np.where(np.arange(20) == 0, 1.0, 0.0), 1), {}, "too little to learn from"),
        ((X, Y, 2), {"max_seconds": 0}, "max_seconds"),
        ((X, Y, 2), {"method": "magic"}, "method must be one of"),
        ((X, Y, 2), {"max_starts": 0}, "max_starts"),
        ((X, Y, 2), {"max_steps": 0}, "max_steps"),
        ((X, Y), {"max_heads": 0}, "max_heads"),
        ((X[:1], Y[:1], 1), {}, "held out"),
    ],
)
def test_bad_input_is_one_sentence(arguments, options, message):
    with pytest.raises(InputError, match=message):
        learn(*arguments, **options)
