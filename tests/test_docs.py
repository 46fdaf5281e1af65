"""The documentation builds without a warning, fetches nothing, and its formulas are typeset."""

import csv
import html
import importlib
import importlib.util
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from attlas import lab
from attlas.claims import doors

DOCS = Path(__file__).parent.parent / "docs"
# designs to be sharpened with a new version; the page of error rates names them
MISSES = ["positional.bayes", "positional.tokens"]  # a run that should refute a mutation leaves it undecided
WEAK = ["positional.tokens"]  # supported in fewer than nine of ten resampled runs
FETCHED = {"src", "srcset", "data", "poster", "action", "xlink:href"}


class Fetches(HTMLParser):
    """Collects what a browser would load to show a page: not the links a reader may follow."""

    def __init__(self, page):
        super().__init__()
        self.addresses = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.addresses += [value for name, value in attrs if name in FETCHED or (name, tag) == ("href", "link")]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("docs")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-W",
        "--keep-going",
        "-d",
        folder / "trees",
        DOCS,
        folder / "html",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "html"


def test_no_page_fetches_anything_from_elsewhere(built):
    pages = [path for path in built.rglob("*.html") if "_static" not in path.parts]
    assert len(pages) > 20
    for path in pages:
        addresses = [address for address in Fetches(path.read_text()).addresses if address]
        assert len(addresses) > 5
        assert not [address for address in addresses if re.match(r"(https?:)?//", address)], path
    for path in built.rglob("*.css"):
        assert not re.findall(r"(?:url\(|@import)\s*[\"']?\s*(?:https?:)?//", path.read_text()), path


def test_formulas_are_typeset(built):
    written = {path.stem: len(re.findall(r"(?ms)^\$\$.+?\$\$", path.read_text())) for path in DOCS.glob("*.md")}
    assert sum(written.values()) > 12
    for name, formulas in written.items():
        if not formulas:
            continue
        page = (built / f"{name}.html").read_text()
        assert page.count('<div class="formula"><math alttext=') == formulas
        assert "$$" not in page
        shown = re.sub(r'alttext="[^"]*"', "", page)
        assert not re.search(r"<m\w[^>]*>\\\w+<", shown)  # what the converter does not know it leaves as it is


def test_every_public_name_is_in_the_reference(built):
    import attlas

    page = (built / "api" / "aim.html").read_text()
    for name in ("state_evolution", "message_passing", "Softmax", "curve"):
        assert f'id="attlas.aim.{name}"' in page
    listed = (built / "api" / "index.html").read_text()
    for room in set(attlas.__all__) - {"__version__"}:
        assert (built / "api" / f"{room}.html").is_file()
        assert f'href="{room}.html"' in listed


def test_the_front_page_and_the_contents_name_every_door(built):
    front = (built / "index.html").read_text()
    contents, table = front.partition("<article")[::2]
    for door in doors().values():
        assert f">{html.escape(door.question)}" in table
        if (DOCS / f"{door.key}.md").exists():
            assert re.search(rf'href="{door.key}\.html"[^>]*>(<span[^>]*>)*{door.title}<', table)
            assert f'href="{door.key}.html">{door.title}</a>' in contents


def test_the_readme_has_the_same_table_of_doors(monkeypatch):
    monkeypatch.syspath_prepend(DOCS / "ext")
    expected = "\n".join(importlib.import_module("doors").table("docs/"))
    assert f"\n\n{expected}\n\n" in (DOCS.parent / "README.md").read_text(), f"README.md should have\n{expected}"


def test_references_are_linked(built):
    page = (built / "references.html").read_text()
    keys = re.findall(r"@\w+\{(\w+),", (DOCS.parent / "src/attlas/claims/references.bib").read_text())
    assert len(keys) > 10
    assert all(f'id="{key}"' in page for key in keys)
    assert "https://arxiv.org/abs/2506.01582" in page
    assert "references.html#boncoraglio2025bayes" in (built / "api" / "aim.html").read_text()
    assert not re.search(r"[{}\\]", re.sub(r"(?s).*<article.*?>|</article>.*", "", page))  # no TeX is left


def test_the_page_of_a_door_has_its_title():
    """One vocabulary: also where nobody but a reader would notice."""
    for door in doors().values():
        if (page := DOCS / f"{door.key}.md").exists():
            assert page.read_text().startswith(f"# {door.title}\n"), page


def test_quoted_numbers_are_those_of_the_results():
    """Prose, pages and store do not differ: `python studies/quote_results.py` writes the numbers anew."""
    study = _study("quote_results")
    quotes = 0
    for path in study.PAGES:
        page = path.read_text(encoding="utf-8")
        quotes += len(study.NUMBER.findall(page)) + len(study.TABLE.findall(page))
        assert study.quoted(page) == page, path.name
    assert quotes > 10


def test_the_table_of_error_rates_is_that_of_the_results(tmp_path):
    """`python studies/verdicts.py --out docs/error_rates.csv` makes the table anew."""
    study = _study("verdicts")
    with (DOCS / "error_rates.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["claim"]: row for row in csv.DictReader(file)}
    judged = {e.claim.id: e for e in lab.verdicts(store=tmp_path / "none.db", shipped=True, repeats=True)}
    assert list(rows) == [name for name, entry in judged.items() if entry.verdict]
    for name, row in rows.items():
        entry = judged[name]
        assert row["version"] == str(entry.claim.version), name
        assert row["runs"] == study.summary(entry.runs), name
    assert [name for name, row in rows.items() if row["misses"]] == MISSES
    weak = [name for name, row in rows.items() if row["supported if true"] < "0.9"]  # words sort after digits
    assert [name for name in weak if judged[name].claim.tiers["quick"].decides] == WEAK


def _study(name):
    path = DOCS.parent / "studies" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"studies_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
