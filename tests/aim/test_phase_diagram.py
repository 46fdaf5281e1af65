import numpy as np
import pytest

from attlas import aim
from attlas.errors import InputError


def test_widths_show_the_error_and_the_exact_threshold():
    alpha, rho = np.linspace(0.01, 0.3, 20), np.linspace(0.1, 2, 15)
    axis = aim.phase_diagram(aim.Softmax(2), alpha, rho).axes[0]
    shown = np.asarray(axis.collections[0].get_array()).reshape(15, 20)
    assert shown[4, 3] == pytest.approx(aim.state_evolution(aim.Softmax(2), alpha[3], rho[4]).value, abs=1e-9)
    line = axis.lines[0]
    np.testing.assert_allclose(line.get_xdata(), np.where(rho <= 1, 2 * rho - rho**2, 1) / 4)


def test_lengths_show_a_threshold_each():
    axis = aim.phase_diagram([aim.Softmax(T) for T in (2, 3, 4)], np.linspace(0.01, 0.3, 10)).axes[0]
    places = [segment[0][0] for segment in axis.collections[1].get_segments()]
    np.testing.assert_allclose(places, [0.75 / (T * T + T - 2) for T in (2, 3, 4)])


def test_channels_that_never_recover_have_no_line():
    axis = aim.phase_diagram(aim.Linear(2, 0.5), [0.1, 0.2], [0.5, 1.0]).axes[0]
    assert not len(axis.lines[0].get_xdata())
    assert axis.get_legend() is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((aim.Softmax(2), [0.1], [0.5, 1.0]), "alpha must be an increasing"),
        ((aim.Softmax(2), [0.2, 0.1], [0.5, 1.0]), "alpha must be an increasing"),
        ((aim.Softmax(2), [0.1, 0.2], [0.5]), "at least two rho"),
        (([aim.Softmax(2)], [0.1, 0.2]), "two or more different lengths"),
        (([aim.Softmax(2), aim.Softmax(2)], [0.1, 0.2]), "two or more different lengths"),
        ((aim.Softmax(2), [0.1, np.nan], [0.5, 1.0]), "alpha must be"),
    ],
)
def test_bad_input_is_one_sentence(arguments, message):
    with pytest.raises(InputError, match=message):
        aim.phase_diagram(*arguments)
