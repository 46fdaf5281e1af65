"""The numbers of the page of Bayes limits are those of the library, found by another way."""

import csv
from pathlib import Path

import numpy as np
import pytest

from attlas import aim
from attlas.claims import Series
from attlas.claims.learners import learner
from attlas.errors import InputError
from attlas.explorer.pages.aim import PAGE, drawing, runs, theory
from attlas.explorer.simulations import Stored

(SECTION,) = PAGE.sections
RUN = {
    "channel": "softmax",
    "tokens": 2,
    "noise": 0.0,
    "rho": 0.5,
    "alpha": 0.1,
    "d": 20,
    "seed": 0,
    "mse": 0.4,
    "converged": True,
}


def view(**given):
    return SECTION.view({"trained": "off"} | given, Path("none.db"))


@pytest.mark.parametrize(("channel", "tokens", "noise"), [("softmax", 3, 0), ("linear", 1, 0.25), ("hardmax", 2, 0)])
def test_the_curve_is_the_state_evolution(channel, tokens, noise) -> None:
    trace = drawing.draw_curve(view(channel=channel, tokens=tokens, noise=noise, rho=0.7))["data"][0]
    for i in (5, 20, 40):
        expected = aim.state_evolution(
            theory.channel_of({"channel": channel, "tokens": tokens, "noise": noise}), trace["x"][i], 0.7, steps=0
        )
        assert trace["y"][i] == pytest.approx(expected.value, rel=1e-4, abs=1e-5)


def test_an_error_whose_equation_was_not_solved_is_a_gap(monkeypatch) -> None:
    def curve(*given, solve=aim.curve):
        found = solve(*given)
        return found.assign(converged=found["mse"] < 0.5)

    monkeypatch.setattr(aim, "curve", curve)
    V = drawing.draw_curve(view(tokens=2, rho=0.35))["data"][0]["y"]
    assert V[0] == 1  # at no samples nothing is solved
    assert None in V
    assert max(value for value in V[1:] if value is not None) < 0.5


def test_the_diagram_has_its_edge_at_the_formula() -> None:
    data = drawing.draw_diagram(view(tokens=2))["data"]
    rhos, edge = np.array(data[1]["y"]), np.array(data[1]["x"])
    assert edge == pytest.approx(np.where(rhos <= 1, 2 * rhos - rhos**2, 1) / 4, rel=1e-4)
    V = np.array(data[0]["z"])
    alphas = np.array(data[0]["x"])
    assert np.all(V[alphas[None, :] > 1.001 * edge[:, None]] == 0)
    assert np.all(V[alphas[None, :] < 0.9 * edge[:, None]] > 0)


def test_the_slider_of_samples_holds_a_share_of_the_axis_and_its_value_is_alpha() -> None:
    assert view().state["alpha"] == pytest.approx(0.4 * 0.312)
    assert view(channel="linear", tokens="1").state["alpha"] == pytest.approx(0.4 * 0.625)
    assert "At α = 0.1248" in drawing.summary(view())


def test_training_is_shown_with_its_decay() -> None:
    chosen = view(trained="on", decay="-1")
    trace = drawing.draw_curve(chosen)["data"][-1]
    assert trace["name"] == "training with weight decay"
    assert "decay 0.1)" in drawing.draw_curve(chosen)["layout"]["xaxis"]["title"]["text"]
    assert trace["y"][0] == 1.5  # nothing learned: S_hat = 0, and ||S||^2/d = 1 + rho
    assert trace["y"][3] == pytest.approx(aim.trained(aim.Softmax(2), trace["x"][3], 0.5, 0.1).value, rel=1e-4)
    (low, high) = drawing.draw_curve(view(trained="on", decay="0", rho="1.5"))["layout"]["yaxis"]["range"]
    assert low == 0
    assert high > 2.5
    density = drawing.draw_spectrum(chosen)["data"][0]
    found = aim.trained(aim.Softmax(2), 0.4 * 0.312, 0.5, 0.1)
    assert np.trapezoid(density["y"], density["x"]) == pytest.approx(found.rank, abs=0.01)
    assert drawing.draw_spectrum(view()) is None
    assert "no theory of training for hardmax" in drawing.summary(view(trained="on", channel="hardmax"))


def test_the_spectrum_is_a_density_in_its_csv() -> None:
    text = drawing.spectrum_data(view(trained="on", decay="-1"))
    rows = [(row["what"], float(row["eigenvalue"]), float(row["value"])) for row in csv.DictReader(text.splitlines())]
    found = aim.trained(aim.Softmax(2), 0.4 * 0.312, 0.5, 0.1)
    assert rows[0] == ("share of zeros", 0.0, 1 - found.rank)
    x, density = np.array([row[1:] for row in rows[1:]]).T
    assert np.trapezoid(density, x) == pytest.approx(found.rank, abs=0.01)
    assert np.trapezoid(density * x, x) == pytest.approx(np.trapezoid(found.spectrum(x) * x, x), rel=1e-9)


def test_what_is_too_slow_or_says_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="takes a minute"):
        drawing.draw_curve(view(channel="hardmax", tokens=3))
    with pytest.raises(InputError, match="one token is always 1"):
        drawing.draw_curve(view(channel="softmax", tokens=1))


def test_the_csv_has_every_digit_of_both_plots() -> None:
    chosen = view(rho=0.3, trained="on")
    lines = list(csv.DictReader(drawing.curve_data(chosen).splitlines()))
    assert {row["what"] for row in lines} == {"Bayes limit", "perfect recovery", "training with weight decay"}
    expected = aim.state_evolution(aim.Softmax(2), float(lines[20]["alpha"]), 0.3, steps=0).value
    assert float(lines[20]["mse"]) == pytest.approx(expected, rel=1e-12)
    grid = list(csv.DictReader(drawing.diagram_data(chosen).splitlines()))
    assert {row["what"] for row in grid} == {"error", "perfect recovery"}
    for row in grid[-20:]:
        assert float(row["alpha"]) == pytest.approx(aim.recovery_threshold(aim.Softmax(2), float(row["rho"])))
    row = grid[-200]
    expected = aim.state_evolution(aim.Softmax(2), float(row["alpha"]), float(row["rho"]), steps=0).value
    assert float(row["mse"]) == pytest.approx(expected, rel=1e-12)


def test_simulations_are_drawn_where_they_belong(monkeypatch) -> None:
    settings = {"channel": "softmax", "tokens": 2, "noise": 0.0, "rho": 0.5, "decay": None, "d": 80}
    amp = Stored("aim.state-evolution", Series("amp", settings, "alpha", "mse", (0.1,), (0.4,), (0.01,), (3,)))
    other = settings | {"decay": 0.01}
    trained = Stored("trained.weight-decay", Series("trained", other, "alpha", "mse", (0.2,), (0.3,), (0.0,), (1,)))
    monkeypatch.setattr(drawing, "stored", lambda *_: [amp, trained])
    (trace,) = [trace for trace in drawing.draw_curve(view())["data"] if "error_y" in trace]
    assert trace["name"] == "message passing"
    assert trace["showlegend"]
    assert trace["marker"]["symbol"] == "triangle-up"
    assert (trace["x"], trace["y"], trace["error_y"]["array"]) == ([0.1], [0.4], [0.01])
    assert trace["text"] == ["d = 80, 3 seeds (aim.state-evolution)"]
    assert "message passing,0.1,0.4,0.01,3,80,aim.state-evolution" in drawing.curve_data(view())
    for decay, expected in (("-2", ["message passing", "training with weight decay"]), ("-1", ["message passing"])):
        both = [trace for trace in drawing.draw_curve(view(trained="on", decay=decay))["data"] if "error_y" in trace]
        assert [trace["name"] for trace in both] == expected
        assert [trace["showlegend"] for trace in both] == [True, False][: len(expected)]  # training has a line
    assert "The store has" not in drawing.summary(view())
    assert drawing.summary(view(rho="0.8")).endswith("The store has simulations at T = 2, ρ = 0.5.")
    assert drawing.summary(view(channel="linear")).endswith("Recovery is not perfect at any finite α.")


@pytest.mark.parametrize(
    "bad", [[1], "x", [{}], [{"seed": 10**4300}], [{"channel": "softmax", "d": float("nan")}], None]
)
def test_what_a_browser_sends_is_believed_only_if_it_looks_like_runs(bad) -> None:
    assert runs.VISITS.parse(bad) == []
    assert runs.VISITS.parse([RUN]) == [runs.Run(**RUN)]
    for wrong in ({"seed": 10**4300}, {"rho": 10**4300}, {"mse": float("inf")}, {"d": "20"}, {"seed": -1}):
        assert runs.VISITS.parse([RUN | wrong]) == []
    header, *rows = runs.data(runs.VISITS.parse(bad)).splitlines()
    assert header == "channel,tokens,noise,rho,alpha,d,seed,mse,converged,errors,expected"
    assert rows == []
    stepped = RUN | {"errors": [1.0, 0.5, 0.4], "expected": [1.0, 0.6, 0.4]}
    (row,) = csv.DictReader(runs.data(runs.VISITS.parse([stepped])).splitlines())
    assert (row["noise"], row["errors"], row["expected"]) == ("", "1.0 0.5 0.4", "1.0 0.6 0.4")  # softmax has no noise
    (row,) = csv.DictReader(runs.data(runs.VISITS.parse([RUN | {"channel": "linear"}])).splitlines())
    assert row["noise"] == "0.0"


def test_runs_are_numbered_drawn_and_dropped_in_their_order() -> None:
    state = SECTION.view({}, Path("none.db")).state | {"d": 40}
    settings = runs.settings(state, runs.VISITS.parse([RUN | {"seed": 4}]))
    assert (settings["seed"], settings["d"], settings["alpha"]) == (5, 40, pytest.approx(0.1248))
    result = {"mse": 0.3, "steps": 2, "converged": False, "alpha": 0.125, "running": False}
    result |= {"errors": [1.02, 0.6, 0.3], "expected": [1.0, 0.5, 0.25]}
    text, found = runs.finish(settings, result, runs.VISITS.parse([RUN] * 20))
    assert text == "Error 0.3000 after 2 steps at d = 40; not converged, so the error is not final"
    assert len(found) == 20
    before, last = drawn(found)
    assert before["marker"]["symbol"] == ["star"] * 19
    assert last["x"] == [0.125] * 3  # the trail of its steps stands at its alpha
    assert last["y"] == [1.02, 0.6, 0.3]
    assert last["marker"]["symbol"] == ["triangle-up", "triangle-up", "star-open"]
    assert last["marker"]["opacity"] == sorted(last["marker"]["opacity"])  # from faint to solid
    assert last["marker"]["opacity"][-1] == 1
    assert (last["meta"]["take"], last["meta"]["more"]) == (5, False)
    assert drawn(found, rho="0.8") == []
    assert drawing.draw_steps(SECTION.view({"rho": "0.8"}, Path("none.db"), found)) is None
    assert [trace["y"] for trace in drawn([RUN])] == [[0.4]]  # one whose steps are not known
    with pytest.raises(InputError, match="one token"):
        runs.settings(state | {"tokens": 1}, [])


def drawn(found, **given):
    """The traces of a visitor's runs on the curve."""
    figure = drawing.draw_curve(SECTION.view(given, Path("none.db"), found))
    mine = [trace for trace in figure["data"] if trace["name"] == "your runs"]
    assert {trace["marker"]["color"] for trace in mine} <= {learner("amp").colour}
    return mine


def test_a_run_is_followed_while_it_is_under_way_and_forgotten_if_it_fails() -> None:
    settings = runs.settings(SECTION.view({}, Path("none.db")).state | {"d": 40}, [])
    course = [(None, None), (1.0, 1.02), (0.57, 0.64), (0.51, 0.56)]
    found = runs.partial(settings, course, runs.VISITS.parse([RUN | {"seed": 7}]))
    (_, last) = runs.VISITS.parse(found)
    assert (last.errors, last.expected) == ([1.02, 0.64, 0.56], [1.0, 0.57, 0.51])
    assert (last.running, last.converged) == (True, False)
    trail = drawn(found)[-1]
    assert trail["meta"]["more"]
    assert trail["marker"]["symbol"] == ["triangle-up"] * 3  # nothing has ended
    figure = drawing.draw_steps(SECTION.view({}, Path("none.db"), found))
    assert "still running" in figure["layout"]["xaxis"]["title"]["text"]
    assert len(runs.data(runs.VISITS.parse(found)).splitlines()) == 2
    again = runs.partial(settings, [*course, (0.46, 0.44)], runs.VISITS.parse(found))
    assert [len(run["errors"]) for run in again] == [0, 4]
    assert [run["seed"] for run in runs.partial(settings, [], runs.VISITS.parse(again))] == [7]
    ended = {"mse": 0.3, "steps": 1, "converged": True, "alpha": 0.125, "running": False}
    _, found = runs.finish(settings, ended | {"errors": [1.0, 0.3], "expected": [1.0, 0.3]}, runs.VISITS.parse(again))
    assert [run["running"] for run in found] == [False, False]


def test_the_steps_of_message_passing_are_those_of_the_library_and_end_near_the_limit() -> None:
    events = []
    settings = {"channel": "softmax", "tokens": 2, "noise": 0.0, "rho": 0.5, "alpha": 0.1248, "d": 40, "seed": 3}
    result = runs.work(events.append, **settings)
    task = aim.sample(aim.Softmax(2), 40, 0.1248, 0.5, 3)
    found = aim.message_passing(task.X, task.y, aim.Softmax(2), 0.5, S=task.S, max_steps=100, tol=1e-5, throw=False)
    assert result["errors"] == pytest.approx(found.mse, rel=1e-3)
    assert result["expected"] == pytest.approx(found.history, rel=1e-3)
    assert [event.true_error for event in events[1:]] == pytest.approx(found.mse)  # told while it runs
    assert np.isnan(events[0].true_error)
    _, kept = runs.finish(settings, result, [])
    limit, expected, _, error = drawing.draw_steps(SECTION.view({}, Path("none.db"), kept))["data"]
    assert limit["y"] == pytest.approx([aim.state_evolution(aim.Softmax(2), result["alpha"], 0.5).value] * 2, rel=1e-4)
    assert error["y"][-1] == pytest.approx(limit["y"][0], abs=0.1)
    assert expected["y"] == pytest.approx(found.history, rel=1e-3)
    assert error["x"] == list(range(found.steps + 1))


def test_small_errors_have_a_logarithmic_axis() -> None:
    few = RUN | {"errors": [1.0, 0.1, 1e-3, 1e-7], "expected": [1.0, 0.1, 1e-3, 1e-9], "mse": 1e-7}
    view = SECTION.view({"alpha": "0.8"}, Path("none.db"), [few | {"alpha": 0.25}])
    axis = drawing.draw_steps(view)["layout"]["yaxis"]
    assert axis["type"] == "log"
    assert axis["range"][0] < -7
    many = SECTION.view({}, Path("none.db"), [RUN | {"errors": [1.0, 0.4], "expected": [1.0, 0.4]}])
    assert drawing.draw_steps(many)["layout"]["yaxis"]["range"] == [0, 1.1]
    high = SECTION.view({}, Path("none.db"), [RUN | {"errors": [1.35, 0.4], "expected": [1.0, 0.4]}])
    assert (
        drawing.draw_steps(high)["layout"]["yaxis"]["range"][1] > 1.35
    )  # a small teacher may be far from the prior mean
