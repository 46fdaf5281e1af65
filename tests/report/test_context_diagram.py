import numpy as np
import pytest

from attlas import context, report
from attlas.errors import InputError


def test_both_errors_over_two_ratios(tmp_path):
    kappa, tau = np.linspace(0.2, 3, 8), np.linspace(0.25, 3, 12)
    data = context.curve(2, kappa, tau, 0.0, 0.1)
    data["converged"][3, 2] = False
    figure = report.diagram(data)
    for axis, name in zip(figure.axes[:2], ("icl", "idg"), strict=True):
        shown = np.asarray(axis.collections[0].get_array()).reshape(12, 8)
        assert shown[8, 3] == pytest.approx(getattr(context.theory(2, kappa[3], tau[8], 0, 0.1), name))
        crosses = [line for line in axis.lines if line.get_marker() == "x"]
        np.testing.assert_allclose(crosses[0].get_xydata(), [[kappa[2], tau[3]]])
        assert axis.get_xlabel() == "training tasks over d, kappa"
    figure.savefig(tmp_path / "a.png")  # with the infinite errors at tau = 1 in it
    assert (tmp_path / "a.png").stat().st_size > 5000


def test_two_ranges_are_needed():
    with pytest.raises(InputError, match="two ranges; got 1"):
        report.diagram(context.curve(2, [1, 2], 2, 0.1, 0.1))
