import numpy as np
import pytest

from attlas import aim
from attlas.errors import InputError


def test_widths():
    alpha, rho = np.linspace(0.01, 0.3, 20), np.linspace(0.1, 2, 15)
    found = aim.phase_diagram(aim.Softmax(2), alpha, rho)
    expected = aim.state_evolution(aim.Softmax(2), alpha[3], rho[4]).value
    assert float(found["mse"].sel(alpha=alpha[3], rho=rho[4])) == pytest.approx(expected, abs=1e-9)
    np.testing.assert_allclose(found["threshold"], np.where(rho <= 1, 2 * rho - rho**2, 1) / 4)
    assert found["converged"].values.all()


def test_lengths():
    events = []
    found = aim.phase_diagram(
        [aim.Softmax(T) for T in (4, 2, 3)], np.linspace(0.01, 0.3, 10), 0.7, progress=events.append
    )
    assert found["mse"].dims == ("tokens", "alpha")
    assert found["tokens"].values.tolist() == [2, 3, 4]
    np.testing.assert_allclose(found["threshold"], [(1.4 - 0.49) / (T * T + T - 2) for T in (2, 3, 4)])
    expected = aim.state_evolution(aim.Softmax(3), found["alpha"].values[1], 0.7).value
    assert float(found["mse"].sel(tokens=3)[1]) == pytest.approx(expected, abs=1e-9)
    assert [(event.step, event.of) for event in events] == [(1, 3), (2, 3), (3, 3)]


def test_channels_that_never_recover_have_no_threshold():
    assert np.isnan(aim.phase_diagram(aim.Linear(2, 0.5), [0.1, 0.2], [0.5, 1.0])["threshold"]).all()


def test_training():
    channel, alpha, decay = aim.Linear(1, 0.25), np.array([0.2, 0.4, 1.0]), [0.01, 0.1]
    found = aim.trained_diagram(channel, alpha, 0.5, decay)
    assert found["converged"].values.all()
    assert found["best_converged"].values.all()
    for i, a in enumerate(alpha):
        best = aim.best_decay(channel, a, 0.5)
        assert (best.decay, best.mse) == pytest.approx((found["best_decay"].values[i], found["best_mse"].values[i]))
        assert np.all(found["mse"].values[:, i] >= best.mse)
        assert found["rank"].values[1, i] == pytest.approx(aim.trained(channel, a, 0.5, 0.1).rank)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((aim.Softmax(2), [0.1], [0.5, 1.0]), "alpha must be an increasing"),
        ((aim.Softmax(2), [0.2, 0.1], [0.5, 1.0]), "alpha must be an increasing"),
        ((aim.Softmax(2), [0.1, 0.2], [0.5]), "rho must be an increasing list of at least two"),
        (([aim.Softmax(2)], [0.1, 0.2]), "two or more different lengths"),
        (([aim.Softmax(2), aim.Softmax(2)], [0.1, 0.2]), "two or more different lengths"),
        ((aim.Softmax(2), [0.1, np.nan], [0.5, 1.0]), "alpha must be"),
    ],
)
def test_bad_input_is_one_sentence(arguments, message):
    with pytest.raises(InputError, match=message):
        aim.phase_diagram(*arguments)
