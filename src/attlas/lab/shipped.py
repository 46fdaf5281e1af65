"""Results that come with attlas: what the claims gave on the machine that the atlas was made on.

One compressed store for every claim, ``results/<claim>.db.gz``, with the seals of a store. They are read where a user's own
store holds nothing, and tell whether this machine agrees. ``studies/ship_results.py`` adds those of a store.
"""

import gzip
import tempfile
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from attlas.claims import Claim
from attlas.store import Record, Store, read

FOLDER = "results"
SUFFIX = ".db.gz"
PILOTS = 1000  # run numbers from here on are those of pilots: they design a claim and do not judge it


def shipped(claims: Sequence[Claim[Any]]) -> list[Record]:
    """Return the results that came with attlas for these claims, of their present versions."""
    found: list[Record] = []
    for claim in claims:
        found += [record for record in _records(claim.id) if record.version == claim.version]
    return found


@cache
def _records(claim: str) -> tuple[Record, ...]:
    packed = resources.files("attlas").joinpath(FOLDER, claim + SUFFIX)
    if not packed.is_file():
        return ()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results.db"
        path.write_bytes(gzip.decompress(packed.read_bytes()))
        return tuple(read(path, [claim]))


def pack(claim: Claim[Any], records: Iterable[Record], folder: Path | str) -> Path:
    """Write results of a claim as they are shipped, into a folder; the same bytes for the same results.

    Parameters
    ----------
    claim : Claim
        Results of other versions of it are left out.
    records : iterable of Record
    folder : path
    """
    own = {r.key: r for r in records if (r.claim, r.version) == (claim.id, claim.version)}
    target = Path(folder) / (claim.id + SUFFIX)
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "results.db"
        with Store(path) as keeper:
            for key in sorted(own):
                keeper.put(own[key])
        target.write_bytes(gzip.compress(path.read_bytes(), 9, mtime=0))
    return target
