"""Print the lowest versions that pyproject.toml allows for the core (or any, with --newest), and what tests need."""

import re
import sys
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]
for requirement in project["dependencies"]:
    name, version = re.fullmatch(r"([A-Za-z0-9-]+)>=([0-9.]+)", requirement).groups()
    sys.stdout.write(f"{name}{'>=' if '--newest' in sys.argv else '=='}{version}\n")
lock = (Path(__file__).parent.parent / "requirements.lock").read_text()
for name in (
    "hypothesis",
    "mpmath",
    "psutil",
    "pytest",
    "pytest-timeout",
    "pytest-xdist",
):  # as the tests were written for
    sys.stdout.write(re.search(rf"^{name}==[^\s]+", lock, re.MULTILINE).group() + "\n")
