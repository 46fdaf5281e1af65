import re

import pytest

from attlas import lab
from attlas.report import write


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
