import threading
import time

import pytest

from attlas.explorer.memoised import memoised


def test_what_many_ask_at_once_is_computed_once() -> None:
    asked = []

    @memoised(4, "x")
    def slow(state):
        asked.append(state)
        time.sleep(0.05)
        return 2 * state["x"]

    found = []
    threads = [threading.Thread(target=lambda: found.append(slow({"x": 3, "y": 1}))) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (asked, found) == ([{"x": 3}], [6] * 10)


def test_old_answers_are_forgotten_and_errors_are_not_remembered() -> None:
    asked = []

    @memoised(2, "x")
    def function(state):
        asked.append(state["x"])
        if state["x"] < 0:
            raise ValueError(state["x"])
        return state["x"]

    for x in (1, 2, 3, 1):
        assert function({"x": x}) == x
    assert asked == [1, 2, 3, 1]
    for _ in range(2):
        with pytest.raises(ValueError, match="-1"):
            function({"x": -1})
    assert asked[-2:] == [-1, -1]
