"""The explorer as a visitor meets it, and under load. Usage: explorer.py [visitors] [seconds]; 0 visitors: no load.

In a browser, on loopback: bytes of a first visit and of the next page, requests for twenty presses of an arrow key, time
from a drag to the drawn frame, time to the first plot. Then visitors who move sliders at once.
"""

import json
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from typing import Any

import numpy as np
import psutil

from attlas.explorer import pages
from attlas.explorer.controls import Control, Slider
from timing import best

PAUSE = 0.25  # seconds between two moves of one visitor
WARM = 10.0  # seconds after which memory is compared
DRAGS = 60
PLOT = "document.querySelector('#aim-curve .js-plotly-plot')"
DRAWN = f"() => {PLOT}?.data?.some((trace) => trace.meta?.live === 'bayes')"
BYTES = "performance.getEntriesByType('resource').reduce((sum, r) => sum + r.transferSize, 0)"
# how long after a move of the pointer a frame with another curve was drawn
FRAME = f"""([x, y]) => new Promise((done) => {{
  const [before, began] = [{PLOT}.data[0].y, performance.now()];
  const drawn = () => requestAnimationFrame(() => done(performance.now() - began));
  const look = () => ({PLOT}.data[0].y === before ? requestAnimationFrame(look) : drawn());
  document.dispatchEvent(new PointerEvent('pointermove', {{ clientX: x, clientY: y, bubbles: true }}));
  look();
}})"""


def main() -> None:
    visitors, seconds = (int(arg) for arg in (*sys.argv[1:], *("20", "60")[len(sys.argv) - 1 :]))
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "attlas", "explore", "--port", "0", "--store", f"{folder}/none.db"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603
        server.stdout.readline()  # that there is no store
        address = server.stdout.readline().split()[3].rstrip("/")
        try:
            browse(address)
            if visitors:
                load(address, psutil.Process(server.pid), visitors, seconds)
        finally:
            server.terminate()
            server.wait()


def browse(address: str) -> None:
    from playwright.sync_api import sync_playwright

    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        cold(address, browser)  # compiled kernels, grids
        first, bytes_, again = cold(address, browser)
        page = browser.new_page(viewport={"width": 1280, "height": 1200})
        page.goto(f"{address}/aim")
        page.wait_for_function(DRAWN)
        page.wait_for_timeout(6000)
        drags = drag(page)
        rows = [
            ("first visit", f"{bytes_ / 1e6:.2f} MB"),
            ("the next page", f"{again / 1e3:.0f} kB"),
            ("first plot, warm", f"{first:.2f} s"),
            (f"{DRAGS} drags to the drawn frame", f"median {statistics.median(drags):.0f} ms"),
            ("", f"95 % {sorted(drags)[int(0.95 * len(drags))]:.0f} ms"),
        ]
        for path, label in (("aim", "Width over d, ρ"), ("aim", "Tokens T"), ("context", "Label noise")):
            rows.append((f"20 presses: {label}", f"{presses(page, f'{address}/{path}', label)} requests"))
        for what, value in rows:
            print(f"{what:32}{value}")
        browser.close()


def cold(address: str, browser: Any) -> tuple[float, int, int]:
    """Seconds to the first plot of a first visit, its bytes, and those of the next page."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    began = time.perf_counter()
    page.goto(f"{address}/aim")
    page.wait_for_function(DRAWN)
    first = time.perf_counter() - began
    page.wait_for_timeout(1000)
    sent = page.evaluate(BYTES)
    page.goto(f"{address}/context")
    page.wait_for_selector("section[data-drawn]")
    again = page.evaluate(BYTES)
    context.close()
    return first, sent, again


def drag(page: Any) -> list[float]:
    """Milliseconds from a move of the pointer to the frame that shows it."""
    handle = page.locator("#aim-diagram-place .handle")
    handle.scroll_into_view_if_needed()
    box = handle.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    found = [page.evaluate(FRAME, [x, y - 8 * (i % 8 + 1)]) for i in range(DRAGS)]
    page.mouse.up()
    return found


def presses(page: Any, address: str, label: str) -> int:
    page.goto(address)
    page.wait_for_selector("section[data-drawn]")
    page.wait_for_timeout(3000)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.get_by_label(label).focus()
    for _ in range(20):
        page.keyboard.press("ArrowRight")
    page.wait_for_timeout(2500)
    return len(asked)


def load(address: str, process: psutil.Process, visitors: int, seconds: int) -> None:
    known = sections()
    callbacks = {name: callback(address, name) for name in known}
    for name, entry in callbacks.items():  # what a first visitor waits for: imports and compiled kernels
        ask(address, entry, starts(known[name]))
    answers: list[float] = []
    errors: list[str] = []
    end = time.monotonic() + seconds

    def visit(number: int) -> None:
        rng = random.Random(number)
        name = list(known)[number % len(known)]
        given, choices, place, step = starts(known[name]), [], 0, 0
        while time.monotonic() < end:
            if not 0 <= place + step < len(choices) or rng.random() < 0.1:  # take another control, and drag it
                moved = rng.choice(known[name])
                choices = positions(moved)
                place, step = rng.randrange(len(choices)), rng.choice((-1, 1))
            place = min(max(place + step, 0), len(choices) - 1)
            given[moved.name] = choices[place]
            begin = time.perf_counter()
            try:
                ask(address, callbacks[name], given)
                answers.append(time.perf_counter() - begin)
            except Exception as error:
                errors.append(repr(error))
            time.sleep(PAUSE)

    threads = [threading.Thread(target=visit, args=(number,)) for number in range(visitors)]
    for thread in threads:
        thread.start()
    time.sleep(min(WARM, seconds / 2))
    before = process.memory_info().rss
    for thread in threads:
        thread.join()
    after = process.memory_info().rss
    answers.sort()
    median, late = statistics.median(answers), answers[int(0.95 * len(answers))]
    print(f"{visitors} visitors, {seconds} s: {len(answers)} answers, {len(errors)} errors {errors[:2]}")
    print(f"median {median:.3f} s, 95 % {late:.3f} s, longest {answers[-1]:.3f} s (limit of the median 0.5 s)")
    A = np.ones((1024, 1024))
    print(f"median over one product of 1024 x 1024: {median / best(lambda: A @ A):.1f}")
    print(f"memory: {before / 1e6:.0f} MB at {WARM:.0f} s, {after / 1e6:.0f} MB at the end")


def sections() -> dict[str, list[Control]]:
    """The controls of every section, by the id of what it has drawn."""
    return {
        section.drawn_id(page.door): list(section.controls)
        for page in map(pages.find, pages.names())
        for section in page.sections
    }


def positions(control: Control) -> list[object]:
    if isinstance(control, Slider):
        count = round((control.high - control.low) / control.step) + 1
        return [control.low + i * control.step for i in range(count)]
    return list(control.options)


def starts(controls: list[Control]) -> dict[str, object]:
    return {control.name: control.start for control in controls}


def callback(address: str, name: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"{address}/_dash-dependencies") as answer:
        entry: dict[str, Any] = next(e for e in json.load(answer) if e["output"] == f"{name}.data")
    return entry | {"outputs": {"id": name, "property": "data"}}


def ask(address: str, entry: dict[str, Any], given: dict[str, object]) -> None:
    """Come to rest at these positions, as the page does."""
    first, *others = entry["inputs"]
    inputs = [{**first, "value": given}, *({**other, "value": None} for other in others)]
    body = {"output": entry["output"], "outputs": entry["outputs"], "inputs": inputs, "changedPropIds": []}
    data = json.dumps(body).encode()
    request = urllib.request.Request(f"{address}/_dash-update-component", data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        if "response" not in json.load(answer):
            raise RuntimeError("no answer")


if __name__ == "__main__":
    main()
