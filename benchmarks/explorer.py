"""The explorer under load: visitors who move sliders at once, on loopback. Usage: explorer.py [visitors] [seconds]."""

import json
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

import numpy as np
import psutil

from attlas.explorer import pages
from attlas.explorer.controls import Control, Slider
from timing import best

PAUSE = 0.25  # seconds between two moves of one visitor
WARM = 10.0  # seconds after which memory is compared


def main() -> None:
    visitors, seconds = (int(arg) for arg in (*sys.argv[1:], *("20", "60")[len(sys.argv) - 1 :]))
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "attlas", "explore", "--port", "0", "--store", f"{folder}/none.db"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603
        server.stdout.readline()  # that there is no store
        address = server.stdout.readline().split()[3].rstrip("/")
        try:
            load(address, psutil.Process(server.pid), visitors, seconds)
        finally:
            server.terminate()
            server.wait()


def load(address: str, process: psutil.Process, visitors: int, seconds: int) -> None:
    known = plots()
    callbacks = {name: callback(address, f"{name}.figure") for name in known}
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
    half = seconds - min(WARM, seconds / 2)
    time.sleep(half / 2)
    middle = process.memory_info().rss
    for thread in threads:
        thread.join()
    after = process.memory_info().rss
    answers.sort()
    median, late = statistics.median(answers), answers[int(0.95 * len(answers))]
    print(f"{visitors} visitors, {seconds} s: {len(answers)} answers, {len(errors)} errors {errors[:2]}")
    print(f"median {median:.3f} s, 95 % {late:.3f} s, longest {answers[-1]:.3f} s (limit of the median 0.5 s)")
    A = np.ones((1024, 1024))
    print(f"median over one product of 1024 x 1024: {median / best(lambda: A @ A):.1f}")
    print(
        f"memory: {before / 1e6:.0f} MB at {WARM:.0f} s, {middle / 1e6:.0f} MB in between, {after / 1e6:.0f} MB at the end"
    )


def plots() -> dict[str, list[Control]]:
    """The controls of every plot that follows sliders, by its id; others follow a job."""
    found = {}
    for page in map(pages.find, pages.names()):
        for section in page.sections:
            if not (section.job and section.job.phases):
                found |= {f"{page.door}-{plot.name}": list(section.controls) for plot in section.plots}
    return found


def positions(control: Control) -> list[object]:
    if isinstance(control, Slider):
        count = round((control.high - control.low) / control.step) + 1
        return [control.low + i * control.step for i in range(count)]
    return list(control.options)


def starts(controls: list[Control]) -> dict[str, object]:
    return {control.name: control.start for control in controls}


def callback(address: str, output: str) -> dict[str, object]:
    with urllib.request.urlopen(f"{address}/_dash-dependencies") as answer:
        entry = next(e for e in json.load(answer) if output in e["output"])
    parts = [part.rsplit(".", 1) for part in entry["output"].strip(".").split("...")]
    outputs = [{"id": name, "property": what} for name, what in parts]
    return entry | {"outputs": outputs if len(outputs) > 1 else outputs[0]}


def ask(address: str, entry: dict[str, object], given: dict[str, object]) -> None:
    """Move the controls to these positions, as the page does."""
    inputs = []
    for part in entry["inputs"]:  # type: ignore[attr-defined]
        control = part["id"].startswith("{")
        name = json.loads(part["id"]) if control else part["id"]
        value = given[name["control"].split(":")[1]] if control else None
        inputs.append({"id": name, "property": part["property"], "value": value})
    body = {"output": entry["output"], "outputs": entry["outputs"], "inputs": inputs, "changedPropIds": []}
    data = json.dumps(body).encode()
    request = urllib.request.Request(f"{address}/_dash-update-component", data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        if "response" not in json.load(answer):
            raise RuntimeError("no answer")


if __name__ == "__main__":
    main()
