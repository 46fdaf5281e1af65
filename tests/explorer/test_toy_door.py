"""A door is added by adding files: its page is in the navigation, at its path, with its data, and nothing is edited."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import attlas

DOOR = '''
"""A toy."""

from attlas.claims.door import Door

DOOR = Door(key="toy", order=50, title="A toy door", question="Is it found?")
'''
CLAIM = '''
"""A claim that holds."""

from attlas.claims import Claim, Cost, Outcome, Settings, Sweep, Verdict
from attlas.claims.series import gather


class Point(Settings):
    """One number."""

    x: float = 1.0


def measure(point, seed):
    return {"y": point.x + seed}


def judge(measurements):
    return Verdict(Outcome.SUPPORTED, "it holds", 1.0, "ones")


def draw(measurements):
    raise NotImplementedError


def series(measurements):
    return gather([("amp", {"d": 1}, m.point.x, m.result["y"], None) for m in measurements], "x", "y")


CLAIM = Claim("toy.line", 1, "It holds.", "fu2023random", Point, {"quick": Sweep([Point()], 2), "full": Sweep([Point()], 2)},
              measure, judge, draw, lambda point: Cost(0.1, 1), series=series)
'''
VISIT = """
import json, os, subprocess, sys
from pathlib import Path
from attlas.explorer.queue import Queue
from attlas.explorer.server import LOCAL, application
from attlas.lab import run

store = Path("toy.db")
run(["toy.line"], store=store, executor="serial")
client = application(store, LOCAL, 8050, queue=Queue()).test_client()
home = {"base_url": "http://127.0.0.1:8050"}
assert client.get("/toy", **home).status_code == 200
assert "A toy door" in client.get("/nobody", **home).text

body = {
    "output": "..page.children...pages.children..",
    "outputs": [{"id": "page", "property": "children"}, {"id": "pages", "property": "children"}],
    "inputs": [{"id": "address", "property": "pathname", "value": "/toy"}],
    "state": [{"id": "address", "property": "search", "value": "?slope=3"}],
    "changedPropIds": [],
}
shown = client.post("/_dash-update-component", json=body, **home).json["response"]
links = [(link["props"]["children"], link["props"]["href"]) for link in shown["pages"]["children"]]
assert links[-2:] == [("A toy door", "/toy"), ("Claims", "/claims/")], links
assert "Is it found?" in json.dumps(shown["page"])

answer = client.get("/data/toy/line.csv?slope=3", **home)
assert answer.status_code == 200
print(answer.text)
os._exit(0)  # the theory of the other pages is still being warmed
"""


def test_a_page_is_added_by_adding_files(tmp_path) -> None:
    source = Path(attlas.__file__).parent
    copy = tmp_path / "attlas"
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
    text = (source.parents[1] / "docs" / "explorer.md").read_text()
    (page,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)  # the page that the documentation shows
    for name, content in (
        ("claims/toy/__init__.py", DOOR),
        ("claims/toy/line.py", CLAIM),
        ("explorer/pages/toy.py", page),
    ):
        path = copy / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
    done = subprocess.run(
        [sys.executable, "-c", VISIT],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    header, *rows = done.stdout.strip().splitlines()
    assert header == "what,x,y,standard_error,seeds,d,claim"
    assert rows[0] == "a line,0.0,0.0,,,,"
    assert re.fullmatch(r"message passing,1.0,\d+\.5,0.5,2,1,toy.line", rows[-1])  # of the store, by its claim's series
