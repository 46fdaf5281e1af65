"""Add to every pinned line of a lock file the SHA-256 of each file that the index has of that version, in place.

``pip-compile --generate-hashes`` does the same by downloading every file of every platform; an index tells the digests with
its list of files. No address is written.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urljoin
from urllib.request import Request, urlopen

JSON = "application/vnd.pypi.simple.v1+json"


def main() -> None:
    """Rewrite the file that is named on the command line."""
    path, index = Path(sys.argv[1]), _index()
    lines = []
    pins = re.sub(r" \\\n\s*--hash=\S+", "", path.read_text())
    for line in pins.splitlines():
        pin = re.fullmatch(r"([A-Za-z0-9._-]+)==(\S+)", line)
        found = _hashes(index, *pin.groups()) if pin else []
        if pin and not found:
            sys.exit(f"the index has no files of {line}")
        lines.append(" \\\n".join([line, *(f"    --hash=sha256:{one}" for one in found)]))
    path.write_text("\n".join(lines) + "\n")


def _index() -> str:
    """Return the address that pip asks: set by hand, in its configuration, or its own default."""
    from pip._internal.models.index import PyPI

    asked = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True, text=True, check=False
    )
    return os.environ.get("PIP_INDEX_URL") or asked.stdout.strip() or str(PyPI.simple_url)


def _hashes(index: str, name: str, version: str) -> list[str]:
    normal = re.sub(r"[-_.]+", "-", name).lower()
    with urlopen(Request(f"{index.rstrip('/')}/{normal}/", headers={"Accept": f"{JSON}, text/html;q=0.5"})) as answer:  # noqa: S310
        text, kind = answer.read().decode(), answer.headers["Content-Type"]
    if "json" in kind:
        files = [(file["filename"], file["hashes"].get("sha256", "")) for file in json.loads(text)["files"]]
    else:
        links = (urljoin(index, link) for link in re.findall(r'href="([^"]+)"', text))
        files = [(unquote(link.partition("#")[0]).rpartition("/")[2], link.partition("#sha256=")[2]) for link in links]
    return sorted({digest for file, digest in files if digest and _version(file, normal) == _plain(version)})


def _version(file: str, name: str) -> str:
    """Return the version in the name of a wheel or of a source archive."""
    stem = re.sub(r"(\.tar\.gz|\.zip|\.whl)$", "", file)
    if file.endswith(".whl"):
        return _plain(stem.split("-")[1])
    parts = stem.rpartition("-")
    return _plain(parts[2]) if re.sub(r"[-_.]+", "-", parts[0]).lower() == name else ""


def _plain(version: str) -> str:
    return re.sub(r"(\.0)+$", "", version.lower())


if __name__ == "__main__":
    main()
