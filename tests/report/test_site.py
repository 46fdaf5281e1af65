import os
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from attlas.claims import Outcome, Verdict
from attlas.report import write
from attlas.report.doors import DOORS, finding
from attlas.report.site import bibtex

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
    assert ".csv" not in cited  # nothing was run
    assert "<math " in cited
    assert 'rel="prev" href="trained.threshold.html"' in cited
    assert 'rel="next"' not in cited


def test_every_source_has_its_entry(judged):
    for entry in judged:
        named = re.findall(r"\b[a-z]+\d{4}[a-z]+\b", entry.claim.source)
        assert len(bibtex(entry.claim.source)) == len(set(named)), entry.claim.id


def test_the_front_counts_and_the_differences_name_claims_that_exist(judged, site):
    front = re.sub(r"<[^>]*>", "", (site / "index.html").read_text())
    assert f"of {len(judged)} claims" in front
    assert re.search(r"● supported 2\b", front)
    page = (site / "differences.html").read_text().partition("<main>")[2]
    named = re.findall(r"\b(?:aim|trained|features|recovery)\.[a-z-]+\b", re.sub(r'href="[^"]*"', "", page))
    assert len(named) >= 10
    assert set(named) <= {entry.claim.id for entry in judged}


def test_the_map_leads_to_every_question(judged, site):
    page = Links((site / "index.html").read_text())
    for door in {entry.claim.door for entry in judged}:
        assert f"#{door}" in page.linked


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


NUMBERS = {
    "lenses.one-teacher": (
        {
            "message passing over the limit - 1": 0.2,
            "message passing beats descent, averaged (d = 32)": 0.2,
            "message passing beats descent, averaged (d = 32) ±": 0.1,
            "message passing beats variable projection (d = 20)": 1.1,
        },
        ["with 1.2 times its error", "(descent, averaged: 1.2; variable projection: 3.0)"],
    ),
    "features.bias-correlation": (
        {"degree 1 exponent, no bias": 1.754, "degree 1 exponent, bias": 1.036},
        ["d^1.75", "d^1.04"],
    ),
    "recovery.hard-instances": (
        {"m=5 on-slice accuracy": 0.49, "m=7 on-slice accuracy": 0.512, "m=5 controls solved, of 10": 9.0},
        ["9 of 10", "0.51"],
    ),
    "aim.softmax-threshold": (
        {"T=2 transition over formula": 0.987, "second solutions below": 8, "runs below": 9, "found above": 7,
         "runs above": 9},
        ["0.99", "8 of 9", "7 of 9"],
    ),
    "trained.double-descent": (
        {"rise to the peak, logarithm": 0.47, "the best decay removes the peak, logarithm": 1.1},
        ["1.6 times", "by 3.0"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NUMBERS)
def test_a_finding_is_made_of_the_numbers_of_a_verdict_that_holds(judged, name):
    (entry,) = [entry for entry in judged if entry.claim.id == name]
    assert DOORS[entry.claim.door].speaker == name
    assert finding(entry) == ""  # nothing was run
    numbers, said = NUMBERS[name]
    holds = replace(entry, verdict=Verdict(Outcome.SUPPORTED, "the reason", 1.0, "", numbers))
    assert all(part in finding(holds) for part in said)
    for other in (
        Verdict(Outcome.REFUTED, "the reason", 1.0, "", numbers),
        Verdict(Outcome.SUPPORTED, "the reason", 1, ""),
    ):
        assert finding(replace(entry, verdict=other)) == "the reason"
