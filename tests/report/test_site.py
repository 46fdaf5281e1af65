import csv
import os
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

import attlas.report.places
from attlas.claims import Difference, Outcome, Series, Verdict, door
from attlas.report import write
from attlas.report.site import bibtex
from attlas.report.typeset import sentence

EVIL = "<script>alert(1)</script> & \"quotes\" 'too' {{ 7 * 7 }}"


FETCHED = {("link", "href"), ("image", "href"), ("image", "xlink:href"), ("use", "href"), ("use", "xlink:href")}


class Links(HTMLParser):
    """What a page links to or would fetch, and the ids it has."""

    def __init__(self, text):
        super().__init__()
        self.fetched, self.linked, self.ids = [], [], set()
        self.feed(text)
        self.fetched += re.findall(r"url\(\s*['\"]?([^)'\"]*)", text) + re.findall(r"@import\s+(\S+)", text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("src", "srcset", "data", "poster", "action") or (tag, name) in FETCHED:
                self.fetched.append(value)
            elif name == "href":
                self.linked.append(value)
            elif name == "id":
                self.ids.add(value)

    handle_startendtag = handle_starttag


def test_every_claim_has_a_row_and_a_page(judged, site):
    front = (site / "index.html").read_text()
    for entry in judged:
        assert f'<a href="{entry.claim.id}.html">' in front
        page = (site / f"{entry.claim.id}.html").read_text()
        assert f"attlas run {entry.claim.id} --full --seed 0" in page
        assert entry.status in page
    page = (site / "test.fast.html").read_text()
    assert "<svg" in page
    assert "supported" in page


def test_nothing_is_fetched_from_elsewhere_and_every_link_leads_somewhere(site):
    pages = {page.name: Links(page.read_text()) for page in site.glob("*.html")}
    assert len(pages) > 30
    for name, page in pages.items():
        assert [found for found in page.fetched if not found.startswith(("#", "data:"))] == [], name
        for link in page.linked:
            if re.fullmatch(r"https://arxiv\.org/abs/[\d.]+", link):
                continue  # for people to follow; nothing is fetched
            target, _, place = link.partition("#")
            assert not target or (site / target).is_file(), (name, link)
            assert not place or place in pages[target or name].ids, (name, link)


def test_a_page_that_fetches_is_noticed():
    assert Links('<img src="https://a.b/c.png"><style>p { background: url(//x.y) }</style>').fetched == [
        "https://a.b/c.png",
        "//x.y",
    ]


def test_the_same_store_gives_the_same_bytes_in_another_process(fast, attlas, results, site, tmp_path):
    environment = os.environ | {"PYTHONHASHSEED": "1"}
    done = attlas("report", "--full", "--store", results, "--out", "again", env=environment)
    assert done.returncode == 0, done.stderr
    one, two = ({path.name: path.read_bytes() for path in folder.iterdir()} for folder in (site, tmp_path / "again"))
    assert one.keys() == two.keys()
    assert [name for name in one if one[name] != two[name]] == []
    assert b"<svg viewBox" in one["aim.quadratic-networks.html"]


def test_a_page_holds_settings_data_and_sources(judged, site):
    page = (site / "test.fast.html").read_text()
    (fast,) = [entry for entry in judged if entry.claim.id == "test.fast"]
    for name in fast.records[0].point:
        assert f'<th scope="col">{name}</th>' in page
    assert 'href="test.fast.csv"' in page
    assert len((site / "test.fast.csv").read_text().splitlines()) == len(fast.records) + 1
    cited = (site / "trained.weight-decay.html").read_text()
    assert "@article{boncoraglio2025inductive," in cited
    assert "@article{boncoraglio2025bayes," not in cited
    for entry in judged:
        assert (".csv" in (site / f"{entry.claim.id}.html").read_text()) == bool(entry.records), entry.claim.id
    assert "<math " in cited
    assert 'rel="prev" href="trained.threshold.html"' in cited
    assert 'rel="next"' not in cited


def test_every_source_has_its_entry(judged):
    for entry in judged:
        named = re.findall(r"\b[a-z]+\d{4}[a-z]+\b", entry.claim.source)
        assert len(bibtex(entry.claim.source)) == len(set(named)), entry.claim.id


def test_the_front_counts(judged, site):
    front = re.sub(r"<[^>]*>", "", (site / "index.html").read_text())
    assert f"of {len(judged)} claims" in front
    assert re.search(rf"● supported {sum(entry.status == 'supported' for entry in judged)}\b", front)


def test_the_map_leads_to_every_question(judged, site):
    page = Links((site / "index.html").read_text())
    for key in {entry.claim.door for entry in judged}:
        assert f"#{key}" in page.linked


@pytest.mark.parametrize(
    ("name", "title"), [("lenses.one-teacher", "One teacher, every learner"), ("mine.own", "mine")]
)
def test_a_question_without_a_sentence_of_its_own_has_its_place_too(judged, tmp_path, name, title):
    (fast,) = [entry for entry in judged if entry.claim.id == "test.fast"]
    front = write([replace(fast, claim=replace(fast.claim, id=name))], tmp_path / "site", "full").read_text()
    assert f'<a href="#{name.split(".")[0]}">{title}</a>' in front
    assert ("counted. " in front) == (
        name == "lenses.one-teacher"
    )  # the verdict's own reason, from the claim that speaks


def test_markup_in_a_claim_is_shown_not_obeyed(judged, tmp_path):
    (fast,) = [entry for entry in judged if entry.claim.id == "test.fast"]
    verdict = Verdict(Outcome.REFUTED, EVIL, -1.0, EVIL, {EVIL: 1.0})
    claim = replace(fast.claim, statement=EVIL, source=EVIL, formula="a<b")
    front = write([replace(fast, claim=claim, verdict=verdict)], tmp_path / "site", "full")
    for page in (front, tmp_path / "site" / "test.fast.html"):
        text = page.read_text()
        assert "<script" not in text
        assert "&lt;script&gt;" in text
        assert "{{ 7 * 7 }}" in text
    assert 'alttext="a&lt;b"' in text


def test_what_an_earlier_report_wrote_goes_and_what_others_wrote_stays(judged, tmp_path):
    folder = tmp_path / "site"
    write(judged, folder, "full")
    (folder / "mine.html").write_text("mine")
    (tmp_path / "secret.html").write_text("outside")
    with (folder / ".attlas-site").open("a") as note:
        note.write("\n../secret.html\nnotes.txt")
    (folder / "notes.txt").write_text("mine")
    kept = [entry for entry in judged if entry.claim.id != "test.fast"]
    write(kept, folder, "full")
    assert not (folder / "test.fast.html").exists()
    assert not (folder / "test.fast.csv").exists()
    for path in ("site/mine.html", "site/notes.txt", "secret.html", f"site/{kept[0].claim.id}.html"):
        assert (tmp_path / path).exists()


HEADLINE = "aim.quadratic-networks"


def _said(judged, tmp_path, **words):
    """Write the site of a claim that speaks for its door, with words and a verdict of its own; return its pages as text."""
    (entry,) = [entry for entry in judged if entry.claim.id == HEADLINE]
    verdict = words.pop("verdict", Verdict(Outcome.SUPPORTED, "the reason", 1.0, "", {"n": 3.0}))
    write([replace(entry, claim=replace(entry.claim, **words), verdict=verdict)], tmp_path / "site", "full")
    pages = {path.name: path.read_text().partition("<main>")[2] for path in (tmp_path / "site").glob("*.html")}
    return {name: re.sub(r"<[^>]*>", "", page).replace("\n", " ") for name, page in pages.items()}


@pytest.fixture
def spoken(monkeypatch):
    """Let the claim of the stored results speak for its door."""
    monkeypatch.setattr(attlas.report.places, "door", lambda key: replace(door(key), headline=HEADLINE))


def test_a_finding_is_made_of_the_numbers_of_a_verdict_that_holds(judged, tmp_path, spoken):
    def finding(numbers):
        return f"Found {numbers['n']:.0f} of them"

    found = "Found 3 of them."
    pages = _said(judged, tmp_path, finding=finding, caption="Error against samples.")
    assert f"{found} Why?" in pages["index.html"]
    assert f"Error against samples. {found}" in pages[f"{HEADLINE}.html"]
    for verdict in (
        Verdict(Outcome.REFUTED, "the reason", 1.0, "", {"n": 3.0}),
        Verdict(Outcome.SUPPORTED, "the reason", 1.0, ""),
    ):
        pages = _said(judged, tmp_path, finding=finding, verdict=verdict)
        assert "the reason. Why?" in pages["index.html"]
        assert pages[f"{HEADLINE}.html"].count("the reason") == 1  # beside the verdict, not below the figure too
    unrun = [replace(entry, records=[], verdict=None) for entry in judged]
    assert "Why?" not in write(unrun, tmp_path / "unrun", "full").read_text()


def test_a_caption_is_the_claims_own_or_none(judged, tmp_path):
    def draw(measurements):
        """Draw something that no caption says."""
        return entry.claim.draw(measurements)

    (entry,) = [entry for entry in judged if entry.claim.id == HEADLINE]
    page = _said(judged, tmp_path, draw=draw, caption="", finding=None)[f"{HEADLINE}.html"]
    assert "omething that no caption says" not in page
    assert "<figcaption" not in (tmp_path / "site" / f"{HEADLINE}.html").read_text()


def test_differences_are_what_claims_say_of_their_numbers(judged, tmp_path):
    differs = [
        Difference("The first", "They say many", lambda numbers: f"{numbers['n']:.0f} here", "n = 7"),
        Difference("The second", "They say few.", lambda numbers: f"{numbers['m']:.0f} here"),
    ]
    page = _said(judged, tmp_path, differs=differs)["differences.html"]
    assert re.search(
        r"The first\s+They say many\.\s+Published\s*n = 7\s*Here\s*3 here\.\s*Claim\s*aim\.quadratic-networks", page
    )
    assert re.search(r"The second\s+They say few\.\s+Here\s*the reason\.\s*Claim", page)  # its number is not there
    page = _said(judged, tmp_path, differs=differs, verdict=None)["differences.html"]
    assert re.search(r"Here\s*the claim has not been run to its end \(\d+ of \d+ points are in the store\)", page)


def test_every_difference_of_a_claim_stands_under_its_door(judged, site):
    page = (site / "differences.html").read_text()
    for entry in judged:
        for difference in entry.claim.differs:
            section = page.partition(f"<h2>{door(entry.claim.door).title}</h2>")[2].partition("<h2>")[0]
            assert str(sentence(difference.title)) in section
            assert f'href="{entry.claim.id}.html"' in section


def test_a_door_stands_with_its_parent(judged, site):
    page = (site / "index.html").read_text()
    cards = re.findall(
        r"(?s)<li(?: class=\"family\")?>\s*<div>.*?(?=<li(?: class=\"family\")?>\s*<div>|</ul>\s*<p)", page
    )
    held = [re.findall(r'<h2><a href="#(\w+)">', card) for card in cards]
    shown = {entry.claim.door for entry in judged}
    for key in shown:
        (card,) = [card for card in held if key in card]
        parent = door(key).parent
        assert card[0] == (parent if parent in shown else key)
    alone = [entry for entry in judged if entry.claim.door == "trained"]
    assert 'class="family"' in page
    assert 'class="family"' not in write(alone, site.parent / "alone", "full").read_text()


def test_the_points_of_a_figure_are_data_too(judged, tmp_path):
    series = [
        Series("amp", {"d": 8}, "alpha", "mse", (0.1, 0.2), (0.5, 0.25), (0.1, 0.0), (3, 1), theory=(0.4, 0.2)),
        Series("a guess", {"rho": 0.5}, "alpha", "mse", (0.1,), (1.0,), (0.0,), (1,)),
    ]
    _said(judged, tmp_path, series=lambda measurements: series)
    rows = list(csv.DictReader((tmp_path / "site" / f"{HEADLINE}.series.csv").read_text().splitlines()))
    assert [row["series"] for row in rows] == ["message passing", "message passing", "a guess"]
    assert [row["d"] for row in rows] == ["8", "8", ""]
    assert [(row["x_name"], float(row["x"])) for row in rows] == [("alpha", 0.1), ("alpha", 0.2), ("alpha", 0.1)]
    assert [float(row["mean"]) for row in rows] == [0.5, 0.25, 1.0]
    assert [row["theory"] for row in rows] == ["0.4", "0.2", ""]
    assert f'href="{HEADLINE}.series.csv"' in (tmp_path / "site" / f"{HEADLINE}.html").read_text()
    _said(judged, tmp_path, series=lambda measurements: [])
    assert not (tmp_path / "site" / f"{HEADLINE}.series.csv").exists()  # removed with the report that had it
