"""The write-ahead log beside a store: is every transaction in it one that SQLite will show?

SQLite reads a log up to its first bad byte and says nothing of what follows, so a reader would be short of results without
knowing. Here the frames are looked at as they are: those of the present round carry the salts of the log's head, the last
of a transaction is marked, and each continues a checksum over all before it (sqlite.org/fileformat2.html, section 4).
"""

import io
import time
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

PAGE = 4096
LARGEST = 2 << 30  # bytes of a log; SQLite folds it into the file at four million
HEADER, FRAME_HEADER = 32, 24
FRAME = FRAME_HEADER + PAGE
_MAGIC = {0x377F0682: "<u4", 0x377F0683: ">u4"}  # the order of bytes in which sums are made
_TOGETHER = 2048  # frames that are in memory at a time: all of a log as SQLite leaves it
_TRIES, _PAUSE = 12, 0.03  # a writer at work is in the middle of a frame for microseconds


def fault(path: Path) -> str:
    """Return what is wrong with the log of a store, in a few words; nothing if SQLite will show all of it."""
    log = Path(f"{path}-wal")
    found = ""
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(_PAUSE)
        try:
            with log.open("rb") as file:
                found = _examine(file)
        except FileNotFoundError:
            return ""
        if not found:
            return ""
    return found


def examine(data: bytes) -> str:
    """Return what is wrong with these bytes of a log."""
    return _examine(io.BytesIO(data))


def _examine(file: BinaryIO) -> str:
    """Return what is wrong with a log, read a few frames at a time: it may be larger than memory."""
    data = file.read(HEADER)
    words = _frames(file)
    if not len(words):
        return ""
    order = _MAGIC.get(int.from_bytes(data[:4], "big"), "")
    running = _sums(np.frombuffer(data, order, 6).reshape(1, 3, 2), (0, 0))[0] if order else None
    if running is None or running != _pair(data, 24):
        return "the head of its log is damaged, so that SQLite shows nothing of it"
    lost, first = 0, None  # the first frame that SQLite does not read
    while len(words):
        salts: NDArray[np.bool_] = np.equal(words[:, 8:16], np.frombuffer(data, np.uint8, 8, 16))
        valid = 0
        if first is None:
            valid, running = _valid(words, np.asarray(salts.all(axis=1)), order, running)
            first = words[valid].copy() if valid < len(words) else None
        marked: NDArray[np.bool_] = np.asarray(words[:, 4:8].any(axis=1))
        # one salt of two is no older round's: the other was altered
        lost += int(np.sum(marked[valid:] & (salts[valid:, :4].all(axis=1) | salts[valid:, 4:].all(axis=1))))
        words = _frames(file)
    if not lost and first is not None and _unmarked(first, order, running):
        lost = 1
    return f"SQLite cannot read the last {lost} transactions of its log" if lost else ""


def _frames(file: BinaryIO) -> NDArray[np.uint8]:
    """Return the next frames of a log, a row each; what is left of one that was cut short is none."""
    data = file.read(_TOGETHER * FRAME)
    count = len(data) // FRAME
    return np.frombuffer(data, np.uint8, count * FRAME).reshape(count, FRAME)


def _valid(
    words: NDArray[np.uint8], present: NDArray[np.bool_], order: str, running: tuple[int, int]
) -> tuple[int, tuple[int, int]]:
    """Return how many frames continue the checksum, and the checksum after them."""
    last = len(words) if present.all() else int(np.argmin(present))
    block = words[:last]
    summed = np.concatenate([block[:, :8], block[:, FRAME_HEADER:]], axis=1).view(order)
    summed = summed.reshape(last, (8 + PAGE) // 8, 2)
    stored = block[:, 16:24].copy().view(">u4")
    for i, sums in enumerate(_sums(summed, running)):
        if sums != (int(stored[i, 0]), int(stored[i, 1])):
            return i, running
        running = sums
    return last, running


def _unmarked(frame: NDArray[np.uint8], order: str, before: tuple[int, int]) -> bool:
    """Return whether a frame ended a transaction before the bit that says so was altered."""
    stored = _pair(frame.tobytes(), 16)
    for bit in range(32):
        tried = frame.copy()
        tried[4 + bit // 8] ^= 1 << bit % 8
        summed = np.concatenate([tried[:8], tried[FRAME_HEADER:]]).view(order).reshape(1, -1, 2)
        if _sums(summed, before)[0] == stored:
            return True
    return False


def _pair(data: bytes, at: int) -> tuple[int, int]:
    return int.from_bytes(data[at : at + 4], "big"), int.from_bytes(data[at + 4 : at + 8], "big")


def _sums(summed: NDArray[Any], start: tuple[int, int]) -> list[tuple[int, int]]:
    """Return SQLite's checksum after each row of pairs (x, y): s += x + t, then t += y + s, modulo 2^32.

    A step is linear, (s, t) -> A (s, t) + B (x, y) with A = [[1, 1], [1, 2]] and B = [[1, 0], [1, 1]], so a whole row is one
    product with the powers of A.
    """
    weights, power = _weights(summed.shape[1])
    added = np.einsum("fkj,kij->fi", summed.astype(np.uint32), weights, dtype=np.uint32)
    s, t = start
    found = []
    for x, y in added.tolist():
        s, t = (power[0][0] * s + power[0][1] * t + x) % 2**32, (power[1][0] * s + power[1][1] * t + y) % 2**32
        found.append((s, t))
    return found


@cache
def _weights(pairs: int) -> tuple[NDArray[np.uint32], list[list[int]]]:
    """Return A^(pairs - 1 - k) B for each k, and A^pairs, modulo 2^32."""
    weights = np.zeros((pairs, 2, 2), np.uint32)
    a, b, c, d = 1, 0, 0, 1  # the power of A
    for k in reversed(range(pairs)):
        weights[k] = [[(a + b) % 2**32, b], [(c + d) % 2**32, d]]
        a, b, c, d = (a + b) % 2**32, (a + 2 * b) % 2**32, (c + d) % 2**32, (c + 2 * d) % 2**32
    return weights, [[a, b], [c, d]]
