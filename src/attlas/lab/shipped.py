"""Results that come with attlas: what the claims gave on the machine that the atlas was made on.

One file for every claim, ``results/<claim>.results.xz``: the settings, seeds and versions of its results, then their
payloads as a store holds them, behind the SHA-256 of it all. They are read where a user's own store holds nothing, and tell
whether this machine agrees. ``studies/ship_results.py`` adds those of a store.
"""

import hashlib
import json
import lzma
from collections.abc import Iterable, Sequence
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

from attlas.claims import Claim
from attlas.errors import DamagedStore
from attlas.store import Record, canonical, key_of_text

FOLDER = "results"
SUFFIX = ".results.xz"
PILOTS = 1000  # run numbers from here on are those of pilots: they design a claim and do not judge it
_DIGEST = hashlib.sha256().digest_size


def shipped(claims: Sequence[Claim[Any]]) -> list[Record]:
    """Return the results that came with attlas for these claims, of their present versions.

    Examples
    --------
    >>> from attlas import lab
    >>> from attlas.claims import find
    >>> records = lab.shipped(find(["features.invariance"]))
    >>> {record.claim for record in records}
    {'features.invariance'}
    """
    found: list[Record] = []
    for claim in claims:
        found += [record for record in _records(claim.id) if record.version == claim.version]
    return found


@lru_cache(maxsize=8)  # those of all claims would take most of a gigabyte
def _records(claim: str) -> tuple[Record, ...]:
    packed = resources.files("attlas").joinpath(FOLDER, claim + SUFFIX)
    return tuple(unpacked(claim, packed.read_bytes())) if packed.is_file() else ()


def unpacked(claim: str, data: bytes) -> list[Record]:
    """Return the results of a file that `pack` wrote, or raise `DamagedStore`."""
    try:
        whole = lzma.decompress(data, lzma.FORMAT_XZ)
        digest, body = whole[:_DIGEST], whole[_DIGEST:]
        if hashlib.sha256(body).digest() != digest:
            raise DamagedStore("they do not match their SHA-256")
        head, _, payloads = body.partition(b"\n")
        found, start = [], 0
        texts: dict[str, str] = {}  # many seeds share a point
        for version, point, seed, seconds, versions, size in json.loads(head):
            found.append(Record(claim, version, point, seed, payloads[start : start + size], seconds, versions))
            written = json.dumps(point)
            text = texts.get(written) or texts.setdefault(written, canonical(point))
            found[-1].__dict__["key"] = key_of_text(claim, version, text, seed)  # which it would find by itself, later
            start += size
    except Exception as error:  # damaged bytes can break any step
        raise DamagedStore(f"the results of {claim} that came with attlas cannot be read: {error}") from error
    return found


def pack(claim: Claim[Any], records: Iterable[Record], folder: Path | str) -> Path:
    """Write results of a claim as they are shipped, into a folder; the same bytes for the same results.

    Keys and seals are not written: they follow from the rest, and would be most of the file.

    Parameters
    ----------
    claim : Claim
        Results of other versions of it are left out.
    records : iterable of Record
    folder : path

    Examples
    --------
    >>> import tempfile
    >>> from attlas import lab
    >>> from attlas.claims import find
    >>> (claim,) = find(["features.invariance"])
    >>> with tempfile.TemporaryDirectory() as folder: print(lab.pack(claim, lab.shipped([claim]), folder).name)
    ...
    features.invariance.results.xz
    """
    own = {r.key: r for r in records if (r.claim, r.version) == (claim.id, claim.version)}
    rows = [
        own[key] for key in sorted(own, key=lambda key: (json.dumps(own[key].point, sort_keys=True), own[key].seed))
    ]
    head = [[r.version, r.point, r.seed, r.seconds, r.versions, len(r.payload)] for r in rows]
    body = json.dumps(head, sort_keys=True).encode() + b"\n" + b"".join(record.payload for record in rows)
    target = Path(folder) / (claim.id + SUFFIX)
    target.write_bytes(lzma.compress(hashlib.sha256(body).digest() + body, lzma.FORMAT_XZ, preset=9))
    return target
