"""What holds of every claim of every door: it has words of its own, and stored results can be drawn and told."""

import contextlib
import math

import pytest

from attlas import lab
from attlas.claims import Outcome, find, names
from attlas.claims.learners import LEARNERS

every_claim = pytest.mark.parametrize("claim", find(), ids=lambda claim: claim.id)


@every_claim
def test_captions_are_sentences(claim):
    assert claim.caption[0].isupper()
    assert claim.caption.endswith(".")
    assert "\n" not in claim.caption
    assert "  " not in claim.caption


@every_claim
def test_findings_are_made_of_numbers(claim):
    """Without them nothing is said: whoever asks falls back on the reason."""
    if claim.finding is not None:
        with pytest.raises(LookupError):
            claim.finding({})


@every_claim
def test_differences_name_what_was_published_and_speak_with_numbers(claim):
    for difference in claim.differs:
        assert 0 < len(difference.title) <= 40
        assert difference.statement.endswith(".")
        with pytest.raises(LookupError):
            difference.ours({})


@pytest.fixture(params=names())
def entry(request, tmp_path):
    """What the results that come with attlas say of a claim."""
    (found,) = lab.verdicts([request.param], "quick", store=tmp_path / "none.db", shipped=True, repeats=True)
    assert found.shipped
    return found


@pytest.mark.parametrize("name", names())
def test_every_run_is_judged_without_damage(name, tmp_path):
    (found,) = lab.verdicts([name], "quick", store=tmp_path / "none.db", shipped=True, repeats=True)
    assert Outcome.DAMAGED not in {verdict.outcome for verdict in found.runs.values()}
    assert 0 in found.runs


def test_the_figure_is_drawn_and_its_axes_are_named(entry):
    axes = entry.claim.draw(entry.measurements()).axes
    assert axes
    for axis in axes:
        assert axis.get_xlabel() or axis.get_ylabel() or axis.get_title()


def test_series_are_whole(entry):
    """As many means as places, in order; errors of means over seeds; theory everywhere or nowhere."""
    if entry.claim.series is None:
        pytest.skip("its figure is of another kind")
    found = entry.claim.series(entry.measurements())
    assert found
    kinds = [(s.name, s.x_name, s.y_name, tuple(s.settings.items())) for s in found]
    assert len(set(kinds)) == len(kinds)
    for series in found:
        columns = (series.mean, series.standard_error, series.seeds, series.theory or series.x)
        assert {len(column) for column in columns} == {len(series.x)}
        assert list(series.x) == sorted(set(series.x))
        assert all(map(math.isfinite, (*series.x, *series.mean, *series.standard_error)))
        assert min(series.standard_error) >= 0
        assert min(series.seeds) >= 1
        assert all((series.name, series.x_name, series.y_name))
        if (series.x_name, series.y_name) == ("alpha", "mse"):  # what the explorer lays over its curves
            assert list(series.settings) == ["channel", "tokens", "noise", "rho", "decay", "d"]
            assert series.name in LEARNERS


def test_what_was_found_is_said_without_loose_ends(entry):
    words = [entry.claim.found(entry.verdict)]
    for difference in entry.claim.differs:
        with contextlib.suppress(LookupError):  # one run does not always decide
            words.append(difference.ours(entry.verdict.numbers))
    for text in words:
        assert text
        assert "nan" not in text
        assert "\n" not in text
