"""A black box reveals what its answers hold, and a sculpture is drawn as it was made."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from attlas import layers, recovery
from attlas.errors import InputError
from attlas.explorer.pages.recovery import black_box, body
from attlas.explorer.pages.recovery.sculpture import Sculpture

FRAME = {
    "title": "T",
    "slabs": 3,
    "rank": 2,
    "lines": [[0, 0, 1, 1]],
    "proxy": [0, 1],
    "flat": [1, 0],
    "heads": [[1, 0], [-1, 0]],
    "gap": 1.2,
}
FOUND = {"title": "d = 6", "frames": [FRAME], "true": [[1, 0], [-1, 0]], "reach": [2, 1]}


def asked(**given):
    return black_box.SECTION.view({"dim": "3", "box": "4"} | given, Path("none.db"))


def test_a_black_box_reveals_everything_in_the_end_and_nothing_before() -> None:
    def known(count):
        return black_box.known({"dim": 3, "box": 4, "queries": count})

    queries, _, _, Theta, W = black_box.dialogue({"dim": 3, "box": 4})
    assert all(np.isnan(part).all() for part in known(0))
    assert known(3)[0] == pytest.approx(W)
    row = known(6)[1]
    assert row[0] == pytest.approx(Theta[0], abs=1e-9)
    assert np.isnan(row[1:]).all()
    assert known(len(queries))[1] == pytest.approx(Theta, abs=1e-9)
    X, answer = queries[7]
    assert answer == pytest.approx(layers.multi_head_attention(X[None], Theta[None], W[None])[0, -1])


def test_a_query_is_shown_with_its_answer() -> None:
    X, answer = black_box.dialogue({"dim": 3, "box": 4}).queries[7]
    (trace,) = black_box.draw_query(asked(queries="8"))["data"]
    assert trace["y"] == ["answer", "q", "q + v"]
    assert np.array(trace["z"]) == pytest.approx(np.array([answer, X[1], X[0]]), rel=1e-5)
    assert black_box.draw_query(asked(queries="0")) is None
    assert black_box.draw_query(asked(queries="1"))["data"][0]["y"] == ["answer", "token"]
    rows = list(csv.DictReader(black_box.queries_data(asked(queries="8")).splitlines()))
    assert [float(rows[7][f"answer_{k}"]) for k in (1, 2, 3)] == list(answer)
    assert black_box.summary(asked(queries="8")) == "8 of 12 queries asked (d² + d = 12)."


def test_the_matrices_of_a_box_are_a_file() -> None:
    rows = list(csv.DictReader(black_box.matrices_data(asked(queries="6")).splitlines()))
    found = black_box.dialogue({"dim": 3, "box": 4})
    true = [*found.W.ravel(), *found.Theta.ravel()]
    assert [float(row["true"]) for row in rows] == true
    assert [row["matrix"] for row in rows] == ["W"] * 9 + ["Theta"] * 9
    assert [float(row["known"]) for row in rows[:12]] == pytest.approx(true[:12], abs=1e-9)
    assert [row["known"] for row in rows[12:]] == [""] * 6  # the second and third row of Theta were not asked about


@pytest.mark.parametrize("box", range(6))
def test_black_boxes_of_every_size_are_known_in_the_end(box) -> None:
    most = black_box.SECTION.controls[2].high
    for dim in (2, 5, 6):
        found = black_box.dialogue({"dim": dim, "box": box})
        assert black_box.known({"dim": dim, "box": box, "queries": most})[1] == pytest.approx(found.Theta, abs=1e-7)
        assert len(found.queries) <= most


def test_a_body_is_drawn_with_its_words() -> None:
    view = body.SECTION.view({"phase": "8"}, Path("none.db"), FOUND)
    assert [trace["name"] for trace in body.draw(view)["data"]] == [
        "slabs",
        "flattest direction",
        "proxy",
        "true heads",
        "heads found",
    ]
    assert body.summary(view) == (
        "d = 6. T: 3 slabs of rank 2. The flattest direction stands out by a factor of 1.2 (below 1.5 it cannot be trusted)."
    )
    rows = list(csv.DictReader(body.data(view.found).splitlines()))
    assert [row["what"] for row in rows] == [
        "slab",
        "flattest direction",
        "proxy",
        "true head",
        "true head",
        "head found",
        "head found",
    ]
    assert list(rows[1].values()) == ["d = 6", "1", "flattest direction", "-1.0", "1.0", "1.0", "1.0"]
    assert list(rows[-1].values()) == ["d = 6", "1", "head found", "-1.0", "0.0", "", ""]
    assert recovery.Sculpted.__doc__  # the number 1.5 is that of its docstring
    assert "1.5" in recovery.Sculpted.__doc__


@pytest.mark.parametrize(("phase", "found"), [("0", FOUND), ("3", None)])
def test_nothing_is_drawn_before_there_is_a_sculpture(phase, found) -> None:
    view = body.SECTION.view({"phase": phase}, Path("none.db"), found)
    assert body.draw(view) is None
    assert body.summary(view) == ""


@pytest.mark.parametrize("found", ["x", [1], {"frames": 3}, FOUND | {"frames": []}, FOUND | {"true": [[1]]}])
def test_what_a_browser_sends_is_believed_only_if_it_is_a_sculpture(found) -> None:
    with pytest.raises(InputError, match="Not a saved sculpture"):
        body.parse(found)


def test_a_body_is_sculpted_and_both_heads_are_found() -> None:
    settings = json.dumps({"d": 6, "scale": 3.0, "n": 2000, "seed": 1})
    command = [sys.executable, "-m", "attlas.explorer.work", "recovery", "sculpt", settings]
    lines = [
        json.loads(x) for x in subprocess.run(command, capture_output=True, check=True, text=True).stdout.splitlines()
    ]
    shares = [x["share"] for x in lines if "share" in x]
    assert shares == sorted(shares)
    assert len(set(shares)) > 4
    found = Sculpture.model_validate(lines[-1]["result"])
    titles = [frame.title for frame in found.frames]
    assert titles[0] == "Carving, round 1"
    assert titles[-1] == "After polishing"
    assert len(titles) == body.SECTION.job.phases.high
    last = found.frames[-1]
    assert last.residual < 1e-9  # variable projection finishes what sculpting began
    assert np.sort(last.heads, axis=0) == pytest.approx(np.sort(found.true, axis=0), abs=1e-6)
