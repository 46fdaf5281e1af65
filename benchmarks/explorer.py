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

from timing import best

PAUSE = 0.25  # seconds between two moves of one visitor
WARM = 10.0  # seconds after which memory is compared
CALLBACKS = {  # a move at the first door redraws two plots
    "bayes": "bayes-curve.figure",
    "diagram": "bayes-diagram.figure",
    "features": "features-curves.figure",
    "recovery": "asked-known.figure",
}


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
    callbacks = {door: callback(address, output) for door, output in CALLBACKS.items()}
    for door, entry in callbacks.items():  # what a first visitor waits for: imports and compiled kernels
        ask(address, entry, begins(door.replace("diagram", "bayes")))
    answers: list[float] = []
    errors: list[str] = []
    end = time.monotonic() + seconds

    def visit(number: int) -> None:
        rng = random.Random(number)
        kind = list(CALLBACKS)[number % 4]
        door = kind.replace("diagram", "bayes")
        given, choices, place, step = begins(door), [], 0, 0
        while time.monotonic() < end:
            if not 0 <= place + step < len(choices) or rng.random() < 0.1:  # take another control, and drag it
                name, choices = rng.choice(list(settings(door).items()))
                place, step = rng.randrange(len(choices)), rng.choice((-1, 1))
            place = min(max(place + step, 0), len(choices) - 1)
            given[name] = choices[place]
            begin = time.perf_counter()
            try:
                ask(address, callbacks[kind], given)
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


def settings(door: str) -> dict[str, list[object]]:
    """Every position of every control of a door."""
    from attlas.explorer.controls import Slider
    from attlas.explorer.frame import DOORS

    found: dict[str, list[object]] = {}
    for control in DOORS[door].ASKED if door == "recovery" else DOORS[door].CONTROLS:
        if isinstance(control, Slider):
            count = round((control.high - control.low) / control.step) + 1
            found[control.name] = [control.low + i * control.step for i in range(count)]
        else:
            found[control.name] = list(control.options)
    return found


def begins(door: str) -> dict[str, object]:
    """Where every control of a door is at first."""
    from attlas.explorer.frame import DOORS

    return {control.name: control.start for control in DOORS[door].ADDRESS}


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
