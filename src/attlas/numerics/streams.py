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

    Examples
    --------
    >>> from attlas import numerics
    >>> truth, noise = numerics.stream(0, "truth"), numerics.stream(0, "noise")  # one seed, independent streams
    >>> bool(truth.integers(1000) == noise.integers(1000))
    False
    """
    if not names or any(not isinstance(name, str) or "\0" in name for name in names):
        raise InputError("name the purpose of the stream, such as stream(seed, 'teacher'); text without NUL")
    try:
        digest = hashlib.sha256("\0".join(names).encode()).digest()
    except UnicodeEncodeError as error:
        raise InputError("names of a stream must be text that UTF-8 can write; no lone surrogates") from error
    words = tuple(int.from_bytes(digest[i : i + 4], "little") for i in range(0, 16, 4))
    return np.random.default_rng(np.random.SeedSequence(_checked(seed), spawn_key=words))


def generator(seed: Seed) -> np.random.Generator:
    """Return `seed` if it is a Generator, else a fresh Generator started from that integer.

    Examples
    --------
    >>> import numpy as np
    >>> from attlas import numerics
    >>> rng = np.random.default_rng(0)
    >>> numerics.generator(rng) is rng
    True
    """
    return seed if isinstance(seed, np.random.Generator) else np.random.default_rng(_checked(seed))


def _checked(seed: object) -> int:
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(f"seed must be a non-negative integer or a numpy Generator; got {seed!r}")
    return int(seed)
