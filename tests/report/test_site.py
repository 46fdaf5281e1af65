import csv
import os
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from attlas.claims import Difference, Outcome, Series, Verdict, door
from attlas.errors import InputError
from attlas.report import write
from attlas.report.site import bibtex
from attlas.report.svg import DARK
from attlas.report.typeset import sentence

from ..conftest import TESTS

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
        assert f'<a href="{entry.claim.id}.html"' in front
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
        asked = [found for found in page.fetched if not found.startswith(("#", "data:"))]
        assert [found for found in asked if "/" in found or not (site / found).is_file()] == [], name
        for link in page.linked:
            if re.fullmatch(r"https://(arxiv\.org/abs/[\d.]+|doi\.org/10\.[\w./()-]+)", link):
                continue  # for people to follow; nothing is fetched
            target, _, place = link.partition("#")
            assert not target or (site / target).is_file(), (name, link)
            assert not place or place in pages[target or name].ids, (name, link)


def test_a_page_that_fetches_is_noticed():
    assert Links('<img src="https://a.b/c.png"><style>p { background: url(//x.y) }</style>').fetched == [
        "https://a.b/c.png",
        "//x.y",
    ]


AGAIN = """
import sys
from attlas.report import write
from tests.report.conftest import held
judged, other = (held(sys.argv[1], tier) for tier in ("full", "quick"))
write(judged, "again", "full", other=other, workers=2)
"""


def test_the_same_store_gives_the_same_bytes_in_another_process(fast, results, site, tmp_path):
    environment = os.environ | {"PYTHONHASHSEED": "1", "PYTHONPATH": f"{TESTS.parent}{os.pathsep}{TESTS}"}
    command = [sys.executable, "-c", AGAIN, str(results)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
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
    assert f"{len(judged)} claims" in front
    assert f"● {sum(entry.status == 'supported' for entry in judged)} supported" in front


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
    assert f'<a href="#{name.split(".")[0]}">{title} <span>1</span></a>' in front
    assert ('class="card featured"' in front) == (name == "lenses.one-teacher")  # the claim that speaks


def test_markup_in_a_claim_is_shown_not_obeyed(judged, tmp_path):
    (fast,) = [entry for entry in judged if entry.claim.id == "test.fast"]
    verdict = Verdict(Outcome.REFUTED, EVIL, -1.0, EVIL, {EVIL: 1.0})
    claim = replace(fast.claim, statement=EVIL, source=EVIL, formula="a<b")
    front = write([replace(fast, claim=claim, verdict=verdict)], tmp_path / "site", "full")
    for page in (front, tmp_path / "site" / "test.fast.html"):
        text = page.read_text()
        assert re.findall("<script[^>]*>", text) == ['<script src="attlas.js" defer>']
        assert "&lt;script&gt;" in text
        assert "{{ 7 * 7 }}" in text
    assert 'alttext="a&lt;b"' in text


def test_what_an_earlier_report_wrote_goes_and_what_others_wrote_stays(judged, tmp_path):
    folder, judged = tmp_path / "site", [e for e in judged if e.claim.id in ("test.fast", "recovery.queries")]
    write(judged, folder, "full")
    (folder / "mine.html").write_text("mine")
    (tmp_path / "secret.html").write_text("outside")
    with (folder / ".attlas-site").open("a") as note:
        note.write("\n../secret.html\nnotes.txt")
    (folder / "notes.txt").write_text("mine")
    kept = [entry for entry in judged if entry.claim.id != "test.fast"]
    write(kept, folder, "full")
    assert not (folder / "test.fast.html").exists()
    for ending in ("csv", "svg", "thumb.svg", "png", "pdf"):
        assert not (folder / f"test.fast.{ending}").exists()
        assert (folder / f"{kept[0].claim.id}.{ending}").exists()
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


def test_a_finding_is_made_of_the_numbers_of_a_verdict_that_holds(judged, tmp_path):
    def finding(numbers):
        return f"Exactly {numbers['n']:.0f} of them were found here: that is all"

    pages = _said(judged, tmp_path, finding=finding, caption="Error against samples.")
    assert re.search(r"Exactly 3 of them were found here\s+That is all", pages["index.html"])
    assert "Exactly 3 of them were found here: that is all." in pages[f"{HEADLINE}.html"]
    assert "Error against samples." in pages[f"{HEADLINE}.html"]
    for verdict in (
        Verdict(Outcome.REFUTED, "the reason", 1.0, "", {"n": 3.0}),
        Verdict(Outcome.SUPPORTED, "the reason", 1.0, ""),
    ):
        pages = _said(judged, tmp_path, finding=finding, verdict=verdict)
        assert "the reason" in pages["index.html"].lower()
        assert pages[f"{HEADLINE}.html"].lower().count("the reason") == 1  # as the reason, not as a finding too


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


def test_every_colour_of_a_figure_is_known_to_dark_paper(site):
    for path in set(site.glob("*.svg")) - set(site.glob("test.fast.*")):  # that one has matplotlib's own colours
        fixed = re.sub(r"var\(--c\w{6}, #\w{6}\)|<style>.*?</style>", "", path.read_text(), flags=re.DOTALL)
        assert set(re.findall(r": (#[0-9a-f]{6})\b", fixed)) <= DARK.keys(), path.name


def test_what_is_drawn_already_is_kept(judged, tmp_path):
    """Of a figure that is as it was, PNG and PDF stay; one that is gone is made again."""
    (entry,) = [entry for entry in judged if entry.claim.id == "recovery.queries"]
    folder = tmp_path / "site"
    write([entry], folder, "full")
    png, pdf = (folder / f"recovery.queries.{ending}" for ending in ("png", "pdf"))
    before = pdf.read_bytes()
    png.write_bytes(b"mine")
    pdf.unlink()
    write([entry], folder, "full")
    assert png.read_bytes() == b"mine"
    assert pdf.read_bytes() == before
    (folder / "recovery.queries.svg").write_text("another figure")
    write([entry], folder, "full")
    assert png.read_bytes().startswith(b"\x89PNG")


def test_an_explorers_site_has_no_files_for_paper(judged, tmp_path):
    (entry,) = [entry for entry in judged if entry.claim.id == "recovery.queries"]
    write([entry], tmp_path, "full", explorer="/", settings=lambda _: "/recovery?d=4")
    assert not [path.name for path in tmp_path.iterdir() if path.suffix in (".png", ".pdf")]
    page = (tmp_path / "recovery.queries.html").read_text()
    assert '<a href="/recovery?d=4">Open these settings in the explorer</a>' in page
    assert "og:image" not in page


def test_a_page_names_itself_to_those_who_list_it(site):
    page = (site / "aim.softmax-threshold.html").read_text()
    assert re.search(r'<meta name="description" content="Supported: Recovery is a phase transition[^"]*">', page)
    assert '<meta property="og:image" content="aim.softmax-threshold.png">' in page
    assert '<meta property="og:title" content="Softmax attention is recovered perfectly' in page
    for name in ("index.html", "differences.html", "aim.width.html"):
        assert re.search(r'<meta name="description" content="[^"]{20,}">', (site / name).read_text()), name
    assert (site / re.search(r'og:image" content="([^"]+)"', (site / "index.html").read_text())[1]).is_file()


def test_both_tiers_stand_side_by_side(site):
    page = re.sub(r"<[^>]*>", " ", (site / "aim.softmax-threshold.html").read_text())
    assert re.search(r"Both tiers\s.*full\s+● +supported\s.*quick\s+● +supported\s.*Both tiers agree", page, re.DOTALL)
    front = (site / "index.html").read_text()
    card = front.partition('href="features.risk-bound.html"')[2].partition("</li>")[0]
    assert 'title="full tier: inconclusive"' in card
    assert 'title="quick tier: supported"' in card


def test_a_tier_that_is_not_run_to_its_end_does_not_disagree(judged, tmp_path):
    (entry,) = [entry for entry in judged if entry.claim.id == "aim.quadratic-networks"]
    unfinished = replace(entry, verdict=None, records=entry.records[:1], planned=3)
    page = (write([unfinished], tmp_path, "full", other=[entry]).parent / "aim.quadratic-networks.html").read_text()
    assert re.search(r"unfinished.*1 of 3.*supported", re.sub(r"<[^>]*>", " ", page), re.DOTALL)
    assert "agree" not in page.partition("Both tiers")[2].partition("<h2>")[0]


def test_a_report_that_was_interrupted_leaves_no_picture_behind_its_data(judged, tmp_path, monkeypatch):
    import attlas.report.figures as figures

    (entry,) = [entry for entry in judged if entry.claim.id == "aim.quadratic-networks"]
    picture = write([entry], tmp_path, "full").parent / "aim.quadratic-networks.png"
    before = picture.read_bytes()
    other = replace(entry, claim=replace(entry.claim, draw=_another(entry.claim.draw)))
    with monkeypatch.context() as patch:
        patch.setattr(figures, "_save", _interrupted)
        with pytest.raises(KeyboardInterrupt):
            write([other], tmp_path, "full")
    write([other], tmp_path, "full")
    assert picture.read_bytes() != before


def _another(draw):
    def drawn(measured):
        figure = draw(measured)
        figure.axes[0].set_title("of other results")
        return figure

    return drawn


def _interrupted(*_):
    raise KeyboardInterrupt


def test_no_margin_is_told_where_nothing_is_decided(site):
    assert "margin" in _finding(site, "aim.softmax-threshold")
    assert "margin" not in _finding(site, "features.risk-bound").replace('class="margin"', "")
    card = (site / "index.html").read_text().partition('href="features.risk-bound.html"')[2].partition("</li>")[0]
    assert re.search(r'<span class="number">\s*</span>', card)


def _finding(site, name):
    return (site / f"{name}.html").read_text().partition('<div class="finding')[2].partition("</div>")[0]


def test_a_site_that_knows_its_address_gives_it_to_those_who_show_cards(judged, tmp_path):
    (entry,) = [entry for entry in judged if entry.claim.id == "recovery.queries"]
    write([entry], tmp_path, "full", address="https://example.org/atlas/")
    page = (tmp_path / "recovery.queries.html").read_text()
    assert '<link rel="canonical" href="https://example.org/atlas/recovery.queries.html">' in page
    assert '<meta property="og:image" content="https://example.org/atlas/recovery.queries.png">' in page
    assert '<meta property="og:url" content="https://example.org/atlas/">' in (tmp_path / "index.html").read_text()
    for wrong in ("example.org", "javascript:alert(1)", 'https://x"y'):
        with pytest.raises(InputError, match=r"like https://example\.org/atlas"):
            write([entry], tmp_path, "full", address=wrong)
