"""The numbers of the page of learning in context are those of the library, found by another way."""

import csv
from math import inf
from pathlib import Path

import numpy as np
import pytest

from attlas import context
from attlas.claims import Series
from attlas.explorer.pages.context import PAGE, drawing, points, runs, theory
from attlas.explorer.simulations import Stored
from attlas.numerics import Event

(SECTION,) = PAGE.sections
FIGURES = {plot.name: plot for plot in SECTION.plots}
RUN = {
    "tasks": "few",
    "alpha": 2.0,
    "kappa": 0.5,
    "tau": 2.0,
    "ridge": 0.01,
    "noise": 0.1,
    "d": 20,
    "seed": 0,
    "icl": 1.4,
    "idg": 0.6,
    "training": 0.2,
    "converged": True,
}


def view(found=None, **given):
    return SECTION.view(given, Path("none.db"), found)


def drawn(name, *found, **given):
    return {trace.get("name"): trace for trace in FIGURES[name].draw(view(*found, **given))["data"]}


@pytest.mark.parametrize(("name", "axis"), [("sequences", "tau"), ("tasks", "kappa"), ("lengths", "alpha")])
def test_curves_are_the_theory(name, axis):
    traces = drawn(name, noise=0.3, ridge=-1)
    at = {"alpha": 2, "kappa": 0.5, "tau": 2, "ridge": 0.1, "noise": 0.3}
    for i in (3, 30, 50):
        x = traces["new tasks"]["x"][i]
        exact = context.theory(**(at | {axis: x}))
        assert traces["new tasks"]["y"][i] == pytest.approx(exact.icl, rel=1e-4)
        assert traces["training tasks"]["y"][i] == pytest.approx(exact.idg, rel=1e-4)
        bayes = context.ridge_in_context(x if axis == "alpha" else 2, 0.3).value
        assert traces["Bayes, new tasks"]["y"][i] == pytest.approx(bayes, rel=1e-4)
    tuned = traces["new tasks, best ridge"]
    rest = {name: value for name, value in at.items() if name != "ridge"}
    best = context.best_ridge(**(rest | {axis: tuned["x"][5]}))
    assert tuned["y"][5] == pytest.approx(best.icl, rel=1e-4)


def test_the_transition_of_diversity():
    traces = drawn("tasks", alpha=40)
    x, limit = np.array(traces["endless training and contexts"]["x"]), traces["endless training and contexts"]["y"]
    assert limit == pytest.approx(0.1 + np.maximum(1 - x, 0), rel=1e-4)
    endless = traces["endless training"]
    assert endless["y"][20] == pytest.approx(context.theory(40, endless["x"][20], inf, 0, 0.1).icl, rel=1e-4)


def test_every_sequence_may_have_its_own_task():
    figure = FIGURES["sequences"].draw(view(tasks="own"))
    trace = figure["data"][0]
    assert trace["y"][40] == pytest.approx(context.theory(2, inf, trace["x"][40], 0.01, 0.1).icl, rel=1e-4)
    assert "κ = ∞" in figure["layout"]["xaxis"]["title"]["text"]
    assert FIGURES["tasks"].draw(view(tasks="own"))["layout"]["shapes"] == []
    assert "your settings" not in drawn("diagram", tasks="own")


def test_the_sentence():
    found, best = context.theory(2, 0.5, 2, 0.01, 0.1), context.best_ridge(2, 0.5, 2, 0.1)
    text = drawing.summary(view())
    assert f"error {found.icl:.3f} on new tasks and {found.idg:.3f} on its training tasks" in text
    assert f"best ridge, {best.ridge:.3g}, it would have {best.icl:.3f}" in text
    assert text.endswith("the best that a context allows is 0.184.")


def test_the_diagram():
    traces = drawn("diagram")
    heat = traces[None]
    i, j = 30, 9
    exact = context.theory(2, np.linspace(0.1, 4, 32)[j], np.linspace(0.1, 4, 40)[i], 0.01, 0.1).icl
    assert heat["z"][i][j] == pytest.approx(exact, rel=1e-3)
    assert traces["same as predicting zero"]["contours"]["start"] == 1.1
    rows = list(csv.DictReader(drawing.diagram_data(view()).splitlines()))
    assert len(rows) == 32 * 40
    row = rows[700]
    exact = context.theory(2, float(row["kappa"]), float(row["tau"]), 0.01, 0.1)
    assert float(row["icl"]) == pytest.approx(exact.icl, rel=1e-12)


def test_the_csv_has_every_digit():
    for name, axis in (("sequences", "tau"), ("tasks", "kappa"), ("lengths", "alpha")):
        rows = list(csv.DictReader(FIGURES[name].data(view()).splitlines()))
        row = [row for row in rows if row["what"] == "training tasks"][17]
        at = {"alpha": 2, "kappa": 0.5, "tau": 2, "ridge": 0.01, "noise": 0.1} | {axis: float(row[axis])}
        assert float(row["error"]) == pytest.approx(context.theory(**at).idg, rel=1e-12)


def test_an_error_whose_equation_was_not_solved_is_a_gap(monkeypatch):
    def curve(*given, solve=context.curve, **named):
        found = solve(*given, **named)
        return found.assign(converged=found["icl"] < 1.5)

    monkeypatch.setattr(context, "curve", curve)
    shown = drawn("sequences", noise=0.25)["new tasks"]["y"]
    assert None in shown
    assert max(value for value in shown if value is not None) < 1.5


def test_simulations_are_drawn_where_they_belong(monkeypatch):
    settings = {"alpha": 8.0, "kappa": 0.5, "tau": 2.0, "ridge": 0.05, "noise": 0.2}
    parts = ("1/d", "error", (1 / 80, 1 / 40), (0.9, 1.0), (0.01, 0.02), (4, 8))
    new = Stored("context.learning-curve", Series("new tasks", settings, *parts))
    endless = Stored("context.learning-curve", Series("training tasks", settings | {"kappa": None}, *parts))
    training = Stored("context.learning-curve", Series("training error", settings, *parts))
    monkeypatch.setattr(points, "stored", lambda _store, _door, x, *_: [new, endless, training] if x == "1/d" else [])
    chosen = {"alpha": 8, "ridge": -1.3, "noise": 0.2}
    for name, place in (("sequences", 2.0), ("tasks", 0.5), ("lengths", 8.0)):
        (trace,) = [trace for trace in FIGURES[name].draw(view(**chosen))["data"] if "error_y" in trace]
        assert (trace["x"], trace["y"], trace["error_y"]["array"]) == ([place] * 2, [0.9, 1.0], [0.01, 0.02])
        assert trace["text"][0] == "d = 80, 4 seeds (context.learning-curve)"
        assert "new tasks," in FIGURES[name].data(view(**chosen)).splitlines()[-1]
    own = FIGURES["sequences"].draw(view(tasks="own", **chosen))["data"]
    assert [trace["name"] for trace in own if "error_y" in trace] == ["training tasks"]
    assert "The store has" not in drawing.summary(view(**chosen))
    assert (
        "The store has simulations at α = 8, κ = 0.5, τ = 2, λ = 0.05, noise = 0.2; at α = 8, κ = ∞"
        in drawing.summary(view())
    )


def test_learners_after_endless_training_are_drawn_against_tasks(monkeypatch):
    settings = {"tasks": "new", "d": 80, "alpha": 2.0, "tau": inf, "ridge": 0.0, "noise": 0.1}
    parts = ("tasks over d", "error", (0.5, 2.0), (1.5, 1.3), (0.01, 0.02), (20, 20))
    bayes = Stored("context.not-bayes", Series("Bayes of the training tasks", settings, *parts))
    old = Stored("context.not-bayes", Series("linear attention", settings | {"tasks": "training"}, *parts))
    monkeypatch.setattr(points, "stored", lambda _store, _door, x, *_: [bayes, old] if x == "tasks over d" else [])
    found = drawn("tasks")
    assert found["Bayes of the training tasks"]["y"] == [1.5, 1.3]
    assert "linear attention" not in found  # that one is about training tasks
    assert "Bayes of the training tasks" not in drawn("tasks", noise=0.2)
    assert "Bayes of the training tasks" not in drawn("sequences")
    assert "Bayes of the training tasks,2.0,1.3,0.02,20,80" in FIGURES["tasks"].data(view())


@pytest.mark.parametrize("bad", [[1], "x", [{}], [{"seed": 10**4300}], None])
def test_what_a_browser_sends_is_believed_only_if_it_looks_like_runs(bad):
    assert runs.VISITS.parse(bad) == []
    assert runs.VISITS.parse([RUN]) == [runs.Run(**RUN)]
    for wrong in ({"seed": -1}, {"icl": inf}, {"d": "20"}, {"kappa": float("nan")}):
        assert runs.VISITS.parse([RUN | wrong]) == []
    assert runs.data(runs.VISITS.parse([RUN | {"tasks": "own"}])).splitlines() == [
        "tasks,alpha,kappa,tau,ridge,noise,d,seed,icl,idg,training,converged",
        "own,2.0,inf,2.0,0.01,0.1,20,0,1.4,0.6,0.2,True",
    ]


def test_a_layer_is_trained_and_drawn():
    state = view().state | {"d": 10}
    settings = runs.settings(state, runs.VISITS.parse([RUN | {"seed": 4}]))
    assert (settings["seed"], settings["d"]) == (5, 10)
    seen: list[Event] = []
    result = runs.work(seen.append, **settings)
    exact = context.fit(context.sample(10, 2, 0.5, 2, 0.1, 5), settings["ridge"]).errors()
    assert (result["icl"], result["idg"]) == pytest.approx((exact.icl, exact.idg), rel=1e-3)
    assert seen[0].text == "Drawing 200 sequences"
    assert [event.step for event in seen] == sorted(event.step for event in seen)
    text, found = runs.finish(settings, result, runs.VISITS.parse([RUN] * 20))
    assert text.startswith(f"Error {result['icl']:.3f} on new tasks, {result['idg']:.3f} on training tasks at d = 10 (")
    assert len(found) == 20
    for name in ("sequences", "tasks", "lengths"):
        assert drawn(name, found)["your layers, new tasks"]["y"][-1] == pytest.approx(result["icl"], rel=1e-5)
    assert "your layers, new tasks" not in drawn("tasks", found, alpha=5)
    unfinished = runs.finish(settings, result | {"converged": False, "expected": None}, [])
    assert unfinished[0].endswith("at d = 10; the fit did not converge, so the errors are not final")
    mark = drawn("sequences", unfinished[1])["your layers, training tasks"]["marker"]
    assert mark["symbol"] == ["star-open"]
    own = runs.work(seen.append, **(settings | {"tasks": "own", "d": 50, "tau": 0.1}))
    assert own["icl"] == own["idg"]
    assert own["expected"] is None


def test_settings_of_a_state():
    assert theory.settings_of(view(tasks="own").state)["kappa"] == inf
    assert list(theory.settings_of(view().state)) == list(theory.SETTINGS)
