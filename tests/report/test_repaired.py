import io
import re

import matplotlib
import pytest
from matplotlib.figure import Figure

from attlas.report.repaired import THIN, repaired


def written(label):
    figure = Figure()
    figure.text(0.1, 0.5, label)
    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg")
    return repaired(buffer.getvalue())


def told(svg):
    return [re.sub(r"<[^>]*>", "", text) for text in re.findall(r"(?s)<text.*?</text>", svg)]


@pytest.mark.parametrize(
    ("label", "read"),
    [
        (r"samples over $d^2$, a < b", "samples over d2, a &lt; b"),
        (r"$\rho$ = 0.5", "ρ = 0.5"),
        (r"$\rho=0.5$", f"ρ{THIN}={THIN}0.5"),
        (r"$10^{-3}$", "10−3"),
        (r"$(T^2+T-2)$", f"(T2{THIN}+{THIN}T{THIN}−{THIN}2)"),
        ("no symbol", "no symbol"),
    ],
)
def test_a_formula_reads_from_left_to_right(label, read):
    assert told(written(label)) == [read]


def test_letters_follow_one_another_in_any_font():
    svg = written(r"error of the matrix, $V_{ab}^2$")
    spans = re.findall(r"<tspan ([^>]*)>", svg)
    assert sum(" x=" in f" {span}" for span in spans) == 1
    assert len(spans) < 8
    assert all("sans-serif" in span for span in spans)
    heights = [float(y) for y in re.findall(r' dy="([^"]*)"', svg)]
    assert min(heights) < 0 < max(heights)


def test_black_marks_are_filled_with_a_colour_that_pages_can_change():
    figure = Figure()
    figure.add_subplot().plot([1, 2], [1, 2], "X", color="#000000")
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg")
    marks = re.findall(r'<use [^>]*style="([^"]*)"', repaired(buffer.getvalue()))
    assert marks
    assert all("fill: " in style for style in marks)
