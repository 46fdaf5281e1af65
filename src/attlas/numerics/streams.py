"""Named random streams, so that a truth and an initial guess can never share one."""

import hashlib

import numpy as np

from attlas.errors import InputError

Seed = int | np.random.Generator


def stream(seed: int, *names: str) -> np.random.Generator:
    """Return the random stream called `names` of the family that `seed` starts.

    Streams of different names are statistically independent; the same seed and names give the same
    numbers on every machine. ``stream(0, "teacher")`` and ``stream(0, "start")`` never overlap.

    Parameters
    ----------
    seed : int
        Non-negative.
    *names : str
        The purpose, such as ``"teacher"``, ``"data"``, ``"start"``, ``"noise"``.
    """
    if not names or any("\0" in name for name in names):
        raise InputError("name the purpose of the stream, such as stream(seed, 'teacher'); no NUL in names")
    digest = hashlib.sha256("\0".join(names).encode()).digest()
    words = tuple(int.from_bytes(digest[i : i + 4], "little") for i in range(0, 16, 4))
    return np.random.default_rng(np.random.SeedSequence(_checked(seed), spawn_key=words))


def generator(seed: Seed) -> np.random.Generator:
    """Return `seed` if it is a Generator, else a fresh Generator started from that integer."""
    return seed if isinstance(seed, np.random.Generator) else np.random.default_rng(_checked(seed))


def _checked(seed: object) -> int:
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(f"seed must be a non-negative integer or a numpy Generator; got {seed!r}")
    return int(seed)
