"""The reader's side of the store. A reader never blocks a writer and never writes."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from attlas.errors import DamagedStore
from attlas.store import connection, schema
from attlas.store.record import Record, verified


def read(path: Path | str, claims: Iterable[str] | None = None) -> Iterator[Record]:
    """Yield the records of a store, of the given claims or of all, sorted by claim, point and seed.

    Every record is verified before it is shown.

    Raises
    ------
    DamagedStore
        At the first result that is not what was written.
    """
    path = Path(path)
    with connection.explained(path):
        db = connection.read(path)
        try:
            if schema.version(db) == 0:
                return
            wanted = None if claims is None else sorted(set(claims))
            query = f"SELECT {schema.columns(db)} FROM results"  # noqa: S608
            if wanted is not None:
                query += f" WHERE claim IN ({', '.join('?' * len(wanted))})"
            # fetched in one go: a reader that holds a snapshot while it is being consumed would let the log grow
            rows = db.execute(query + " ORDER BY claim, version, point, seed", wanted or ()).fetchall()
        finally:
            db.close()
    for row in rows:
        try:
            yield verified(row)
        except DamagedStore as error:
            raise DamagedStore(
                f"{path}: the result {row[0]} of {row[1]} is damaged ({error});"
                " `attlas store check` lists all, `attlas run` computes them again"
            ) from error
