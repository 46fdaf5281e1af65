"""The pages under the hands of a visitor: dragging, keys, reloads, the stage, a phone, the dark."""

import itertools
import re
import time

import numpy as np
import pytest

from attlas import aim
from attlas.explorer.pages import names
from attlas.explorer.plotting import written

from ..test_browser import address_has, shows, traces
from ..test_grids import PIXEL, cubic

GRAPH = "document.querySelector('#aim-curve .js-plotly-plot')"
DRAWN = f"() => {GRAPH}?.data?.some((t) => t.meta?.live === 'bayes')"
LIVE = """(name) => Object.fromEntries(document.querySelector('#aim-' + name + ' .js-plotly-plot').data
    .filter((t) => t.meta?.live).map((t) => [t.meta.live, {x: [...t.x], y: [...t.y], visible: t.visible}]))"""
GRIDS = "() => performance.getEntriesByType('resource').filter((r) => r.name.includes('/grid/')).length"


def opened(visit, path="/aim", grids=2, **options):
    """Return the page of Bayes limits, once it has the grids that it drags by, and the list of what it asks from then on."""
    page = visit(path, **options)
    page.wait_for_function(DRAWN)
    if grids:
        page.wait_for_function(f"() => ({GRIDS})() >= {grids}")
        page.wait_for_timeout(300)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    return page, asked


def middle(place):
    box = place.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_the_point_is_dragged_and_curve_and_spectrum_follow_without_a_request(visit) -> None:
    page, asked = opened(visit)
    handle = page.locator("#aim-diagram-place .handle")
    handle.scroll_into_view_if_needed()
    before = {name: page.evaluate(LIVE, name) for name in ("curve", "spectrum")}
    x, y = middle(handle)
    page.mouse.move(x, y)
    page.mouse.down()
    times = [time.monotonic()]
    for step in range(1, 16):
        page.mouse.move(x + 4 * step, y - 4 * step)
        page.wait_for_timeout(30)
        times.append(time.monotonic())
    during = {name: page.evaluate(LIVE, name) for name in ("curve", "spectrum", "diagram")}
    times.append(time.monotonic())
    rests = sum(after - before > 0.2 for before, after in itertools.pairwise(times))  # of a machine that is busy
    assert len([url for url in asked if "_dash-update" in url]) <= rests
    (alpha,), (rho,) = during["diagram"]["point"]["x"], during["diagram"]["point"]["y"]
    assert rho > 0.6
    curve, point = during["curve"]["bayes"], during["curve"]["point"]
    assert during["spectrum"]["spectrum"]["x"] != before["spectrum"]["spectrum"]["x"]
    for at, value in [*zip(curve["x"][5:-1:9], curve["y"][5:-1:9], strict=True), (point["x"][0], point["y"][0])]:
        exact = aim.state_evolution(aim.Softmax(2), at, rho, steps=0).value
        assert value == pytest.approx(exact, abs=PIXEL)
    assert during["curve"]["threshold"]["x"][0] == pytest.approx((2 * rho - rho**2) / 4, rel=1e-4)
    reached = aim.trained(aim.Softmax(2), alpha, rho, 0.01)
    density = during["spectrum"]["spectrum"]
    assert np.interp(1.0, density["x"], density["y"]) == pytest.approx(float(reached.spectrum(1.0)), rel=0.03)
    page.mouse.up()
    shows(page, "aim-curve-summary", f"At α = {alpha:.4g} ")
    address_has(page, f"rho={rho:g}")
    assert len([url for url in asked if "_dash-update" in url]) <= 2 + rests


def test_a_server_that_does_not_answer_is_said_until_it_does(browser, address) -> None:
    page = browser.new_page()
    page.goto(address + "/aim")
    page.wait_for_function(DRAWN)
    page.route("**/_dash-update-component*", lambda route: route.abort())
    slider, note = page.get_by_label("Width over d, ρ"), page.locator(".lost")
    slider.focus()
    page.keyboard.press("ArrowRight")
    note.get_by_text("The server does not answer").wait_for()
    page.unroute("**/_dash-update-component*")
    page.keyboard.press("ArrowRight")
    shows(page, "aim-curve-summary", "S is recovered perfectly above α = 0.1994")  # that of rho = .55
    assert not note.is_visible()
    page.close()


def test_sentence_curve_and_spectrum_are_of_one_state_at_rest_and_close_on_the_way(visit) -> None:
    page, _ = opened(visit)
    held, slow = [], [True]
    page.route("**/_dash-update-component*", lambda route: held.append(route) if slow else route.continue_())
    slider = page.get_by_label("Width over d, ρ")
    slider.focus()
    page.keyboard.press("ArrowRight")
    page.locator("section[data-ahead]").wait_for()  # of its summary
    exact = aim.trained(aim.Softmax(2), 0.4 * 0.312, 0.525, 0.01)
    spectrum = "document.querySelector('#aim-spectrum .js-plotly-plot').data[0]"
    assert "ρ = 0.525," in page.evaluate(GRAPH + ".layout.xaxis.title.text")
    assert page.evaluate(spectrum + ".x[0]") == 0
    assert float(page.evaluate(spectrum + ".name").split()[0]) == pytest.approx(1 - exact.rank, abs=0.002)
    page.wait_for_timeout(300)
    slow.clear()
    for route in held:
        route.continue_()
    shows(page, "aim-curve-summary", f"at rank {exact.rank:.3f} d")
    page.locator("section[data-drawn]:not([data-ahead])").wait_for()
    page.wait_for_timeout(300)
    assert page.evaluate(spectrum + ".name").startswith(f"{1 - exact.rank:.3f} ")
    assert page.evaluate(spectrum + ".x[0]") > 0  # what the server has drawn stays


def test_a_plot_that_moves_under_the_pointer_takes_the_point_nowhere(visit) -> None:
    page, _ = opened(visit)
    handle = page.locator("#aim-diagram-place .handle")
    handle.scroll_into_view_if_needed()
    x, y = middle(handle)
    page.mouse.move(x, y)
    page.mouse.down()
    page.evaluate("() => (document.querySelector('.summary').style.paddingBottom = '60px')")
    page.mouse.move(x + 1, y)
    page.mouse.up()
    page.wait_for_timeout(200)
    value = page.locator("fieldset[data-control='aim:rho'] .value").inner_text()
    assert float(value) == pytest.approx(0.5, abs=0.03)


def test_a_plot_with_a_long_legend_keeps_its_height_while_the_point_is_moved(visit) -> None:
    page = visit("/features", width=390)
    page.wait_for_function("() => document.querySelector('#features-curves .js-plotly-plot')?.data?.length > 3")
    page.wait_for_timeout(300)
    plot = page.locator("#features-curves .js-plotly-plot")
    before = plot.evaluate("e => e.clientHeight")
    assert before > 384
    plot.evaluate("e => Plotly.update(e, {}, {'shapes[0].x0': 100})")
    page.wait_for_timeout(300)
    assert plot.evaluate("e => e.clientHeight") == before


def test_the_point_is_moved_with_the_arrow_keys(visit) -> None:
    page, _ = opened(visit)
    handle = page.locator("#aim-diagram-place .handle")
    handle.focus()
    outline = "e => [getComputedStyle(e).outlineStyle, parseFloat(getComputedStyle(e).outlineWidth)]"
    page.keyboard.press("ArrowUp")
    assert handle.evaluate(outline) == ["solid", 2]
    page.keyboard.press("Shift+ArrowRight")
    address_has(page, "alpha=0.45")
    address_has(page, "rho=0.525")
    assert handle.get_attribute("aria-valuetext") == "Samples α = n/d²: 0.14; Width over d, ρ: 0.525"


@pytest.mark.parametrize(
    ("path", "label"), [("/aim", "Width over d, ρ"), ("/context", "Label noise"), ("/aim", "Tokens T")]
)
def test_twenty_presses_are_few_requests_and_the_last_one_wins(visit, path, label) -> None:
    page = visit(path)
    page.wait_for_function("() => document.querySelector('section[data-drawn]')")
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    slider = page.get_by_label(label)
    slider.focus()
    begin = time.monotonic()
    for _ in range(20):
        page.keyboard.press("ArrowRight")
    took = time.monotonic() - begin
    last = slider.input_value()
    settled = "() => document.querySelector('section[data-settled]:not([aria-busy])') !== null"
    page.wait_for_timeout(1500)
    page.wait_for_function(settled)
    assert (
        len([url for url in asked if "_dash-update" in url]) <= 2 + took / 0.25
    )  # one in a quarter of a second, and the last
    name = {"Width over d, ρ": "rho", "Label noise": "noise", "Tokens T": "tokens"}[label]
    address_has(page, f"{name}={last}")


def test_a_reload_in_mid_run_keeps_the_run(visit) -> None:
    page = visit("/aim?d=140&alpha=0.9")
    page.wait_for_function(DRAWN)
    page.get_by_role("button", name="Run").click()
    shows(page, "aim-amp-status", "step|Drawing")
    page.reload()
    page.wait_for_function("() => !document.getElementById('aim-amp-cancel')?.disabled")
    shows(page, "aim-amp-status", "Error [0-9.]+ after")
    traces(page, "aim-curve", "t.some((one) => one.name == 'your runs')")


def test_links_to_pages_keep_the_settings_they_were_left_with(visit) -> None:
    page = visit("/aim?rho=0.8&channel=linear")
    shows(page, "aim-curve-summary", "not perfect at any finite")
    page.get_by_role("link", name="Learning in context").click()
    shows(page, "context-sequences-summary", "new tasks")
    page.get_by_label("Label noise").fill("0.3")
    address_has(page, "noise=0.3")
    page.get_by_role("link", name="Bayes limits").click()
    shows(page, "aim-curve-summary", "not perfect at any finite")
    address_has(page, "rho=0.8")
    assert page.get_by_label("Width over d, ρ").input_value() == "0.8"
    page.get_by_role("link", name="Learning in context").click()
    page.wait_for_function("() => document.querySelector('[aria-current=page]')?.innerText === 'Learning in context'")
    address_has(page, "noise=0.3")
    page.get_by_role("link", name="Start values").click()
    address_has(page, "noise=0.1")


def test_a_journey_by_keyboard_alone(visit) -> None:
    """From the front of the explorer to a run, through every control of the page of Bayes limits."""
    page = visit("/")
    page.wait_for_selector("nav a")

    def tab_to(condition: str, most: int = 60) -> None:
        for _ in range(most):
            page.keyboard.press("Tab")
            if page.evaluate(f"() => {{ const e = document.activeElement; return Boolean({condition}) }}"):
                return
        raise AssertionError(condition)

    tab_to("e.innerText === 'Bayes limits'")
    page.keyboard.press("Enter")
    page.wait_for_function(DRAWN)
    others = {"noise": ["ArrowLeft"], "trained": ["ArrowRight", "ArrowLeft"], "d": ["Home"]}
    for name in ("channel", "tokens", "noise", "alpha", "rho", "trained", "decay", "d"):
        keys = others.get(name, ["ArrowRight"])
        tab_to(f"e.closest('fieldset')?.dataset.control === 'aim:{name}'")
        for key in keys:
            page.keyboard.press(key)
            page.wait_for_timeout(60)
    for setting in (
        "channel=linear",
        "tokens=3",
        "noise=0.2",
        "alpha=0.41",
        "rho=0.525",
        "trained=on",
        "decay=-1.75",
        "d=20",
    ):
        address_has(page, setting)
    tab_to("e.innerText === 'Run'")
    page.keyboard.press("Enter")
    shows(page, "aim-amp-status", "Error [0-9.]+ after")
    tab_to("e.classList.contains('handle')")
    page.keyboard.press("ArrowLeft")
    address_has(page, "alpha=0.4")


def test_controls_that_do_nothing_are_disabled_and_say_why(visit) -> None:
    page, _ = opened(visit, grids=0)
    noise, decay = page.get_by_role("slider", name="Noise"), page.get_by_label("Weight decay λ")
    assert noise.is_disabled()
    assert "Linear output only" in page.locator("fieldset", has=noise).inner_text()
    assert decay.is_enabled()
    page.get_by_label("hide").check()
    page.wait_for_function("() => document.querySelector('fieldset[data-control=\"aim:decay\"]').disabled")
    page.get_by_label("linear with noise").check()
    page.wait_for_function("() => !document.querySelector('fieldset[data-control=\"aim:noise\"]').disabled")
    assert "Linear output only" not in page.locator("fieldset", has=noise).inner_text()
    assert page.locator("[data-control='aim:alpha'] .value").inner_text() == "0.0832"  # 0.4 of an axis to 1.25/6


def test_the_stage_is_entered_and_left_by_keyboard(visit) -> None:
    page, _ = opened(visit, grids=0)
    size = f"() => {GRAPH}._fullLayout.font.size"
    small = page.evaluate(size)
    button = page.get_by_role("button", name="Full screen")
    button.focus()
    page.keyboard.press("Enter")
    page.wait_for_function(f"() => ({size})() > {1.2 * small}")
    assert button.get_attribute("aria-pressed") == "true"
    assert not page.locator("footer").is_visible()
    page.keyboard.press("Escape")
    if page.evaluate("Boolean(document.fullscreenElement)"):  # which only a person's Escape leaves
        page.evaluate("document.exitFullscreen()")
    page.wait_for_function(f"() => ({size})() === {small}")
    assert button.get_attribute("aria-pressed") == "false"


@pytest.mark.parametrize("width", [1280, 390])
def test_settings_stay_in_view_beside_the_plots(visit, width) -> None:
    page, _ = opened(visit, grids=0, width=width)
    page.locator("#aim-diagram-place").scroll_into_view_if_needed()
    settings = page.locator(".settings").bounding_box()
    plot = page.locator("#aim-diagram-place").bounding_box()
    assert settings["y"] >= 0
    assert settings["y"] < 300
    if width == 1280:
        assert settings["x"] + settings["width"] < plot["x"]
        return
    assert settings["height"] < 60  # closed, and says what it holds
    assert "α = 0.125" in page.locator("span.current").inner_text()
    page.locator(".settings > summary").click()
    assert page.get_by_label("Width over d, ρ").is_visible()
    assert page.locator(".settings").bounding_box()["height"] <= 0.5 * 900


def test_the_first_visit_is_small(visit, address) -> None:
    page, _ = opened(visit, grids=0)
    entries = "performance.getEntriesByType('resource').map((r) => [r.name, r.transferSize, r.decodedBodySize])"
    found = page.evaluate(entries)
    assert sum(sent for _, sent, _ in found) < 1.85e6
    assert not [name for name, sent, whole in found if whole > 20_000 and sent > 0.5 * whole]
    page.goto(address + "/context")
    page.wait_for_function("() => document.querySelector('section[data-drawn]')")
    assert sum(sent for _, sent, _ in page.evaluate(entries)) < 0.1e6  # the rest is kept


CONTRAST = """() => {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const rgba = (text) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = text;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const linear = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.05 + 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const colour = rgba(getComputedStyle(e).backgroundColor);
      if (colour[3] > 250) return colour;
    }
    return [255, 255, 255];
  };
  const left = ':disabled, .skip, .heatmap-label, script';
  const own = (e) => [...e.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  const shown = [...document.querySelectorAll('body *')].filter((e) => own(e) && e.checkVisibility() && !e.closest(left));
  return shown.map((e) => {
    const style = getComputedStyle(e);
    const ink = light(rgba(e.ownerSVGElement ? style.fill : style.color));
    const paper = light(behind(e.closest('svg')?.parentElement ?? e));
    return [Math.max(ink, paper) / Math.min(ink, paper), e.outerHTML.slice(0, 120)];
  }).filter(([ratio]) => ratio < 4.5);
}"""
EVERY = "() => [...document.querySelectorAll('section[data-settled]')].every((s) => 'drawn' in s.dataset)"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_can_be_read_and_listened_to(visit, scheme) -> None:
    for door in names():
        page = visit(f"/{door}", scheme=scheme)
        page.wait_for_function(
            "() => [...document.querySelectorAll('section[data-settled]')].every((s) => 'drawn' in s.dataset)"
        )
        page.wait_for_selector(".js-plotly-plot .main-svg >> visible=true")
        assert page.evaluate(CONTRAST) == [], door
        assert (
            page.locator(".choices[role], .choices [role], [aria-selected]").count() == 0
        )  # radio buttons are no list box
        assert page.locator("footer, [role=contentinfo]").count() == 1
        assert page.locator(".bench > aside .controls").count() == page.locator("section[data-settled]").count()


def test_lines_follow_the_dark_palette_and_files_do_not(visit) -> None:
    page, _ = opened(visit, grids=0, scheme="dark", accept_downloads=True)
    colour = f"{GRAPH}.data[0].line.color"
    assert page.evaluate(colour) == "#4ca9e6"
    with page.expect_download() as figure:
        page.get_by_role("button", name="Save figure").first.click()
    text = figure.value.path().read_text()
    assert re.search(r"rgb\(0, 114, 178\)|#0072b2", text, re.IGNORECASE)
    page.emulate_media(color_scheme="light")
    page.wait_for_function(f"() => {colour}.toLowerCase() === '#0072b2'")


def test_the_browser_writes_numbers_and_places_points_as_python_does(visit) -> None:
    page, _ = opened(visit, grids=0)
    numbers = [0.1248, 1e-6, -0.5, 2.5e-4, 320, 0, 99_999, 1e5, 3.14159e7, 0.000999]
    assert page.evaluate("(numbers) => numbers.map((x) => attlas.typeset(x))", numbers) == [written(x) for x in numbers]
    places = [(0.07, 0.05, 1.5, 30), (1.49, 0.05, 1.5, 30), (0.4, 0, 1, 65), (0, 0, 1, 4)]
    for place in places:
        nodes, weights = cubic(*place)
        found = page.evaluate("(place) => attlas.cubic(...place)", place)
        assert found["first"] == nodes.start
        assert found["weights"] == pytest.approx(weights)
