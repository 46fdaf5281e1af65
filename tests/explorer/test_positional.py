"""The numbers of the page of position and meaning are those of the library, found by another way."""

import csv
from pathlib import Path

import numpy as np
import pytest

from attlas import positional
from attlas.claims import Series
from attlas.explorer.pages.positional import PAGE, drawing, runs, theory
from attlas.explorer.simulations import Stored
from attlas.numerics import Event

(SECTION,) = PAGE.sections
FIGURES = {plot.name: plot for plot in SECTION.plots}
RUN = {
    "alpha": 3.0, "mixture": 0.3, "encoding": 3.0, "method": "descent", "d": 100, "seed": 0, "mechanism": "positional",
    "loss": 0.12, "test": 0.09, "converged": True,
}  # fmt: skip


def view(found=None, **given):
    return SECTION.view({"encoding": 3, "alpha": 3} | given, Path("none.db"), found)


def drawn(name, *found, **given):
    return {trace.get("name"): trace for trace in FIGURES[name].draw(view(*found, **given))["data"]}


def test_curves_are_the_theory():
    """The checked numbers of the flagship: both losses at alpha = 3 and 4, and the switch."""
    traces = drawn("losses")
    known = {("by position", 3): 0.1166501284, ("by meaning", 3): 0.1071504940, ("by meaning", 4): 0.1219925}
    for (name, alpha), loss in known.items():
        x = traces[name]["x"]
        assert traces[name]["y"][x.index(alpha)] == pytest.approx(loss, rel=2e-4)
    assert traces["switch, α = 2.57"]["x"][0] == pytest.approx(2.565915, rel=1e-3)
    errors = drawn("errors")
    assert errors["best fixed weights by place"]["y"] == pytest.approx([0.0728613] * 2, rel=1e-5)
    assert errors["by position"]["y"][errors["by position"]["x"].index(2)] == pytest.approx(0.095825784, rel=1e-3)


def test_off_the_table_the_solver_runs():
    found = theory.curves(view(encoding=4.5).state)
    model = positional.Model(0.3, 4.5)
    i = 5
    exact = positional.state_evolution(model, found.alpha["positional"][i], "positional", tol=1e-4)
    assert found.loss["positional"][i] == pytest.approx(exact.loss, rel=1e-3)
    assert len(found.alpha["positional"]) < len(found.alpha["semantic"])
    assert found.switch == pytest.approx(positional.switch(model, tol=1e-4).value, rel=2e-3)


def test_the_sentence():
    assert "the lower minimum attends by meaning: the losses are 0.116" in drawing.summary(view())
    assert "ends there" in drawing.summary(view())
    early = drawing.summary(view(alpha=2))
    assert "attends by position" in early
    assert "ends there" not in early
    few = drawing.summary(view(alpha=0.5))
    assert "the theory has no minimum that attends by meaning" in few
    saddle = drawing.summary(view(alpha=1))
    assert "only position is a minimum; the solution by meaning is a saddle" in saddle
    assert "The theory is approximate here: jumps carry part of the response (by meaning" in saddle
    assert "approximate" not in drawing.summary(view())


def test_how_often_training_stays_is_told_by_the_slope():
    """Nearly always at c = 3; at c = 1.5, slope 0.82, in about half of the runs."""
    assert "usually ends there" in drawing.summary(view())
    assert "often ends there" in drawing.summary(view(encoding=1.5))


def test_what_is_not_solved_is_not_called_missing(monkeypatch):
    short = positional.state_evolution(positional.Model(0.3, 3.0), 3, "semantic", max_steps=2, throw=False)
    good = theory.here(view().state)
    monkeypatch.setattr(theory, "here", lambda _: good | {"semantic": short})
    text = drawing.summary(view())
    assert "the equations for the minimum by meaning were not solved" in text
    assert "no minimum" not in text


def test_where_the_theory_fails_training_may_not():
    """omega = 0, c = 1.5, alpha = 3: half of the response is jumps, no positional solution, yet fits find one."""
    text = drawing.summary(view(encoding=1.5, mixture=0))
    assert "the theory has no minimum that attends by position" in text
    assert "Training may still find a minimum by position" in text


def test_doubtful_stretches_are_dotted():
    traces = drawn("losses")
    solid, dotted = traces["by meaning"], traces["by meaning, approximate"]
    assert dotted["line"]["dash"] == "dot"
    assert solid["y"][solid["x"].index(3)] is not None
    assert solid["y"][solid["x"].index(1)] is None
    assert dotted["y"][dotted["x"].index(1)] is not None
    rows = list(csv.DictReader(FIGURES["losses"].data(view()).splitlines()))
    told = {float(row["alpha"]): row["reliable"] for row in rows if row["what"] == "by meaning"}
    assert (told[1.0], told[3.0]) == ("no", "yes")


def test_an_unstable_minimum_is_named():
    assert "The one by position is unstable: a trace of meaning grows" in drawing.summary(view(alpha=8, encoding=1.5))


def test_attention_is_drawn_and_what_is_not_there_is_not():
    found = drawn("attention")
    exact = positional.state_evolution(positional.Model(0.3, 3.0), 3, "semantic", tol=1e-4).attention
    assert np.array(found["by meaning"]["z"]) == pytest.approx(exact[::-1], abs=1e-3)
    for name in ("teacher", "by position", "by meaning"):
        assert found[name]["y"] == ["2", "1"]  # categories from the bottom: the first token on top
    z = np.random.default_rng(0).standard_normal((400_000, 2))
    first, second = positional.Model(0.3, 1.0).targets(*z.T)
    assert found["teacher"]["z"][1][0] == pytest.approx((first.mean() + second.mean()) / 2, abs=2e-3)
    assert drawn("attention", alpha=0.5)["by meaning"]["text"][0] == ["none", "none"]
    rows = list(csv.DictReader(drawing.attention_data(view()).splitlines()))
    assert len(rows) == 12


def test_the_csv_has_every_digit():
    rows = list(csv.DictReader(FIGURES["errors"].data(view()).splitlines()))
    (row,) = [row for row in rows if row["what"] == "by meaning" and float(row["alpha"]) == 3]
    exact = positional.tabulated(positional.Model(0.3, 3.0), 3.0, "semantic").test
    assert float(row["test_error"]) == pytest.approx(exact, rel=1e-12)


def test_simulations_are_drawn_where_they_belong(monkeypatch):
    parts = ("alpha", "loss", (4.0,), (0.15,), (0.01,), (8,))
    settings = {"mixture": 0.3, "encoding": 4.0, "d": 250}
    one = Stored("positional.state-evolution", Series("by position", settings, *parts))
    monkeypatch.setattr(drawing, "stored", lambda _s, _d, _x, y, _n: [one] if y == "loss" else [])
    (trace,) = [t for t in FIGURES["losses"].draw(view(encoding=4))["data"] if "error_y" in t]
    assert (trace["x"], trace["y"], trace["error_y"]["array"]) == ([4.0], [0.15], [0.01])
    assert "by position,4.0,0.15,0.01,8,250" in FIGURES["losses"].data(view(encoding=4))
    assert "The store has simulations at ω = 0.3, c = 4." in drawing.summary(view())
    assert "The store has" not in drawing.summary(view(encoding=4))


@pytest.mark.parametrize("bad", [[1], "x", [{}], [{"seed": 10**4300}], None])
def test_what_a_browser_sends_is_believed_only_if_it_looks_like_runs(bad):
    assert runs.VISITS.parse(bad) == []
    assert runs.VISITS.parse([RUN]) == [runs.Run(**RUN)]
    assert runs.VISITS.parse([RUN | {"mechanism": "<script>"}]) == []
    assert runs.data(runs.VISITS.parse([RUN])).splitlines()[0].startswith("alpha,mixture,encoding,method,d,seed")


def test_training_is_run_and_drawn():
    state = view().state | {"d": 50, "method": "descent"}
    settings = runs.settings(state, runs.VISITS.parse([RUN | {"seed": 4}]))
    assert (settings["seed"], settings["d"]) == (5, 50)
    seen: list[Event] = []
    result = runs.work(seen.append, **settings)
    assert seen[0].text == "Drawing 150 sequences"
    assert [event.step for event in seen] == sorted(event.step for event in seen)
    task = positional.sample(positional.Model(0.3, 3.0), 50, 3, 5)
    losses = {name: positional.minimise(task, name).loss for name in ("positional", "semantic")}
    assert result["loss"] == pytest.approx(losses[result["mechanism"]], rel=1e-3)
    text, found = runs.finish(settings, result | {"mechanism": "positional", "lower": "semantic"}, [])
    assert text.startswith("Attends by position after")
    assert text.endswith("on these data the lower minimum attends by meaning")
    star = drawn("losses", found)["your runs"]
    assert star["y"] == pytest.approx([result["loss"]], rel=1e-5)
    assert star["marker"]["color"] == [drawing.COLOUR["positional"]]
    assert "your runs" not in drawn("losses", found, encoding=4)
    text, _ = runs.finish(settings, result | {"converged": False}, [])
    assert text.endswith("not converged, so this is not final")
