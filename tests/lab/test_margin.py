"""What is said of a margin: nothing where nothing is decided."""

import pytest

from attlas.claims import Outcome, Verdict
from attlas.lab import Judged


@pytest.mark.parametrize(
    ("outcome", "strength", "said"),
    [
        (Outcome.SUPPORTED, 6.93, "6.9 standard errors"),
        (Outcome.SUPPORTED, 184.94, "185 standard errors"),
        (Outcome.SUPPORTED, float("inf"), "exact"),
        (Outcome.REFUTED, -12.3, "-12 standard errors"),
        (Outcome.INCONCLUSIVE, 2.7, ""),
        (Outcome.ILLUSTRATION, 5.0, ""),
        (Outcome.DAMAGED, 0.0, ""),
    ],
)
def test_a_margin_is_told_where_something_is_decided(outcome, strength, said):
    assert Judged(None, 1, (), Verdict(outcome, "why", strength, "standard errors")).margin == said


def test_no_verdict_has_no_margin():
    assert Judged(None, 1, (), None).margin == ""
