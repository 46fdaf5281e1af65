"""The points of a figure: each where its mark is, with what it says."""

import io
import re
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest

from attlas.claims import Series
from attlas.claims.figure import drawn, finished, panels, simulated
from attlas.claims.lettering import powers
from attlas.report.points import points
from attlas.report.svg import standalone, themed
from attlas.report.thumbnail import thumbnail

SERIES = Series("amp", {"d": 8}, "alpha", "mse", (0.1, 0.2), (0.5, 0.25), (0.1, 0.0), (3, 1), theory=(0.4, 0.2))


@pytest.fixture
def figure():
    figure, (left, right) = panels(2)
    drawn(left, SERIES)
    left.set(xlabel=r"samples $\alpha=n/d^2$", ylabel="error")
    simulated(right, 0, [1, 1, 2], [1.0, 3.0, 5.0], "of a <kind>")
    right.set(xlabel="d", ylabel="cost", yscale="log")
    return figure


def _svg(figure):
    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "x"}):
        figure.savefig(buffer, format="svg")
    return buffer.getvalue()


def test_points_tell_what_the_claim_knows_of_them(figure):
    _svg(figure)
    said = [found.text for found in ElementTree.fromstring(points(figure, [SERIES])).iter("title")]
    assert said == [
        "message passing, d = 8: samples α = n/d² 0.1, error 0.5 ± 0.1 (3 seeds), theory 0.4",
        "message passing, d = 8: samples α = n/d² 0.2, error 0.25 (1 seed), theory 0.2",
        "of a <kind>: d 1, cost 2 ± 1",
        "of a <kind>: d 2, cost 5",
    ]


def test_points_lie_on_their_marks(figure):
    """Matplotlib writes every mark as <use x= y=>, in the units of the drawing."""
    text = _svg(figure)
    marks = [(float(x), float(y)) for x, y in re.findall(r'<use [^>]*x="([\d.]+)" y="([\d.]+)"', text)]
    places = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', points(figure, []))
    assert len(places) == 4
    for x, y in places:
        assert min(abs(float(x) - u) + abs(float(y) - v) for u, v in marks) < 0.3
    ElementTree.fromstring(themed(text, "label", points(figure, [])).replace("xlink:", ""))


def test_a_cloud_is_not_asked_point_by_point():
    figure, (axis,) = panels(1)
    axis.plot(range(1000), range(1000), "o")
    _svg(figure)
    assert points(figure, []) == ""


def test_a_thumbnail_has_one_panel_few_words_and_both_papers(figure):
    _svg(figure)
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        text = standalone(thumbnail(figure))
    tree = ElementTree.fromstring(text)
    words = ["".join(found.itertext()).strip() for found in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert "error" in words
    assert "cost" not in words
    assert not any(re.fullmatch(r"[\d.−]+", word) for word in words)
    assert "prefers-color-scheme:dark" in text
    assert len(text) < 20_000


def test_points_tell_numbers_where_the_axis_is_one_of_logarithms():
    figure, axes = panels(3)
    rows = ([-3.0, -1.0], 0.1), ([np.log(0.8), np.log(1.25)], 0.01), ([0.5, 2.0], 0.1)
    for axis, (at, error) in zip(axes, rows, strict=True):
        axis.errorbar([1, 2], at, yerr=[error, 0], fmt="o")
    axes[0].set_ylabel("error")
    powers(axes[0].yaxis)
    axes[1].set_yticks(np.log([0.8, 1, 1.25]), ["0.8", "1", "1.25"])
    said = _said(finished(figure), [])
    assert said[0] == "x 1, error 0.001 (0.000794 to 0.00126)"
    assert said[2:] == ["x 1, error 0.8 ± 0.008", "x 2, error 1.25", "x 1, error 0.5 ± 0.1", "x 2, error 2"]


def test_points_that_stand_aside_tell_where_they_belong():
    figure, (axis,) = panels(1)
    one = Series(
        "amp", {"decay": None, "at": "rho = 0.50"}, "heads", "mse", (1.0, 2.0), (0.5, 0.25), (1e-18, 0.1), (2, 2)
    )
    axis.errorbar([0.85, 1.85], one.mean, yerr=one.standard_error, fmt="o", label="whatever")
    assert _said(figure, [one]) == [
        "message passing, decay = none, ρ = 0.50: x 1, y 0.5 (2 seeds)",
        "message passing, decay = none, ρ = 0.50: x 2, y 0.25 ± 0.1 (2 seeds)",
    ]


def test_points_in_rows_tell_the_name_of_their_row():
    figure, (axis,) = panels(1)
    axis.plot([3.0, 4.0], [0.2, 0.9], "o")
    axis.set_yticks([0, 1], ["plain", "with a bias"])
    axis.set_xlabel("cost")
    assert _said(finished(figure), []) == ["cost 3, plain", "cost 4, with a bias"]


def _said(figure, series):
    _svg(figure)
    text = points(figure, series)
    return [found.text for found in ElementTree.fromstring(text).iter("title")]


def test_means_in_other_units_tell_their_seeds_where_only_one_number_can_be_meant():
    figure, (axis,) = panels(1)
    axis.errorbar([1, 2], [5.0, 7.0], yerr=[0.5, 0.5], fmt="o", label="message passing")
    axis.plot([1], [6.0], "x", label="message passing")  # without an error it is no mean
    one = Series("amp", {}, "d", "mse", (1.0, 2.0), (0.5, 0.25), (0.1, 0.1), (3, 4))
    other = Series("amp", {"rho": 1}, "d", "mse", (2.0,), (0.5,), (0.1,), (9,))
    another = Series("gd", {}, "d", "mse", (1.0,), (0.5,), (0.1,), (8,))
    assert _said(figure, [one, other, another]) == [
        "message passing: x 1, y 5 ± 0.5 (3 seeds)",
        "message passing: x 2, y 7 ± 0.5",
        "message passing: x 1, y 6",
    ]
