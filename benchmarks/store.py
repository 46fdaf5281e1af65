"""Putting, checking and reading results, against writing and hashing the same bytes plainly, in the same run."""

import hashlib
import os
import tempfile
import time
from pathlib import Path

import numpy as np

from attlas.store import Record, Store, check, encode, read

COUNT = 500


def main():
    payloads = [encode({"x": np.random.default_rng(i).standard_normal(1000)}) for i in range(COUNT)]
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        for i, payload in enumerate(payloads):
            with open(Path(folder) / f"{i}.bin", "wb") as file:
                file.write(payload)
                file.flush()
                os.fsync(file.fileno())
        plain = time.perf_counter() - start
        path = Path(folder) / "bench.db"
        with Store(path) as store:
            start = time.perf_counter()
            for i, payload in enumerate(payloads):
                store.put(Record("bench.store", 1, {"i": i}, 0, payload, 1.0, {"attlas": "0"}))
            put = time.perf_counter() - start
        start = time.perf_counter()
        hashlib.sha256(b"".join(payloads)).hexdigest()
        plain_hash = time.perf_counter() - start
        start = time.perf_counter()
        assert check(path).whole == COUNT  # noqa: S101
        checked = time.perf_counter() - start
        start = time.perf_counter()
        assert len(list(read(path))) == COUNT  # noqa: S101
        done = time.perf_counter() - start
    print(f"a durable result: {put / plain:.1f} x writing and syncing a file of the same bytes")
    print(
        f"verifying a store: {checked / plain_hash:.1f} x hashing its payloads; reading it: {done / plain_hash:.1f} x"
    )


if __name__ == "__main__":
    main()
