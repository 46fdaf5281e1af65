"""The site as a person opens it: from disk, on a desk and on a phone, by day and by night."""

import pytest

from attlas.claims import door

PAGES = ("index.html", "aim.quadratic-networks.html", "aim.width.html", "differences.html")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_pages_open_from_disk_without_a_network(browser, site, width, scheme):
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    asked, said = [], []
    context.on("request", lambda request: asked.append(request.url))
    context.on("console", lambda message: said.append(message.text))
    context.on("weberror", lambda error: said.append(str(error.error)))
    page = context.new_page()
    for name in PAGES:
        page.goto((site / name).as_uri())
        across = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
        assert across[0] <= across[1], name
    assert {url.partition("://")[0] for url in asked} == {"file"}
    assert said == []
    context.close()


def test_the_map_leads_to_a_claim_and_back(browser, site):
    page = browser.new_page(viewport={"width": 390, "height": 900})
    page.goto((site / "index.html").as_uri())
    page.get_by_role("link", name=door("aim").title).click()
    assert page.url.endswith("index.html#aim")
    page.get_by_role("link", name="aim.quadratic-networks: supported").click()
    assert page.get_by_role("heading", level=1).inner_text() == "aim.quadratic-networks"
    assert page.locator("math").first.bounding_box()["height"] > 20  # MathML is drawn, not spelled out
    page.get_by_role("link", name=door("aim").title).click()
    assert page.url.endswith("index.html#aim")
    page.close()


@pytest.mark.parametrize(("scheme", "media", "ink"), [
    ("light", "screen", "rgb(26, 26, 26)"),
    ("dark", "screen", "rgb(232, 232, 232)"),
    ("dark", "print", "rgb(26, 26, 26)"),
])  # fmt: skip
def test_figures_follow_the_paper(browser, site, scheme, media, ink):
    page = browser.new_page()
    page.emulate_media(color_scheme=scheme, media=media)
    page.goto((site / "aim.quadratic-networks.html").as_uri())
    of = "getComputedStyle(document.querySelector('figure svg {}')).{}"
    assert page.evaluate(of.format("text", "fill")) == ink
    spine = page.evaluate(of.format("[id^=patch_3] path", "stroke"))
    assert spine == ("rgb(232, 232, 232)" if ink == "rgb(232, 232, 232)" else "rgb(0, 0, 0)")
    page.close()
