"""Unpack the Python of a Debian release into a folder, beside this system's: `debian_python.py FOLDER [RELEASE] [VERSION]`.

It comes with its own C library, so that a newer release's runs on an older system; nothing is installed. Every package is
checked by the SHA-256 that the release lists, and the list by the digest in the InRelease file; its signature is checked if
this system has Debian's keys and `gpgv`. Packages come from where `apt` has them from, or from DEBIAN_MIRROR.
"""

import hashlib
import lzma
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from urllib.request import urlopen

KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
SYSTEM = ("libc6", "libgcc-s1", "libstdc++6", "zlib1g", "libexpat1", "libssl3t64", "libzstd1", "libbz2-1.0", "libffi8",
          "liblzma5", "libsqlite3-0", "libuuid1", "libncursesw6", "libtinfo6", "libreadline8t64", "libdb5.3t64")  # fmt: skip
LIBRARIES = "usr/lib/x86_64-linux-gnu"


def main(folder: Path, release: str = "trixie", version: str = "3.13") -> None:
    """Print the path of an interpreter that runs, in a folder that is made anew."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    listed = _packages(release)
    python = (f"python{version}-minimal", f"libpython{version}-minimal", f"libpython{version}-stdlib")
    for name in (*SYSTEM, *python):
        if name not in listed:
            sys.exit(f"Debian {release} has no {name}")
        address, digest = listed[name]
        package = folder / "package.deb"
        package.write_bytes(_fetched(address, digest))
        subprocess.run(["dpkg-deb", "--extract", package, folder], check=True)  # noqa: S603, S607
        package.unlink()
    print(_interpreter(folder.resolve(), version))  # noqa: T201


def _interpreter(root: Path, version: str) -> Path:
    """Return a script that starts the interpreter with the loader and the libraries that belong to it."""
    shown, real = (root / f"usr/bin/{dot}python{version}" for dot in ("", "."))
    shown.rename(real)
    loader = root / LIBRARIES / "ld-linux-x86-64.so.2"
    shown.write_text(f'#!/bin/sh\nexec {loader} --argv0 "$0" --library-path {root / LIBRARIES} {real} "$@"\n')
    shown.chmod(0o755)
    return shown


def _packages(release: str) -> dict[str, tuple[str, str]]:
    """Return where each package is and its SHA-256."""
    index = "main/binary-amd64/Packages.xz"
    signed = _fetched(f"dists/{release}/InRelease")
    if KEYS.exists() and shutil.which("gpgv"):
        verify = ["gpgv", "--quiet", "--keyring", KEYS, "-"]
        subprocess.run(verify, input=signed, check=True, stderr=subprocess.DEVNULL)  # noqa: S603
    digest = re.search(rf"^ ([0-9a-f]{{64}}) +\d+ {index}$", signed.decode(), re.MULTILINE)
    if digest is None:
        sys.exit(f"Debian {release} lists no {index}")
    found = {}
    for part in lzma.decompress(_fetched(f"dists/{release}/{index}", digest[1])).decode().split("\n\n"):
        fields = dict(re.findall(r"^(Package|Filename|SHA256): (\S+)$", part, re.MULTILINE))
        if len(fields) == 3:
            found[fields["Package"]] = fields["Filename"], fields["SHA256"]
    return found


@cache
def _mirror() -> str:
    """Return the address of the archive that this system has its packages from."""
    sources = Path("/etc/apt")
    for file in (sources / "sources.list", *sorted((sources / "sources.list.d").glob("*"))):
        text = file.read_text() if file.is_file() else ""
        if found := re.search(r"^(?:URIs:|deb(?: \[.*?\])?) +(\S+/debian)/?(?:\s|$)", text, re.MULTILINE):
            return found[1]
    sys.exit("no Debian archive in /etc/apt; name one: DEBIAN_MIRROR=...")


def _fetched(path: str, digest: str = "") -> bytes:
    with urlopen(f"{os.environ.get('DEBIAN_MIRROR') or _mirror()}/{path}", timeout=120) as answer:  # noqa: S310
        data = answer.read()
    if digest and hashlib.sha256(data).hexdigest() != digest:
        sys.exit(f"{path} is not what the release lists")
    return data


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
