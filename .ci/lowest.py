"""Print the lowest versions that pyproject.toml allows for the core, and what tests need."""

import re
import sys
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]
for requirement in project["dependencies"]:
    name, version = re.fullmatch(r"([A-Za-z0-9-]+)>=([0-9.]+)", requirement).groups()
    sys.stdout.write(f"{name}=={version}\n")
sys.stdout.write("hypothesis\nmpmath\npsutil\npytest\npytest-timeout\n")
