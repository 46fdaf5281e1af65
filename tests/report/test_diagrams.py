import numpy as np
import pytest

from attlas import aim, report
from attlas.errors import InputError


def test_widths_show_the_error_and_the_exact_threshold():
    alpha, rho = np.linspace(0.01, 0.3, 20), np.linspace(0.1, 2, 15)
    axis = report.diagram(aim.phase_diagram(aim.Softmax(2), alpha, rho)).axes[0]
    shown = np.asarray(axis.collections[0].get_array()).reshape(15, 20)
    assert shown[4, 3] == pytest.approx(aim.state_evolution(aim.Softmax(2), alpha[3], rho[4]).value, abs=1e-9)
    (line,) = axis.lines
    np.testing.assert_allclose(line.get_xdata(), np.where(rho <= 1, 2 * rho - rho**2, 1) / 4)


def test_lengths_show_a_threshold_each():
    axis = report.diagram(aim.phase_diagram([aim.Softmax(T) for T in (2, 3, 4)], np.linspace(0.01, 0.3, 10))).axes[0]
    places = [segment[0][0] for segment in axis.collections[1].get_segments()]
    np.testing.assert_allclose(places, [0.75 / (T * T + T - 2) for T in (2, 3, 4)])


def test_channels_that_never_recover_have_no_line():
    axis = report.diagram(aim.phase_diagram(aim.Linear(2, 0.5), [0.1, 0.2], [0.5, 1.0])).axes[0]
    assert not len(axis.lines[0].get_xdata())
    assert axis.get_legend() is None


def test_training_shows_the_best_decay_and_what_is_not_converged(tmp_path):
    data = aim.trained_diagram(aim.Linear(1, 0.25), np.linspace(0.2, 1, 4), 0.5, np.geomspace(0.01, 0.3, 3))
    data["converged"][1, 2] = False
    figure = report.diagram(data)
    crosses, best = figure.axes[0].lines
    np.testing.assert_allclose(best.get_ydata(), data["best_decay"])
    np.testing.assert_allclose(crosses.get_xydata(), [[data["alpha"][2], data["decay"][1]]])
    figure.savefig(tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 5000


def test_other_datasets_are_refused():
    with pytest.raises(InputError, match=r"aim\.phase_diagram or aim\.trained_diagram"):
        report.diagram(aim.trained_curve(aim.Softmax(2), [0.1, 0.2], 0.5, [0.1, 0.2]))
