"""What holds of every claim of every door: it has words of its own, and stored results can be drawn and told."""

import contextlib
import csv
import math
import re
from pathlib import Path

import pytest

from attlas import lab
from attlas.claims import Outcome, find, names
from attlas.claims.learners import LEARNERS
from attlas.claims.lettering import GREEK
from attlas.claims.power import detect
from attlas.claims.wording import worded

from ..conftest import study
from . import intervals, pictures

DOCS = Path(__file__).parents[2] / "docs"
summary, at_full_tier = study("verdicts").summary, study("verdicts").at_full_tier
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


@pytest.fixture(scope="module", params=names())
def entry(request, tmp_path_factory):
    """What the results that come with attlas say of a claim."""
    store = tmp_path_factory.getbasetemp() / "none.db"
    (found,) = lab.verdicts([request.param], "quick", store=store, shipped=True, repeats=True)
    assert found.shipped
    return found


@pytest.fixture(scope="module", params=names())
def large(request, tmp_path_factory):
    """What they say of it at the full tier."""
    store = tmp_path_factory.getbasetemp() / "none.db"
    (found,) = lab.verdicts([request.param], "full", store=store, shipped=True)
    assert found.shipped
    return found


@pytest.fixture(scope="module")
def row():
    """Return a function: the row of a claim in the documentation's table of error rates."""
    with (DOCS / "error_rates.csv").open(encoding="utf-8", newline="") as file:
        rows = {one["claim"]: one for one in csv.DictReader(file)}
    return rows.__getitem__


@pytest.fixture(scope="module")
def figure(entry):
    """The figure of a claim, drawn once for all tests."""
    return pictures.laid_out(entry.claim.draw(entry.measurements()))


def test_every_run_is_judged_without_damage(entry):
    assert Outcome.DAMAGED not in {verdict.outcome for verdict in entry.runs.values()}
    assert 0 in entry.runs


def test_the_table_of_error_rates_has_its_runs(entry, row):
    """`python studies/verdicts.py --out docs/error_rates.csv` makes the table anew."""
    assert row(entry.claim.id)["version"] == str(entry.claim.version)
    assert row(entry.claim.id)["runs"] == summary(entry.runs)


def test_it_refutes_every_mutation(entry):
    """Run 0 of the quick tier as shipped, changed as if the theory were wrong or the learner broken."""
    if entry.claim.tiers["quick"].decides:
        found = detect(entry.claim, entry.measurements())
        assert [one.name for one in found if one.required and one.outcome is not Outcome.REFUTED] == []


def test_names_of_tests_do_not_read_like_code(entry):
    """Settings stand apart, no number is lost, and doing it again changes nothing."""
    for test in entry.verdict.tests:
        found = worded(test.name)
        assert not re.search(r"\w=|=\w|[a-z]{2}_[a-z]{2}| = [\w.]+ [A-Za-z']+ = ", found), found
        assert re.findall(r"\d+", found) == re.findall(r"\d+", re.sub(r"(=\d+)\.0\b", r"\1", test.name))
        assert worded(found) == found


def test_the_figure_is_drawn_and_its_axes_are_named(figure):
    assert figure.axes
    for axis in figure.axes:
        assert axis.get_xlabel()
    assert figure.axes[0].get_ylabel() or any(label.get_text() for label in figure.axes[0].get_yticklabels())


def test_the_figure_cuts_nothing_off(figure):
    assert pictures.cut(figure) == []


def test_the_figure_is_lettered_in_words_and_mathematics(figure):
    """Code names, spelled-out Greek, powers as ^ and hyphens for minus signs are for files."""
    for text in pictures.texts(figure):
        left = pictures.plain(text.get_text())
        assert not re.search(rf"_|\^|[<>]=|(?<![\w)])-\d|\d[eE][-+]\d|\b({GREEK})\b|log10", left), left


def test_nothing_of_the_figure_is_crowded(figure):
    assert pictures.crowded(figure) == []


def test_a_learner_looks_the_same_in_every_figure(figure):
    """Its name, the colour and the marker go together; settings may fill or empty the marker."""
    for axis in figure.axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            line = handle[0] if isinstance(handle, tuple) else handle
            known = [one for one in LEARNERS.values() if label == one.name or label.startswith(f"{one.name}, d =")]
            for one in known:
                assert line.get_color() == one.colour, label
                assert line.get_marker() in (one.marker, "None"), label


PROMISES = {
    r"\blines?\b|\bcurves?\b": {"solid", "dashed", "dotted"},
    r"\bdashed\b": {"dashed"},
    r"\bdotted\b": {"dotted"},
    r"\bpoints?\b|\bmarks?\b|\bsymbols\b": {"points"},
    r"\bstandard errors?\b": {"errors"},
    r"\bhollow\b|\bopen\b": {"hollow"},
    r"\bbars?\b": {"bars"},
    r"\bband\b": {"band"},
}


def test_the_caption_speaks_of_what_is_drawn(entry, figure):
    caption, kinds = entry.claim.caption.lower(), pictures.shown(figure)
    for word, wanted in PROMISES.items():
        if re.search(word, caption):
            assert wanted & kinds, f"{word}: {kinds}"
    places = [word for word in ("left", "middle", "right") if re.search(rf"\b{word}\b", caption)]
    assert len(figure.axes) >= len(places)


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


def test_a_finding_carries_its_interval(entry):
    """Unless nothing of what it stands on scatters, or there is nothing found."""
    verdict = entry.verdict
    if entry.claim.finding is None or not entry.holds or all(test.exact for test in verdict.tests):
        pytest.skip("no number of it scatters")
    said = entry.claim.found(verdict)
    assert re.search(r"± [\d.]*[1-9]|\([-+\d.]+%? to [-+\d.]+%?\)", said), said
    assert not re.search(r"± 0[.0]*%?(?![.\d])", said), said


def _untold(entry):
    """Return what a finding tells without the interval that the verdict has of it, whatever the verdict is."""
    numbers = entry.verdict.numbers
    with contextlib.suppress(
        LookupError
    ):  # a claim without a finding tells its reason, and so does one with too few runs
        return intervals.bare(entry.claim.finding(numbers), numbers) if entry.claim.finding else []
    return []


def test_every_number_of_a_finding_has_its_interval(entry):
    assert _untold(entry) == []


def test_so_has_every_number_at_full_scale(large):
    assert _untold(large) == []


def test_the_table_of_error_rates_has_its_full_tier(large, row):
    assert at_full_tier(large) == [row(large.claim.id)["full tier"], row(large.claim.id)["core hours"]]


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("0.97 of it", ["0.97"]),
        ("0.97 ± 0.02 of it", []),
        ("it is 0.97 to 1.03 (± 0.02) of it", []),
        ("it is 0.97 to 1.03 times as large, each to ± 2%", []),
        ("it is 0.97 at d = 8 (± 0.02)", ["0.97"]),
        ("here 1.65 (1.60 to 1.70), and there 1.65", ["1.65"]),
        ("65% of runs, 65% (50% to 78%) of runs", ["65%"]),
        ("1.20, as predicted", []),
        ("3.3 in the median", []),
    ],
)
def test_a_number_without_its_interval_is_seen(said, left):
    numbers = {"gap": 0.971, "gap ±": 0.02, "other": 1.03, "other ±": 0.02, "log": 0.5, "log ±": 0.03}
    numbers |= {"share": 0.65, "share, low": 0.5, "share, high": 0.78, "median": 3.3}
    numbers |= {"factor": 1.2, "factor ±": 0.1, "predicted factor": 1.2}
    assert intervals.bare(said, numbers) == left
