"""The numbers of the page are those of the library, found by another way."""

import csv
import threading
import time

import numpy as np
import pytest

from attlas import aim, features, layers, recovery, tokens
from attlas.errors import InputError
from attlas.explorer import simulations
from attlas.explorer.controls import read
from attlas.explorer.pages import aim as bayes
from attlas.explorer.pages import features as features_door
from attlas.explorer.pages import recovery as recovery_door
from attlas.features.ridge import GRID
from attlas.lab import run
from attlas.numerics import stream


def state(door, **given):
    return read(door.ADDRESS, given)


@pytest.mark.parametrize(("channel", "tokens_", "noise"), [("softmax", 3, 0), ("linear", 1, 0.25), ("hardmax", 2, 0)])
def test_the_curve_is_the_state_evolution(channel, tokens_, noise) -> None:
    chosen = state(bayes, channel=channel, tokens=tokens_, noise=noise, rho=0.7)
    trace = bayes.draw_curve(chosen, [], [])["data"][0]
    for i in (5, 20, 40):
        theory = aim.state_evolution(bayes.channel_of(channel, tokens_, noise), trace["x"][i], 0.7, steps=0)
        assert trace["y"][i] == pytest.approx(theory.value, rel=1e-4, abs=1e-5)


def test_the_diagram_has_its_edge_at_the_formula() -> None:
    data = bayes.draw_diagram(state(bayes, tokens=2))["data"]
    rhos, edge = np.array(data[1]["y"]), np.array(data[1]["x"])
    assert edge == pytest.approx(np.where(rhos <= 1, 2 * rhos - rhos**2, 1) / 4, rel=1e-4)
    V = np.array(data[0]["z"])
    alphas = np.array(data[0]["x"])
    assert np.all(V[alphas[None, :] > 1.001 * edge[:, None]] == 0)
    assert np.all(V[alphas[None, :] < 0.9 * edge[:, None]] > 0)


def test_training_is_shown_with_its_decay() -> None:
    chosen = state(bayes, trained="on", decay="-1")
    trace = bayes.draw_curve(chosen, [], [])["data"][-1]
    assert trace["name"] == "trained, decay 0.1"
    assert trace["y"][0] == 1.5  # nothing learned: S_hat = 0, and ||S||^2/d = 1 + rho
    assert trace["y"][3] == pytest.approx(aim.trained(aim.Softmax(2), trace["x"][3], 0.5, 0.1).value, rel=1e-4)
    (low, high) = bayes.draw_curve(state(bayes, trained="on", decay="0", rho="1.5"), [], [])["layout"]["yaxis"]["range"]
    assert low == 0
    assert high > 2.5
    density = bayes.draw_spectrum(chosen)["data"][0]
    found = aim.trained(aim.Softmax(2), 0.4 * bayes.span("softmax", 2), 0.5, 0.1)
    assert np.trapezoid(density["y"], density["x"]) == pytest.approx(found.rank, abs=0.01)


def test_the_spectrum_is_a_density_in_its_csv(tmp_path) -> None:
    chosen = state(bayes, trained="on", decay="-1")
    text = bayes.spectrum_data(chosen, tmp_path / "none.db")
    rows = [(row["what"], float(row["eigenvalue"]), float(row["value"])) for row in csv.DictReader(text.splitlines())]
    found = aim.trained(aim.Softmax(2), 0.4 * bayes.span("softmax", 2), 0.5, 0.1)
    assert rows[0] == ("share of zeros", 0.0, 1 - found.rank)
    x, density = np.array([row[1:] for row in rows[1:]]).T
    assert np.trapezoid(density, x) == pytest.approx(found.rank, abs=0.01)
    assert np.trapezoid(density * x, x) == pytest.approx(np.trapezoid(found.spectrum(x) * x, x), rel=1e-9)


def test_what_cannot_be_live_is_refused() -> None:
    with pytest.raises(InputError, match="takes a minute"):
        bayes.draw_curve(state(bayes, channel="hardmax", tokens=3), [], [])
    with pytest.raises(InputError, match="one token is always 1"):
        bayes.draw_curve(state(bayes, channel="softmax", tokens=1), [], [])


def test_the_csv_has_every_digit_of_both_plots(tmp_path) -> None:
    rows = list(csv.DictReader(bayes.data(state(bayes, rho=0.3, trained="on"), tmp_path / "none.db").splitlines()))
    kinds = {row["what"] for row in rows}
    assert kinds == {
        "Bayes limit",
        "perfect recovery",
        "trained with decay 0.01",
        "diagram",
        "diagram, perfect recovery",
    }
    for row in rows[-20:]:
        assert float(row["alpha"]) == pytest.approx(aim.recovery_threshold(aim.Softmax(2), float(row["rho"])))
    for row in (rows[20], rows[-200]):
        theory = aim.state_evolution(aim.Softmax(2), float(row["alpha"]), float(row["rho"]), steps=0).value
        assert float(row["V"]) == pytest.approx(theory, rel=1e-12)


def test_simulations_of_the_store_are_means_over_seeds(tmp_path) -> None:
    store = tmp_path / "attlas.db"
    grid = {"d": [20], "channel": ["softmax"], "tokens": [2], "alpha": [0.1], "noise": [0.0]}
    run(["aim.state-evolution"], store=store, grid=grid, seeds=3, executor="serial")
    (found,) = simulations.bayes(store)
    errors = []
    for seed in range(3):
        task = aim.sample(aim.Softmax(2), 20, 0.1, 0.5, seed)
        amp = aim.message_passing(task.X, task.y, aim.Softmax(2), 0.5, S=task.S, max_steps=60, throw=False)
        errors.append(amp.mse[-1])
    assert found.x == 0.1
    assert found.mean == pytest.approx(np.mean(errors), rel=1e-9)
    assert found.error == pytest.approx(np.std(errors, ddof=1) / np.sqrt(3), rel=1e-9)
    traces = bayes.draw_curve(state(bayes), [found], [])["data"]
    assert traces[-1]["name"] == "message passing"
    assert f"message passing (aim.state-evolution),0.1,0.5,{found.mean!r},{found.error!r},20,3" in bayes.data(
        state(bayes), store
    )
    assert bayes._elsewhere([found], "softmax") == " The store has simulations at T = 2, ρ = 0.5."


def test_a_store_that_is_not_there_or_no_store_has_no_simulations(tmp_path) -> None:
    assert simulations.bayes(tmp_path / "none.db") == ()
    (tmp_path / "bad.db").write_bytes(b"not a store at all" * 100)
    assert simulations.features(tmp_path / "bad.db") == ()


def test_the_curves_of_random_features_are_kernel_ridge() -> None:
    chosen = state(features_door, target="keys 1", keys="4", d="4", seed="2", model="attention")
    sizes, errors = features_door.shown(chosen)["attention"]
    X, X_test = (tokens.sphere(n, 5, 4, stream(2, name)) for n, name in ((128, "train"), (150, "test")))
    beta = stream(2, "target").standard_normal(4)
    beta /= np.linalg.norm(beta)
    y, expected = (x[:, 1:] @ beta for x in (X, X_test))
    y, expected = y.mean(1), expected.mean(1)
    n = int(sizes[-1])
    K, cross = features.attention_kernel(X[:n]), features.attention_kernel(X_test, X[:n])
    best = np.inf
    for penalty in np.array(GRID) * np.trace(features.attention_kernel(X)) / 128:
        prediction = cross @ np.linalg.solve(K + penalty * np.eye(n), y[:n])
        error = np.mean((prediction - expected) ** 2) / expected.var()
        best = min(best, abs(error - errors[-1]) / errors[-1])
    assert best < 1e-6  # one of the penalties, chosen by leave-one-out, gave it


def test_a_black_box_tells_everything_in_the_end_and_nothing_before() -> None:
    told, _, Theta, W = recovery_door.asked(3, 4)
    nothing = recovery_door.known(3, 4, 0)
    assert all(np.isnan(part).all() for part in nothing)
    assert recovery_door.known(3, 4, 3)[0] == pytest.approx(W[0])
    row = recovery_door.known(3, 4, 6)[1]
    assert row[0] == pytest.approx(Theta[0][0], abs=1e-9)
    assert np.isnan(row[1:]).all()
    assert recovery_door.known(3, 4, len(told))[1] == pytest.approx(Theta[0], abs=1e-9)
    X, answer = told[7]
    assert answer == pytest.approx(layers.multi_head_attention(X[None], Theta, W)[0, -1])


def test_the_matrices_of_a_box_are_a_file(tmp_path) -> None:
    chosen = state(recovery_door, dim="3", box="4", asked="6")
    rows = list(csv.DictReader(recovery_door.matrices_data(chosen, tmp_path / "none.db").splitlines()))
    _, _, Theta, W = recovery_door.asked(3, 4)
    true = [*W[0].ravel(), *Theta[0].ravel()]
    assert [float(row["true"]) for row in rows] == true
    assert [row["matrix"] for row in rows] == ["W"] * 9 + ["Theta"] * 9
    assert [float(row["known"]) for row in rows[:12]] == pytest.approx(true[:12], abs=1e-9)
    assert [row["known"] for row in rows[12:]] == [""] * 6  # the second and third row of Theta were not asked about


@pytest.mark.parametrize("box", range(6))
def test_black_boxes_of_every_size_are_told(box) -> None:
    for dim in (2, 5, 6):
        told, _, Theta, _ = recovery_door.asked(dim, box)
        assert recovery_door.known(dim, box, len(told))[1] == pytest.approx(Theta[0], abs=1e-7)
        assert len(told) <= recovery_door.ASKED[2].high


def test_a_body_is_drawn_with_its_words() -> None:
    frame = {
        "title": "T",
        "slabs": 3,
        "rank": 2,
        "lines": [[0, 0, 1, 1]],
        "proxy": [0, 1],
        "flat": [1, 0],
        "heads": [[1, 0], [-1, 0]],
    }
    found = {"of": "d = 6", "frames": [frame | {"gap": 1.2}], "true": [[1, 0], [-1, 0]], "reach": [2, 1]}
    figure, text = recovery_door.draw_body(found, 0)
    assert [trace["name"] for trace in figure["data"]] == [
        "slabs",
        "flattest direction",
        "proxy",
        "true heads",
        "found heads",
    ]
    assert "not to be trusted" in text
    rows = list(csv.DictReader(recovery_door.body_data(found).splitlines()))
    assert [row["what"] for row in rows] == [
        "slab",
        "flattest direction",
        "proxy",
        "true head",
        "true head",
        "found head",
        "found head",
    ]
    assert list(rows[1].values()) == ["d = 6", "1", "flattest direction", "-1", "1", "1", "1"]
    assert list(rows[-1].values()) == ["d = 6", "1", "found head", "-1", "0", "", ""]
    assert recovery.Sculpted.__doc__  # the number 1.5 is that of its docstring
    assert "1.5" in recovery.Sculpted.__doc__


@pytest.mark.parametrize(
    "bad", [[1], "x", [{}], [{"seed": 10**4300}], [{"channel": "softmax", "d": float("nan")}], None]
)
def test_what_a_browser_hands_back_is_believed_only_if_it_looks_like_runs(bad) -> None:
    assert bayes._runs(bad) == []
    good = {"channel": "softmax", "tokens": 2, "noise": 0.0, "rho": 0.5, "alpha": 0.1, "error": 0.4, "d": 20, "seed": 0}
    assert bayes._runs([good]) == [good]
    assert bayes._runs([good | {"seed": 10**4300}]) == []
    assert bayes.runs_data(bad).splitlines() == ["channel,tokens,noise,rho,alpha,d,seed,error,converged"]
    assert bayes.runs_data([good]).splitlines()[1] == "softmax,2,,0.5,0.1,20,0,0.4,"  # which has no noise
    assert bayes.runs_data([good | {"channel": "linear"}]).splitlines()[1] == "linear,2,0.0,0.5,0.1,20,0,0.4,"


def test_a_locked_store_does_not_hold_up_the_theory(tmp_path, monkeypatch) -> None:
    begun, unlocked = threading.Event(), threading.Event()

    def locked(store, door):
        begun.set()
        unlocked.wait(60)
        return ("simulations",)

    monkeypatch.setattr(simulations, "_FIRST", 0.1)
    monkeypatch.setattr(simulations, "_load", locked)
    store = tmp_path / "slow.db"
    store.write_bytes(b"x")
    for _ in range(2):
        assert simulations.bayes(store) == ()  # answered while the store is still being read
    assert begun.wait(60)
    unlocked.set()
    end = time.monotonic() + 60
    while simulations.bayes(store) == () and time.monotonic() < end:
        time.sleep(0.01)
    assert simulations.bayes(store) == ("simulations",)
