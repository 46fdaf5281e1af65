import io
import re

import matplotlib
import pytest

from attlas.claims.figure import COLOURS, THEORY, panels, simulated
from attlas.report.svg import DARK, themed


@pytest.fixture
def drawn():
    figure, (axis,) = panels(1)
    simulated(axis, 0, [1, 1, 2, 2], [1.0, 2.0, 3.0, 5.0], "rho = 0.5 & <more>")
    axis.plot([1, 2], [1, 4], **THEORY)
    axis.legend()
    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg", transparent=True)
    return themed(buffer.getvalue(), 'a "label" <of> it')


def test_every_colour_of_the_language_has_its_counterpart_on_dark_paper():
    for colour in (*COLOURS, THEORY["color"]):
        assert _contrast(DARK[colour.lower()], DARK["#ffffff"]) > 4.5


def test_the_figure_of_a_page_has_no_fixed_ink(drawn):
    fixed = re.sub(r"var\(--c\w{6}, #\w{6}\)", "", drawn)
    assert set(re.findall(r"#[0-9a-f]{6}\b", fixed)) == set()
    assert "var(--c0072b2, #0072b2)" in drawn


def test_the_figure_is_named_scales_and_holds_no_metadata(drawn):
    assert drawn.startswith('<svg viewBox="0 0 ')
    assert 'role="img" aria-label="a &quot;label&quot; &lt;of&gt; it"' in drawn
    assert not re.search(r"metadata|<!--|http|width=\"[\d.]+pt", re.sub(r'xmlns(:\w+)?="[^"]*"', "", drawn))
    assert "ρ = 0.5 &amp; &lt;more&gt;" in drawn


def test_means_and_their_errors_are_drawn():
    _, (left, right) = panels(2)
    simulated(left, 0, [1, 1, 2], [1.0, 3.0, 5.0])
    simulated(right, 0, [1, 1, 1], [1e-4, 1e-2, 0.0], log=True)  # zero has no logarithm
    (bars,) = left.containers
    assert bars.lines[0].get_ydata().tolist() == [2.0, 5.0]
    assert [segment[:, 1].tolist() for segment in bars.lines[2][0].get_segments()] == [[1.0, 3.0], [5.0, 5.0]]
    assert right.containers[0].lines[0].get_ydata() == pytest.approx([1e-3])


def _contrast(one, other):
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
