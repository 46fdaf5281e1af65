"""The colours of plots on a dark page stand out from it, and every one of ours has a partner there."""

import re
from importlib import resources

import pytest

from attlas.claims.figure import COLOURS
from attlas.claims.learners import LEARNERS

SCRIPT = resources.files("attlas.explorer").joinpath("assets/plots.js").read_text()
DARK = dict(re.findall(r'"(#[0-9a-f]{3,6})": "(#[0-9a-f]{6})"', SCRIPT))
PAPER, RULES = "#16181c", ("#d9dce1",)  # which are drawn to be faint


def luminance(colour: str) -> float:
    shares = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("colour", sorted({*COLOURS, *(one.colour for one in LEARNERS.values()), *DARK} - {*RULES}))
def test_a_colour_stands_out_from_a_dark_page(colour) -> None:
    assert (luminance(DARK[colour.lower()]) + 0.05) / (luminance(PAPER) + 0.05) > 4.5


def test_no_two_colours_become_one() -> None:
    ours = [DARK[colour.lower()] for colour in COLOURS]
    assert len(set(ours)) == len(ours)
