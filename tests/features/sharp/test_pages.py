"""What the documentation prints of the theory is what the theory says."""

import re
from pathlib import Path

import pytest

from attlas.features import theory

PAGE = (Path(__file__).parents[3] / "docs" / "learning_curves.md").read_text().partition("## The same from theory")[2]


@pytest.mark.parametrize("name", ["keys2", "wcorr11"])
def test_errors_at_the_best_penalty(name):
    line = re.search(rf"^\| {name} \| (.*?) \|", PAGE, re.MULTILINE)
    printed = [float(value) for value in line[1].split("/")]
    found = theory(16, 16).curve(name, [250, 500, 1000, 2000, 4000, 8000], heads=1000)
    assert found.error.values == pytest.approx(printed, abs=6e-4)


def test_sample_costs():
    line = re.search(r"^\| corr1 \| ([\d |]+) \| [\d., ]+ \|$", PAGE, re.MULTILINE)
    printed = [float(value) for value in line[1].split("|")]
    found = [theory(d, 16).sample_cost("corr1").value for d in (4, 6, 8, 12, 16)]
    assert found == pytest.approx(printed[:5], abs=0.6)
