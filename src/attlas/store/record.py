"""A record: one result, where it came from, and the seals that show it was not altered since."""

import hashlib
import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from attlas.errors import DamagedStore
from attlas.store.key import Point, canonical, key
from attlas.store.payload import Result, decode

COLUMNS = ("key", "claim", "version", "point", "seed", "payload", "payload_sha256", "seconds", "versions", "seal")
INSERT = (
    f"INSERT INTO results ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"  # noqa: S608
    " ON CONFLICT (key) DO NOTHING"
)


@dataclass(frozen=True)
class Record:
    """One computed point of a sweep.

    Attributes
    ----------
    claim, version, point, seed
        What was computed.
    payload : bytes
        The result as written by `attlas.store.payload.encode`.
    seconds : float
        How long the computation took.
    versions : dict
        Of attlas, numpy, scipy and Python, where it was computed. Nothing about the host.
    """

    claim: str
    version: int
    point: Point
    seed: int
    payload: bytes = field(repr=False)
    seconds: float
    versions: dict[str, str]

    @cached_property
    def key(self) -> str:
        """The SHA-256 of (claim, version, point, seed)."""
        return key(self.claim, self.version, self.point, self.seed)

    @cached_property
    def result(self) -> Result:
        """The numbers and arrays that were computed."""
        return decode(self.payload)

    def row(self) -> tuple[Any, ...]:
        """Return the row of the store that holds this record, in the order of `COLUMNS`."""
        body = (
            self.key,
            self.claim,
            self.version,
            canonical(self.point),
            self.seed,
            self.payload,
            hashlib.sha256(self.payload).hexdigest(),
            float(self.seconds),
            canonical(self.versions),
        )
        return (*body, seal(*body))


def seal(*body: Any) -> str:
    """Return the SHA-256 over everything in a row but the payload, whose own digest is part of it."""
    key_, claim, version, point, seed, _, digest, seconds, versions = body
    text = json.dumps([key_, claim, version, point, seed, digest, float(seconds).hex(), versions])
    return hashlib.sha256(text.encode()).hexdigest()


def verified(row: tuple[Any, ...]) -> Record:
    """Return the record of a row, or raise `DamagedStore` saying which of its seals is broken.

    A row of schema 1 is one shorter: it has no seal over its provenance yet.
    """
    try:
        if len(row) == len(COLUMNS) - 1:
            row = (*row, seal(*row))
        key_, claim, version, point_text, seed, payload, digest, seconds, versions, seal_ = row
        if hashlib.sha256(payload).hexdigest() != digest:
            raise DamagedStore("its payload does not match its SHA-256")
        if seal(*row[:-1]) != seal_:
            raise DamagedStore("its settings or provenance do not match their seal")
        record = Record(claim, version, json.loads(point_text), seed, payload, seconds, json.loads(versions))
        if record.key != key_:
            raise DamagedStore("its settings do not match its key")
    except DamagedStore:
        raise
    except Exception as error:  # damaged bytes can break any step: decoding, types, JSON
        raise DamagedStore(f"it cannot be read ({error})") from error
    return record
