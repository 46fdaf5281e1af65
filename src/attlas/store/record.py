"""A record: one result, where it came from, and the seals that show it was not altered since."""

import hashlib
import json
import re
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from attlas.errors import DamagedStore
from attlas.store.key import Point, canonical, key, key_of_text
from attlas.store.payload import Result, decode

COLUMNS = ("key", "claim", "version", "point", "seed", "payload", "payload_sha256", "seconds", "versions", "seal")
INSERT = (
    f"INSERT INTO results ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"  # noqa: S608
    " ON CONFLICT (key) DO NOTHING"
)
LONGEST = 100
NAME = re.compile(rf"(?=.{{1,{LONGEST}}}\Z)[A-Za-z0-9_][A-Za-z0-9_-]*(\.[A-Za-z0-9_][A-Za-z0-9_-]*)*")  # of a claim


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
    def digest(self) -> str:
        """The SHA-256 of the payload."""
        return hashlib.sha256(self.payload).hexdigest()

    @cached_property
    def result(self) -> Result:
        """The numbers and arrays that were computed."""
        return self.decoded()

    def decoded(self) -> Result:
        """Return the numbers and arrays that were computed, without keeping them: of many records they fill the memory."""
        try:
            return decode(self.payload)
        except DamagedStore as error:  # its seal is unbroken: it was written so
            raise DamagedStore(
                f"the result {self.key} of {self.claim} is damaged ({error});"
                " `attlas store repair` removes it, `attlas run` then computes it again"
            ) from error

    def row(self) -> tuple[Any, ...]:
        """Return the row of the store that holds this record, in the order of `COLUMNS`."""
        body = (
            self.key,
            self.claim,
            self.version,
            canonical(self.point),
            self.seed,
            self.payload,
            self.digest,
            float(self.seconds),
            canonical(self.versions),
        )
        return (*body, seal(*body))


def seal(*body: Any) -> str:
    """Return the SHA-256 over everything in a row but the payload, whose own digest is part of it."""
    key_, claim, version, point, seed, _, digest, seconds, versions = body
    text = json.dumps([key_, claim, version, point, seed, digest, float(seconds).hex(), versions])
    return hashlib.sha256(text.encode()).hexdigest()


def sealed(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a row whose seals are unbroken, or raise `DamagedStore` saying which is not.

    A row of schema 1 is one shorter: it has no seal over its provenance yet, and gets one.
    """
    try:
        if len(row) == len(COLUMNS) - 1:
            row = (*row, seal(*row))
        if hashlib.sha256(row[5]).hexdigest() != row[6]:
            raise DamagedStore("its payload does not match its SHA-256")
        if seal(*row[:-1]) != row[-1]:
            raise DamagedStore("its settings or provenance do not match their seal")
    except DamagedStore:
        raise
    except Exception as error:  # damaged bytes can break any step: decoding, types
        raise DamagedStore(f"it cannot be read ({error})") from error
    return row


def verified(row: tuple[Any, ...]) -> Record:
    """Return the record of a row, or raise `DamagedStore` saying what is wrong with it.

    Seals tell damage; they do not tell who wrote the row. So what a record says of itself is checked as well before
    anything is made of it.
    """
    key_, claim, version, point_text, seed, payload, _, seconds, versions_text, _ = sealed(row)
    try:
        point, versions = json.loads(point_text), _versions(versions_text)
        _check(claim, version, point, seed, seconds, versions)
        record = Record(claim, version, point, seed, payload, float(seconds), versions)
        if key_of_text(claim, version, point_text, seed) != key_ or not _is_canonical(point_text):
            raise DamagedStore("its settings do not match its key")
        record.__dict__["key"] = key_  # what the cached property would compute again
    except DamagedStore:
        raise
    except Exception as error:  # JSON that is none, or too deep
        raise DamagedStore(f"it cannot be read ({error})") from error
    return record


@lru_cache(maxsize=4096)
def _is_canonical(text: str) -> bool:
    """Return whether a point is written as attlas writes it; the seeds of a point share its text."""
    return canonical(json.loads(text)) == text


@lru_cache(maxsize=256)
def _versions(text: str) -> Any:
    """Return the versions of many records, which are few, as one object."""
    return json.loads(text)


def _check(claim: Any, version: Any, point: Any, seed: Any, seconds: Any, versions: Any) -> None:
    """Refuse what attlas would not have written: names become names of files, groups and columns."""
    if not isinstance(claim, str) or not NAME.fullmatch(claim):
        raise DamagedStore(f"{claim!r:.80} is no id of a claim")
    # SQLite keeps a whole number of seconds as an integer, and a page read without SQLite shows it so
    if not all(isinstance(value, int) for value in (version, seed)) or not isinstance(seconds, int | float):
        raise DamagedStore("its version, seed or seconds is no number")
    if not isinstance(point, dict) or not all(name.isidentifier() and len(name) <= LONGEST for name in point):
        raise DamagedStore("its settings are not named as settings are")
    if not isinstance(versions, dict) or not all(_is_name(text) for pair in versions.items() for text in pair):
        raise DamagedStore("the versions that it was made with cannot be read")


def shown(text: Any) -> str:
    """Return the key or the claim of a row as a sentence quotes it: anybody may have written it, with lines of its own."""
    return text if _is_name(text) else f"{text!r:.80}"


def _is_name(text: Any) -> bool:
    return isinstance(text, str) and len(text) <= LONGEST and text.isprintable()
