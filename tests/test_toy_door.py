"""A door is files of one name in the rooms that need it: five are added to a copy of attlas, no other file is edited."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TOY = {
    "src/attlas/toy/__init__.py": '''"""Toys: how often a coin shows heads."""

import attlas.numerics


def heads(throws: int, seed: int) -> float:
    """Return the share of heads."""
    return float(attlas.numerics.stream(seed, "coin").integers(0, 2, throws).mean())
''',
    "src/attlas/claims/toy/__init__.py": '''from attlas.claims.door import Door

DOOR = Door("toy", 9, "Coins and toys", "What can be learned about a coin?", "A coin is thrown.", r"p=\\frac12",
            ("fu2023random",), headline="toy.one")
''',
    "src/attlas/claims/toy/one.py": '''from attlas import toy
from attlas.claims import Claim, Cost, Outcome, Settings, Sweep, Verdict
from attlas.claims.figure import panels


class Point(Settings):
    throws: int


def measure(point, seed):
    return {"heads": toy.heads(point.throws, seed)}


def judge(measurements):
    mean = sum(m.result["heads"] for m in measurements) / len(measurements)
    return Verdict(Outcome.SUPPORTED, f"{mean:.2f} heads", 1.0, "standard errors", {"heads": mean})


def draw(measurements):
    figure, (axis,) = panels(1)
    axis.plot([m.point.throws for m in measurements], [m.result["heads"] for m in measurements], "o")
    return figure


SWEEP = Sweep([Point(throws=100), Point(throws=1000)], 2)
CLAIM = Claim("toy.one", 1, "A coin is fair.", "fu2023random, for a toy", Point, {"quick": SWEEP, "full": SWEEP},
              measure, judge, draw, lambda point: Cost(0.01, 1000), caption="The share of heads.",
              finding=lambda numbers: f"A coin shows heads {100 * numbers['heads']:.0f} times in a hundred")
''',
    "src/attlas/cli/toy.py": '''import typer


def throw(seed: int = 0) -> None:
    """Throw a coin."""
    from attlas import toy

    typer.echo(f"heads: {toy.heads(1, seed):.0f}")


def coin() -> None:
    """How often a coin shows heads."""
    typer.echo("0.5")


COMMANDS = {"throw": throw}
PREDICT = {"coin": coin}
''',
    "docs/toy.md": "# Coins and toys\n\nA page of its own.\n",
}  # fmt: skip
COMMANDS = """
import json, sys
from attlas.cli.entry import app
for arguments in json.loads(sys.argv[1]):
    print("$", *arguments)
    app(arguments, standalone_mode=False)
"""


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """A copy of attlas, and of what its documentation is made with, that has one door more."""
    folder = tmp_path_factory.mktemp("house")
    # without the results that come with attlas, which would all be judged and drawn
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__", "*.results.xz"))
    shutil.copytree(
        ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("_build", "api", "images", "[!i]*.md")
    )
    shutil.copy(ROOT / "pyproject.toml", folder)
    for name, text in TOY.items():
        assert not (folder / name).exists()
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


def run(house, *command):
    environment = os.environ | {"PYTHONPATH": str(house / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        list(map(str, command)), cwd=house, env=environment, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def said(house):
    """What the commands say, each by itself."""
    commands = [["--help"], ["predict", "--help"], ["predict", "coin"], ["throw"], ["run", "toy.one", "--workers", "1"],
                ["list"], ["report"]]  # fmt: skip
    code, text = run(house, sys.executable, "-c", COMMANDS, json.dumps(commands))
    assert code == 0, text
    return dict(part.split("\n", 1) for part in text.split("$ ")[1:])


def test_the_commands_have_it(said):
    assert re.search(r"^  throw +Throw a coin\.$", said["--help"], re.MULTILINE)
    assert "\nCoins and toys:\n  coin  How often a coin shows heads.\n" in said["predict --help"]
    assert said["predict coin"] == "0.5\n"
    assert said["throw"].startswith("heads: ")
    assert re.search(
        r"\n Coins and toys +What can be learned about a coin\?.*\n toy\.one +supported +4/4 ", said["list"]
    )


def test_the_site_has_it(house, said):
    front = (house / "site" / "index.html").read_text()
    assert '<a href="#toy">Coins and toys <span>1</span></a>' in front
    section = front.partition('<section class="door" id="toy"')[2].partition("</section>")[0]
    assert "What can be learned about a coin?" in section
    assert "<math " in section
    assert re.search(
        r'<a href="toy\.one\.html" title="A coin is fair\.">A coin shows heads \d+ times in a hundred</a>', section
    )
    assert (house / "site" / "toy.one.thumb.svg").is_file()
    page = (house / "site" / "toy.one.html").read_text()
    assert '<a href="index.html#toy">Coins and toys</a>' in page
    assert "<h1>A coin is fair.</h1>" in page
    assert "<figcaption>The share of heads.</figcaption>" in re.sub(r"\s+(?=<)", "", page)
    assert re.search(r"<p>A coin shows heads \d+ times in a hundred\.</p>", page)


def test_the_documentation_has_it(house):
    """Without the reference, whose pages would all be made, and without the other pages."""
    options = ("-q", "-D", "extensions=myst_parser,mathml,doors")
    code, text = run(house, sys.executable, "-m", "sphinx", *options, house / "docs", house / "html")
    assert code == 0, text
    contents, table = (house / "html" / "index.html").read_text().partition("<article")[::2]
    assert 'href="toy.html">Coins and toys</a>' in contents
    assert "What can be learned about a coin?" in table
    assert "attlas.toy" in table
    assert "Fu, Guo, Bai, Mei 2023" in table
    code = "import sys, json; sys.path[:0] = ['docs/ext']; import rooms; print(json.dumps(rooms.pages()))"
    pages = json.loads(run(house, sys.executable, "-c", code)[1])
    assert ".. public_names:: attlas.toy" in pages["toy.md"]
    assert "| [attlas.toy](toy.md) | Toys: how often a coin shows heads. |" in pages["index.md"]
    assert (
        pages["index.md"].index("\naim\n") < pages["index.md"].index("\ntoy\n") < pages["index.md"].index("\nclaims\n")
    )


@pytest.mark.parametrize(
    "line", ["", "import attlas.aim", "import attlas.claims.figure", "import attlas.store", "import dask"]
)
def test_the_import_contracts_hold_for_it(house, line):
    module = house / "src/attlas/toy/__init__.py"
    module.write_text(f"{TOY['src/attlas/toy/__init__.py']}\n{line}\n")
    code, text = run(house, Path(sys.executable).with_name("lint-imports"), "--no-cache")
    module.write_text(TOY["src/attlas/toy/__init__.py"])
    assert code == (1 if line else 0), text
    assert ("attlas.toy -> " in text) == bool(line)
