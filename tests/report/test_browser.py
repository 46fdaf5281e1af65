"""The site as a person opens it: from disk, on a desk and on a phone, by day and by night, on paper, with keys alone."""

import re

import pytest

from attlas.claims import door

PAGES = ("index.html", "aim.softmax-threshold.html", "aim.width.html", "differences.html")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_open_from_disk_without_a_network_and_break_no_rule_of_access(browser, site, grave, scheme):
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme=scheme)
    asked, said = [], []
    context.on("request", lambda request: asked.append(request.url))
    context.on("console", lambda message: said.append(message.text))
    context.on("weberror", lambda error: said.append(str(error.error)))
    page = context.new_page()
    for name in PAGES:
        page.goto((site / name).as_uri())
        for width in (1280, 390, 320):
            page.set_viewport_size({"width": width, "height": 900})
            across = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
            assert across[0] <= across[1], (name, width)
            if width != 320:
                assert grave(page) == [], (name, width)
    assert page.evaluate("document.fonts.check('1rem \"STIX Two Math Web\"')")
    assert {url.partition("://")[0] for url in asked} == {"file"}
    assert said == []
    context.close()


def test_a_question_leads_to_a_claim_and_back(browser, site):
    page = browser.new_page(viewport={"width": 390, "height": 900})
    page.goto((site / "index.html").as_uri())
    page.get_by_role("navigation").get_by_role("link", name=door("aim").title).click()
    assert page.url.endswith("index.html#aim")
    page.locator("a[href='aim.softmax-threshold.html']").click()
    assert "recovered perfectly" in page.get_by_role("heading", level=1).inner_text()
    assert page.get_by_role("link", name="aim.softmax-threshold").get_attribute("href") == "aim.softmax-threshold.html"
    assert page.locator(".formula math").first.bounding_box()["height"] > 20  # MathML is drawn, not spelled out
    page.get_by_role("link", name=door("aim").title).click()
    assert page.url.endswith("index.html#aim")
    page.close()


@pytest.fixture
def front(browser, site):
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto((site / "index.html").as_uri())
    yield page
    page.close()


def _shown(page):
    return page.locator(".card:visible .id > span:first-child").all_inner_texts()


def test_the_gallery_is_searched_filtered_and_sorted_with_keys_alone_and_the_address_keeps_it(front, judged):
    count = len(judged)
    assert len(_shown(front)) == count
    front.get_by_role("searchbox").focus()
    front.keyboard.type("softmax attention is recovered")
    assert _shown(front) == ["aim.softmax-threshold"]
    assert f"1 of {count} claims" in front.get_by_role("status").inner_text()
    front.reload()
    assert _shown(front) == ["aim.softmax-threshold"]
    assert front.get_by_role("searchbox").input_value() == "softmax attention is recovered"
    front.get_by_role("button", name="Reset").press("Enter")
    front.wait_for_function("!location.hash")
    assert len(_shown(front)) == count
    front.get_by_role("searchbox").fill("rho^2")
    assert "aim.softmax-threshold" in _shown(front)
    front.get_by_role("button", name="Reset").press("Enter")
    front.locator("select[name=verdict]").focus()
    front.keyboard.type("ref")
    assert _shown(front) == ["aim.gradient-descent"]
    front.get_by_role("button", name="Reset").press("Enter")
    front.locator("select[name=door]").select_option("recovery")
    assert {name.split(".")[0] for name in _shown(front)} == {"recovery"}
    front.locator("select[name=door]").select_option("")
    front.locator("select[name=paper]").select_option("maillard2024quadratic")
    assert _shown(front) == ["aim.quadratic-networks"]
    front.locator("select[name=paper]").select_option("")
    front.locator("select[name=sort]").select_option("most")
    ranked = [entry.claim.id for entry in judged if entry.margin]
    order = _shown(front)
    assert set(order[: len(ranked)]) == set(ranked)
    assert order.index("trained.threshold") < order.index("aim.softmax-threshold") < order.index("aim.gradient-descent")
    front.locator("select[name=sort]").select_option("least")
    assert _shown(front)[0] == "aim.gradient-descent"
    front.get_by_label("statements").check()
    assert front.locator("#sorted .statement:visible").count() == count
    assert "sort=least" in front.url
    assert "statements=1" in front.url


def test_a_question_is_reached_also_while_the_pictures_are_sorted(front):
    front.locator("select[name=sort]").select_option("most")
    front.locator("nav.doors a[href='#context']").click()
    front.wait_for_function("!document.getElementById('context').hidden && scrollY > 500")
    assert abs(front.locator("#context").bounding_box()["y"]) < 300


def test_every_picture_is_reached_and_opened_with_keys(front):
    link = front.locator("a[href='features.risk-bound.html']")
    link.focus()
    assert front.evaluate("getComputedStyle(document.activeElement, '::after').outlineStyle") == "solid"
    front.keyboard.press("Enter")
    front.wait_for_url("**/features.risk-bound.html")


def test_it_prints_as_one_sheet_with_every_picture(front, judged):
    front.emulate_media(color_scheme="dark")
    sheet = front.pdf(prefer_css_page_size=True, print_background=True)
    assert len(re.findall(rb"/Type\s*/Page\b", sheet)) == 1
    assert re.search(rb"/MediaBox\s*\[0 0 119[01][.\d]* 168[34][.\d]*\]", sheet)  # A2
    front.emulate_media(media="print")
    assert front.locator(".card:visible").count() == len(judged)
    assert front.evaluate("getComputedStyle(document.body).color") == "rgb(26, 26, 26)"
    shown = "[...document.images].every(image => image.complete && image.naturalWidth > 0)"
    front.emulate_media(media="screen")
    front.evaluate("document.querySelectorAll('img').forEach(image => { image.loading = 'eager'; })")
    front.wait_for_function(shown)


def test_without_a_script_all_is_there(browser, site, judged):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((site / "index.html").as_uri())
    assert page.locator(".card .statement:visible").count() == len(judged)
    assert page.locator("form.controls:visible").count() == 0
    page.goto((site / "aim.softmax-threshold.html").as_uri())
    assert page.locator(".points title").count() > 10
    assert page.locator("button").count() == 0
    context.close()


def test_points_of_a_figure_answer_to_the_pointer_and_to_keys(browser, site):
    page = browser.new_page(viewport={"width": 1280, "height": 1400})
    page.goto((site / "aim.softmax-threshold.html").as_uri())
    told, frame = page.locator("output.point"), page.locator("figure .wide")
    assert "arrow keys" in told.inner_text()
    frame.focus()
    said = []
    for _ in range(3):
        page.keyboard.press("ArrowRight")
        said.append(told.inner_text())
    assert len(set(said)) == 3
    assert page.locator(".points .chosen").count() == 1
    page.keyboard.press("ArrowLeft")
    assert told.inner_text() == said[1]
    page.keyboard.press("Escape")
    assert page.locator(".points .chosen").count() == 0
    assert "arrow keys" in told.inner_text()
    mark = page.locator(".points circle").nth(4).bounding_box()
    page.mouse.move(mark["x"] + mark["width"] / 2, mark["y"] + mark["height"] / 2)
    assert told.inner_text() not in said[1:]
    assert "error" in told.inner_text()
    page.close()


def test_texts_are_copied(browser, site):
    context = browser.new_context()
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto((site / "aim.softmax-threshold.html").as_uri())
    page.get_by_role("button", name="Copy").first.click()
    page.wait_for_selector("button:text-matches('Copied|Selected')")
    copied = page.evaluate("getSelection().toString() || navigator.clipboard.readText()")
    assert copied == "attlas run aim.softmax-threshold --full --seed 0"
    context.close()


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


def test_a_card_that_has_the_keyboard_is_not_under_the_controls(site, browser):
    """Going back as well, where the browser scrolls no further than it has to."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto((site / "index.html").as_uri())
    page.locator(".card h3 a").nth(60).focus()
    seen = 0
    for _ in range(14):
        page.keyboard.press("Shift+Tab")
        card, controls = (
            page.evaluate(f"{found}?.getBoundingClientRect().toJSON()")
            for found in ("document.activeElement.closest('.card')", "document.querySelector('.controls')")
        )
        if card:  # and not a formula between them
            assert controls["top"] == 0  # they stay while the page scrolls
            assert card["top"] >= controls["bottom"]
            seen += 1
    assert seen > 7
    page.close()
