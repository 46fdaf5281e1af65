"""The key of a point: what makes two computations the same computation."""

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from attlas.errors import InputError

Point = dict[str, Any]


def key(claim: str, version: int, point: Mapping[str, Any], seed: int) -> str:
    """Return the SHA-256 (hex) of the canonical JSON of (claim, version, point, seed).

    Examples
    --------
    >>> from attlas import store
    >>> store.key("aim.width", 1, {"d": 50}, seed=0)[:12]
    '4332062ef22d'
    """
    return key_of_text(claim, version, canonical(point), seed)


def key_of_text(claim: str, version: int, point: str, seed: int) -> str:
    """Return the key of a point whose canonical JSON is known: many seeds share it, and a stored row has it.

    Examples
    --------
    >>> from attlas import store
    >>> one = store.key_of_text("aim.width", 1, store.canonical({"d": 50}), seed=0)
    >>> one == store.key("aim.width", 1, {"d": 50}, seed=0)
    True
    """
    text = f'{{"claim":{json.dumps(claim)},"point":{point},"seed":{canonical(seed)},"version":{canonical(version)}}}'
    return hashlib.sha256(text.encode()).hexdigest()


def canonical(value: Any) -> str:
    """Return the one JSON text of `value`: sorted names, no spaces, ASCII, shortest exact numbers.

    Equal values give equal texts: 1 and 1.0 are one number (below 2^53, where floats stop being exact), -0.0 is 0, tuples
    are lists, NumPy scalars are their values. True is not 1. Not-a-number and infinities have no JSON and are refused.

    Examples
    --------
    >>> from attlas import store
    >>> store.canonical({"d": 8, "alpha": 0.5})
    '{"alpha":0.5,"d":8}'
    """
    if type(value) is int:
        return str(value)
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    match value:
        case bool() | int() | str() | None:
            return value
        case float():
            if not math.isfinite(value):
                raise InputError(f"a point holds finite numbers only; got {value}")
            return int(value) if value.is_integer() and abs(value) < 2**53 else value
        case Mapping():
            if not all(isinstance(name, str) for name in value):
                raise InputError(f"the names in a point are text; got {list(value)!r}")
            return {name: _plain(item) for name, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
    raise InputError(f"a point holds numbers, text and lists of them; got {type(value).__name__}")
