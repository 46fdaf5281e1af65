"""A store is untrusted input: whoever wrote it could also have sealed it."""

import hashlib
import io
import json
import sqlite3
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest

from attlas.errors import DamagedStore, InputError, StoreError
from attlas.store import Record, Store, check, decode, export, read, repair, view
from attlas.store.payload import encode
from attlas.store.record import COLUMNS, INSERT, seal

from ..conftest import record


def planted(path, **changes):
    """Put a row with unbroken seals into a store, as attlas would not write it."""
    row = dict(zip(COLUMNS, record(0).row(), strict=True)) | changes
    if "key" not in changes:
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


@pytest.mark.parametrize(
    "changes", [{"claim": "a\nattlas: all is well"}, {"key": "0\n1"}, {"key": "k" * 10**5}, {"claim": "c" * 10**5}]
)
def test_what_a_damaged_record_calls_itself_is_quoted_on_one_line(tmp_path, changes):
    path = planted(tmp_path / "a.db", **changes)
    with pytest.raises(DamagedStore) as said:
        list(read(path))
    assert "\n" not in str(said.value)
    assert len(str(said.value)) < 600 + len(str(path))


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


@pytest.mark.parametrize("name", ["sqlite_stat_evil", "sqlite_stat1"])
def test_a_trigger_that_is_named_as_statistics_are_is_not_run(filled, name):
    """SQLite itself refuses to make one, but not to run one that is written into its schema."""
    text = f"CREATE TRIGGER {name} AFTER INSERT ON results BEGIN DELETE FROM results WHERE id = new.id; END"
    db = sqlite3.connect(filled)
    db.execute("PRAGMA writable_schema = ON")
    db.execute("INSERT INTO sqlite_schema VALUES ('trigger', ?, 'results', 0, ?)", (name, text))
    db.execute(f"PRAGMA schema_version = {db.execute('PRAGMA schema_version').fetchone()[0] + 1}")
    db.commit()
    db.close()
    for act in (Store, lambda path: list(read(path)), check):
        with pytest.raises(StoreError, match=r"has a trigger .* attlas did not make"):
            act(filled)


def test_statistics_that_sqlite_adds_are_no_fault(filled):
    db = sqlite3.connect(filled)
    db.execute("ANALYZE")
    db.commit()
    db.close()
    assert check(filled).good
    with Store(filled) as store:
        assert store.repaired is None


def hollow(descr, *shape):
    return npy(f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}")


@pytest.mark.parametrize(
    "data",
    [
        npz(x=hollow("<f8", 1 << 24, 0)),
        npz(x=hollow("<f8", 1 << 24, 1 << 24, 0)),
        npz(x=hollow("<f8", 0, 1 << 24)),
        npz(**{f"x{i}": hollow("<f8", 1 << 15, 0) for i in range(8)}),
        npz(x=npy("{'descr': '|b1', 'fortran_order': False, 'shape': (1048576, 1, 1, 1), }", bytes(1 << 20))),
    ],
    ids=["rows", "rows-of-rows", "columns", "many", "ones"],
)
def test_shapes_that_need_no_bytes_are_bounded(data, tmp_path):
    """They cost nothing to keep, and become lists of lists in an export."""
    with pytest.raises(DamagedStore, match="cannot be read"):
        decode(data)
    path = planted(tmp_path / "a.db", payload=data, payload_sha256=hashlib.sha256(data).hexdigest())
    for act in (lambda: export(read(path), tmp_path / "a.csv"), lambda: view(read(path))):
        with pytest.raises(DamagedStore, match="cannot be read"):
            act()


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (1000, 0), (0, 1000, 7), (1, 0, 1), (2**12, 1, 1, 1)])
def test_small_shapes_without_entries_are_kept(shape):
    assert decode(encode({"x": np.zeros(shape)}))["x"].shape == shape


def test_what_could_not_be_read_again_is_not_written():
    for shape in ((1 << 24, 0), (0, 1 << 24), (1 << 20, 1, 1, 1)):
        with pytest.raises(InputError, match="its shapes"):
            encode({"x": np.zeros(shape, np.int8)})


@pytest.mark.parametrize(
    ("wide", "tall"),
    [
        (np.zeros((1, 60_000), np.int8), np.zeros((60_000, 1), np.int8)),
        (np.array("x" * 2_000_000), np.array([f"{i}" for i in range(10_000)])),
        (np.array(["x" * 500_000]), np.array(["y"])),
    ],
    ids=["shapes", "depths", "texts"],
)
def test_a_view_is_not_mostly_padding(wide, tall):
    """Two honest results of a megabyte would be padded to gigabytes."""
    more = 200 if wide.dtype.kind == "U" else 1
    with pytest.raises(StoreError, match="would be padded to"):
        view([record(0, x=wide), *(record(i + 1, x=tall) for i in range(more))])
    assert view([record(0, x=np.zeros((1, 300))), record(1, x=np.zeros((300, 1)))])["x"].shape == (2, 300, 300)


def test_text_of_no_width_is_refused_before_room_is_made_for_it():
    data = npz(x=hollow("<U0", 1 << 22))
    tracemalloc.start()
    with pytest.raises(DamagedStore):
        decode(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20


def test_a_payload_that_is_sealed_and_cannot_be_read_is_removed_by_repair(tmp_path):
    data = npz(x=hollow("<f8", 1 << 24, 0))
    path = planted(tmp_path / "a.db", payload=data, payload_sha256=hashlib.sha256(data).hexdigest())
    with Store(path) as store:
        store.put(record(1))
    health = check(path)
    assert (health.intact, len(health.damaged)) == (1, 1)
    with pytest.raises(DamagedStore, match="`attlas store repair` removes it"):
        view(read(path))
    assert "its 1 intact results are kept" in repair(path)
    assert [r.key for r in read(path)] == [record(1).key]
    assert check(path).good
    assert repair(path) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"versions": "not json"},
        {"versions": "[]"},
        {"versions": '{"numpy":"1.26\\u001b]0;title\\u0007"}'},
        {"versions": '{"numpy":"' + "1" * 101 + '"}'},
        {"claim": "../../evil"},
        {"point": '{"../x":1}'},
    ],
    ids=["text", "list", "escape", "long", "claim", "point"],
)
def test_a_row_that_attlas_would_not_write_is_removed_when_the_store_is_opened(tmp_path, changes):
    """It is sealed, so nothing else would ever remove it; the results beside it stay."""
    path = planted(tmp_path / "a.db", **changes)
    with pytest.raises(DamagedStore):
        list(read(path))
    with Store(path) as store:
        assert store.repaired
        assert store.versions() == {}
        store.put(record(1))
    assert [r.key for r in read(path)] == [record(1).key]
    assert check(path).good
