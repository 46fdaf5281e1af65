"""A store is untrusted input: whoever wrote it could also have sealed it."""

import io
import json
import sqlite3
import struct
import zipfile

import numpy as np
import pytest

from attlas.errors import DamagedStore, StoreError
from attlas.store import Record, Store, check, decode, read
from attlas.store.payload import encode
from attlas.store.record import COLUMNS, INSERT, seal

from ..conftest import record


def planted(path, **changes):
    """Put a row with unbroken seals into a store, as attlas would not write it."""
    row = dict(zip(COLUMNS, record(0).row(), strict=True)) | changes
    if "key" not in changes:
        import hashlib

        parts = ("claim", "version", "point", "seed")
        text = {name: json.loads(row[name]) if name == "point" else row[name] for name in parts}
        row["key"] = hashlib.sha256(json.dumps(text, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
    body = [row[name] for name in COLUMNS[:-1]]
    with Store(path) as store:
        store._db.execute(INSERT, (*body, seal(*body)))
    return path


@pytest.mark.parametrize(
    "changes",
    [
        {"claim": "../../etc/passwd"},
        {"claim": "a/b"},
        {"claim": ".hidden"},
        {"claim": "=cmd"},
        {"claim": ""},
        {"claim": "x" * 101},
        {"claim": "a\nb"},
        {"point": '{"../x":1}'},
        {"point": '{"a b":1}'},
        {"point": "[1]"},
        {"point": "3"},
        {"point": "[" * 100_000 + "]" * 100_000, "key": "0" * 64},
        {"point": '{"i":' + "9" * 5000 + "}", "key": "0" * 64},
        {"versions": "[]"},
        {"versions": '{"numpy":3}'},
        {"versions": "{"},
        {"seed": "text"},
        {"version": 1.5},
    ],
    ids=lambda changes: f"{next(iter(changes))}-{next(iter(changes.values()))!s:.12}",
)
def test_what_a_record_says_of_itself_is_checked(tmp_path, changes):
    path = planted(tmp_path / "a.db", **changes)
    with pytest.raises(DamagedStore):
        list(read(path))
    assert not check(path).good


@pytest.mark.parametrize("kind", ["trigger", "view"])
def test_what_attlas_did_not_make_is_not_run(filled, kind):
    db = sqlite3.connect(filled)
    if kind == "trigger":
        db.execute("CREATE TRIGGER t AFTER INSERT ON results BEGIN DELETE FROM results; END")
    else:
        db.execute("CREATE VIEW v AS SELECT * FROM results")
    db.commit()
    db.close()
    before = filled.read_bytes()
    for act in (Store, lambda path: list(read(path)), check):
        with pytest.raises(StoreError, match=f"has a {kind} .* attlas did not make"):
            act(filled)
    assert filled.read_bytes() == before


def test_a_results_table_that_is_a_view_is_refused(tmp_path):
    path = tmp_path / "a.db"
    with Store(path):
        pass
    db = sqlite3.connect(path)
    db.execute("ALTER TABLE results RENAME TO other")
    db.execute("CREATE VIEW results AS SELECT * FROM other")
    db.commit()
    db.close()
    with pytest.raises(StoreError):
        list(read(path))


@pytest.mark.parametrize("wrong", [3, 6, 66, 1 << 30, 2**31 - 1])
def test_a_byte_of_the_schema_version_is_damage_and_not_a_newer_store(filled, wrong):
    data = bytearray(filled.read_bytes())
    data[60:64] = struct.pack(">i", wrong)
    filled.write_bytes(data)
    with pytest.raises(DamagedStore):
        list(read(filled))
    with Store(filled) as store:
        assert store.repaired
        assert len(store.keys()) == 60


def test_every_step_of_the_schema_has_a_seal_of_its_own():
    from attlas.store import schema

    assert len(set(schema._digests())) == schema.LATEST + 1


def npz(**entries):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in entries.items():
            archive.writestr(f"{name}.npy", data)
    return buffer.getvalue()


def npy(header, data=b""):
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


@pytest.mark.parametrize(
    "data",
    [
        npz(x=npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }")),
        npz(x=npy("{'descr': '<f8', 'fortran_order': False, 'shape': (0, 1000000000000), }")),
        npz(x=npy("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }", b"\0" * 8)),
        npz(x=npy("{'descr': '|V1000000000', 'fortran_order': False, 'shape': (0,), }")),
        npz(x=npy("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,), }", b"\0" * 8)),
        npz(x=npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", b"\0" * 8)),
        npz(x=npy("{'descr': '<M8[s]', 'fortran_order': False, 'shape': (1,), }", b"\0" * 8)),
        npz(x=npy("(" * 9000)),
        npz(x=npy("[" * 60_000)),
        npz(x=npy("{'descr': '<f8', 'fortran_order': False, 'shape': (" + "1," * 60 + "), }", b"\0" * 8)),
        npz(x=npy("{'descr': '<U4', 'fortran_order': False, 'shape': (), }", b"\xff" * 16)),
        npz(**{"../x": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (), }", b"\0" * 8)}),
        bytes(40 << 20),
    ],
    ids=range(13),
)
def test_bytes_that_promise_more_than_they_hold_are_damage(data):
    with pytest.raises(DamagedStore):
        decode(data)


def test_parts_that_share_their_bytes_are_refused():
    """Many names for the same megabytes: small to keep, large to read."""
    data = bytearray(encode({"x": np.zeros(100_000), "y": np.zeros(3)}))
    x, y = data.index(b"PK\x01\x02"), data.rindex(b"PK\x01\x02")
    data[y + 20 : y + 28] = data[x + 20 : x + 28]  # the sizes
    data[y + 42 : y + 46] = data[x + 42 : x + 46]  # where it begins
    with pytest.raises(DamagedStore):
        decode(bytes(data))


def test_results_of_settings_that_the_claim_does_not_have_are_damage(fast, tmp_path):
    """The claim's own words are asked of settings that somebody else wrote."""
    from attlas import lab
    from attlas.claims import find
    from attlas.lab.verdicts import measurements

    odd = Record("test.fast", 1, {"i": -5, "other": "x"}, 0, encode({"x": 1.0}), 0.1, {"attlas": "0"})
    with Store(tmp_path / "a.db") as store:
        store.put(odd)
    (claim,) = find(["test.fast"])
    with pytest.raises(DamagedStore, match="settings"):
        measurements(claim, [odd])
    assert lab.expect(lab.plan([claim]), tmp_path / "a.db").planned == 300
