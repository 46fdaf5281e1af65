"""A black box reveals what its answers hold, and a sculpture is drawn as it was made."""

import csv
from pathlib import Path

import numpy as np
import pytest

from attlas import layers, recovery, tokens
from attlas.claims.learners import learner
from attlas.explorer.pages.recovery import black_box, body
from attlas.explorer.pages.recovery.sculpture import EXAMPLES, FIRST, KEPT, PHASES, sculpture
from attlas.explorer.plotting import SYMBOLS, written
from attlas.recovery.examples import Examples
from attlas.recovery.sculpt import rounds


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


def test_a_query_is_shown_with_its_answer_and_what_it_says() -> None:
    found = black_box.dialogue({"dim": 3, "box": 4})
    X, answer = found.queries[7]
    figure = black_box.draw_query(asked(queries="8"))
    (trace,) = figure["data"]
    assert figure["layout"]["yaxis"]["ticktext"] == ["q + v", "q", "answer"]
    assert (figure["layout"]["yaxis"]["scaleanchor"], figure["layout"]["yaxis"]["scaleratio"]) == ("x", 1)
    assert np.array(trace["z"]) == pytest.approx(np.array([*X, answer]), rel=1e-5)
    logit = X[1] @ found.Theta @ (X[0] - X[1])
    assert figure["layout"]["annotations"][0]["text"] == f"The answer says qᵀ Θ v = {written(logit)}"
    assert black_box.draw_query(asked(queries="0")) is None
    first = black_box.draw_query(asked(queries="1"))
    assert first["layout"]["yaxis"]["ticktext"] == ["token", "answer"]
    assert first["layout"]["annotations"][0]["text"] == "The answer is row 1 of W"
    rows = list(csv.DictReader(black_box.queries_data(asked(queries="8")).splitlines()))
    assert [float(rows[7][f"answer_{k}"]) for k in (1, 2, 3)] == list(answer)
    assert black_box.summary(asked(queries="8")) == "8 of 12 queries asked (d² + d = 12)."


def test_matrices_have_square_cells_white_zeros_and_one_scale() -> None:
    found = black_box.dialogue({"dim": 3, "box": 4})
    figure = black_box.draw_matrices(asked(queries="7"))
    _, W_true, W_off, Theta, Theta_true, Theta_off = figure["data"]
    assert np.array(W_true["z"]) == pytest.approx(found.W, rel=1e-5)  # the first row first: axes run downwards
    assert np.array(Theta_true["z"]) == pytest.approx(found.Theta, rel=1e-5)
    assert np.abs(np.array(W_off["z"])).max() < 1e-12
    assert Theta["z"][1:] == Theta_off["z"][1:] == [[None] * 3] * 2  # not known is no number, so not white
    most = max(np.abs(found.W).max(), np.abs(found.Theta).max())
    for trace in [*figure["data"], *black_box.draw_query(asked(queries="7"))["data"]]:
        assert (trace["zmin"], trace["zmax"]) == (-most, most)
        assert dict(trace["colorscale"])[0.5] == "#ffffff"
    assert [trace["showscale"] for trace in figure["data"]] == [True] + [False] * 5
    for trace in figure["data"]:
        down = figure["layout"]["yaxis" + trace["yaxis"][1:]]
        assert (down["scaleanchor"], down["scaleratio"], down["constrain"]) == (trace["xaxis"], 1, "domain")
        assert down["range"][0] > down["range"][1]
    assert figure["layout"]["plot_bgcolor"] != "#ffffff"
    assert figure["layout"]["meta"]["last"] == len(found.queries)


@pytest.mark.parametrize(("queries", "axis", "row"), [("2", "y", 1), ("6", "y4", 0), ("12", "y4", 2)])
def test_the_row_that_a_query_is_about_is_framed(queries, axis, row) -> None:
    (frame,) = black_box.draw_matrices(asked(queries=queries))["layout"]["shapes"]
    assert (frame["yref"], frame["y0"], frame["y1"]) == (axis, row - 0.5, row + 0.5)
    assert black_box.draw_matrices(asked(queries="0"))["layout"]["shapes"] == []


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


def seen(phase, **given):
    return body.SECTION.view({"phase": phase} | given, Path("none.db"))


SEEN = [seen(phase) for phase in range(1, PHASES + 1)]


def inside(place, corners):
    """Whether a point is in a convex polygon whose corners are in order, or at its edge."""
    edges = np.roll(corners, -1, axis=0) - corners
    turns = edges[:, 0] * (place - corners)[:, 1] - edges[:, 1] * (place - corners)[:, 0]
    return (turns > -1e-9).all() or (turns < 1e-9).all()


def named(figure, name):
    return next(trace for trace in figure["data"] if trace["name"].startswith(name))


def test_scales_are_equal_and_ranges_the_same_in_all_phases_with_the_heads_inside() -> None:
    for given in ({}, {"d": 4, "scale": 6, "seed": 9}, {"d": 8, "scale": 1, "seed": 0}):
        figures = [body.draw(seen(phase, **given)) for phase in range(1, PHASES + 1)]
        axes = [(f["layout"]["xaxis"]["range"], f["layout"]["yaxis"]["range"]) for f in figures]
        assert all(pair == axes[0] for pair in axes)
        for figure in figures:
            assert (figure["layout"]["yaxis"]["scaleanchor"], figure["layout"]["yaxis"]["scaleratio"]) == ("x", 1)
            for name in ("true heads", "proxy"):
                mark = named(figure, name)
                for x, y in zip(mark["x"], mark["y"], strict=True):
                    assert axes[0][0][0] < x < axes[0][0][1]
                    assert axes[0][1][0] < y < axes[0][1][1]
        assert named(figures[0], "true heads")["text"] == ["head 1", "head 2"]


@pytest.mark.parametrize("given", [{}, {"d": 4, "seed": 9, "scale": 4.5}, {"d": 8}])
def test_a_body_is_filled_convex_holds_both_heads_and_shrinks(given) -> None:
    found = sculpture(seen(1, **given).state)
    areas = []
    for number, frame in enumerate(found.frames, 1):
        fill = named(body.draw(seen(number, **given)), "body")
        assert fill["fill"] == "toself"
        assert 0 < float(fill["fillcolor"].split(",")[-1].strip(" )")) < 1
        corners = np.array([fill["x"][:-1], fill["y"][:-1]]).T
        assert corners == pytest.approx(frame.outline, rel=1e-4, abs=1e-4)
        edges = np.roll(frame.outline, -1, axis=0) - frame.outline
        turns = edges[:, 0] * np.roll(edges, -1, axis=0)[:, 1] - edges[:, 1] * np.roll(edges, -1, axis=0)[:, 0]
        assert (turns > -1e-9).all()
        assert all(inside(head, frame.outline) for head in found.true)
        x, y = frame.outline.T
        areas.append(0.5 * abs(x @ np.roll(y, -1) - y @ np.roll(x, -1)))
    carved = areas[: len(FIRST) + 1]
    assert carved == sorted(carved, reverse=True)  # more slabs, less body
    assert carved[-1] < carved[0] / 2


def test_the_outline_is_that_of_the_slabs_in_which_both_heads_fit_best() -> None:
    Theta, W = recovery.planted_layer(heads=2, d=6, seed=1, scale=3.0)
    X = tokens.boolean(EXAMPLES, 2, 6, seed=1001)
    *_, (_, carved, _) = rounds(Examples.of(X, layers.multi_head_attention(X, Theta, W)))
    frame = sculpture(SEEN[0].state).frames[-1]
    along = (Theta[1] - Theta[0]) / np.linalg.norm(Theta[1] - Theta[0])

    def missed(place):
        return np.abs(np.einsum("sab,ab->s", carved.slabs, place) - carved.levels) * carved.weights

    worst = np.maximum(missed(Theta[0]), missed(Theta[1]))
    slack = frame.slack * (1 + 1e-9)  # the last slab that is kept is exactly as thick
    kept = np.sort(worst)[: int(np.sum(worst <= slack))]
    assert len(kept) == pytest.approx(KEPT * len(worst), abs=1)
    assert frame.slack == pytest.approx(kept[-1], rel=0.05)
    for x in np.linspace(-4, 4, 161):  # along the axis from head to head
        within = missed(Theta.mean(0) + x * along)[worst <= slack].max() - slack
        if abs(within) > 1e-3:
            assert inside(np.array([x, 0]), frame.outline) == (within < 0), x


def test_phases_have_their_words_and_learners_their_looks() -> None:
    titles = [frame.title for frame in sculpture(SEEN[0].state).frames]
    assert titles[0] == "The 4 best slabs"
    assert titles[-1] == "After polishing"
    assert len(titles) == PHASES
    assert body.summary(SEEN[0]) == "Phase 1 of 11. The 4 best slabs: 4 slabs of rank 4."
    assert "stands out by a factor of" in body.summary(SEEN[8])
    assert "Parameters correct to" in body.summary(SEEN[-1])
    assert "it cannot be trusted below 2" in body.summary(seen(9, d=4))
    assert "Stuck" in body.summary(seen(11, d=4, seed=3))
    assert "from 2 on" in str(recovery.Sculpted.__doc__)  # the number is that of the library
    for view, key in ((SEEN[9], "sculpt"), (SEEN[10], "varpro")):
        mark, look = named(body.draw(view), "estimate"), learner(key)
        assert mark["name"] == f"estimate: {look.name}"
        assert (mark["marker"]["color"], mark["marker"]["symbol"]) == (look.colour, SYMBOLS[look.marker] + "-open")
    start = body.SECTION.view({}, Path("none.db"))
    assert named(body.draw(start), "estimate")  # the page opens on a picture with everything in it


def test_a_body_is_sculpted_and_both_heads_are_found() -> None:
    found = sculpture(SEEN[0].state)
    last = found.frames[-1]
    assert last.residual < 1e-9  # variable projection finishes what sculpting began
    order = [np.argsort(heads[:, 0]) for heads in (last.heads, found.true)]
    assert last.heads[order[0]] == pytest.approx(found.true[order[1]], abs=1e-6)


def test_the_phases_are_a_file() -> None:
    rows = list(csv.DictReader(body.data(SEEN[0]).splitlines()))
    found = sculpture(SEEN[0].state)
    counts = {what: sum(row["what"] == what for row in rows) for what in {row["what"] for row in rows}}
    assert counts["corner of the body"] == sum(len(frame.outline) for frame in found.frames)
    assert counts["slab"] == sum(len(frame.lines) for frame in found.frames)
    assert (counts["proxy"], counts["true head"], counts["estimate"]) == (PHASES, 2 * PHASES, 4)
    assert counts["flattest direction"] == 3
    assert [float(rows[-1][name]) for name in ("x", "y")] == list(found.frames[-1].heads[1])
