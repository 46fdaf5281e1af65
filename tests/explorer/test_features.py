"""The numbers of the page of random features are those of the library; simulations lie where they belong."""

import csv
import time
from pathlib import Path

import numpy as np
import pytest

from attlas import features
from attlas.claims import Series
from attlas.errors import InputError
from attlas.explorer.pages.features import PAGE, drawing, points, theory
from attlas.explorer.simulations import Stored
from attlas.features import targets

(SECTION,) = PAGE.sections
FIGURES = {plot.name: plot for plot in SECTION.plots}
INFINITE = (
    "attention, infinitely many heads",
    "biased attention, infinitely many heads",
    "network, infinitely many neurons",
)


def view(**given):
    return SECTION.view(given, Path("none.db"))


def drawn(name, **given):
    return {trace.get("name"): trace for trace in FIGURES[name].draw(view(**given))["data"]}


def rows(name, **given):
    return list(csv.DictReader(FIGURES[name].data(view(**given)).splitlines()))


@pytest.mark.parametrize(
    ("given", "own", "asked"),
    [
        ({}, {}, {}),
        ({"noise": 0.3, "penalty": "0.01"}, {}, {"noise": 0.3, "alpha": 0.01}),
        ({"heads": "100"}, {}, {"heads": 100}),
        ({"scoring": "tanh", "d": 6, "keys": "2"}, {"d": 6, "keys": 2, "scoring": "tanh"}, {}),
    ],
)
@pytest.mark.parametrize("learner", ["kernel", "biased", "network"])
def test_the_data_are_the_theory_of_the_library(given, own, asked, learner):
    mine = rows("curves", model=learner, range="small", **given)
    bias, kind = (1.0 if learner == "biased" else 0.0), ("network" if learner == "network" else "attention")
    exact = features.theory(**({"d": 8, "keys": 4, "bias": bias, "learner": kind} | own))
    n = [float(row["n"]) for row in mine]
    assert (n[0], n[-1]) == (pytest.approx(8), pytest.approx(1000))
    curve = exact.curve("correlation 1", n, **asked)
    assert [float(row["mse_over_variance"]) for row in mine] == pytest.approx(curve.error.values, rel=1e-7)
    for column in ("alpha", "freedom", "deviation"):
        assert [float(row[column]) for row in mine] == pytest.approx(curve[column].values, rel=1e-5)
    assert {row["converged"] for row in mine} == {"True"}


def test_lines_are_the_theory_to_about_a_pixel_between_its_sizes():
    for heads, tol in (("infinite", 0.02), ("1000", 0.04)):
        traces = FIGURES["curves"].draw(view(heads=heads))["data"]
        lines = [trace for trace in traces if trace.get("name") and len(trace["x"]) > 2]
        for trace, bias, learner in zip(lines, (0, 1, 0), ("attention", "attention", "network"), strict=True):
            n = np.array(trace["x"])[5::23]
            asked = int(heads) if heads.isdigit() else heads
            exact = features.theory(8, 4, bias, learner=learner).curve("correlation 1", n, heads=asked).error.values
            assert trace["y"][5::23] == pytest.approx(exact, rel=tol)


def test_targets_with_signs_need_to_know_the_order():
    blind = drawn("curves", target="signs keys", model="kernel")[INFINITE[0]]["y"]
    assert min(blind) >= 1
    seeing = rows("curves", target="signs keys", model="kernel", positions=1)
    target = targets.KeyAverage(np.eye(8)[0], 1, [1, 1, -1, -1])
    exact = features.theory(8, 4, positions=1.0).curve(target, [float(row["n"]) for row in seeing])
    assert [float(row["mse_over_variance"]) for row in seeing] == pytest.approx(exact.error.values, rel=1e-7)
    assert float(seeing[-1]["mse_over_variance"]) < 1e-3


def test_the_sentence_has_the_costs_and_the_crossing_of_the_library():
    text, plain = drawing.summary(view()), features.theory(8, 4)
    for bias, learner, word in ((0, "attention", "attention"), (1, "attention", "biased"), (0, "network", "network")):
        error = features.theory(8, 4, bias, learner=learner).curve("correlation 1", 320).error.values[0]
        assert f"{error:.3g} for {'the ' if word == 'network' else ''}{word}" in text
    mine, _ = theory.found(view().state)
    assert theory.crossing(mine) == pytest.approx(plain.crossing("correlation 1").value, rel=0.01)
    assert theory.halving(mine["kernel"].curve) == pytest.approx(plain.sample_cost("correlation 1").value, rel=0.01)
    assert f"The bias helps up to n = {theory.crossing(mine):.0f};" in text
    assert "(a constant predictor scores 1)" in text
    assert f"attention overtakes, n = {theory.crossing(mine):.0f}" in drawn("curves")
    never = drawing.summary(view(target="keys 1"))
    assert "The bias does not help" in never
    assert "fewer than 50" in never
    assert not any(name and "overtakes" in name for name in drawn("curves", target="keys 1"))
    assert drawing.summary(view(penalty="0.1", model="kernel")).count("penalty") == 0


def test_against_heads_the_error_peaks_where_numbers_are_as_many_as_samples():
    mine = [row for row in rows("heads", n=2.8, noise=0.2) if row["what"] == "attention"]
    heads = np.array([float(row["heads"]) for row in mine])
    error = np.array([float(row["mse_over_variance"]) for row in mine])
    assert heads[np.argmax(error)] == pytest.approx(630 / 9)
    exact = features.theory(8, 4).curve("correlation 1", 630, heads=list(heads), alpha=1e-6, noise=0.2)
    assert error == pytest.approx(exact.error.values[:, 0], rel=1e-6)
    assert drawn("heads", n=2.8)["M (d + 1) = n"]["x"] == pytest.approx([70, 70])
    coded = [row for row in rows("heads", positions=1, n=2.8) if row["what"] == "attention"]
    assert float(max(coded, key=lambda row: float(row["mse_over_variance"]))["heads"]) == pytest.approx(630 / 13)
    assert "M (d + 1 + keys) = n" in drawn("heads", positions=1)


def test_the_band_is_the_deviation_that_the_theory_states():
    band, curve = FIGURES["curves"].draw(view(model="kernel", heads="1000"))["data"]
    half = len(band["x"]) // 2
    assert np.array(band["y"][:half]) / curve["y"] == pytest.approx(1.10, rel=1e-4)
    assert np.array(band["y"][half:][::-1]) * 1.10 == pytest.approx(curve["y"], rel=1e-4)


@pytest.mark.parametrize(
    ("given", "why"),
    [({"d": 4}, "needs d of at least 5"), ({"positions": 0.5}, "position codes and a bias together have no spectrum")],
)
def test_a_learner_without_a_theory_is_left_out_and_the_summary_says_why(given, why):
    names = [name for name in drawn("curves", **given) if name]
    assert names == [INFINITE[0], INFINITE[2]]
    assert f"No line for biased attention: {'the theory with a bias ' * ('d' in given)}{why}" in drawing.summary(
        view(**given)
    )
    for asked in (drawing.summary, *(part for plot in SECTION.plots for part in (plot.draw, plot.data))):
        with pytest.raises(InputError, match=why):
            asked(view(model="biased", **given))


def test_what_lies_outside_or_is_not_solved_is_said():
    assert "Not sharp for attention: fewer heads than d^2 = 64" in drawing.summary(view(heads="50", model="kernel"))
    found = {
        name: theory.Found(one.curve.assign(converged=one.curve.n > 100), one.here)
        for name, one in theory.found(view(model="kernel").state)[0].items()
    }
    assert drawing._doubts(found) == " The equations were not solved at 2 of 12 sizes for attention."
    x, _ = theory.smooth(found["kernel"].curve)
    assert x[0] > 100


def series(name, **settings):
    settings = {"target": "keys 1", "d": 6, "keys": 4} | settings
    return Stored(
        "features.made", Series(name, settings, "n", "mse over variance", (8, 16), (1, 0.5), (0, 0.1), (1, 3))
    )


def test_simulations_are_drawn_beside_the_learner_and_the_heads_they_belong_to(monkeypatch):
    known = [
        series("kernel", bias=0.0),
        series("biased", bias=2.0),
        series("network"),
        series("heads", heads=200, bias=0.0),
        series("neurons", heads=200, bias=0.0),
        series("relu", heads=100, bias=2.0),
        series("softmax", heads=100, bias=0.0),
        series("heads"),  # how many?
        series("kernel", d=8, keys=16),
    ]
    monkeypatch.setattr(points, "stored", lambda *_: known)

    def shown(**given):
        given = {"target": "keys 1", "d": 6} | given
        return [trace["name"] for trace in FIGURES["curves"].draw(view(**given))["data"] if "error_y" in trace]

    assert shown() == [INFINITE[0], INFINITE[2]]
    assert shown(bias=2) == list(INFINITE)
    assert shown(model="biased", bias=2) == [INFINITE[1]]
    assert shown(heads="200") == ["attention, 200 heads", "network, 1400 neurons"]
    assert shown(heads="100", bias=2) == ["biased attention, 100 heads"]
    for other in ({"noise": 0.1}, {"penalty": "1"}, {"scoring": "exp"}, {"positions": 1}, {"d": 8}, {"keys": "8"}):
        assert shown(**other) == []
    last = rows("curves", target="keys 1", d=6)[-1]
    assert list(last.values())[:3] == [INFINITE[2], "16", "0.5"]
    assert list(last.values())[-4:] == ["0.1", "3", "6", "features.made"]
    assert "The store" not in drawing.summary(view(target="keys 1", d=6))
    assert "at 4 keys, d = 6, M = 100; 4 keys, d = 6, M = 200; 4 keys, d = 6, M = ∞; 16 keys, d = 8, M = ∞." in (
        drawing.summary(view(target="keys 1", d=10))
    )
    assert "The store" not in drawing.summary(view(target="keys 2"))


def test_series_of_claims_can_be_shown():
    from attlas.claims import find
    from attlas.lab.shipped import shipped
    from attlas.lab.verdicts import measurements

    seen = set()
    for claim in find(["features.bias-correlation", "features.keys", "features.key-averages", "features.activations"]):
        for one in claim.series(measurements(claim, shipped([claim]))):
            if (one.x_name, one.y_name) == ("n", "mse over variance") and set(one.settings) <= set(points._SETTINGS):
                seen.add((claim.id.split(".")[1], points._learner(Stored(claim.id, one))))
    assert {
        ("bias-correlation", "kernel"),
        ("bias-correlation", "biased"),
        ("keys", "network"),
        ("key-averages", "kernel"),
        ("key-averages", "network"),
        ("activations", "kernel"),
    } <= seen


def test_another_target_or_noise_costs_no_new_solution_of_the_grid():
    def seconds(**given):
        start = time.process_time()
        for plot in SECTION.plots:
            plot.draw(view(d=10, **given))
        return time.process_time() - start

    cold = seconds()
    assert min(seconds(target="keys 2"), seconds(target="query 2"), seconds(target="keys 1")) < cold / 3
