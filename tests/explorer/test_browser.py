"""The page in a real browser."""

import csv
import re
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import psutil
import pytest

from attlas import aim, features
from attlas import context as in_context
from attlas.explorer.pages import names


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Run the command as a user would, without a store, on a free port."""
    store = tmp_path_factory.mktemp("explorer") / "attlas.db"
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "attlas", "explore", "--port", str(port), "--store", str(store)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert "theory alone" in process.stdout.readline()
    line = process.stdout.readline()
    assert line == f"attlas is at http://127.0.0.1:{port}/ (Ctrl-C ends it)\n"
    yield f"http://127.0.0.1:{port}"
    process.terminate()
    assert process.wait(20) is not None
    process.stdout.close()


@pytest.fixture
def visit(browser, address):
    """Open a page; whatever a console or the network has to complain about fails the test."""
    complaints = []
    contexts = []

    def open_page(path: str, width: int = 1280, scheme: str = "light", **options):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(30_000)
        page.on("console", lambda m: complaints.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "request", lambda r: complaints.append(r.url) if not r.url.startswith((address, "data:", "blob:")) else None
        )
        page.on("response", lambda r: complaints.append(f"{r.status} {r.url}") if r.status >= 500 else None)
        page.goto(address + path)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def shows(page, name: str, pattern: str):
    """Return the text of an element, once it matches."""
    found = (
        f"() => {{ const t = document.getElementById('{name}')?.innerText; return t?.match({pattern!r}) ? [t] : null }}"
    )
    return page.wait_for_function(found).json_value()[0]


def address_has(page, setting: str) -> None:
    page.wait_for_function(f"() => location.search.match(/[?&]{setting}(&|$)/)")


def link(page) -> str:
    return page.evaluate("location.pathname + location.search")


def traces(page, name: str, condition: str):
    """Return the traces of a plot, once they are drawn and the condition on the list `t` of them holds."""
    found = f"document.querySelector('#{name} .js-plotly-plot')?.data?.map(({{name, x, y}}) => ({{name, x, y}}))"
    return page.wait_for_function(
        f"() => {{ const t = {found}; return t?.length && {condition} ? t : null }}"
    ).json_value()


def test_a_slider_moves_the_curve_to_the_value_of_the_library(visit) -> None:
    page = visit("/aim")
    shows(page, "aim-curve-summary", "At α = 0.1248")
    page.get_by_label("Width over d, ρ").fill("0.8")
    text = shows(page, "aim-curve-summary", "above α = 0.24")
    alpha = 0.4 * 0.312
    theory = aim.state_evolution(aim.Softmax(2), alpha, 0.8, steps=0).value
    assert f"V = {theory:.4f}" in text
    curve = traces(page, "aim-curve", f"Math.abs(t[0].y[20] - {theory}) < 1e-5")[0]
    assert curve["x"][20] == pytest.approx(alpha, rel=1e-5)
    address_has(page, "rho=0.8")
    again = visit(link(page))
    assert shows(again, "aim-curve-summary", "above α = 0.24") == text


def test_every_control_can_be_reached_and_moved_by_keyboard(visit) -> None:
    page = visit("/aim")
    before = shows(page, "aim-curve-summary", "At α")
    page.get_by_label("Tokens T").focus()
    page.keyboard.press("ArrowRight")
    text = shows(page, "aim-curve-summary", "above α = 0.075")
    assert text != before
    page.get_by_label("linear with noise").focus()
    page.keyboard.press("Space")
    shows(page, "aim-curve-summary", "not perfect at any finite")
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll('input, button, a')].filter(e =>
          !e.innerText && !e.labels?.length && !e.getAttribute('aria-label')).map(e => e.outerHTML)"""
    )
    assert unnamed == []


def test_message_passing_runs_and_can_be_stopped(visit) -> None:
    page = visit("/aim?d=20")
    shows(page, "aim-curve-summary", "At α")
    page.get_by_role("button", name="Run").click()
    for _ in range(60):  # on a busy machine the sentence of a step may be read before its point is drawn
        text = shows(page, "aim-amp-status", "Error [0-9.]+ after [0-9]+ steps at d")
        error = float(re.search(r"Error ([0-9.]+)", text)[1])
        runs = traces(page, "aim-curve", "t.at(-1).name == 'your runs' && t.at(-1).y.length > 2")[-1]
        if runs["y"][-1] == pytest.approx(error, abs=1e-4):
            break
        page.wait_for_timeout(500)
    assert runs["y"][-1] == pytest.approx(error, abs=1e-4)
    shown = """(step) => document.querySelector('#aim-curve .js-plotly-plot').data.at(-1).marker.opacity
        .every((opacity, place) => (place <= step) === (opacity > 0))"""
    page.wait_for_function("() => Number(document.getElementById('aim-steps-step').value) > 1")  # it plays by itself
    page.locator("#aim-steps-place .play").focus()
    page.keyboard.press("Space")  # pause
    step = page.locator("#aim-steps-step")
    here = int(step.input_value())
    page.wait_for_function(shown, arg=here)
    page.keyboard.press("ArrowLeft")
    assert int(step.input_value()) == here - 1
    page.wait_for_function(shown, arg=here - 1)
    step.fill(step.get_attribute("max"))
    page.wait_for_function(shown, arg=int(step.get_attribute("max")))
    shows(page, "aim-amp-status", "Error")
    page.get_by_role("link", name="Recovery").click()
    shows(page, "recovery-query-summary", "queries")
    page.get_by_role("link", name="Bayes limits").click()  # and the run is still there
    assert traces(page, "aim-curve", "t.at(-1).name == 'your runs'")[-1]["y"] == runs["y"]
    with page.expect_download() as data:
        page.get_by_role("button", name="Save data").click()
    (row,) = csv.DictReader(Path(data.value.path()).read_text().splitlines())
    assert row["seed"] == "0"  # the first run: none begins by itself
    assert float(row["mse"]) == pytest.approx(error, abs=1e-4)
    page.get_by_label("Token dimension d").fill("160")
    page.get_by_role("button", name="Run").click()
    page.wait_for_function("() => !document.getElementById('aim-amp-cancel').disabled")
    page.get_by_role("button", name="Cancel").click()
    assert shows(page, "aim-amp-status", "Cancelled") == "Cancelled"


def test_a_run_is_followed_over_a_slow_line_and_at_another_page(visit) -> None:
    page = visit("/aim?d=160&alpha=0.96")
    shows(page, "aim-curve-summary", "At α")
    line = page.context.new_cdp_session(page)
    slow = {"offline": False, "latency": 700, "downloadThroughput": -1, "uploadThroughput": -1}
    line.send("Network.emulateNetworkConditions", slow)  # slower than the clock
    page.get_by_role("button", name="Run").click()
    shows(page, "aim-amp-status", "step")
    line.send("Network.emulateNetworkConditions", slow | {"latency": 0})
    page.get_by_role("link", name="Recovery").click()
    shows(page, "recovery-query-summary", "queries")
    page.get_by_role("link", name="Bayes limits").click()
    traces(page, "aim-curve", "t.at(-1).name == 'your runs'")
    page.reload()
    traces(page, "aim-curve", "t.at(-1).name == 'your runs'")


def test_random_features_follow_the_theory(visit) -> None:
    page = visit("/features?target=keys+1&d=6")
    shows(page, "features-curves-summary", "At n = 320")
    names = [trace["name"] for trace in traces(page, "features-curves", "t.length > 3") if trace["name"]]
    assert names == [
        "attention, infinitely many heads",
        "biased attention, infinitely many heads",
        "network, infinitely many neurons",
    ]
    page.get_by_label("attention", exact=True).check()
    page.get_by_label("Label noise over variance").fill("0.5")
    theory = features.theory(6, 4).curve("keys 1", [50, 320], noise=0.5).error.values
    shows(page, "features-curves-summary", f"error over variance is {theory[1]:.3g} for attention")
    band, line = traces(page, "features-curves", f"t.length == 2 && Math.abs(t[1].y[0] - {theory[0]}) < 1e-5")
    assert (band["name"], line["name"]) == (None, names[0])
    assert [one["name"] for one in traces(page, "features-heads", "t.length == 2")] == ["attention", "M (d + 1) = n"]
    page.get_by_label("biased attention").check()
    page.get_by_label("Weight of position codes").fill("1")
    shows(page, "features-curves-summary", "no theory of this learner here: position codes and a bias")


def test_a_black_box_is_asked_and_a_body_sculpted(visit) -> None:
    page = visit("/recovery?dim=3")
    shows(page, "recovery-query-summary", "All 12 queries")
    address_has(page, "queries=12")  # there are no 18 that it could be asked
    page.get_by_label("Queries asked").fill("5")
    shows(page, "recovery-query-summary", "5 of 12 queries")
    page.get_by_label("Queries asked").fill("12")
    shows(page, "recovery-query-summary", "Θ is known to [0-9.]+ × 10⁻¹")
    shows(page, "recovery-body-summary", "Phase 10 of 11")  # it opens on a picture with everything in it
    assert "estimate: sculpting" in [one["name"] for one in traces(page, "recovery-body", "t.length > 4")]
    page.get_by_label("Phase").fill("11")
    text = shows(page, "recovery-body-summary", "After polishing")
    assert "Parameters correct to" in text
    address_has(page, "phase=11")
    again = visit(link(page))
    assert shows(again, "recovery-body-summary", "After polishing") == text
    again.get_by_label("Logit scale s").fill("4")
    again.wait_for_function(f"() => document.getElementById('recovery-body-summary').innerText !== {text!r}")
    assert again.title() == "Recovery · attlas"


def test_phases_are_played_paused_and_stepped_by_keyboard(visit) -> None:
    page = visit("/recovery?phase=9&dim=3")
    shows(page, "recovery-body-summary", "Phase 9 of 11")
    player = page.locator("#recovery-body-place .player")
    play = player.locator(".play")
    play.focus()
    page.keyboard.press("Space")
    assert play.get_attribute("aria-label") == "Pause"
    shows(page, "recovery-body-summary", "Phase 11 of 11")
    page.wait_for_function("() => document.querySelector('#recovery-body-place .play').ariaLabel === 'Play'")  # the end
    assert player.locator(".forward").is_disabled()
    page.keyboard.press("Enter")  # and from the beginning again
    shows(page, "recovery-body-summary", "Phase [123] of 11")
    page.keyboard.press("Enter")
    assert play.get_attribute("aria-label") == "Play"
    page.get_by_label("Phase").fill("5")
    shows(page, "recovery-body-summary", "Phase 5 of 11")
    page.keyboard.press("Shift+Tab")
    player.locator(".back").focus()
    page.keyboard.press("Enter")
    shows(page, "recovery-body-summary", "Phase 4 of 11")
    page.keyboard.press("ArrowRight")
    shows(page, "recovery-body-summary", "Phase 5 of 11")
    asked = page.locator("#recovery-matrices-place .player")
    asked.locator(".play").click()  # 18 queries of a box that has told all in 12: from none
    shows(page, "recovery-query-summary", "^[0-4] of 12 queries")


def test_under_reduced_motion_nothing_plays_by_itself_and_changes_are_few(visit) -> None:
    page = visit("/aim?d=20", reduced_motion="reduce")
    shows(page, "aim-curve-summary", "At α")
    page.get_by_role("button", name="Run").click()
    shows(page, "aim-amp-status", "Error [0-9.]+ after [0-9]+ steps at d")
    traces(page, "aim-steps", "t.length === 4")
    step = page.locator("#aim-steps-step")
    page.wait_for_function("() => Number(document.getElementById('aim-steps-step').max) > 9")
    most = int(step.get_attribute("max"))
    assert step.input_value() == str(most)
    page.locator("#aim-steps-place .play").click()
    assert step.input_value() == "0"
    page.wait_for_function("() => Number(document.getElementById('aim-steps-step').value) > 0")
    assert int(step.input_value()) == -(-most // 12)


def test_a_layer_is_trained_and_lies_on_the_theory(visit) -> None:
    page = visit("/context")
    shows(page, "context-sequences-summary", "error 1.286 on new tasks")
    page.get_by_label("Training sequences τ = n/d²").fill("3")
    theory = in_context.theory(2, 0.5, 3, 0.01, 0.1)
    shows(page, "context-sequences-summary", f"error {theory.icl:.3f} on new tasks and {theory.idg:.3f}")
    page.get_by_label("Token dimension d").fill("20")
    page.get_by_role("button", name="Run").click()
    text = shows(page, "context-train-status", "^Error")
    found = in_context.fit(in_context.sample(20, 2, 0.5, 3, 0.1, 0), 0.01).errors()
    assert f"Error {found.icl:.3f} on new tasks, {found.idg:.3f} on training tasks at d = 20" in text
    for name in ("sequences", "tasks", "lengths"):
        layers = traces(page, f"context-{name}", "t.some((one) => one.name === 'your layers, new tasks')")
        (mine,) = [one for one in layers if one["name"] == "your layers, new tasks"]
        assert mine["y"] == [pytest.approx(found.icl, rel=1e-4)]


def test_matrices_have_their_first_token_on_top(visit) -> None:
    """All three alike, also the one that is drawn into the axes of the blank figure before it."""
    page = visit("/positional?encoding=3")
    shows(page, "positional-losses-summary", "the lower minimum attends by meaning")
    traces(page, "positional-attention", "t.length === 3")
    above = """() => {
        const layout = document.querySelector('#positional-attention .js-plotly-plot')._fullLayout
        const height = (axis, token) => axis.r2p(axis._categories.indexOf(token))  // in pixels from the top
        return ['yaxis', 'yaxis2', 'yaxis3'].map((name) => height(layout[name], '1') < height(layout[name], '2'))
    }"""
    assert page.evaluate(above) == [True, True, True]


@pytest.mark.parametrize(("width", "scheme"), [(1280, "dark"), (390, "light")])
def test_pages_can_be_used_by_everyone(visit, grave, width, scheme) -> None:
    for door in [*names(), "claims"]:
        page = visit(f"/{door}", width=width, scheme=scheme)
        if door != "claims":
            page.wait_for_selector(".js-plotly-plot .main-svg")
        assert grave(page) == [], door


def test_plotly_is_fetched_once(browser, address) -> None:
    page = browser.new_page()
    asked = []
    page.on("request", lambda request: asked.append(request.url) if "plotly.min.js" in request.url else None)
    page.goto(address + "/aim")
    page.wait_for_selector(".js-plotly-plot .main-svg")
    page.close()
    assert len(asked) == 1


def test_a_phone_has_room_for_every_page(visit) -> None:
    for door in names():
        page = visit(f"/{door}", 390, "dark")
        page.wait_for_selector(".js-plotly-plot .main-svg >> visible=true")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("touch", [False, True])
def test_a_finger_that_meets_a_plot_scrolls_the_page_and_a_mouse_zooms(visit, touch) -> None:
    page = visit("/aim", 390 if touch else 1280, has_touch=touch, is_mobile=touch)
    plot = page.wait_for_selector(".js-plotly-plot .nsewdrag", state="attached")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    middle = [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2]
    caught = page.evaluate("([x, y]) => document.elementFromPoint(x, y).closest('.draglayer') !== null", middle)
    assert caught is not touch


def test_the_control_in_use_has_a_ring(visit) -> None:
    page = visit("/aim")
    page.wait_for_selector("input[type=range]")
    ringed = set()
    for _ in range(25):
        page.keyboard.press("Tab")
        shown = "() => { const e = document.activeElement, s = getComputedStyle(e);"
        shown += " return [e.type ?? e.tagName, s.outlineStyle, parseFloat(s.outlineWidth)] }"
        kind, style, width = page.evaluate(shown)
        if kind == "BODY":  # once around
            break
        assert style == "solid", kind
        assert width >= 2, kind
        ringed.add(kind)
    assert {"radio", "range", "button"} <= ringed


def test_markup_in_an_address_is_shown_as_text(visit) -> None:
    page = visit("/aim?channel=<img src=x onerror=alert(1)>&nobody=<b>x</b>&rho=7&tokens=2.4")
    page.wait_for_selector("[role=alert]")
    assert page.locator("[role=alert]").all_inner_texts() == [
        "channel must be one of softmax, linear, hardmax; got '<img src=x onerror=alert(1)>'.",
        "This page has no setting 'nobody'.",
        "rho must be from 0.05 to 1.5; got '7'.",
    ]
    assert page.locator("img").count() == 0
    shows(page, "aim-curve-summary", "At α")
    address_has(page, "tokens=2")  # what is between two positions is at the nearest
    page.get_by_label("Width over d, ρ").fill("0.8")
    page.wait_for_function(
        "() => [...document.querySelectorAll('[role=alert]')].every((note) => !note.checkVisibility())"
    )
    page = visit("/aim?" + "&".join(f"a{i}=1" for i in range(40)))
    shows(page, "aim-curve-summary", "At α")
    assert "more settings than any page" in page.inner_text("[role=alert]")


def test_figure_and_data_are_files(visit) -> None:
    page = visit("/aim", accept_downloads=True)
    shows(page, "aim-curve-summary", "At α")
    page.wait_for_selector("#aim-curve .main-svg .lines")
    with page.expect_download() as figure:
        page.get_by_role("button", name="Save figure").first.click()
    assert figure.value.suggested_filename == "attlas-aim-curve.svg"
    with page.expect_download() as data:
        page.get_by_text("Data (CSV)").first.click()
    assert data.value.suggested_filename.startswith("aim_curve_channel-softmax_tokens-2_noise-0.25_alpha-0.1248_")


def test_claims_are_shown_from_the_store(visit, address) -> None:
    page = visit("/claims/")
    assert page.locator("body[data-waiting], footer").count() == 1  # while they are drawn, and then
    page.wait_for_selector("footer", timeout=60_000)
    assert "not run" in page.content()
    page.goto(address + "/claims/aim.width.html")
    assert "aim.width" in page.inner_text("h1, main")


def test_it_listens_on_this_machine_only(address) -> None:
    with urllib.request.urlopen(address + "/", timeout=20) as answer:
        assert answer.status == 200
    port = int(address.rsplit(":", 1)[1])
    listening = [c.laddr for c in psutil.net_connections("tcp") if c.status == psutil.CONN_LISTEN]
    assert [place.ip for place in listening if place.port == port] == ["127.0.0.1"]
