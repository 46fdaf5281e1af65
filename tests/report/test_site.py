import re

import pytest

from attlas import lab
from attlas.report import write
from attlas.report.site import bibtex


@pytest.fixture
def judged(fast, tmp_path):
    lab.run(["test.fast"], "full", store=tmp_path / "a.db", executor="serial")
    return lab.verdicts(None, "full", store=tmp_path / "a.db")


def test_every_claim_has_a_row_and_a_page(judged, tmp_path):
    front = write(judged, tmp_path / "site", "full").read_text()
    for entry in judged:
        assert f'<a href="{entry.claim.id}.html">' in front
        page = (tmp_path / "site" / f"{entry.claim.id}.html").read_text()
        assert f"attlas run {entry.claim.id} --full --seed 0" in page
        assert entry.status in page
    page = (tmp_path / "site" / "test.fast.html").read_text()
    assert "<svg" in page
    assert "supported" in page


def test_nothing_is_fetched_from_elsewhere(judged, tmp_path):
    write(judged, tmp_path / "site", "full")
    for page in (tmp_path / "site").glob("*.html"):
        text = page.read_text()
        assert not re.search(r"""(src|href)\s*=\s*["'](https?:)?//""", text)
        assert not re.search(r"@import|url\(\s*['\"]?http", text)


def test_the_same_store_gives_the_same_bytes(judged, tmp_path):
    for folder in ("one", "two"):
        write(judged, tmp_path / folder, "full")
    for page in (tmp_path / "one").iterdir():
        assert page.read_bytes() == (tmp_path / "two" / page.name).read_bytes()


def test_a_page_holds_settings_data_and_sources(judged, tmp_path):
    write(judged, tmp_path / "site", "full")
    page = (tmp_path / "site" / "test.fast.html").read_text()
    (fast,) = [entry for entry in judged if entry.claim.id == "test.fast"]
    for name in fast.records[0].point:
        assert f'<th scope="col">{name}</th>' in page
    assert 'href="test.fast.csv"' in page
    assert len((tmp_path / "site" / "test.fast.csv").read_text().splitlines()) == len(fast.records) + 1
    cited = (tmp_path / "site" / "trained.weight-decay.html").read_text()
    assert "@article{boncoraglio2025inductive," in cited
    assert "@article{boncoraglio2025bayes," not in cited
    assert ".csv" not in cited  # nothing was run


def test_every_source_has_its_entry(judged):
    for entry in judged:
        named = re.findall(r"\b[a-z]+\d{4}[a-z]+\b", entry.claim.source)
        assert len(bibtex(entry.claim.source)) == len(set(named)), entry.claim.id


def test_the_front_counts_and_the_differences_name_claims_that_exist(judged, tmp_path):
    front = write(judged, tmp_path / "site", "full").read_text()
    assert f"{len(judged)} claims: " in front
    assert "1 supported" in front
    page = (tmp_path / "site" / "differences.html").read_text()
    named = re.findall(r"\b(?:aim|trained|features|recovery)\.[a-z-]+\b", re.sub(r'href="[^"]*"', "", page))
    assert len(named) >= 10
    assert set(named) <= {entry.claim.id for entry in judged}
