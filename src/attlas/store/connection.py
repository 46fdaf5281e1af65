"""Opening the file: for one writer among several, or for reading only. SQLite's errors become sentences here."""

import errno
import os
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from attlas.errors import DamagedStore, InputError, StoreError
from attlas.store import log, schema
from attlas.store.payload import LARGEST
from attlas.store.presence import read_raw
from attlas.store.salvage import sealed_records

PATIENCE = 60.0  # seconds to wait for another writer's transaction, which lasts milliseconds
ASIDE = ".damaged-"  # in the name of a damaged file that was set aside


def write(path: Path) -> sqlite3.Connection:
    """Open or create the store for writing, at the latest schema."""
    with explained(path):
        db = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
        try:
            _guard(db)
            db.execute(f"PRAGMA page_size = {schema.PAGE}")
            _enter_wal(db)
            db.execute("PRAGMA synchronous = FULL")
            schema.expected(db)  # before a step is taken: a trigger would be run by it
            schema.migrate(db)
        except BaseException:
            db.close()
            raise
    return db


def read(path: Path) -> sqlite3.Connection:
    """Open the store for reading: nothing is written, no writer is blocked.

    Raises
    ------
    InputError
        If there is no file, or a folder.
    StoreError
        If the file is of a newer attlas, of another program, or cannot be read.
    DamagedStore
        If it was an attlas store and its head is damaged.
    """
    check_path(path)
    if not path.is_file():
        raise InputError(f"{path}: there is no store here; `attlas run` makes one")
    with explained(path):
        head = read_raw(path, 100)
        # SQLite takes a file of a few bytes for an empty one
        db = _connect_read_only(path.resolve()) if head[:16] in (b"", b"SQLite format 3\0") else None
        if db is not None:
            try:
                if _is_ours(db):
                    return db
            except (sqlite3.DatabaseError, UnicodeDecodeError, DamagedStore):
                pass  # its head is damaged; the seals below tell whose it is
            except StoreError:
                db.close()
                raise
            db.close()
    ours = head[68:72] == schema.APPLICATION.to_bytes(4, "big") or next(sealed_records(path), None) is not None
    if not ours:
        raise StoreError(f"{path}: not an attlas store (a file of another program?); give another path")
    raise DamagedStore(f"{path}: damaged; `attlas store check` says what, `attlas run` keeps what is intact")


def present(path: Path | str) -> bool:
    """Return whether there is a store with anything in it at a path; refuse what no store can be, as `check_path` does.

    Examples
    --------
    >>> from attlas import store
    >>> store.present("no-such-store.db")
    False
    """
    path = Path(path)
    if not path.exists():
        return False
    check_path(path)
    return path.stat().st_size > 0


def check_path(path: Path) -> None:
    """Refuse anything but a plain file with one name, a file in a missing folder, and a log that is not a plain file.

    Examples
    --------
    >>> from pathlib import Path
    >>> from attlas import store
    >>> store.check_path(Path("attlas.db"))  # a folder, a pipe or a file with hard links would raise
    """
    _check_links(path)
    if path.is_dir():
        raise InputError(f"{path} is a folder; give the path of a file, such as {path / 'attlas.db'}")
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}")
    _check_beside(path)
    if not path.exists():
        return
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise InputError(f"{path} is no plain file but a pipe, socket or device; give the path of a file")
    if found.st_nlink > 1 and found.st_nlink > 1 + _set_aside(path.resolve(), found):
        raise InputError(
            f"{path} has {found.st_nlink} names (hard links), and each would have a log of its own: results written"
            " under one are not seen under the other; remove the other names, or make a copy with `attlas store copy`"
        )


def _check_links(path: Path) -> None:
    """Refuse a symbolic link that leads to itself, and one into a folder that does not exist."""
    try:
        path.stat()
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise InputError(f"{path}: its symbolic links lead in a circle; give the path of a file") from error
    if path.is_symlink() and not (target := path.resolve()).parent.is_dir():
        raise InputError(f"{path}: it is a link to {target}, and there is no folder {target.parent}")


def _check_beside(path: Path) -> None:
    """Refuse files beside a store that SQLite and attlas would open, if neither can have made them."""
    for suffix in ("-wal", "-shm", "-lock"):
        beside = Path(f"{path.resolve()}{suffix}")
        try:
            found = beside.lstat()
        except FileNotFoundError:
            continue
        if not stat.S_ISREG(found.st_mode):
            raise InputError(
                f"{path}: {beside.name} beside it is no plain file but a folder, link, pipe, socket or device, which attlas"
                " did not make; move it away"
            )
        if suffix == "-wal" and found.st_size > log.LARGEST:
            raise StoreError(
                f"{path}: its log {beside.name} has {found.st_size / 1e9:.3g} GB, and attlas reads up to"
                f" {log.LARGEST / 1e9:.2g}; if a run of yours wrote it, fold it into the store with"
                f" `sqlite3 {path} 'PRAGMA wal_checkpoint(TRUNCATE)'`; if not, move it away"
            )


def _set_aside(path: Path, found: os.stat_result) -> int:
    """Return how many names a rebuild or a copy that was killed has left the file, beside its own."""
    own = (path.name + ASIDE, f".{path.name}.unfinished")
    names = (name for name in path.parent.iterdir() if name.name.startswith(own))
    return sum((other.st_ino, other.st_dev) == (found.st_ino, found.st_dev) for other in map(Path.stat, names))


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Commit everything inside, or nothing."""
    try:
        db.execute("BEGIN IMMEDIATE")
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into sentences that name the file."""
    try:
        yield
    except sqlite3.Error as error:
        raise _sentence(error, path) from error
    except UnicodeDecodeError as error:  # SQLite quotes damaged bytes in its message
        raise DamagedStore(f"{path}: damaged (its schema cannot be read)") from error
    except OSError as error:
        raise StoreError(
            f"{path}: {error.strerror or error}; check the permissions of the file and its folder"
        ) from error
    except StoreError as error:
        if str(path) in str(error):
            raise
        raise type(error)(f"{path}: {error}") from error


def _sentence(error: sqlite3.Error, path: Path) -> StoreError:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return StoreError(f"{path}: the disk is full. Every result committed before is kept; free space and run again")
    if code == sqlite3.SQLITE_IOERR:
        return StoreError(
            f"{path}: the disk failed ({error}). Every result committed before is kept; see to the disk and run again"
        )
    if code == sqlite3.SQLITE_BUSY:
        return StoreError(f"{path}: another program has held the store for {PATIENCE:.0f} s; try again later")
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return StoreError(f"{path}: cannot be opened ({error}); check the permissions of the file and its folder")
    return DamagedStore(f"{path}: damaged ({error})")


def _connect_read_only(path: Path) -> sqlite3.Connection | None:
    """Return a read-only connection, or None if the file is no SQLite database."""
    name, beside = quote(str(path)), Path(f"{path}-wal")
    for options in ("mode=ro", "mode=ro&immutable=1"):  # the second for a folder that cannot be written to
        db = sqlite3.connect(
            f"file:{name}?{options}", uri=True, timeout=PATIENCE, isolation_level=None, check_same_thread=False
        )
        try:
            _guard(db)
            db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            return db
        except sqlite3.OperationalError:
            db.close()
            if "immutable" in options:
                raise
            if beside.exists() and beside.stat().st_size:
                raise StoreError(
                    "a run that was killed left results in its log, which cannot be read in a folder that cannot be"
                    " written to; copy the file and its -wal to another folder"
                ) from None
        except (sqlite3.DatabaseError, UnicodeDecodeError):
            db.close()
            return None
    return None


def _is_ours(db: sqlite3.Connection) -> bool:
    if db.execute("PRAGMA application_id").fetchone()[0] == schema.APPLICATION:
        schema.expected(db)
        return schema.version(db) > 0
    # a run killed while it made the store leaves an empty database, which is nobody's
    return not db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]


def _enter_wal(db: sqlite3.Connection) -> None:
    """Switch to write-ahead logging; SQLite does not wait by itself while another process does the same."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            if db.execute("PRAGMA journal_mode = WAL").fetchone()[0] == "wal":
                return
            raise StoreError("this file system does not support write-ahead logging; put the store on a local disk")
        except sqlite3.OperationalError as error:
            if (error.sqlite_errorcode & 0xFF) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _guard(db: sqlite3.Connection) -> None:
    """Prepare a connection for a file that anybody may have written."""
    db.text_factory = _text
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 2 * LARGEST)
    db.execute("PRAGMA trusted_schema = OFF")  # no function is called by a schema
    db.execute("PRAGMA cell_size_check = ON")


def _text(data: bytes) -> str:
    """Decode text so that damaged bytes are carried to the seal check instead of stopping the reading."""
    return data.decode("utf-8", "surrogateescape")
