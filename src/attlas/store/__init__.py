"""Keeps results: one SQLite file, nothing lost.

It knows no mathematics and no claims. One result is one transaction (write-ahead log, ``synchronous=FULL``) and carries
SHA-256 seals over its payload, its settings and its provenance.
"""

from attlas.store.check import Health as Health
from attlas.store.check import check as check
from attlas.store.check import digest as digest
from attlas.store.connection import check_path as check_path
from attlas.store.connection import present as present
from attlas.store.export import export as export
from attlas.store.key import canonical as canonical
from attlas.store.key import key as key
from attlas.store.key import key_of_text as key_of_text
from attlas.store.merge import Merged as Merged
from attlas.store.merge import copy as copy
from attlas.store.merge import merge as merge
from attlas.store.payload import decode as decode
from attlas.store.payload import encode as encode
from attlas.store.reader import read as read
from attlas.store.reader import stored_keys as stored_keys
from attlas.store.record import Record as Record
from attlas.store.view import view as view
from attlas.store.writer import Store as Store
from attlas.store.writer import repair as repair
